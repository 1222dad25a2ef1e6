//! Workers as both sides know them. Looking changes nothing: CDS's own hatchery disables workers when it is asked for this list (W31).

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::{JobId, WorkerStatus};
use roost_fleet::Snapshot;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::holding::{is_leaving, own_annotation};
use super::super::scheduler::SchedulerState;
use super::super::workers::{WorkerLists, Workers};
use super::StateReader;
use crate::door::HATCHERY;
use crate::names::VmName;
use crate::pool::{Listed, NotWhole, Pool, StartedVm};

/// A view of the inventory that is older is no base for a count. The stream is heard from every minute; three lets one answer fail.
const COUNTED_FOR: Duration = Duration::from_mins(3);

/// Our VMs that count as workers (W4, D37).
pub(super) fn started<'a>(
    snapshot: &'a Snapshot,
    hatchery: &'a str,
    scheduler: &SchedulerState,
) -> Vec<StartedVm<'a>> {
    snapshot
        .owned_by(HATCHERY, hatchery)
        .filter(|vm| !vm.template && VmName::of(&vm.name).counts_as_worker())
        .filter_map(|vm| {
            let annotation = own_annotation(vm, hatchery)?;
            Some(StartedVm {
                name: &vm.name,
                is_leaving: is_leaving(vm, &annotation, scheduler.facts()),
            })
        })
        .collect()
}

/// Why the inventory cannot be counted on now.
pub(super) fn inventory_doubt(snapshot: &Snapshot, now: Timestamp) -> Option<String> {
    let freshness = snapshot.freshness();
    let unfit = freshness.check(now, COUNTED_FOR).err()?;
    Some(match &freshness.trouble {
        Some(trouble) => format!("the inventory {unfit}: {trouble}"),
        None => format!("the inventory {unfit}"),
    })
}

impl Workers {
    /// Both sides joined, if both can be counted on.
    pub(in crate::run) fn join(
        &self,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Result<Pool, NotWhole> {
        let vms = match inventory_doubt(snapshot, now) {
            Some(why) => Listed::Partial(why),
            None => Listed::Whole(started(snapshot, self.hatchery(), &self.scheduler.lock())),
        };
        match self.believed() {
            Ok(lists) => Pool::join(&lists.views(vms)),
            Err(why) => {
                let lists = WorkerLists::default();
                let mut views = lists.views(vms);
                if self.cds.v1().is_some() {
                    views.v1 = Listed::Partial(why.clone());
                }
                if self.cds.v2().is_some() {
                    views.v2 = Listed::Partial(why);
                }
                Pool::join(&views)
            }
        }
    }
}

impl StateReader {
    /// The array of `/mon/workers`: workers as CDS has listed them, and behind them those of whose VMs it does not know yet.
    pub(super) fn workers_json(&self) -> Value {
        let snapshot = self.mirror.snapshot();
        let lists = self.workers.latest().unwrap_or_default();
        let known = lists.by_name();
        let scheduler = self.scheduler.lock();
        let pending = started(&snapshot, self.about.hatchery(), &scheduler)
            .into_iter()
            .filter(|vm| !vm.is_leaving && !known.contains_key(vm.name))
            .map(|vm| {
                let registers = VmName::of(vm.name) == VmName::Registering;
                json!({ "name": vm.name, "status": if registers { "Registering" } else { "Pending" } })
            });
        let v1 = lists.v1.iter().flatten().map(as_json);
        let v2 = lists.v2.iter().flatten().map(as_json);
        v1.chain(v2).chain(pending).collect()
    }
}

fn as_json(worker: &impl Serialize) -> Value {
    serde_json::to_value(worker).unwrap_or_default()
}

impl WorkerLists {
    /// Each worker's status, and the V2 job that CDS says it is at work on.
    pub(in crate::run) fn by_name(&self) -> BTreeMap<&str, (WorkerStatus, Option<JobId>)> {
        let v1 =
            self.v1.iter().flatten().map(|worker| (worker.name.as_str(), (worker.status, None)));
        let v2 = self.v2.iter().flatten().map(|worker| {
            (worker.name.as_str(), (worker.status, JobId::parse(&worker.run_job_id)))
        });
        v1.chain(v2).collect()
    }
}
