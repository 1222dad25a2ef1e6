//! The part of the inventory that was read for one search, and the search itself. Nothing here does I/O.

use std::collections::BTreeMap;

use roost_vim_wire::types::ObjectContent;
use roost_vim_wire::{MoRef, MoType};

use super::kind::Kind;
use super::name::Pattern;
use super::wanted::{Path, Wanted};

/// An object of the inventory that was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// From the root, `/DC0/vm/templates/debian12`, with names as vCenter stores them.
    pub path: String,
    pub name: String,
    pub moref: MoRef,
}

#[derive(Debug)]
struct Node {
    name: String,
    parent: Option<MoRef>,
    children: Vec<MoRef>,
    is_template: bool,
    is_uplink: bool,
}

/// Objects by name and parent. Ordered, so that what is listed comes out the same every time.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: BTreeMap<MoRef, Node>,
    /// Where the tree starts, and the path of that: the root folder with an empty one, or a datacenter.
    start: MoRef,
    start_path: String,
}

impl Tree {
    pub(crate) fn new(start: &MoRef, start_path: &str, objects: Vec<ObjectContent>) -> Self {
        let mut nodes: BTreeMap<_, _> =
            objects.into_iter().map(|object| (object.obj.clone(), Node::of(object))).collect();
        let edges: Vec<_> = nodes
            .iter()
            .filter_map(|(moref, node)| Some((node.parent.clone()?, moref.clone())))
            .collect();
        for (parent, child) in edges {
            if let Some(parent) = nodes.get_mut(&parent) {
                parent.children.push(child);
            }
        }
        Self { nodes, start: start.clone(), start_path: start_path.into() }
    }

    /// The found object for `moref`; `None` if it was not read.
    pub(crate) fn found(&self, moref: &MoRef) -> Option<Found> {
        let node = self.nodes.get(moref)?;
        Some(Found { path: self.path(moref), name: node.name.clone(), moref: moref.clone() })
    }

    fn path(&self, moref: &MoRef) -> String {
        let mut names = Vec::new();
        let mut at = Some(moref);
        // A parent chain has no cycle on a sane server; the bound makes that no matter of trust.
        while let Some(moref) = at.filter(|moref| **moref != self.start && names.len() < 256) {
            let Some(node) = self.nodes.get(moref) else { break };
            names.push(node.name.as_str());
            at = node.parent.as_ref();
        }
        let mut path = self.start_path.clone();
        for name in names.iter().rev() {
            path.push('/');
            path.push_str(name);
        }
        if path.is_empty() { "/".into() } else { path }
    }

    /// Every object that `kind` includes, in the order of paths.
    pub(crate) fn all(&self, kind: Kind) -> Vec<Found> {
        let mut found: Vec<_> = self
            .nodes
            .keys()
            .filter(|moref| self.counts(kind, moref))
            .filter_map(|moref| self.found(moref))
            .collect();
        found.sort();
        found
    }

    /// What `wanted` means among the objects of `kind`.
    pub(crate) fn search(&self, kind: Kind, wanted: &Wanted) -> Vec<Found> {
        let mut hits: Vec<MoRef> = match wanted {
            Wanted::Default => self.defaults(kind),
            Wanted::Name { pattern, .. } => self.by_name(kind, pattern),
            Wanted::Path(path) => self.by_path(kind, path),
        };
        hits.sort();
        hits.dedup();
        let mut found: Vec<_> = hits.iter().filter_map(|moref| self.found(moref)).collect();
        found.sort();
        found
    }

    fn defaults(&self, kind: Kind) -> Vec<MoRef> {
        let is_default = |moref: &&MoRef| match kind {
            Kind::VmFolder => self.type_folders(kind).contains(moref),
            // The root pool of each compute resource.
            Kind::ResourcePool => {
                self.parent(moref).is_some_and(|parent| parent.kind.is_a("ComputeResource"))
            }
            _ => true,
        };
        self.nodes
            .keys()
            .filter(|moref| self.is_usable(kind, moref))
            .filter(is_default)
            .cloned()
            .collect()
    }

    fn by_name(&self, kind: Kind, pattern: &Pattern) -> Vec<MoRef> {
        let mut hits =
            self.matching(self.nodes.keys().filter(|moref| self.counts(kind, moref)), pattern);
        if hits.is_empty() {
            let holders = self.nodes.keys().filter(|moref| kind.stands_for_content(&moref.kind));
            hits = self.contents(kind, &self.matching(holders, pattern));
        }
        hits
    }

    fn by_path(&self, kind: Kind, path: &Path) -> Vec<MoRef> {
        let (mut level, parts) = self.beginning(kind, path);
        for part in parts {
            let below: Vec<&MoRef> = level.iter().flat_map(|moref| self.children(moref)).collect();
            level = self.matching(below.into_iter(), part);
        }
        if path.below {
            let (mut hits, mut queue) = (Vec::new(), level);
            while let Some(moref) = queue.pop() {
                queue.extend(self.children(&moref).cloned());
                hits.extend(Some(moref).filter(|moref| self.counts(kind, moref)));
            }
            return hits;
        }
        let mut hits = self.contents(kind, &level);
        hits.extend(level.into_iter().filter(|moref| self.counts(kind, moref)));
        hits
    }

    /// Where a path begins, and the parts still to walk from there.
    fn beginning<'p>(&self, kind: Kind, path: &'p Path) -> (Vec<MoRef>, &'p [Pattern]) {
        if !path.absolute {
            let folders = self.type_folders(kind);
            let start = if kind == Kind::Datacenter { vec![self.start.clone()] } else { folders };
            return (start, &path.parts);
        }
        // A tree that starts at a datacenter only holds what is below it.
        let above: Vec<&str> = self.start_path.split('/').filter(|part| !part.is_empty()).collect();
        let fits = above.len() <= path.parts.len()
            && above
                .iter()
                .zip(&path.parts)
                .all(|(name, part)| part.is_exactly(name) || part.matches(name));
        if fits {
            (vec![self.start.clone()], &path.parts[above.len()..])
        } else {
            (Vec::new(), &[])
        }
    }

    /// The objects whose names fit; those whose name is the very text go before those that only match the pattern.
    fn matching<'m>(
        &self,
        among: impl Iterator<Item = &'m MoRef> + Clone,
        pattern: &Pattern,
    ) -> Vec<MoRef> {
        let name = |moref: &MoRef| self.nodes.get(moref).map(|node| node.name.as_str());
        let exact: Vec<_> = among
            .clone()
            .filter(|moref| name(moref).is_some_and(|name| pattern.is_exactly(name)))
            .cloned()
            .collect();
        if !exact.is_empty() || !pattern.is_glob() {
            return exact;
        }
        among
            .filter(|moref| name(moref).is_some_and(|name| pattern.matches(name)))
            .cloned()
            .collect()
    }

    fn contents(&self, kind: Kind, holders: &[MoRef]) -> Vec<MoRef> {
        let holders = holders.iter().filter(|moref| kind.stands_for_content(&moref.kind));
        holders
            .flat_map(|moref| self.children(moref))
            .filter(|moref| self.counts(kind, moref))
            .cloned()
            .collect()
    }

    /// The `vm`, `host`, `datastore` or `network` folder of every datacenter in the tree.
    fn type_folders(&self, kind: Kind) -> Vec<MoRef> {
        let Some((_, fixed_name)) = kind.folder() else { return Vec::new() };
        let datacenters = self.nodes.keys().filter(|moref| moref.kind == MoType::Datacenter);
        let folders = datacenters.flat_map(|moref| self.children(moref));
        folders
            .filter(|moref| self.nodes.get(moref).is_some_and(|node| node.name == fixed_name))
            .cloned()
            .collect()
    }

    /// Whether the object is of the kind at all. Folders outside the VM branch are not read, except those above datacenters.
    fn counts(&self, kind: Kind, moref: &MoRef) -> bool {
        kind.includes(&moref.kind) && (kind != Kind::VmFolder || self.is_below_datacenter(moref))
    }

    fn is_below_datacenter(&self, moref: &MoRef) -> bool {
        std::iter::successors(self.parent(moref), |moref| self.parent(moref))
            .take(256)
            .any(|moref| moref.kind == MoType::Datacenter)
    }

    /// Whether the object can serve as what is looked for, and not only bear its name.
    pub(crate) fn is_usable(&self, kind: Kind, moref: &MoRef) -> bool {
        self.counts(kind, moref) && self.unusable_because(kind, moref).is_none()
    }

    pub(crate) fn unusable_because(&self, kind: Kind, moref: &MoRef) -> Option<&'static str> {
        let node = self.nodes.get(moref)?;
        match kind {
            Kind::Template if !node.is_template => {
                Some("it is a virtual machine and not a template")
            }
            Kind::Network if moref.kind.is_a("DistributedVirtualSwitch") => {
                Some("it is a distributed switch; name one of its port groups")
            }
            Kind::Network if node.is_uplink => {
                Some("it is the uplink port group of a distributed switch")
            }
            _ => None,
        }
    }

    fn parent(&self, moref: &MoRef) -> Option<&MoRef> {
        self.nodes.get(moref)?.parent.as_ref()
    }

    fn children(&self, moref: &MoRef) -> impl Iterator<Item = &MoRef> + Clone {
        self.nodes.get(moref).into_iter().flat_map(|node| &node.children)
    }
}

impl Node {
    fn of(object: ObjectContent) -> Self {
        let mut node = Self {
            name: String::new(),
            parent: None,
            children: Vec::new(),
            is_template: false,
            is_uplink: false,
        };
        for property in object.prop_set {
            match property.name.as_str() {
                "name" => node.name = property.val.as_str().unwrap_or_default().into(),
                "parent" => node.parent = property.val.as_ref().cloned(),
                "config.template" => node.is_template = property.val.as_bool().unwrap_or_default(),
                "config.uplink" => node.is_uplink = property.val.as_bool().unwrap_or_default(),
                _ => {}
            }
        }
        node
    }
}

#[cfg(test)]
mod tests;
