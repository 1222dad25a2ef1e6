//! From a template to a spare: cloned, booted once so that its first boot is over when a job comes, shut down.

use std::net::IpAddr;
use std::sync::Arc;

use roost_fleet::{Decided, Draft, Hold, MachineError, NextLook, Power, Reservation, VmId};
use roost_supervise::Chain;

use super::look::subject;
use super::source::Source;
use crate::clone_spec::Birth;
use crate::config::SpareKind;
use crate::run::desk::lock;
use crate::run::holding::own_annotation;
use crate::run::nest::Nest;

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
    nest: Arc<Nest>,
    name: Arc<str>,
}

impl Making {
    /// For a name that is entered at the desk already.
    pub(super) fn begun(nest: &Arc<Nest>, name: &Arc<str>) -> Self {
        Self { nest: Arc::clone(nest), name: Arc::clone(name) }
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        lock(&self.nest.desk).making.remove(&self.name);
    }
}

/// Makes a spare.
pub(super) async fn make(nest: &Arc<Nest>, spare: NewSpare) {
    let NewSpare { name, kind, source, mut reservation, making } = spare;
    let address = reservation.address().cloned();
    let birth = Birth {
        hatchery: nest.hatchery(),
        name: &name,
        source: &source.template.name,
        purpose: source.purpose(),
        flavor: source.flavor.as_ref(),
        address: address.as_ref(),
        now: nest.now(),
    };
    let cloning = nest.clone_at_work(&birth, &source.template, &mut reservation);
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
            failed(nest, &kind, &error);
            return;
        }
    };
    let vm = at_work.vm().clone();
    let expected = address.map(|grant| IpAddr::V4(grant.address));
    let made = boot_once(nest, &at_work, expected).await;
    if let Err(error) = &made {
        give_up(nest, &vm, FAILED).await;
        failed(nest, &kind, error);
    }
    // From here on the inventory says what it takes: a powered-off VM's address, or nothing.
    reservation.release();
    drop(making);
    drop(at_work);
    if made.is_ok() {
        ready(nest, &kind, &vm, Decided::Spawned, format!("spare {name} is ready"));
    }
    nest.signals.spares.notify_one();
}

/// Brings a spare to its end that an earlier process began (D30).
pub(super) async fn finish(nest: &Arc<Nest>, at_work: Hold) {
    let vm = at_work.vm().clone();
    let Some(row) = nest.mirror.vm(&vm) else { return };
    let Some((annotation, kind)) = own_annotation(&row, nest.hatchery()).and_then(|annotation| {
        let kind = SpareKind::of(&row.name, &annotation)?;
        Some((annotation, kind))
    }) else {
        return;
    };
    match row.power {
        Power::On => {}
        // Nobody can say yet, or it came to its end by itself.
        Power::Unknown | Power::Off => return,
        Power::Suspended => {
            give_up(nest, &vm, SUSPENDED).await;
            return;
        }
    }
    let finished = match boot_once(nest, &at_work, annotation.address()).await {
        // The earlier process had asked it to shut down already.
        Err(MachineError::PoweredOff { .. }) => Ok(()),
        other => other,
    };
    if let Err(error) = &finished {
        give_up(nest, &vm, FAILED).await;
        failed(nest, &kind, error);
    }
    drop(at_work);
    if finished.is_ok() {
        let words = format!("spare {}, left half-made, is ready", row.name);
        ready(nest, &kind, &vm, Decided::Adopted, words);
    }
    nest.signals.spares.notify_one();
}

async fn boot_once(nest: &Nest, work: &Hold, expected: Option<IpAddr>) -> Result<(), MachineError> {
    nest.machines.wait_ready(work.vm(), expected).await?;
    nest.shut_down(work).await
}

/// Marks it. If that fails too the VM is still a spare that is on, which the next look finds.
async fn give_up(nest: &Nest, vm: &VmId, reason: &str) {
    match nest.mark(vm, reason).await {
        Ok(()) => nest.signals.cleanup.notify_one(),
        Err(error) => {
            tracing::warn!(%vm, "marking a spare that failed did not work: {}", Chain(&error));
        }
    }
}

fn ready(nest: &Nest, kind: &SpareKind, vm: &VmId, verdict: Decided, words: String) {
    nest.desk().backoffs.succeeded(&kind.model);
    nest.decide(Draft::new(subject(kind), verdict, words).vm(vm), "spare");
    nest.signals.plan.notify_one();
}

fn failed(nest: &Nest, kind: &SpareKind, error: &MachineError) {
    let (now, is_of_link) = (nest.now(), nest.machines.is_of_link(error));
    let until = {
        let mut desk = nest.desk();
        // Those that were made at the same time fail together, and together are one failure.
        match desk.backoffs.blocked(&kind.model, now) {
            Some((until, _)) => until,
            None if is_of_link => desk.backoffs.interrupted(&kind.model, now),
            None => desk.backoffs.failed(&kind.model, now),
        }
    };
    let words = format!("a spare failed: {}", Chain(error));
    let draft = Draft::new(subject(kind), Decided::Failed, words).next_look(NextLook::At(until));
    nest.decide(draft, "spare");
    nest.signals.spares.notify_one();
}
