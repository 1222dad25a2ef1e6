use std::sync::Arc;

use jiff::Timestamp;
use roost_cds::{JobId, MonitoringStatus};
use roost_fleet::{AddressCell, Decision, Journal, Step, VmId};
use roost_supervise::Tasks;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::super::Hatchery;
use super::super::context::Context;
use super::super::steer::Held;
use super::view::{
    CallsPast, Check, GuardState, Job, JobDetail, JobState, Overview, Pool, View, Vm, VmDetail,
};
use crate::door::HATCHERY;

/// What can be seen of a hatchery from outside. A handle: it reads memory, asks no server, changes nothing, and keeps nothing running.
#[derive(Debug, Clone)]
pub struct Window {
    cx: Arc<Context>,
    tasks: Arc<Tasks>,
}

impl Hatchery {
    /// For whoever shows the hatchery while it runs, and for a moment after.
    pub fn window(&self) -> Window {
        Window { cx: Arc::clone(&self.running.cx), tasks: Arc::clone(&self.running.tasks) }
    }

    /// The lines of `/mon/status`.
    pub fn status(&self) -> MonitoringStatus {
        self.running.cx.status(&self.running.tasks)
    }

    /// Everything at this moment.
    pub fn view(&self) -> View {
        self.window().view()
    }

    /// A job and everything that was decided about it. `None` if nothing is known about it.
    pub fn explain(&self, job: &str) -> Option<JobDetail> {
        self.running.cx.explain(job)
    }

    /// Every decision.
    pub fn journal(&self) -> Journal {
        self.running.cx.journal.clone()
    }

    /// Tells of what changes from here on.
    pub fn changes(&self) -> Changes {
        self.window().changes()
    }
}

impl Window {
    pub fn name(&self) -> &str {
        self.cx.hatchery()
    }

    pub fn version(&self) -> &str {
        &self.cx.version
    }

    /// The lines of `/mon/status`.
    pub fn status(&self) -> MonitoringStatus {
        self.cx.status(&self.tasks)
    }

    /// The array of `/mon/workers`.
    pub fn workers(&self) -> Value {
        self.cx.workers_json()
    }

    /// Whether the loops make progress; if not, a restart is what helps.
    pub fn liveness(&self) -> Vec<Check> {
        self.cx.liveness(&self.tasks)
    }

    /// Whether the views of both sides are good enough to act on.
    pub fn readiness(&self) -> Vec<Check> {
        self.cx.readiness()
    }

    pub fn view(&self) -> View {
        let (vms, jobs) = (self.cx.vms(), self.cx.jobs());
        let states: Vec<JobState> = jobs.iter().map(|job| job.state).collect();
        View { overview: self.cx.overview_of(&vms, &states), jobs, vms }
    }

    pub fn overview(&self) -> Overview {
        self.cx.overview()
    }

    /// Jobs that will not be served as they are.
    pub fn refused_jobs(&self) -> Vec<Job> {
        self.cx.refused_jobs()
    }

    /// Jobs that wait, in the order of their turns.
    pub fn line(&self) -> Vec<JobId> {
        self.cx.line()
    }

    /// Templates of which nothing came up lately, and how often in a row.
    pub fn failing_templates(&self) -> Vec<(String, u32)> {
        self.cx.failing_templates()
    }

    /// Workers that have had more than the usual time to register.
    pub fn not_joining(&self) -> Vec<Vm> {
        self.cx.not_joining()
    }

    /// Another process that is at work under our name, in words.
    pub fn other_process(&self) -> Option<String> {
        self.cx.others.at_work(self.cx.now()).map(|other| other.to_string())
    }

    /// Queues that are not heard: which, since when, and why.
    pub fn deaf_queues(&self) -> Vec<(&'static str, Option<Timestamp>, Option<String>)> {
        self.cx.deaf_queues()
    }

    /// The same without looking at each VM: no lanes.
    pub fn brief_overview(&self) -> Overview {
        self.cx.overview_of(&[], &[])
    }

    /// Those that wait first, the oldest of them first; then those that start, run, and have ended.
    pub fn jobs(&self) -> Vec<Job> {
        self.cx.jobs()
    }

    pub fn explain(&self, job: &str) -> Option<JobDetail> {
        self.cx.explain(job)
    }

    /// Our own, by name.
    pub fn vms(&self) -> Vec<Vm> {
        self.cx.vms()
    }

    pub fn vm(&self, name_or_id: &str) -> Option<VmDetail> {
        self.cx.vm(name_or_id)
    }

    /// What a VM is called, or was when something was last decided about it.
    pub fn vm_name(&self, vm: &VmId) -> Option<Arc<str>> {
        let row = self.cx.mirror.vm(vm).map(|row| Arc::clone(&row.name));
        row.or_else(|| self.cx.names_seen.get(vm))
    }

    /// The VM of this name, or the last of ours that had it.
    pub fn vm_named(&self, name: &str) -> Option<VmId> {
        let row = self.cx.vm(name).map(|detail| detail.vm.id);
        row.or_else(|| self.cx.names_seen.find(name))
    }

    pub fn pools(&self) -> Vec<Pool> {
        self.cx.pool_views()
    }

    /// The first `most` addresses of the configured ranges. Empty if addresses come from a DHCP server.
    pub fn addresses(&self, most: u64) -> Vec<AddressCell> {
        let now = self.cx.now();
        self.cx.scheduler().ledger.lock().address_cells(HATCHERY, most, now)
    }

    /// How the deletion guard stands.
    pub fn guard(&self) -> GuardState {
        let mut guard = self.cx.deletions.guard(self.cx.now());
        for seen in &mut guard.candidates {
            seen.name = self.vm_name(&seen.vm);
        }
        guard
    }

    /// What was asked of the vCenter lately.
    pub fn calls_past(&self) -> CallsPast {
        self.cx.calls.past(self.cx.now())
    }

    /// What a machine of this name went through, also if it is gone.
    pub fn timeline(&self, machine: &str) -> Vec<Step> {
        self.cx.timelines.of(machine).map(|line| line.steps).unwrap_or_default()
    }

    /// Why no worker may be begun, if a person has said so.
    pub fn spawning_held(&self) -> Option<Held> {
        self.cx.steering.spawning()
    }

    /// Why nothing may be deleted, if a person has said so.
    pub fn deleting_held(&self) -> Option<Held> {
        self.cx.steering.deleting()
    }

    /// The configuration, without secrets.
    pub fn config(&self) -> Value {
        self.cx.config.public_config()
    }

    pub fn journal(&self) -> Journal {
        self.cx.journal.clone()
    }

    /// Tells of what changes from here on.
    pub fn changes(&self) -> Changes {
        Changes {
            inventory: self.cx.mirror.changes(),
            open: self.cx.open.subscribe(),
            decisions: self.cx.journal.subscribe(),
        }
    }
}

/// Something that a view shows has changed.
#[derive(Debug, Clone)]
pub enum News {
    Decided(Arc<Decision>),
    /// Look again. Any number of changes before this was asked for are one.
    Changed,
}

/// Follows a hatchery. What it tells of is a hint; the truth is in the views.
#[derive(Debug)]
pub struct Changes {
    inventory: watch::Receiver<u64>,
    open: watch::Receiver<bool>,
    decisions: broadcast::Receiver<Arc<Decision>>,
}

impl Changes {
    /// Waits for the next. `None` when the hatchery is gone.
    pub async fn next(&mut self) -> Option<News> {
        tokio::select! {
            biased;
            decision = self.decisions.recv() => match decision {
                Ok(decision) => Some(News::Decided(decision)),
                // Whoever fell behind reads the journal.
                Err(RecvError::Lagged(_)) => Some(News::Changed),
                Err(RecvError::Closed) => None,
            },
            changed = self.open.changed() => changed.ok().map(|()| News::Changed),
            changed = self.inventory.changed() => changed.ok().map(|()| News::Changed),
        }
    }
}
