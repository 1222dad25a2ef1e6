//! Views: named sets of objects that live in a session and follow the inventory.

mod calls;
mod container;

use std::collections::BTreeMap;
use std::sync::Arc;

use roost_vim_wire::{Array, MoRef, MoType, Value};

pub(crate) use calls::call;
pub(crate) use container::Container;

use crate::inventory::{Change, Inventory};
use crate::ordered_set::OrderedSet;
use crate::property::{Found, no_such};

#[derive(Debug, Default)]
pub(crate) struct Views {
    views: BTreeMap<Arc<str>, View>,
    deltas: Vec<ViewDelta>,
}

#[derive(Debug)]
struct View {
    obj: MoRef,
    session: Arc<str>,
    members: OrderedSet<MoRef>,
    /// What decides who is a member; a list view's members are decided by calls.
    container: Option<Container>,
}

/// One member more or fewer. The collectors are told this instead of the whole view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ViewDelta {
    pub view: MoRef,
    pub member: MoRef,
    pub entered: bool,
}

impl Views {
    pub(crate) fn count(&self) -> usize {
        self.views.len()
    }

    /// Whether the session has this view.
    pub(crate) fn contains(&self, obj: &MoRef, session: &str) -> bool {
        self.get(obj).is_some_and(|view| &*view.session == session)
    }

    pub(crate) fn of_session(&self, session: &str) -> impl Iterator<Item = &MoRef> {
        self.views.values().filter(move |view| &*view.session == session).map(|view| &view.obj)
    }

    pub(crate) fn members(&self, obj: &MoRef) -> impl Iterator<Item = &MoRef> {
        self.get(obj).into_iter().flat_map(|view| view.members.iter())
    }

    pub(crate) fn property(
        &self,
        obj: &MoRef,
        path: &str,
        inventory: &Inventory,
        is_stale: bool,
    ) -> Found {
        let Some(view) = self.get(obj) else { return no_such(path) };
        let refs = |members: Vec<MoRef>| {
            Value::Array(Array::new(
                "ManagedObjectReference",
                members.into_iter().map(Value::Ref).collect(),
            ))
        };
        Ok(match (path, &view.container) {
            // A frozen inventory is another one than the members were counted in.
            ("view", Some(container)) if is_stale => {
                Some(refs(container.list(inventory).iter().cloned().collect()))
            }
            ("view", _) => Some(refs(view.members.iter().cloned().collect())),
            ("container", Some(container)) => Some(Value::Ref(container.root.clone())),
            ("type", Some(container)) => {
                let kinds = container.kinds.iter().map(Value::string).collect();
                Some(Value::Array(Array::new("xsd:string", kinds)))
            }
            ("recursive", Some(container)) => Some(Value::Bool(container.is_recursive)),
            _ => return no_such(path),
        })
    }

    fn get(&self, obj: &MoRef) -> Option<&View> {
        self.views.get(&obj.id).filter(|view| view.obj.kind == obj.kind)
    }

    fn add(
        &mut self,
        id: String,
        session: &str,
        container: Option<Container>,
        members: OrderedSet<MoRef>,
    ) -> MoRef {
        let kind = if container.is_some() { MoType::ContainerView } else { MoType::ListView };
        let obj = MoRef::new(kind, id);
        let view = View { obj: obj.clone(), session: session.into(), members, container };
        self.views.insert(Arc::clone(&obj.id), view);
        obj
    }

    fn change_members(
        &mut self,
        obj: &MoRef,
        change: impl FnOnce(&mut OrderedSet<MoRef>, &mut Deltas<'_>),
    ) {
        let Some(view) = self.views.get_mut(&obj.id) else { return };
        change(&mut view.members, &mut Deltas { view: obj, into: &mut self.deltas });
    }

    /// Watchers of a view that ends see its members leave.
    pub(crate) fn destroy(&mut self, obj: &MoRef) {
        if let Some(view) = self.views.remove(&obj.id) {
            let mut deltas = Deltas { view: obj, into: &mut self.deltas };
            view.members.iter().for_each(|member| deltas.left(member));
        }
    }

    /// Nobody is left to be told.
    pub(crate) fn end_session(&mut self, session: &str) {
        self.views.retain(|_, view| &*view.session != session);
    }

    /// Lets the views follow a change of the inventory.
    pub(crate) fn apply(&mut self, change: &Change, inventory: &Inventory) {
        for view in self.views.values_mut() {
            let mut deltas = Deltas { view: &view.obj, into: &mut self.deltas };
            match (change, &view.container) {
                (Change::Entered(obj), Some(container))
                    if container.holds(obj, inventory) && view.members.insert(obj.clone()) =>
                {
                    deltas.entered(obj);
                }
                (Change::Left(obj), _) if view.members.remove(obj) => deltas.left(obj),
                (Change::Modified(obj, paths), Some(container)) if container::moves(paths) => {
                    container.recount(obj, inventory, &mut view.members, &mut deltas);
                }
                _ => {}
            }
        }
    }

    pub(crate) fn take_deltas(&mut self) -> Vec<ViewDelta> {
        std::mem::take(&mut self.deltas)
    }
}

/// Where a view's changes are noted.
#[derive(Debug)]
struct Deltas<'a> {
    view: &'a MoRef,
    into: &'a mut Vec<ViewDelta>,
}

impl Deltas<'_> {
    fn entered(&mut self, member: &MoRef) {
        self.into.push(ViewDelta {
            view: self.view.clone(),
            member: member.clone(),
            entered: true,
        });
    }

    fn left(&mut self, member: &MoRef) {
        self.into.push(ViewDelta {
            view: self.view.clone(),
            member: member.clone(),
            entered: false,
        });
    }
}
