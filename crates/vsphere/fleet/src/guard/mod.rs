//! Deleting is guarded: better a VM too many for a while than one too few.
//!
//! What we infer is deleted when it is ours, both sides' views are whole and fresh, it was seen on two pairs of views, its grace
//! is over, and the budget of the minute and the share of the fleet allow it. A read that was empty, cut short, stale or
//! failed does not count as a sighting, so it can never be the reason for a deletion. What a person asked for is deleted when it is ours
//! and the budget of the minute allows it, also while deletion is frozen.

mod rules;
mod verdict;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::time::{elapsed, later};
use crate::{Freshness, Gate, Limit, Unfit, VmId};

pub use self::rules::{Basis, BasisRules, Beyond, GuardRules, Share};
pub use self::verdict::{Candidate, Evidence, Freeze, Outcome, Resume, Sighting, Verdict};

const MINUTE: Duration = Duration::from_mins(1);
const SIGHTINGS: u32 = 2;

/// For so long a deletion that was asked for may be tried again without counting again.
const ASKED_ONCE: Duration = Duration::from_hours(1);

/// Decides which VMs may be deleted. Does no I/O.
#[derive(Debug)]
pub struct Guard {
    owner: Arc<str>,
    rules: GuardRules,
    sightings: BTreeMap<VmId, Sighting>,
    granted: BTreeSet<VmId>,
    /// The same for what persons asked for, which is not always among all candidates.
    granted_asked: BTreeMap<VmId, Timestamp>,
    /// When and on what basis, for the last minute.
    recent: VecDeque<(Timestamp, Basis)>,
    frozen: Option<Freeze>,
    approved: BTreeSet<VmId>,
    last_look: Option<Timestamp>,
}

/// The views of one look, if they can be acted on.
struct Views {
    inventory: Result<Timestamp, Unfit>,
    demand: Result<Timestamp, Unfit>,
    /// Whether one of them shows nothing at all, so that absence from it says nothing.
    empty: bool,
}

impl Guard {
    /// `owner` is the name that our own VMs carry.
    pub fn new(owner: impl Into<Arc<str>>, rules: GuardRules) -> Self {
        Self {
            owner: owner.into(),
            rules,
            sightings: BTreeMap::new(),
            granted: BTreeSet::new(),
            granted_asked: BTreeMap::new(),
            recent: VecDeque::new(),
            frozen: None,
            approved: BTreeSet::new(),
            last_look: None,
        }
    }

    pub fn rules(&self) -> &GuardRules {
        &self.rules
    }

    pub fn frozen(&self) -> Option<&Freeze> {
        self.frozen.as_ref()
    }

    /// What was seen of the candidates so far.
    pub fn sightings(&self) -> impl Iterator<Item = (&VmId, &Sighting)> {
        self.sightings.iter()
    }

    /// How many were let go for this reason in the last minute.
    pub fn spent_lately(&self, basis: Basis, now: Timestamp) -> u64 {
        let lately = self.recent.iter().filter(|(at, _)| elapsed(*at, now) < MINUTE);
        lately.filter(|(_, other)| *other == basis).count() as u64
    }

    /// A person has looked. Returns the freeze that this ends.
    pub fn resume(&mut self, found: Resume) -> Option<Freeze> {
        let freeze = self.frozen.take()?;
        match found {
            Resume::Approve => self.approved.extend(freeze.vms.iter().cloned()),
            Resume::StartOver => self.sightings.clear(),
        }
        Some(freeze)
    }

    /// The verdict on one VM whose deletion a person asked for, at any time and beside [`consider`](Self::consider). Said again for the same
    /// VM it counts once.
    pub fn asked(&mut self, candidate: &Candidate, now: Timestamp) -> Verdict {
        self.forget_minute(now);
        let own = candidate.owner.as_ref() == Some(&self.owner);
        let mut gates = vec![Gate::plain("own", own)];
        let mut outcome = if own { Outcome::Delete } else { Outcome::Refused };
        self.granted_asked.retain(|_, at| {
            *at = (*at).min(now);
            elapsed(*at, now) < ASKED_ONCE
        });
        if own && !self.granted_asked.contains_key(&candidate.vm) {
            let (gate, until) = self.weigh_budget(Basis::Asked);
            if gate.passed {
                self.recent.push_back((now, Basis::Asked));
                self.granted_asked.insert(candidate.vm.clone(), now);
            } else {
                outcome = Outcome::Wait { until };
            }
            gates.push(gate);
        }
        Verdict::new(candidate, Basis::Asked, outcome, gates)
    }

    /// What of the minute's budget is spent, and when some of it is free again.
    fn weigh_budget(&self, basis: Basis) -> (Gate, Option<Timestamp>) {
        let budget = self.rules.of(basis).per_minute;
        let limit = budget.map_or(Limit::Unlimited, |budget| Limit::At(budget.into()));
        let gate = Gate::measured("budget", 1, self.spent(basis), limit);
        let first = self.recent.iter().find(|(_, other)| *other == basis);
        (gate, first.map(|(at, _)| later(*at, MINUTE)))
    }

    fn forget_minute(&mut self, now: Timestamp) {
        // A clock that was set back would else hold the budget as spent until it has caught up.
        if self.recent.back().is_some_and(|(at, _)| *at > now) {
            for (at, _) in &mut self.recent {
                *at = (*at).min(now);
            }
        }
        while self.recent.front().is_some_and(|(at, _)| elapsed(*at, now) >= MINUTE) {
            self.recent.pop_front();
        }
    }

    /// One verdict for each candidate, in their order. `candidates` are all there are: one that is not among them any more is
    /// no candidate any more.
    pub fn consider(
        &mut self,
        candidates: &[Candidate],
        evidence: Evidence<'_>,
        now: Timestamp,
    ) -> Vec<Verdict> {
        self.mind_the_gap(now);
        self.forget_minute(now);
        let views = self.check_views(evidence, now);
        if views.inventory.is_ok() && views.demand.is_ok() {
            self.forget_others(candidates);
        }
        let mut verdicts: Vec<Verdict> =
            candidates.iter().map(|candidate| self.look(candidate, &views, now)).collect();
        self.spend(&mut verdicts, evidence.own_vms, now);
        verdicts
    }

    fn mind_the_gap(&mut self, now: Timestamp) {
        let jumped = self
            .last_look
            .replace(now)
            .is_some_and(|last| now < last || elapsed(last, now) > self.rules.max_gap);
        if jumped && !self.sightings.is_empty() {
            tracing::warn!("time has jumped; candidates for deletion are looked at anew");
            self.sightings.clear();
        }
    }

    fn check_views(&self, evidence: Evidence<'_>, now: Timestamp) -> Views {
        let check = |view: &Freshness| view.check(now, self.rules.max_age);
        Views {
            inventory: check(evidence.inventory),
            demand: check(evidence.demand),
            empty: evidence.inventory.items == 0 || evidence.demand.items == 0,
        }
    }

    /// A VM that both sides' views no longer make a candidate has been explained.
    fn forget_others(&mut self, candidates: &[Candidate]) {
        let still: BTreeMap<&VmId, Basis> =
            candidates.iter().map(|candidate| (&candidate.vm, candidate.basis)).collect();
        self.sightings.retain(|vm, seen| still.get(vm) == Some(&seen.basis));
        self.granted.retain(|vm| still.contains_key(vm));
        self.approved.retain(|vm| still.contains_key(vm));
    }

    fn look(&mut self, candidate: &Candidate, views: &Views, now: Timestamp) -> Verdict {
        match candidate.basis {
            Basis::Asked => self.asked(candidate, now),
            Basis::Marked | Basis::Finished | Basis::Expired | Basis::Absent => {
                self.look_at(candidate, views, now)
            }
        }
    }

    /// Everything but the budgets: `Delete` means that it may, as far as it alone is concerned.
    fn look_at(&mut self, candidate: &Candidate, views: &Views, now: Timestamp) -> Verdict {
        let own = candidate.owner.as_ref() == Some(&self.owner);
        let demand = match &views.demand {
            Ok(_) if candidate.basis == Basis::Absent && views.empty => Err(Unfit::Empty),
            other => other.clone(),
        };
        let mut gates = vec![
            Gate::plain("own", own),
            view_gate("inventory-view", &views.inventory),
            view_gate("demand-view", &demand),
        ];
        let outcome = match (own, &views.inventory, demand) {
            (true, Ok(inventory), Ok(demand)) => {
                let grace = self.rules.of(candidate.basis).grace;
                let seen = self.see(candidate, *inventory, demand, now);
                let grace_ends = later(seen.first, grace);
                let twice = seen.times >= SIGHTINGS;
                gates.push(
                    Gate::plain("sightings", twice)
                        .noting(format!("{} of {SIGHTINGS} since {:.0}", seen.times, seen.first)),
                );
                let over = now >= grace_ends;
                gates.push(Gate::plain("grace", over).noting(format!("until {grace_ends:.0}")));
                match (twice, over) {
                    (true, true) => Outcome::Delete,
                    (_, false) => Outcome::Wait { until: Some(grace_ends) },
                    (false, true) => Outcome::Wait { until: None },
                }
            }
            _ => Outcome::Refused,
        };
        Verdict::new(candidate, candidate.basis, outcome, gates)
    }

    fn see(
        &mut self,
        candidate: &Candidate,
        inventory_as_of: Timestamp,
        demand_as_of: Timestamp,
        now: Timestamp,
    ) -> &Sighting {
        let seen = self.sightings.entry(candidate.vm.clone()).or_insert_with(|| Sighting {
            basis: candidate.basis,
            first: now,
            last: now,
            times: 1,
            inventory_as_of,
            demand_as_of,
        });
        if inventory_as_of > seen.inventory_as_of && demand_as_of > seen.demand_as_of {
            seen.times = seen.times.saturating_add(1);
            (seen.last, seen.inventory_as_of, seen.demand_as_of) =
                (now, inventory_as_of, demand_as_of);
        }
        seen
    }

    fn spend(&mut self, verdicts: &mut [Verdict], own_vms: usize, now: Timestamp) {
        if self.frozen.is_none() {
            self.frozen = Basis::INFERRED
                .into_iter()
                .find_map(|basis| self.excess(basis, verdicts, own_vms, now));
            if let Some(freeze) = &self.frozen {
                tracing::error!("{freeze}");
            }
        }
        let inferred =
            |verdict: &&mut Verdict| verdict.is_delete() && verdict.basis != Basis::Asked;
        for verdict in verdicts.iter_mut().filter(inferred) {
            if self.granted.contains(&verdict.vm) {
                continue;
            }
            if let Some(freeze) = &self.frozen {
                verdict.gates.push(Gate::plain("freeze", false).noting(freeze.to_string()));
                verdict.outcome = Outcome::Frozen;
                continue;
            }
            if !self.approved.remove(&verdict.vm) {
                let (gate, until) = self.weigh_budget(verdict.basis);
                let fits = gate.passed;
                verdict.gates.push(gate);
                if !fits {
                    verdict.outcome = Outcome::Wait { until };
                    continue;
                }
            }
            self.recent.push_back((now, verdict.basis));
            self.granted.insert(verdict.vm.clone());
        }
    }

    fn spent(&self, basis: Basis) -> u64 {
        self.recent.iter().filter(|(_, other)| *other == basis).count() as u64
    }

    /// Why deletion must freeze because of one basis.
    fn excess(
        &self,
        basis: Basis,
        verdicts: &[Verdict],
        own_vms: usize,
        now: Timestamp,
    ) -> Option<Freeze> {
        let rules = self.rules.of(basis);
        let wanted = verdicts.iter().filter(|verdict| {
            verdict.is_delete()
                && verdict.basis == basis
                && !self.granted.contains(&verdict.vm)
                && !self.approved.contains(&verdict.vm)
        });
        let vms: BTreeSet<VmId> = wanted.map(|verdict| verdict.vm.clone()).collect();
        let wanted = self.spent(basis) + vms.len() as u64;
        let by_minute = rules.per_minute.filter(|_| rules.beyond == Beyond::Freeze).map(u64::from);
        let by_share = rules.share.map(|share| share.of(own_vms));
        let allowed = by_minute.into_iter().chain(by_share).min()?;
        (!vms.is_empty() && wanted > allowed).then_some(Freeze {
            since: now,
            basis,
            wanted,
            allowed,
            own_vms,
            vms,
        })
    }
}

fn view_gate(name: &'static str, view: &Result<Timestamp, Unfit>) -> Gate {
    match view {
        Ok(as_of) => Gate::plain(name, true).noting(format!("as of {as_of:.0}")),
        Err(unfit) => Gate::plain(name, false).noting(unfit.to_string()),
    }
}
