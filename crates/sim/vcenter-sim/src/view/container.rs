//! Who is below a container.

use std::collections::{HashSet, VecDeque};

use roost_vim_wire::{MoRef, MoType};

use super::Deltas;
use crate::inventory::{Changed, Inventory};
use crate::ordered_set::OrderedSet;

#[derive(Debug)]
pub(crate) struct Container {
    pub root: MoRef,
    /// Kinds or base kinds; none stands for all.
    pub kinds: Vec<String>,
    pub is_recursive: bool,
}

/// Whether such a change can move an object from one container to another.
pub(super) fn moves(paths: &[Changed]) -> bool {
    paths.iter().any(|changed| {
        matches!(changed.path(), "parent" | "resourcePool" | "runtime.host" | "parentVApp")
    })
}

impl Container {
    pub(crate) fn can_be(root: &MoRef) -> bool {
        ["Folder", "Datacenter", "ComputeResource", "ResourcePool", "HostSystem"]
            .iter()
            .any(|base| root.kind.is_a(base))
    }

    /// Whether this is a kind of entity.
    pub(crate) fn can_show(kind: &str) -> bool {
        MoType::from(kind).is_a("ManagedEntity")
    }

    fn shows(&self, obj: &MoRef) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|kind| obj.kind.is_a(kind))
    }

    /// All members, nearest first.
    pub(crate) fn list(&self, inventory: &Inventory) -> OrderedSet<MoRef> {
        let mut seen = HashSet::from([self.root.clone()]);
        let mut members = OrderedSet::default();
        let mut ahead = VecDeque::from([self.root.clone()]);
        while let Some(place) = ahead.pop_front() {
            for child in inventory.children(&place) {
                if !seen.insert(child.clone()) {
                    continue;
                }
                if self.shows(&child) {
                    members.insert(child.clone());
                }
                if self.is_recursive {
                    ahead.push_back(child);
                }
            }
        }
        members
    }

    /// Whether this object is a member: it looks upwards, which costs the depth of the tree and not its size.
    pub(crate) fn holds(&self, obj: &MoRef, inventory: &Inventory) -> bool {
        self.shows(obj) && self.is_above(obj, inventory)
    }

    fn is_above(&self, obj: &MoRef, inventory: &Inventory) -> bool {
        let mut seen = Vec::new();
        let mut ahead = inventory.containers(obj);
        while let Some(place) = ahead.pop() {
            if place == self.root {
                return true;
            }
            if self.is_recursive && !seen.contains(&place) {
                ahead.extend(inventory.containers(&place));
                seen.push(place);
            }
        }
        false
    }

    /// Looks again at an object that has moved, and at all below it if there can be any.
    pub(super) fn recount(
        &self,
        obj: &MoRef,
        inventory: &Inventory,
        members: &mut OrderedSet<MoRef>,
        deltas: &mut Deltas<'_>,
    ) {
        if self.is_recursive && Self::can_be(obj) {
            let now = self.list(inventory);
            for gone in members.iter().filter(|member| !now.contains(member)) {
                deltas.left(gone);
            }
            for new in now.iter().filter(|member| !members.contains(member)) {
                deltas.entered(new);
            }
            *members = now;
        } else if self.holds(obj, inventory) {
            if members.insert(obj.clone()) {
                deltas.entered(obj);
            }
        } else if members.remove(obj) {
            deltas.left(obj);
        }
    }
}
