//! A filter: which objects it selects, kept up to date change by change, and what its client has not been told yet.
//!
//! An object is *visited* by the steps that lead to it, and each visit counts how many ways there are. It is selected
//! while a visit of a reporting step is left. So a change costs what it touches: a VM that enters a view is one visit more, and
//! nobody looks at the other ten thousand.

use std::collections::{HashMap, HashSet, VecDeque};

use roost_vim_wire::types::PropertyChangeOp;
use roost_vim_wire::{MoRef, MoType};

use super::interest::{FilterId, Interest};
use super::path;
use super::pending::{Delivery, PathChange, Paths, Pending};
use super::spec::{Asked, Spec, StepId};
use crate::inventory::{Changed, NoSuchProperty};
use crate::property::Reading;

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
            let Some(node) = self.nodes.get_mut(&obj).filter(|node| node.waits_at(place)) else { continue };
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
        all.sort_by(|a, b| a.kind.cmp(&b.kind).then(a.id.len().cmp(&b.id.len())).then(a.id.cmp(&b.id)));
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

    fn tell(&mut self, obj: &MoRef, news: Pending) {
        let selected = self.spec.asked(&obj.kind).is_some();
        let Some(node) = self.nodes.get_mut(obj).filter(|_| selected) else { return };
        if node.delivery.add(news) {
            node.delivery.place = self.next_place;
            self.queue.push_back((self.next_place, obj.clone()));
            self.next_place += 1;
        }
    }

    /// One more way leads to an object; follows where it leads on to.
    pub(super) fn enter(&mut self, reading: &Reading<'_>, interest: &mut Interest, obj: MoRef, via: StepId) {
        let mut ahead = vec![(obj, via)];
        while let Some((obj, via)) = ahead.pop() {
            let node = self.nodes.entry(obj.clone()).or_default();
            if let Some(visit) = node.visits.iter_mut().find(|visit| visit.via == via) {
                visit.ways += 1;
                continue;
            }
            let was_selected = node.is_selected(&self.spec);
            if node.visits.is_empty() {
                interest.add(&obj, self.id);
            }
            node.visits.push(Visit { via, ways: 1 });
            if !was_selected && self.spec.steps[via].reports {
                self.tell(&obj, Pending::Enter);
            }
            let onward: Vec<StepId> = self.spec.onward(&obj, via).collect();
            for step in onward.into_iter().rev() {
                let targets = self.targets(reading, &obj, step);
                ahead.extend(targets.iter().rev().map(|target| (target.clone(), step)));
                if !is_view(&obj) {
                    self.edges.insert((obj.clone(), step), targets);
                }
            }
        }
    }

    fn targets(&mut self, reading: &Reading<'_>, obj: &MoRef, step: StepId) -> Vec<MoRef> {
        let mut targets = reading.refs(obj, &self.spec.steps[step].path).unwrap_or_else(|error| {
            self.bad_step.get_or_insert(error);
            Vec::new()
        });
        if !is_view(obj) {
            let mut seen = HashSet::new();
            targets.retain(|target| seen.insert(target.clone()));
        }
        targets
    }

    /// One way to an object is gone, and with the last one all that it led to.
    fn leave(&mut self, reading: &Reading<'_>, interest: &mut Interest, obj: MoRef, via: StepId) {
        let (mut ahead, mut doubtful) = (vec![(obj, via)], false);
        while let Some((obj, via)) = ahead.pop() {
            let Some(node) = self.nodes.get_mut(&obj) else { continue };
            let Some(at) = node.visits.iter().position(|visit| visit.via == via) else { continue };
            node.visits[at].ways -= 1;
            if node.visits[at].ways > 0 {
                doubtful = true;
                continue;
            }
            ahead.extend(self.end_visit(reading, interest, &obj, at));
        }
        if doubtful && self.spec.is_cyclic {
            self.drop_unreachable(reading, interest);
        }
    }

    /// Ends a visit whatever its ways are. Returns the ways that ended with it.
    fn end_visit(
        &mut self,
        reading: &Reading<'_>,
        interest: &mut Interest,
        obj: &MoRef,
        at: usize,
    ) -> Vec<(MoRef, StepId)> {
        let Some(node) = self.nodes.get_mut(obj) else { return Vec::new() };
        let was_selected = node.is_selected(&self.spec);
        let via = node.visits.swap_remove(at).via;
        let (is_selected, is_alone) = (node.is_selected(&self.spec), node.visits.is_empty());
        if was_selected && !is_selected {
            self.tell(obj, Pending::Leave);
        }
        if is_alone {
            interest.remove(obj, self.id);
        }
        let mut ended = Vec::new();
        for step in self.spec.onward(obj, via).collect::<Vec<_>>() {
            let targets = match self.edges.remove(&(obj.clone(), step)) {
                Some(targets) => targets,
                None => self.targets(reading, obj, step),
            };
            ended.extend(targets.into_iter().map(|target| (target, step)));
        }
        self.forget_if_done(obj);
        ended
    }

    fn forget_if_done(&mut self, obj: &MoRef) {
        if self.nodes.get(obj).is_some_and(Node::is_done) {
            self.nodes.remove(obj);
        }
    }

    /// Objects that only hold each other in are let go: what cannot be reached from a start ends.
    fn drop_unreachable(&mut self, reading: &Reading<'_>, interest: &mut Interest) {
        let mut reached: HashSet<(MoRef, StepId)> = HashSet::new();
        let mut ahead: Vec<(MoRef, StepId)> = self.spec.starts.clone();
        while let Some((obj, via)) = ahead.pop() {
            let visited = self.nodes.get(&obj).is_some_and(|node| node.visits.iter().any(|visit| visit.via == via));
            if !visited || !reached.insert((obj.clone(), via)) {
                continue;
            }
            for step in self.spec.onward(&obj, via).collect::<Vec<_>>() {
                let known = self.edges.get(&(obj.clone(), step)).cloned();
                let targets = known.unwrap_or_else(|| self.targets(reading, &obj, step));
                ahead.extend(targets.into_iter().map(|target| (target, step)));
            }
        }
        let mut lost: Vec<(MoRef, StepId)> = Vec::new();
        for (obj, node) in &self.nodes {
            let vias = node.visits.iter().map(|visit| (obj.clone(), visit.via));
            lost.extend(vias.filter(|visit| !reached.contains(visit)));
        }
        lost.sort();
        for (obj, via) in lost {
            let at = self.nodes.get(&obj).and_then(|node| node.visits.iter().position(|visit| visit.via == via));
            if let Some(at) = at {
                // All that it led to is either reached otherwise or in `lost` itself.
                for (target, step) in self.end_visit(reading, interest, &obj, at) {
                    self.lose_way(&target, step);
                }
            }
        }
    }

    fn lose_way(&mut self, obj: &MoRef, via: StepId) {
        let visits = self.nodes.get_mut(obj).map(|node| &mut node.visits);
        if let Some(visit) = visits.and_then(|visits| visits.iter_mut().find(|visit| visit.via == via)) {
            visit.ways = visit.ways.saturating_sub(1).max(1);
        }
    }

    /// An object no longer exists.
    pub(super) fn gone(&mut self, reading: &Reading<'_>, interest: &mut Interest, obj: &MoRef) {
        let vias = self.nodes.get_mut(obj).map(|node| {
            node.visits.iter_mut().for_each(|visit| visit.ways = 1);
            node.visits.iter().map(|visit| visit.via).collect::<Vec<_>>()
        });
        for via in vias.unwrap_or_default() {
            self.leave(reading, interest, obj.clone(), via);
        }
        if self.spec.reports_missing && self.spec.starts.iter().any(|(start, _)| start == obj) {
            self.start_is_missing(obj.clone());
        }
    }

    /// The steps that lead on from an object, whichever way it was reached.
    fn steps_from(&self, obj: &MoRef) -> Vec<StepId> {
        let visits = self.nodes.get(obj).map(|node| node.visits.as_slice()).unwrap_or_default();
        visits.iter().flat_map(|visit| self.spec.onward(obj, visit.via)).collect()
    }

    /// An object came into a view or left it.
    pub(super) fn view_changed(
        &mut self,
        reading: &Reading<'_>,
        interest: &mut Interest,
        view: &MoRef,
        member: &MoRef,
        entered: bool,
    ) {
        for step in self.steps_from(view) {
            if self.spec.steps[step].path != "view" {
                continue;
            }
            if entered {
                self.enter(reading, interest, member.clone(), step);
            } else {
                self.leave(reading, interest, member.clone(), step);
            }
        }
    }

    /// Properties of an object changed: perhaps where it leads to, perhaps what was asked of it.
    pub(super) fn modified(
        &mut self,
        reading: &Reading<'_>,
        interest: &mut Interest,
        obj: &MoRef,
        changed: &[Changed],
    ) {
        let Some(node) = self.nodes.get(obj) else { return };
        if node.is_selected(&self.spec) {
            let paths = self.changes_of(obj, changed);
            if !paths.is_empty() {
                self.tell(obj, Pending::Modify(Paths::These(paths)));
            }
        }
        for step in self.steps_from(obj) {
            if changed.iter().any(|change| path::touch(&self.spec.steps[step].path, change.path())) {
                self.retarget(reading, interest, obj, step);
            }
        }
    }

    fn changes_of(&mut self, obj: &MoRef, changed: &[Changed]) -> Vec<PathChange> {
        let mut paths: Vec<PathChange> = Vec::new();
        let mut add = |name: &str, op: PropertyChangeOp| PathChange { name: name.into(), op }.add_to(&mut paths);
        for asked in &*self.asked(obj) {
            for change in changed {
                if self.is_partial && asked.len() < change.path().len() && path::holds(asked, change.path()) {
                    add(change.path(), op_of(change));
                } else if path::touch(asked, change.path()) {
                    let whole = **asked == *change.path();
                    add(asked, if whole { op_of(change) } else { PropertyChangeOp::Assign });
                }
            }
        }
        paths
    }

    fn retarget(&mut self, reading: &Reading<'_>, interest: &mut Interest, obj: &MoRef, step: StepId) {
        let now = self.targets(reading, obj, step);
        let before = self.edges.insert((obj.clone(), step), now.clone()).unwrap_or_default();
        let (old, new): (HashSet<&MoRef>, HashSet<&MoRef>) = (before.iter().collect(), now.iter().collect());
        for target in before.iter().filter(|target| !new.contains(target)) {
            self.leave(reading, interest, target.clone(), step);
        }
        for target in now.iter().filter(|target| !old.contains(target)) {
            self.enter(reading, interest, target.clone(), step);
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

fn is_view(obj: &MoRef) -> bool {
    matches!(obj.kind, MoType::ContainerView | MoType::ListView)
}

fn op_of(change: &Changed) -> PropertyChangeOp {
    match change {
        Changed::Assigned(_) => PropertyChangeOp::Assign,
        Changed::Added(_) => PropertyChangeOp::Add,
        Changed::Removed(_) => PropertyChangeOp::Remove,
    }
}
