//! The objects of a watch of single objects: those that are wanted, and those that the server has in its list view.

use std::collections::BTreeSet;

use roost_vim_wire::MoRef;
use tokio::time::Instant;

/// In order, so that a run of one seed is the same run again.
#[derive(Debug, Default)]
pub(super) struct ObjectList {
    wanted: BTreeSet<MoRef>,
    /// What the server's list has, unless there is none.
    listed: BTreeSet<MoRef>,
    /// A call that changes the list is under way.
    changing: bool,
    /// Not before this time, after a failure.
    pub(super) paused_until: Option<Instant>,
}

/// What the server's list has to gain and lose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListChange {
    pub(super) add: Vec<MoRef>,
    pub(super) remove: Vec<MoRef>,
}

impl ObjectList {
    pub(super) fn new(objects: &[MoRef]) -> Self {
        Self { wanted: objects.iter().cloned().collect(), ..Self::default() }
    }

    pub(super) fn change(&mut self, add: Vec<MoRef>, remove: &[MoRef]) {
        for obj in remove {
            self.wanted.remove(obj);
        }
        self.wanted.extend(add);
    }

    /// A list is made anew, of what is returned.
    pub(super) fn begin(&mut self) -> Vec<MoRef> {
        self.listed.clone_from(&self.wanted);
        (self.changing, self.paused_until) = (false, None);
        self.wanted.iter().cloned().collect()
    }

    /// Whether the server's list has to change, and nothing is in the way.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let is_paused = self.paused_until.is_some_and(|until| until > now);
        !self.changing && !is_paused && self.wanted != self.listed
    }

    pub(super) fn begin_change(&mut self) -> ListChange {
        self.changing = true;
        ListChange {
            add: self.wanted.difference(&self.listed).cloned().collect(),
            remove: self.listed.difference(&self.wanted).cloned().collect(),
        }
    }

    pub(super) fn changed(&mut self, change: ListChange) {
        (self.changing, self.paused_until) = (false, None);
        for obj in &change.remove {
            self.listed.remove(obj);
        }
        self.listed.extend(change.add);
    }

    /// The object does not exist. It is not asked for again, unless somebody wants it anew.
    pub(super) fn missing(&mut self, obj: &MoRef) {
        self.listed.remove(obj);
        self.wanted.remove(obj);
    }

    pub(super) fn not_changed(&mut self, until: Instant) {
        (self.changing, self.paused_until) = (false, Some(until));
    }

    /// The object left. Unless that is the end of a change of ours, it does not exist any more.
    pub(super) fn left(&mut self, obj: &MoRef) {
        if !self.changing && self.listed.remove(obj) {
            self.wanted.remove(obj);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vms(ids: &[&str]) -> Vec<MoRef> {
        ids.iter().map(|id| MoRef::vm(*id)).collect()
    }

    #[test]
    fn a_list_changes_by_what_differs() {
        let now = Instant::now();
        let mut list = ObjectList::new(&vms(&["a", "b"]));
        assert_eq!(list.begin(), vms(&["a", "b"]));
        assert!(!list.is_due(now), "nothing differs");
        list.change(vms(&["b", "c", "d"]), &vms(&["a"]));
        assert!(list.is_due(now));
        let change = list.begin_change();
        assert_eq!(change, ListChange { add: vms(&["c", "d"]), remove: vms(&["a"]) });
        list.change(vec![], &vms(&["b"]));
        assert!(!list.is_due(now), "one change at a time");
        list.changed(change);
        list.missing(&MoRef::vm("d"));
        assert_eq!(list.begin_change(), ListChange { add: vec![], remove: vms(&["b"]) });
    }

    #[test]
    fn an_object_that_comes_back_while_it_leaves_is_listed_again() {
        let mut list = ObjectList::new(&vms(&["a"]));
        list.begin();
        list.change(vec![], &vms(&["a"]));
        let change = list.begin_change();
        list.change(vms(&["a"]), &[]);
        list.left(&MoRef::vm("a"));
        list.changed(change);
        list.left(&MoRef::vm("a"));
        assert_eq!(list.begin_change().add, vms(&["a"]));
    }

    #[test]
    fn an_object_that_is_destroyed_is_not_asked_for_again() {
        let mut list = ObjectList::new(&vms(&["a", "b"]));
        list.begin();
        list.left(&MoRef::vm("a"));
        assert!(!list.is_due(Instant::now()));
        assert_eq!(list.begin(), vms(&["b"]));
    }
}
