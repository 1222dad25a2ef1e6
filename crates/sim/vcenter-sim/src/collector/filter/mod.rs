//! A filter: which objects it selects, kept up to date change by change, and what its client has not been told yet.
//!
//! An object is *visited* by the steps that lead to it, and each visit counts how many ways there are. It is selected
//! while a visit of a reporting step is left. So a change costs what it touches: a VM that enters a view is one visit more, and
//! nobody looks at the other ten thousand.

mod membership;

use std::collections::{HashMap, VecDeque};

use roost_vim_wire::MoRef;

use super::interest::{FilterId, Interest};
use super::pending::{Delivery, Pending};
use super::spec::{Asked, Spec, StepId};
use crate::inventory::NoSuchProperty;

#[derive(Debug)]
pub(super) struct Filter {
    pub obj: MoRef,
    id: FilterId,
    pub spec: Spec,
    pub is_partial: bool,
    nodes: HashMap<MoRef, Node>,
    /// Where each step leads from each object. Views are not here: they say themselves who comes and goes.
    edges: HashMap<(MoRef, StepId), Vec<MoRef>>,
    queue: VecDeque<(u64, MoRef)>,
    next_place: u64,
    /// Starts that do not exist: those not reported yet, and those that were.
    missing: Vec<MoRef>,
    reported_missing: Vec<MoRef>,
    /// Whether anything was handed out since the filter last started from nothing.
    was_read: bool,
    /// A traversal along a property that does not exist.
    bad_step: Option<NoSuchProperty>,
    /// What the last answer held, until the client shows that it came.
    sent: Vec<(MoRef, Pending)>,
}

#[derive(Debug, Default)]
struct Node {
    visits: Vec<Visit>,
    delivery: Delivery,
}

#[derive(Debug)]
struct Visit {
    via: StepId,
    ways: u32,
}

impl Filter {
    pub(super) fn new(obj: MoRef, id: FilterId, spec: Spec, is_partial: bool) -> Self {
        Self {
            obj,
            id,
            spec,
            is_partial,
            nodes: HashMap::new(),
            edges: HashMap::new(),
            queue: VecDeque::new(),
            next_place: 0,
            missing: Vec::new(),
            reported_missing: Vec::new(),
            was_read: false,
            bad_step: None,
            sent: Vec::new(),
        }
    }

    pub(super) fn has_news(&mut self) -> bool {
        // Places that became void must not look like news.
        while let Some((place, obj)) = self.queue.front() {
            if self.nodes.get(obj).is_some_and(|node| node.waits_at(*place)) {
                return true;
            }
            self.queue.pop_front();
        }
        !self.missing.is_empty()
    }

    /// The next object with news, and the news.
    pub(super) fn next(&mut self) -> Option<(MoRef, Pending)> {
        while let Some((place, obj)) = self.queue.pop_front() {
            let Some(node) = self.nodes.get_mut(&obj).filter(|node| node.waits_at(place)) else {
                continue;
            };
            let Some(news) = node.delivery.pending.take() else { continue };
            node.delivery.sent(&news);
            self.was_read = true;
            self.sent.push((obj.clone(), news.clone()));
            self.forget_if_done(&obj);
            return Some((obj, news));
        }
        None
    }

    /// The starts that are to be reported missing.
    pub(super) fn take_missing(&mut self) -> Vec<MoRef> {
        let missing = std::mem::take(&mut self.missing);
        self.was_read |= !missing.is_empty();
        self.reported_missing.extend(missing.iter().cloned());
        missing
    }

    pub(super) fn start_is_missing(&mut self, start: MoRef) {
        self.missing.push(start);
    }

    pub(super) fn bad_step(&self) -> Option<&NoSuchProperty> {
        self.bad_step.as_ref()
    }

    /// The client has the last answer.
    pub(super) fn acknowledge(&mut self) {
        self.sent.clear();
    }

    /// The client does not have the last answer: its content comes again.
    pub(super) fn restore(&mut self) {
        for (obj, sent) in std::mem::take(&mut self.sent).into_iter().rev() {
            let node = self.nodes.entry(obj.clone()).or_default();
            if node.delivery.restore(sent) {
                node.delivery.place = self.next_place;
                self.queue.push_front((self.next_place, obj.clone()));
                self.next_place += 1;
            }
            self.forget_if_done(&obj);
        }
    }

    /// The client knows nothing: every selected object enters.
    pub(super) fn reset(&mut self) {
        if !std::mem::replace(&mut self.was_read, false) {
            return;
        }
        let order = self.sorted();
        self.sent.clear();
        self.queue.clear();
        self.nodes.retain(|_, node| !node.visits.is_empty());
        for node in self.nodes.values_mut() {
            node.delivery = Delivery::default();
        }
        self.missing.clone_from(&self.reported_missing);
        for obj in order {
            self.tell(&obj, Pending::Enter);
        }
    }

    /// The selected objects. The order is that of a hash; see [`sorted`](Self::sorted).
    fn selected(&self) -> impl Iterator<Item = &MoRef> {
        self.nodes.iter().filter(|(_, node)| node.is_selected(&self.spec)).map(|(obj, _)| obj)
    }

    /// The selected objects in an order that a seed replays.
    fn sorted(&self) -> Vec<MoRef> {
        let mut all: Vec<MoRef> = self.selected().cloned().collect();
        all.sort_by(|a, b| {
            a.kind.cmp(&b.kind).then(a.id.len().cmp(&b.id.len())).then(a.id.cmp(&b.id))
        });
        all
    }

    /// The selected kinds of object, with one object of each.
    pub(super) fn samples(&self) -> Vec<MoRef> {
        let mut kinds: Vec<MoRef> = Vec::new();
        for obj in self.selected() {
            if !kinds.iter().any(|known| known.kind == obj.kind) {
                kinds.push(obj.clone());
            }
        }
        kinds.sort();
        kinds
    }

    pub(super) fn asked(&mut self, obj: &MoRef) -> Asked {
        self.spec.asked(&obj.kind).unwrap_or_default()
    }

    /// Takes the filter's objects out of the index.
    pub(super) fn detach(&self, interest: &mut Interest) {
        for obj in self.nodes.keys() {
            interest.remove(obj, self.id);
        }
    }

    fn forget_if_done(&mut self, obj: &MoRef) {
        if self.nodes.get(obj).is_some_and(Node::is_done) {
            self.nodes.remove(obj);
        }
    }

    fn tell(&mut self, obj: &MoRef, news: Pending) {
        let selected = self.spec.asked(&obj.kind).is_some();
        let Some(node) = self.nodes.get_mut(obj).filter(|_| selected) else { return };
        if node.delivery.add(news) {
            node.delivery.place = self.next_place;
            self.queue.push_back((self.next_place, obj.clone()));
            self.next_place += 1;
        }
    }
}

impl Node {
    fn is_selected(&self, spec: &Spec) -> bool {
        self.visits.iter().any(|visit| spec.steps[visit.via].reports)
    }

    fn waits_at(&self, place: u64) -> bool {
        self.delivery.pending.is_some() && self.delivery.place == place
    }

    /// Nothing is left to select or to tell. What was sent and may have to come again brings the node back.
    fn is_done(&self) -> bool {
        self.visits.is_empty() && self.delivery.pending.is_none()
    }
}
