//! From a template to a spare: cloned, booted once so that its first boot is over when a job comes, shut down.

use std::net::IpAddr;
use std::sync::Arc;

use roost_fleet::{Decided, Draft, Hold, MachineError, NextLook, Power, Reservation, VmId};
use roost_supervise::Chain;

use super::look::subject;
use super::source::Source;
use crate::clone_spec::Birth;
use crate::config::SpareKind;
use crate::run::bring_up::BringUp;
use crate::run::holding::own_annotation;
use crate::run::keeping::PoolKeeper;
use crate::run::scheduler::Scheduler;

/// What the VM of a spare that came to nothing says of itself.
const FAILED: &str = "making this spare failed";
const SUSPENDED: &str = "this spare was suspended";

/// A spare to be made. Everything that it takes is reserved.
#[derive(Debug)]
pub(super) struct NewSpare {
    pub(super) name: Arc<str>,
    pub(super) kind: SpareKind,
    pub(super) source: Source,
    pub(super) reservation: Reservation,
    pub(super) making: Making,
}

/// Counts a spare as being made, until it is dropped.
#[derive(Debug)]
pub(super) struct Making {
    scheduler: Arc<Scheduler>,
    name: Arc<str>,
}

impl Making {
    /// For a name that is entered at the scheduler already.
    pub(super) fn begun(scheduler: &Arc<Scheduler>, name: &Arc<str>) -> Self {
        Self { scheduler: Arc::clone(scheduler), name: Arc::clone(name) }
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        self.scheduler.lock_as_it_is().making.remove(&self.name);
    }
}

/// Makes a spare.
pub(super) async fn make(keeper: &Arc<PoolKeeper>, spare: NewSpare) {
    let NewSpare { name, kind, source, mut reservation, making } = spare;
    let address = reservation.address().cloned();
    let birth = Birth {
        hatchery: keeper.about.hatchery(),
        name: &name,
        source: &source.template.name,
        purpose: source.purpose(),
        flavor: source.flavor.as_ref(),
        address: address.as_ref(),
        process: Some(keeper.processes.own()),
        now: keeper.about.now(),
    };
    let cloning = keeper.vms.clone_at_work(&birth, &source.template, &mut reservation);
    let at_work = match Box::pin(cloning).await {
        Ok(at_work) => at_work,
        Err(error) => {
            if error.nothing_made() {
                reservation.release();
            } else {
                // A VM may yet come of it: what it takes stays taken for a while. If one comes, it is finished.
                drop(reservation);
            }
            drop(making);
            failed(keeper, &kind, &error);
            return;
        }
    };
    let vm = at_work.vm().clone();
    let expected = address.map(|grant| IpAddr::V4(grant.address));
    let made = boot_once(keeper, &at_work, &name, expected).await;
    if let Err(error) = &made {
        give_up(keeper, &vm, FAILED).await;
        failed(keeper, &kind, error);
    }
    // From here on the inventory says what it takes: a powered-off VM's address, or nothing.
    reservation.release();
    drop(making);
    drop(at_work);
    if made.is_ok() {
        ready(keeper, &kind, &vm, Decided::Spawned, format!("spare {name} is ready"));
    }
    keeper.signals.spares.notify_one();
}

/// Brings a spare to its end that an earlier process began (D30).
pub(super) async fn finish(keeper: &Arc<PoolKeeper>, at_work: Hold) {
    let vm = at_work.vm().clone();
    let Some(row) = keeper.mirror.vm(&vm) else { return };
    let Some((annotation, kind)) =
        own_annotation(&row, keeper.about.hatchery()).and_then(|annotation| {
            let kind = SpareKind::of(&row.name, &annotation)?;
            Some((annotation, kind))
        })
    else {
        return;
    };
    match row.power {
        Power::On => {}
        // Nobody can say yet, or it came to its end by itself.
        Power::Unknown | Power::Off => return,
        Power::Suspended => {
            give_up(keeper, &vm, SUSPENDED).await;
            return;
        }
    }
    let finished = match boot_once(keeper, &at_work, &row.name, annotation.address()).await {
        // The earlier process had asked it to shut down already.
        Err(MachineError::PoweredOff { .. }) => Ok(()),
        other => other,
    };
    if let Err(error) = &finished {
        give_up(keeper, &vm, FAILED).await;
        failed(keeper, &kind, error);
    }
    drop(at_work);
    if finished.is_ok() {
        let words = format!("spare {}, left half-made, is ready", row.name);
        ready(keeper, &kind, &vm, Decided::Adopted, words);
    }
    keeper.signals.spares.notify_one();
}

async fn boot_once(
    keeper: &PoolKeeper,
    work: &Hold,
    machine: &str,
    expected: Option<IpAddr>,
) -> Result<(), MachineError> {
    let up = BringUp { vms: &keeper.vms, work, machine, expected };
    up.wait_ready().await?;
    up.shut_down().await
}

/// Marks it. If that fails too the VM is still a spare that is on, which the next look finds.
async fn give_up(keeper: &PoolKeeper, vm: &VmId, reason: &str) {
    match keeper.vms.mark(vm, reason).await {
        Ok(()) => keeper.signals.cleanup.notify_one(),
        Err(error) => {
            tracing::warn!(%vm, "marking a spare that failed did not work: {}", Chain(&error));
        }
    }
}

fn ready(keeper: &PoolKeeper, kind: &SpareKind, vm: &VmId, verdict: Decided, words: String) {
    keeper.scheduler.lock().backoffs.succeeded(&kind.model);
    keeper.recorder.decide(Draft::new(subject(kind), verdict, words).vm(vm), "spare");
    keeper.signals.plan.notify_one();
}

fn failed(keeper: &PoolKeeper, kind: &SpareKind, error: &MachineError) {
    let (now, is_of_link) = (keeper.about.now(), keeper.vms.machines.is_of_link(error));
    let until = {
        let mut scheduler = keeper.scheduler.lock();
        // Those that were made at the same time fail together, and together are one failure.
        match scheduler.backoffs.blocked(&kind.model, now) {
            Some((until, _)) => until,
            None if is_of_link => scheduler.backoffs.interrupted(&kind.model, now),
            None => scheduler.backoffs.failed(&kind.model, now),
        }
    };
    let words = format!("a spare failed: {}", Chain(error));
    let draft = Draft::new(subject(kind), Decided::Failed, words).next_look(NextLook::At(until));
    keeper.recorder.decide(draft, "spare");
    keeper.signals.spares.notify_one();
}
