//! What a running demo shows of itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use roost_cds::JobStatus;
use roost_door::{House, disagreement};
use roost_hatchery::door::HATCHERY;
use roost_views::{DecisionQuery, DecisionView, PoolView};

use super::beside::Stories;
use super::report::Check;
use super::witness::Witness;
use super::world::World;

/// The demo as those see it who look on. A handle.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    pub(super) house: Arc<House>,
    pub(super) world: World,
    pub(super) witness: Witness,
    /// All jobs that will have come by the end.
    pub(super) jobs: Arc<AtomicU64>,
    /// Of the doors beside the hatchery; none if it is alone.
    pub(super) stories: Stories,
    /// The first time that two numbers of one page contradicted each other.
    pub(super) contradiction: Arc<OnceLock<String>>,
}

/// Where the jobs are. Each is in one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) to_come: u64,
    pub(super) waiting: u64,
    /// The hatchery has it, and its worker is on the way.
    pub(super) starting: u64,
    pub(super) running: u64,
    pub(super) done: u64,
    pub(super) failed: u64,
    pub(super) refused: u64,
}

impl Stage {
    pub(super) fn tally(&self) -> Tally {
        let refused = self.refused();
        let mut tally = Tally::default();
        for job in self.world.cds.jobs() {
            let place = if refused.contains(&job.id.to_string()) {
                &mut tally.refused
            } else {
                match job.status {
                    JobStatus::Building => &mut tally.running,
                    JobStatus::Success => &mut tally.done,
                    status if status.is_final() => &mut tally.failed,
                    _ if job.hatchery.is_some() => &mut tally.starting,
                    _ => &mut tally.waiting,
                }
            };
            *place += 1;
        }
        tally.to_come = self.jobs.load(Ordering::Relaxed).saturating_sub(tally.arrived());
        tally
    }

    /// The hatchery's warm pools.
    pub(super) fn pools(&self) -> Vec<PoolView> {
        let all = self.house.pools().into_iter();
        all.filter(|pool| pool.door == HATCHERY.as_str()).collect()
    }

    /// Looks whether headline, lists and VMs say the same. To be called within the simulation, where nothing changes meanwhile.
    pub(super) fn compare(&self) {
        for door in &self.house.doors {
            if let Some(words) = disagreement(door.as_ref()) {
                let _ = self.contradiction.set(format!("{}: {words}", door.words().name));
            }
        }
    }

    /// Whether they did so far.
    pub(super) fn agreed(&self) -> Check {
        match self.contradiction.get() {
            None => Check::new("headline, lists and VMs agreed on every look", true),
            Some(words) => Check::new(format!("numbers contradict each other: {words}"), false),
        }
    }

    /// A browser or another program follows it.
    pub(super) fn is_looked_at(&self) -> bool {
        self.house.feed.has_listeners()
    }

    /// Jobs that cannot be served, and of which the hatchery said so and named what is in their way.
    pub(super) fn refused(&self) -> BTreeSet<String> {
        let impossible = self.witness.jobs();
        let impossible = impossible.iter().filter_map(|job| Some((job, job.impossible?)));
        let mut said: BTreeMap<&str, Vec<DecisionView>> = BTreeMap::new();
        impossible
            .filter(|(job, why)| {
                let bound = || self.bound_by(why.gate());
                let decisions = said.entry(why.gate()).or_insert_with(bound);
                let id = job.id.to_string();
                let names_it = |decision: &&DecisionView| decision.reason.contains(why.obstacle());
                decisions.iter().filter(names_it).any(|decision| decision.subject == id)
            })
            .map(|(job, _)| job.id.to_string())
            .collect()
    }

    /// Everything that was turned away for good, rightly or not.
    pub(super) fn turned_away(&self) -> BTreeSet<String> {
        let query = DecisionQuery { verdict: Some("refused".into()), ..DecisionQuery::default() };
        self.house.decisions(&query).into_iter().map(|decision| decision.subject).collect()
    }

    fn bound_by(&self, gate: &str) -> Vec<DecisionView> {
        let query = DecisionQuery { bound_by: Some(gate.into()), ..DecisionQuery::default() };
        self.house.decisions(&query)
    }
}

impl Tally {
    fn arrived(self) -> u64 {
        let Self { waiting, starting, running, done, failed, refused, to_come: _ } = self;
        waiting + starting + running + done + failed + refused
    }
}
