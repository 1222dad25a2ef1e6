//! The gates of a job in the order of the specification: a function of what is seen, without I/O. What passes them has everything reserved that
//! its worker takes.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use roost_cds::v1;
use roost_fleet::{
    AddressNeed, Amounts, Ask, Ledger, LedgerGate, Machine, PoolId, Reservation, Snapshot, Vm,
};

use crate::annotation::Annotation;
use crate::attempts::{Attempts, Exhausted, NotNow};
use crate::cold::ColdStarts;
use crate::config::Config;
use crate::door::{self, PENDING, WORKERS};
use crate::flavor::{Flavor, Footprint, footprint_of};
use crate::job::Job;
use crate::model::{TemplateSeen, WorkerModel, find_v1_model, need_registration};
use crate::refusal::Refusal;
use crate::spares::{Spare, claimable};

/// A job that waits, and the model that will serve it, or why none will.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub job: Arc<Job>,
    pub model: Choice,
}

/// Where a job's model comes from.
#[derive(Debug, Clone)]
pub enum Choice {
    /// Came with the job, or was fetched as code.
    Fixed(Arc<WorkerModel>),
    /// One of the V1 models, as they are when the job's turn comes.
    AnyV1,
    Refused(Refusal),
}

/// What the gates look at, beside the ledger.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub config: &'a Config,
    pub snapshot: &'a Snapshot,
    /// The enabled V1 models; `None` while they were not read.
    pub models: Option<&'a [v1::Model]>,
    /// Ours, all of them.
    pub spares: &'a [Spare],
    /// Where workers run.
    pub pool: &'a PoolId,
}

/// What a job's worker will be made of.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub model: Arc<WorkerModel>,
    pub flavor: Option<Flavor>,
    pub template: Arc<Vm>,
    pub amounts: Amounts,
    pub machine: Machine,
}

/// What became of a job in this pass.
#[derive(Debug)]
pub enum Turn {
    /// Everything is reserved, and the attempt is counted.
    Start { wanted: Box<Wanted>, reservation: Reservation, attempt: u32 },
    /// A gate of job and model.
    Refused(Refusal),
    /// It has had all of its attempts.
    Exhausted(Exhausted),
    /// It is tried again then, or when a spare is there that it can have.
    Later { why: Refusal, until: Timestamp },
    /// There is no room now.
    NoRoom(roost_fleet::Refusal),
}

/// Weighs one job, and reserves for it if it passes. `name` is what its VM will be called.
pub fn turn(
    candidate: &Candidate,
    facts: Facts<'_>,
    ledger: &mut Ledger,
    attempts: &mut Attempts,
    cold: &mut ColdStarts,
    name: &Arc<str>,
    now: Timestamp,
) -> Turn {
    let mut wanted = match want(candidate, facts) {
        Ok(wanted) => wanted,
        Err(refusal) => return Turn::Refused(refusal),
    };
    let job = &candidate.job.id;
    match attempts.check(job, now) {
        Ok(()) => {}
        Err(NotNow::Exhausted(exhausted)) => return Turn::Exhausted(exhausted),
        Err(NotNow::Pause { made, until }) => {
            return Turn::Later { why: Refusal::Pause { made }, until };
        }
    }
    let template = Arc::clone(&wanted.template.name);
    let mut blocked = None;
    if let Machine::SpareOrFresh { candidates, .. } = &wanted.machine {
        blocked = cold.blocked(&template, now);
        if blocked.is_some() {
            wanted.machine = Machine::Spare { candidates: candidates.clone() };
        }
    }
    let ask = Ask {
        request: door::request(job),
        name: Some(Arc::clone(name)),
        amounts: wanted.amounts.clone(),
        pool: Some(facts.pool.clone()),
        machine: wanted.machine.clone(),
    };
    match ledger.reserve(ask, now) {
        Ok(reservation) => {
            let attempt = attempts.count(job, now);
            if reservation.spare().is_none() {
                cold.begun(&template, now);
            }
            Turn::Start { wanted: Box::new(wanted), reservation, attempt }
        }
        Err(refusal) => match blocked {
            Some((until, failures)) if refusal.bound_by == LedgerGate::Spare => {
                let template = template.to_string();
                Turn::Later { why: Refusal::TemplateFails { template, failures }, until }
            }
            _ => Turn::NoRoom(refusal),
        },
    }
}

/// The gates that need no ledger: region, model, requirements, command, flavor, template.
pub fn want(candidate: &Candidate, facts: Facts<'_>) -> Result<Wanted, Refusal> {
    let Facts { config, snapshot, .. } = facts;
    let job = &*candidate.job;
    job.check_region(&config.region)?;
    let model = match &candidate.model {
        Choice::Refused(refusal) => return Err(refusal.clone()),
        Choice::Fixed(model) => Arc::clone(model),
        Choice::AnyV1 if !config.models_v1 => return Err(Refusal::ModelsV1Disabled),
        Choice::AnyV1 => {
            let models = facts.models.unwrap_or_default();
            let needs = |model: &v1::Model| is_registration_needed(model, config, snapshot);
            let model = find_v1_model(job, models, &config.region, needs)?;
            Arc::new(WorkerModel::v1(model.clone()))
        }
    };
    model.can_spawn(job)?;
    let flavor = config.flavors.resolve(model.flavor_wish(job))?.cloned();
    let template = find_template(snapshot, model.template())
        .ok_or_else(|| Refusal::NoTemplate { template: model.template().to_owned() })?;
    let template = Arc::clone(template);
    let size = Footprint { cpus: template.cpus, memory_mb: template.memory_mb };
    let takes = footprint_of(flavor.as_ref(), Some(size)).unwrap_or(size);
    let candidates =
        claimable(facts.spares, &model.spares(), flavor.as_ref().map(|flavor| &*flavor.name));
    let machine = if config.provisioning.only_provisioned {
        Machine::Spare { candidates }
    } else {
        Machine::SpareOrFresh { candidates, address: address_need(config) }
    };
    let amounts =
        Amounts { cpus: takes.cpus.into(), memory_mb: takes.memory_mb, ..Amounts::default() };
    let amounts = amounts.count(WORKERS, 1).count(PENDING, 1);
    Ok(Wanted { model, flavor, template, amounts, machine })
}

/// A template is found by its name, whether it has an annotation or not (D12). A VM that is no template serves as well; one of a hatchery's
/// own workers never does.
pub fn find_template<'a>(snapshot: &'a Snapshot, name: &'a str) -> Option<&'a Arc<Vm>> {
    let is_source = |vm: &&Arc<Vm>| {
        Annotation::of(vm)
            .is_none_or(|annotation| annotation.hatchery_name.is_empty() || annotation.model)
    };
    snapshot.template(name).or_else(|| snapshot.named(name).find(is_source))
}

pub fn address_need(config: &Config) -> AddressNeed {
    if config.addresses.is_dhcp() { AddressNeed::Dhcp } else { AddressNeed::FromPlan }
}

/// Whether jobs must wait until the model's template is built and has shown what it can do.
pub fn is_registration_needed(model: &v1::Model, config: &Config, snapshot: &Snapshot) -> bool {
    let template = snapshot.template(&model.name);
    let seen = template.map(|vm| TemplateSeen { name: &vm.name, annotation: Annotation::of(vm) });
    need_registration(model, &config.identity.name, seen).is_needed()
}
