//! Which objects a filter selects, kept up to date change by change.

use std::collections::HashSet;

use roost_vim_wire::types::PropertyChangeOp;
use roost_vim_wire::{MoRef, MoType};

use super::{Filter, Visit};
use crate::collector::interest::Interest;
use crate::collector::path;
use crate::collector::pending::{PathChange, Paths, Pending};
use crate::collector::spec::StepId;
use crate::inventory::Changed;
use crate::property::Reading;

impl Filter {
    /// One more way leads to an object; follows where it leads on to.
    pub(in crate::collector) fn enter(
        &mut self,
        reading: &Reading<'_>,
        interest: &mut Interest,
        obj: MoRef,
        via: StepId,
    ) {
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

    /// Objects that only hold each other in are let go: what cannot be reached from a start ends.
    fn drop_unreachable(&mut self, reading: &Reading<'_>, interest: &mut Interest) {
        let mut reached: HashSet<(MoRef, StepId)> = HashSet::new();
        let mut ahead: Vec<(MoRef, StepId)> = self.spec.starts.clone();
        while let Some((obj, via)) = ahead.pop() {
            let visited = self
                .nodes
                .get(&obj)
                .is_some_and(|node| node.visits.iter().any(|visit| visit.via == via));
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
            let at = self
                .nodes
                .get(&obj)
                .and_then(|node| node.visits.iter().position(|visit| visit.via == via));
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
        if let Some(visit) =
            visits.and_then(|visits| visits.iter_mut().find(|visit| visit.via == via))
        {
            visit.ways = visit.ways.saturating_sub(1).max(1);
        }
    }

    /// An object no longer exists.
    pub(in crate::collector) fn gone(
        &mut self,
        reading: &Reading<'_>,
        interest: &mut Interest,
        obj: &MoRef,
    ) {
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
    pub(in crate::collector) fn view_changed(
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
    pub(in crate::collector) fn modified(
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
            if changed.iter().any(|change| path::touch(&self.spec.steps[step].path, change.path()))
            {
                self.retarget(reading, interest, obj, step);
            }
        }
    }

    fn changes_of(&mut self, obj: &MoRef, changed: &[Changed]) -> Vec<PathChange> {
        let mut paths: Vec<PathChange> = Vec::new();
        let mut add = |name: &str, op: PropertyChangeOp| {
            PathChange { name: name.into(), op }.add_to(&mut paths);
        };
        for asked in &*self.asked(obj) {
            for change in changed {
                if self.is_partial
                    && asked.len() < change.path().len()
                    && path::holds(asked, change.path())
                {
                    add(change.path(), op_of(change));
                } else if path::touch(asked, change.path()) {
                    let whole = **asked == *change.path();
                    add(asked, if whole { op_of(change) } else { PropertyChangeOp::Assign });
                }
            }
        }
        paths
    }

    fn retarget(
        &mut self,
        reading: &Reading<'_>,
        interest: &mut Interest,
        obj: &MoRef,
        step: StepId,
    ) {
        let now = self.targets(reading, obj, step);
        let before = self.edges.insert((obj.clone(), step), now.clone()).unwrap_or_default();
        let (old, new): (HashSet<&MoRef>, HashSet<&MoRef>) =
            (before.iter().collect(), now.iter().collect());
        for target in before.iter().filter(|target| !new.contains(target)) {
            self.leave(reading, interest, target.clone(), step);
        }
        for target in now.iter().filter(|target| !old.contains(target)) {
            self.enter(reading, interest, target.clone(), step);
        }
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
