//! One look: which models are due, and everything that their registration takes reserved, under one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::v1::{self, ModelPath};
use roost_fleet::{
    Amounts, Ask, Decided, Draft, Machine, NextLook, Refusal as NoRoom, Reservation, Snapshot,
    Subject, VmId,
};

use super::choose::{Begin, abandoned, choose, template_seen};
use crate::annotation::Annotation;
use crate::door::{HATCHERY, REGISTERING, WORKERS};
use crate::model::{TemplateSeen, to_register};
use crate::names::{self, NamePrefix};
use crate::plan::address_need;
use crate::refusal::Refusal;
use crate::run::register::Registrar;
use crate::run::scheduler::SchedulerState;

/// On an older inventory nothing is built: a template that is not seen would be built again.
const BELIEVED_FOR: Duration = Duration::from_mins(3);

/// What a look found to do.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) begin: Vec<NewRegistration>,
    /// Left half-made, each with what its mark will say.
    pub(super) abandon: Vec<(VmId, &'static str)>,
}

/// A registration to be carried out. Everything that it takes is reserved: first for the VM that becomes the template, then for the worker's.
#[derive(Debug)]
pub(super) struct NewRegistration {
    pub(super) model: Box<v1::Model>,
    pub(super) begin: Begin,
    /// The worker's name, which becomes that of its VM.
    pub(super) worker: Arc<str>,
    pub(super) reservation: Reservation,
}

pub(super) fn subject(path: &ModelPath) -> Subject {
    HATCHERY.about_pool(format!("model {path}"))
}

pub(super) fn look(registrar: &Registrar) -> Work {
    let now = registrar.about.now();
    if registrar.mirror.freshness().check(now, BELIEVED_FOR).is_err() {
        return Work::default();
    }
    let Some(models) = registrar.models.v1() else { return Work::default() };
    if models.is_empty() {
        tracing::debug!("CDS has no enabled V1 worker model");
    }
    let (mut work, mut told) = (Work::default(), Vec::new());
    let mut scheduler = registrar.scheduler.lock();
    let snapshot = registrar.mirror.snapshot();
    let at_it = at_it(registrar, &snapshot, &models);
    let at_it: Vec<_> = at_it.iter().map(|(vm, annotation)| (*vm, &**annotation)).collect();
    let templates: BTreeMap<&str, TemplateSeen<'_>> = models
        .iter()
        .filter_map(|model| Some((&*model.name, template_seen(&snapshot, &model.name)?)))
        .collect();
    let find = |name: &str| templates.get(name).cloned();
    for (model, verdict) in to_register(&models, registrar.about.hatchery(), find, &at_it) {
        let begin =
            verdict.and_then(|()| choose(model, registrar.about.hatchery(), &snapshot, now));
        let begin = match begin {
            Ok(begin) => begin,
            Err(refusal) => {
                told.push(refused(model, &refusal));
                continue;
            }
        };
        match reserve(registrar, &mut scheduler, &snapshot, model, &begin, now) {
            Ok(None) => {}
            Ok(Some((worker, reservation))) => {
                let model = Box::new(model.clone());
                work.begin.push(NewRegistration { model, begin, worker, reservation });
            }
            Err(no_room) => told.push(put_off(model, &no_room)),
        }
    }
    let wanted: Vec<VmId> =
        work.begin.iter().map(|registration| registration.begin.source().id.clone()).collect();
    work.abandon = abandoned(&snapshot, registrar.about.hatchery(), registrar.about.started, now)
        .filter(|(vm, _)| !scheduler.is_busy(&vm.id) && !wanted.contains(&vm.id))
        .map(|(vm, reason)| (vm.id.clone(), reason))
        .collect();
    drop(scheduler);
    for (draft, label) in told {
        registrar.recorder.decide(draft, label);
    }
    work
}

/// VMs that register a model at present: ours, and those of others that build a template of the same name.
fn at_it<'a>(
    registrar: &Registrar,
    snapshot: &'a Snapshot,
    models: &[v1::Model],
) -> Vec<(&'a str, Arc<Annotation>)> {
    let built: BTreeSet<String> = models.iter().map(|model| names::building(&model.name)).collect();
    let vms = snapshot.vms().filter_map(|vm| {
        let annotation = Annotation::of(vm)?;
        let is_at_it = if annotation.is_of(registrar.about.hatchery()) {
            // A complete template that is not in its place yet holds up nobody.
            !vm.template
        } else {
            built.contains(&*vm.name)
        };
        is_at_it.then_some((&*vm.name, annotation))
    });
    vms.collect()
}

/// `None` if this process is at it already.
fn reserve(
    registrar: &Registrar,
    scheduler: &mut SchedulerState,
    snapshot: &Snapshot,
    model: &v1::Model,
    begin: &Begin,
    now: Timestamp,
) -> Result<Option<(Arc<str>, Reservation)>, NoRoom> {
    // By its name and not its path: models of one name in two groups would build in the same VM.
    let request = HATCHERY.request(format!("register {}", model.name));
    if scheduler.ledger.lock().has_machine(&request, now) {
        return Ok(None);
    }
    let worker: Arc<str> = match registrar.scheduler.name(NamePrefix::Register, scheduler, snapshot)
    {
        Ok(name) => name.into(),
        Err(error) => {
            tracing::error!("{error}");
            return Ok(None);
        }
    };
    let first: Arc<str> = match begin {
        Begin::Build { .. } => names::building(&model.name).into(),
        Begin::Install { .. } | Begin::Show { .. } => Arc::clone(&worker),
    };
    let source = begin.source();
    let ask = Ask {
        request,
        name: Some(first),
        amounts: Amounts {
            cpus: source.cpus.into(),
            memory_mb: source.memory_mb,
            ..Amounts::default()
        }
        .count(WORKERS, 1)
        .count(REGISTERING, 1),
        pool: Some(registrar.pool.clone()),
        machine: Machine::Fresh { address: address_need(&registrar.about.config) },
    };
    scheduler.ledger.lock().reserve(ask, now).map(|reservation| Some((worker, reservation)))
}

fn refused(model: &v1::Model, refusal: &Refusal) -> (Draft, &'static str) {
    let draft = Draft::new(subject(&model.path()), refusal.decided(), refusal.to_string())
        .gates(vec![refusal.gate()])
        .next_look(NextLook::OnChange);
    (draft, refusal.reason())
}

fn put_off(model: &v1::Model, no_room: &NoRoom) -> (Draft, &'static str) {
    let draft = Draft::new(subject(&model.path()), Decided::Deferred, no_room.to_string())
        .gates(no_room.gates.clone())
        .next_look(NextLook::OnChange);
    (draft, no_room.bound_by.as_str())
}
