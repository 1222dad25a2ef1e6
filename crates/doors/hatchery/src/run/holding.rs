//! What a VM takes of the limits, by what it says about itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use roost_fleet::{Amounts, Holding, Power, Vm, VmId};

use crate::annotation::Annotation;
use crate::config::Lifetimes;
use crate::door::{PENDING, REGISTERING, WORKERS};
use crate::names::VmName;
use crate::planted::{self, Bug};
use crate::time::later;

/// What is known beside the VMs themselves.
#[derive(Debug, Default)]
pub(crate) struct WorkerFacts {
    /// Names of the workers that CDS knows.
    pub(crate) registered: BTreeSet<Arc<str>>,
    /// Those of them that CDS has disabled.
    pub(crate) disabled: BTreeSet<Arc<str>>,
    /// VMs that a step of ours is at work on.
    pub(crate) busy: BTreeSet<VmId>,
    /// Those of them that are being deleted.
    pub(crate) going: BTreeSet<VmId>,
    /// VMs that another process of our name is about to finish.
    pub(crate) elsewhere: BTreeSet<VmId>,
}

impl WorkerFacts {
    /// Whether a step is at work on it, here or elsewhere.
    pub(crate) fn is_busy(&self, vm: &VmId) -> bool {
        self.busy.contains(vm) || self.elsewhere.contains(vm)
    }
}

/// Whether the VM is ours, and what it says about itself.
pub(crate) fn own_annotation(vm: &Vm, hatchery: &str) -> Option<Arc<Annotation>> {
    let annotation = Annotation::of(vm)?;
    (annotation.is_of(hatchery) || planted::is(Bug::ForgetsOwners)).then_some(annotation)
}

/// Whether a VM of ours is on its way out: marked for deletion, disabled by CDS, or off with nobody at work on it.
pub(crate) fn is_leaving(vm: &Vm, annotation: &Annotation, facts: &WorkerFacts) -> bool {
    facts.disabled.contains(&vm.name) || has_left(vm, annotation, facts)
}

/// Whether it starts nothing any more: marked for deletion, or off with nobody at work on it.
fn has_left(vm: &Vm, annotation: &Annotation, facts: &WorkerFacts) -> bool {
    let is_used = facts.is_busy(&vm.id) && !facts.going.contains(&vm.id);
    annotation.doomed.is_some() || (vm.power == Power::Off && !is_used)
}

/// A VM that is off takes no CPU and no memory (D14); a spare takes no worker's slot; a stranger's VM takes nothing here (W4, D37).
///
/// The job of a VM is taken until the VM is gone, or is off and marked and nobody is at work on it: a clone that was marked at its first
/// sight may yet get its power. From there on it cannot serve the job any more.
pub(crate) fn holding(
    vm: &Vm,
    hatchery: &str,
    lifetimes: &Lifetimes,
    facts: &WorkerFacts,
) -> Holding {
    let Some(annotation) = own_annotation(vm, hatchery).filter(|_| !vm.template) else {
        return Holding::default();
    };
    let name = VmName::of(&vm.name);
    // A worker that CDS has disabled runs until its VM is off, and takes its slot until then.
    let leaving = has_left(vm, &annotation, facts);
    let works = name.counts_as_worker() && !leaving;
    let runs = vm.power != Power::Off || works;
    let waits = works && !facts.registered.contains(&vm.name);
    let registers = annotation.register_only || matches!(name, VmName::Building { .. });
    let is_over = annotation.doomed.is_some() && vm.power == Power::Off && !facts.is_busy(&vm.id);
    let is_over = is_over || planted::is(Bug::LeavesFailedWorkers);
    let works = works && !planted::is(Bug::ForgetsLimits);
    Holding {
        own: true,
        request: vm.request().filter(|_| !is_over).cloned(),
        amounts: Amounts {
            cpus: if runs { vm.cpus.into() } else { 0 },
            memory_mb: if runs { vm.memory_mb } else { 0 },
            ..Amounts::default()
        }
        .count(WORKERS, works.into())
        .count(PENDING, (waits && !registers).into())
        .count(REGISTERING, (works && registers).into()),
        ends: annotation.worker_start_time.get().map(|start| later(start, lifetimes.worker)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use roost_clock::SimClock;
    use roost_fleet::{Mirror, Wrote};

    use super::*;
    use crate::annotation::HatcheryVms;

    const LIFETIMES: Lifetimes = Lifetimes {
        worker: Duration::from_hours(2),
        registration: Duration::from_mins(10),
        finished_grace: Duration::from_mins(3),
        cleanup_interval: Duration::from_mins(2),
        deletions_at_once: 16,
    };

    fn hold(name: &str, annotation: &str, power: Power, facts: &WorkerFacts) -> Holding {
        let mirror = Mirror::new(vec![Arc::new(HatcheryVms)], Arc::new(SimClock::new()));
        let id = VmId::new("vm-1");
        let made = Wrote::new().name(name).annotation(annotation).power(power);
        mirror.created(&id, made.cpus(4).memory_mb(8192));
        holding(&mirror.vm(&id).unwrap(), "h1", &LIFETIMES, facts)
    }

    fn counts(holding: &Holding) -> (u64, u64, u64, u64) {
        let amounts = &holding.amounts;
        (amounts.of(WORKERS), amounts.of(PENDING), amounts.of(REGISTERING), amounts.cpus)
    }

    #[tokio::test]
    async fn each_kind_of_vm_takes_what_it_should() {
        let worker = r#"{"hatchery_name":"h1","job_id":"7","ip_address":"10.0.0.9"}"#;
        let spare = r#"{"hatchery_name":"h1","provisioning":true,"ip_address":"10.0.0.9"}"#;
        let marked = r#"{"hatchery_name":"h1","job_id":"7","to_delete":true}"#;
        let registering = r#"{"hatchery_name":"h1","register_only":true,"job_id":"0"}"#;
        let foreign = r#"{"hatchery_name":"h2","job_id":"7","ip_address":"10.0.0.9"}"#;
        let nobody = WorkerFacts::default();
        let registered = WorkerFacts { registered: ["w".into()].into(), ..WorkerFacts::default() };
        let disabled = WorkerFacts {
            disabled: ["w".into()].into(),
            registered: ["w".into()].into(),
            ..WorkerFacts::default()
        };
        let busy = WorkerFacts { busy: [VmId::new("vm-1")].into(), ..WorkerFacts::default() };
        let going = WorkerFacts {
            going: busy.busy.clone(),
            busy: busy.busy.clone(),
            ..WorkerFacts::default()
        };
        for (case, name, annotation, power, facts, wanted) in [
            ("a worker on its way", "w", worker, Power::On, &nobody, (1, 1, 0, 4)),
            ("a worker at work", "w", worker, Power::On, &registered, (1, 0, 0, 4)),
            ("a disabled worker", "w", worker, Power::On, &disabled, (1, 0, 0, 4)),
            ("a worker that is off", "w", worker, Power::Off, &registered, (0, 0, 0, 0)),
            ("a claim under way", "w", worker, Power::Off, &busy, (1, 1, 0, 4)),
            (
                "a finished worker that is being deleted",
                "w",
                worker,
                Power::Off,
                &going,
                (0, 0, 0, 0),
            ),
            ("a marked worker", "w", marked, Power::On, &nobody, (0, 0, 0, 4)),
            ("a spare", "provision-v2-a", spare, Power::Off, &nobody, (0, 0, 0, 0)),
            ("a spare being made", "provision-v2-a", spare, Power::On, &busy, (0, 0, 0, 4)),
            (
                "claimed by an old hatchery, which did not say so",
                "w",
                spare,
                Power::On,
                &nobody,
                (1, 1, 0, 4),
            ),
            ("a registration", "register-a", registering, Power::On, &nobody, (1, 0, 1, 4)),
            ("another hatchery's", "w", foreign, Power::On, &nobody, (0, 0, 0, 0)),
            ("somebody else's", "web", "notes", Power::On, &nobody, (0, 0, 0, 0)),
        ] {
            let holding = hold(name, annotation, power, facts);
            assert_eq!(counts(&holding), wanted, "{case}");
        }
    }

    #[tokio::test]
    async fn a_job_is_taken_until_its_vm_can_serve_it_no_more() {
        let (nobody, job) = (WorkerFacts::default(), Some(Arc::from("7")));
        let worker = r#"{"hatchery_name":"h1","job_id":"7","ip_address":"10.0.0.9"}"#;
        assert_eq!(hold("w", worker, Power::On, &nobody).request, job);
        assert_eq!(hold("w", worker, Power::Off, &nobody).request, job, "finished, not yet gone");
        let marked = r#"{"hatchery_name":"h1","job_id":"7","to_delete":true}"#;
        assert_eq!(hold("w", marked, Power::On, &nobody).request, job, "its worker may still run");
        assert_eq!(hold("w", marked, Power::Off, &nobody).request, None);
        let foreign = r#"{"hatchery_name":"h2","job_id":"7","ip_address":"10.0.0.9"}"#;
        assert_eq!(hold("w", foreign, Power::On, &nobody).request, None);
    }
}
