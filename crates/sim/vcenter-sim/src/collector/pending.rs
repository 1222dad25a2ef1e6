//! What a client has not been told yet about one object, and how news add up.

use std::sync::Arc;

use roost_vim_wire::types::PropertyChangeOp;

/// News of one object.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Pending {
    Enter,
    Modify(Paths),
    Leave,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Paths {
    /// It left and came back: whatever was asked may have changed.
    All,
    These(Vec<PathChange>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct PathChange {
    pub name: Arc<str>,
    pub op: PropertyChangeOp,
}

impl Pending {
    /// `self` and then `next`, for a client that knows the object or does not. `None`: nothing is left to tell.
    pub(super) fn then(self, next: Self, is_known: bool) -> Option<Self> {
        match (self, next) {
            (Self::Enter, Self::Leave) => None,
            (Self::Leave, Self::Enter) if !is_known => Some(Self::Enter),
            (Self::Leave | Self::Modify(_), Self::Enter) => Some(Self::Modify(Paths::All)),
            (Self::Enter, _) => Some(Self::Enter),
            (Self::Leave, _) | (Self::Modify(_), Self::Leave) => Some(Self::Leave),
            (Self::Modify(one), Self::Modify(other)) => Some(Self::Modify(one.and(other))),
        }
    }
}

impl Paths {
    fn and(self, other: Self) -> Self {
        let (Self::These(mut all), Self::These(more)) = (self, other) else { return Self::All };
        for change in more {
            change.add_to(&mut all);
        }
        Self::These(all)
    }
}

impl PathChange {
    pub(super) fn add_to(self, all: &mut Vec<Self>) {
        match all.iter_mut().find(|known| known.name == self.name) {
            Some(known) => known.op = together(&known.op, self.op),
            None => all.push(self),
        }
    }
}

/// A member that was added and then changed is still new to the client.
fn together(first: &PropertyChangeOp, then: PropertyChangeOp) -> PropertyChangeOp {
    match (first, then) {
        (PropertyChangeOp::Add, PropertyChangeOp::Assign) => PropertyChangeOp::Add,
        (PropertyChangeOp::Remove, PropertyChangeOp::Add) => PropertyChangeOp::Assign,
        (_, then) => then,
    }
}

/// What the client has been told of an object, and what it has not.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// Whether the client knows the object, once it has read all answers that were sent.
    pub is_known: bool,
    pub pending: Option<Pending>,
    /// The place in the queue that `pending` was given; older places are void.
    pub place: u64,
}

impl Delivery {
    /// Adds news. Returns whether the object needs a place in the queue.
    pub(super) fn add(&mut self, news: Pending) -> bool {
        let had = self.pending.is_some();
        self.pending = match (self.pending.take(), news) {
            (Some(pending), news) => pending.then(news, self.is_known),
            (None, Pending::Enter) if self.is_known => Some(Pending::Modify(Paths::All)),
            (None, Pending::Enter) => Some(Pending::Enter),
            (None, news) => self.is_known.then_some(news),
        };
        !had && self.pending.is_some()
    }

    /// Takes back what was sent, because the answer that held it was lost. Returns whether a place is needed.
    pub(super) fn restore(&mut self, sent: Pending) -> bool {
        let had = self.pending.is_some();
        self.is_known = !matches!(sent, Pending::Enter);
        self.pending = match self.pending.take() {
            Some(pending) => sent.then(pending, self.is_known),
            None => Some(sent),
        };
        !had && self.pending.is_some()
    }

    /// Notes that `sent` goes out.
    pub(super) fn sent(&mut self, sent: &Pending) {
        self.is_known = !matches!(sent, Pending::Leave);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modify(name: &str) -> Pending {
        Pending::Modify(Paths::These(vec![PathChange {
            name: name.into(),
            op: PropertyChangeOp::Assign,
        }]))
    }

    #[test]
    fn an_object_that_comes_and_goes_unseen_is_never_told() {
        let mut delivery = Delivery::default();
        assert!(delivery.add(Pending::Enter));
        assert!(!delivery.add(modify("name")));
        assert_eq!(delivery.pending, Some(Pending::Enter));
        assert!(!delivery.add(Pending::Leave));
        assert_eq!(delivery.pending, None);
    }

    #[test]
    fn a_known_object_that_goes_and_comes_back_is_modified_as_a_whole() {
        let mut delivery = Delivery { is_known: true, ..Delivery::default() };
        delivery.add(Pending::Leave);
        delivery.add(Pending::Enter);
        assert_eq!(delivery.pending, Some(Pending::Modify(Paths::All)));
    }

    #[test]
    fn a_lost_answer_comes_again_with_what_happened_since() {
        let mut delivery = Delivery { is_known: true, ..Delivery::default() };
        delivery.add(modify("name"));
        let sent = delivery.pending.take().unwrap();
        delivery.sent(&sent);
        delivery.add(modify("runtime.powerState"));
        assert!(!delivery.restore(sent), "it has its place");
        let Some(Pending::Modify(Paths::These(paths))) = delivery.pending else { panic!() };
        assert_eq!(paths.len(), 2);
    }

    #[test]
    fn a_lost_enter_followed_by_a_leave_is_nothing() {
        let mut delivery = Delivery::default();
        delivery.add(Pending::Enter);
        let sent = delivery.pending.take().unwrap();
        delivery.sent(&sent);
        delivery.add(Pending::Leave);
        delivery.restore(sent);
        assert_eq!(delivery.pending, None);
        assert!(!delivery.is_known);
    }
}
