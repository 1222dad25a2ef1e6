//! What the tasks of a running hatchery share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::{CdnConfig, HeartbeatHealth, NamesExhausted, Protocol, QueueHealth, WorkerNames};
use roost_clock::{Clock, Random};
use roost_fleet::{Decision, Draft, Fleet, Journal, Machines, Mirror, PoolId, Snapshot, Timelines};
use roost_supervise::Tasks;
use roost_vim::Observer;
use tokio::sync::{Notify, Semaphore, SetOnce, watch};

use super::Stopped;
use super::cleanup::Deletions;
use super::models::Models;
use super::observe::{CallMeter, NamesSeen};
use super::others::Others;
use super::scheduler::{SchedulerState, lock};
use super::steer::Steering;
use super::workers::Workers;
use crate::clone_spec::Site;
use crate::config::{Config, Surroundings};
use crate::door::HATCHERY;
use crate::metrics::Metrics;
use crate::names::NamePrefix;
use crate::spares::PoolStanding;

/// What a round takes beside its calls to CDS, on a machine that is busy with other things.
const ROUND: Duration = Duration::from_mins(2);
/// As many calls to CDS, one after the other, each at the end of its time.
const CALLS: u32 = 20;

/// Everything that a step of a running hatchery may need. Shared by all of its tasks.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) config: Arc<Config>,
    pub(crate) surroundings: Arc<dyn Surroundings + Send + Sync>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) fleet: Fleet,
    /// Reads only; what changes a VM is a verb of `machines`.
    pub(crate) vcenter: Observer,
    pub(crate) machines: Machines,
    pub(crate) site: Site,
    pub(crate) pool: PoolId,
    pub(crate) mirror: Mirror,
    pub(crate) cds: roost_cds::Client,
    pub(crate) workers: Workers,
    pub(crate) models: Models,
    pub(crate) deletions: Deletions,
    pub(crate) journal: Journal,
    pub(crate) timelines: Timelines,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) signals: Signals,
    pub(crate) steering: Steering,
    pub(crate) others: Others,
    pub(crate) version: String,
    /// As CDS says itself; `None` until it has.
    pub(super) cds_version: Mutex<Option<String>>,
    pub(crate) hostname: String,
    pub(crate) started: Timestamp,
    pub(super) scheduler: Arc<Mutex<SchedulerState>>,
    pub(super) names: Mutex<WorkerNames>,
    pub(super) random: Mutex<Random>,
    pub(super) cdn: Mutex<CdnConfig>,
    /// Jobs that are asked about at the same time.
    pub(super) asking: Semaphore,
    pub(super) queues: Mutex<BTreeMap<Protocol, watch::Receiver<QueueHealth>>>,
    pub(super) hearts: Mutex<BTreeMap<Protocol, watch::Receiver<HeartbeatHealth>>>,
    pub(super) calls: Arc<CallMeter>,
    pub(super) names_seen: NamesSeen,
    /// How the pools stood at the last look.
    pub(super) standing: Mutex<Vec<PoolStanding>>,
    /// Whether everything was read once, so that decisions can be made.
    pub(super) open: watch::Sender<bool>,
    /// The same for the loops, which begin in the order of their starts: `watch` wakes its waiters in random order, which would break replay by seed.
    pub(super) opened: SetOnce<()>,
    pub(super) stopped: watch::Sender<Option<Stopped>>,
}

/// Wake-ups between the loops. Each wakes one loop, which then looks at everything anew; none says what changed.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// A job may be startable now.
    pub(crate) plan: Notify,
    /// A spare may be missing now.
    pub(crate) spares: Notify,
    /// A VM may have to go now.
    pub(crate) cleanup: Notify,
    /// A worker may have registered by now.
    pub(crate) workers: Notify,
    /// A V1 model may have to be registered now.
    pub(crate) register: Notify,
}

impl Context {
    pub(crate) fn hatchery(&self) -> &str {
        &self.config.identity.name
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The scheduler with everything that the inventory shows at this moment. Nobody waits for anything while holding it.
    pub(crate) fn scheduler(&self) -> MutexGuard<'_, SchedulerState> {
        let mut scheduler = lock(&self.scheduler);
        let held = self.machines.take_hold_changes(HATCHERY);
        for vm in &held {
            scheduler.set_held(vm, &self.machines);
        }
        let (snapshot, now) = (self.mirror.snapshot(), self.clock.now());
        let theirs = self.others.theirs(self.config.lifetimes.registration, now);
        let elsewhere = scheduler.set_elsewhere(theirs);
        scheduler.look(&snapshot, now);
        for vm in held.iter().chain(&elsewhere) {
            scheduler.see_again(vm, &snapshot, now);
        }
        scheduler
    }

    /// A name that no VM and no worker has.
    pub(crate) fn name(
        &self,
        prefix: NamePrefix,
        scheduler: &mut SchedulerState,
        snapshot: &Snapshot,
    ) -> Result<String, NamesExhausted> {
        let mut names = lock(&self.names);
        let name =
            names.next(&prefix.to_string(), |name| !scheduler.is_free_name(name, snapshot))?;
        scheduler.give_name(&name);
        Ok(name)
    }

    pub(crate) fn uuid(&self) -> String {
        lock(&self.random).uuid()
    }

    /// Records a decision. `label` names its reason in metrics, from a closed set.
    pub(crate) fn decide(&self, draft: Draft, label: &'static str) -> Arc<Decision> {
        let decision = self.journal.record(draft, self.clock.now());
        self.names_seen.note(&decision, &self.mirror);
        if decision.times == 1 {
            self.metrics.own.decided(decision.verdict, label);
        }
        decision
    }

    /// What workers are told about the CDN.
    pub(crate) fn cdn(&self) -> CdnConfig {
        lock(&self.cdn).clone()
    }

    /// Remembers how a queue is heard, for whoever asks.
    pub(super) fn follow_queue(&self, protocol: Protocol, health: watch::Receiver<QueueHealth>) {
        lock(&self.queues).insert(protocol, health);
    }

    /// How each queue is heard.
    pub(crate) fn queue_health(&self) -> Vec<(Protocol, QueueHealth)> {
        let queues = lock(&self.queues);
        queues.iter().map(|(protocol, health)| (*protocol, health.borrow().clone())).collect()
    }

    /// How long a loop takes at most for a round of calls, all of which end at their deadlines: what it promises before it makes them. Both
    /// lists of CDS, each with all its attempts, behind somebody else who reads them, and signing in anew in between; the vCenter's deadlines
    /// are short beside that.
    pub(crate) fn patience(&self) -> Duration {
        ROUND + self.config.api.request_timeout.saturating_mul(CALLS)
    }

    /// Waits until decisions can be made.
    pub(crate) async fn opened(&self) {
        self.opened.wait().await;
    }

    pub(crate) fn is_open(&self) -> bool {
        *self.open.borrow()
    }

    /// Ends the service with this reason.
    pub(crate) fn stop(&self, why: Stopped) {
        self.stopped.send_if_modified(|stopped| {
            let is_first = stopped.is_none();
            if is_first {
                *stopped = Some(why);
            }
            is_first
        });
    }
}

/// A running hatchery with its tasks. The tasks end when it is dropped, wherever they are: what they leave behind is found by the next one.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) cx: Arc<Context>,
    pub(crate) tasks: Arc<Tasks>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tasks.end();
    }
}
