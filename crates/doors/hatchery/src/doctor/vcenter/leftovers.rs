//! VMs that bear this hatchery's name already.

use std::collections::BTreeMap;

use super::facts::{Facts, Machine};
use super::wish::Wish;
use roost_doctor::{Fact, Finding};

const CHECK: &str = "own VMs";
const SHOWN: usize = 5;

pub(super) fn judge(wish: &Wish, facts: &Facts) -> Vec<Finding> {
    match &facts.machines {
        Fact::Known(machines) => {
            let folder = facts.folder.known().map(|folder| &*folder.object.id);
            of(&wish.hatchery, machines, folder)
        }
        Fact::Failed(why) => {
            vec![
                Finding::fail(CHECK, why)
                    .advice("the VMs of the datacenter cannot be read; see the privileges"),
            ]
        }
        Fact::Unanswered(why) => vec![Finding::unanswered(CHECK, why)],
        Fact::Skipped(why) => vec![Finding::skip(CHECK, why)],
    }
}

fn of(hatchery: &str, machines: &[Machine], folder: Option<&str>) -> Vec<Finding> {
    let own: Vec<&Machine> = machines.iter().filter(|vm| vm.is_of(hatchery)).collect();
    let count = |is_meant: fn(&Machine) -> bool| own.iter().filter(|vm| is_meant(vm)).count();
    let (templates, spares) = (count(|vm| vm.is_template), count(|vm| vm.is_spare));
    let doomed = count(|vm| vm.is_doomed);
    let workers = own.len() - templates - spares;
    let mut findings = vec![Finding::pass(
        CHECK,
        format!(
            "{} VMs in the datacenter; of {hatchery:?}: {workers} workers, {spares} spares, {templates} templates, {doomed} of them marked for deletion",
            machines.len()
        ),
    )];
    let twice = doubles(&own);
    if !twice.is_empty() {
        findings.push(Finding::fail(CHECK, "a job has more than one VM").details(twice).advice(
            "two hatcheries of one name work in this vCenter: give one of them another name, \
                 commonConfiguration.name, then delete the VM that does not work for the job",
        ));
    }
    let elsewhere = names(own.iter().filter(|vm| {
        !vm.is_template
            && folder.is_some_and(|folder| vm.folder.as_deref().is_some_and(|at| at != folder))
    }));
    if !elsewhere.is_empty() {
        findings.push(
            Finding::warn(
                CHECK,
                format!("VMs of {hatchery:?} are outside of the folder where this file puts them"),
            )
            .details(elsewhere)
            .advice(
                "they are from an earlier configuration, or of another hatchery of the same name: \
                     each would delete what it takes for left over; names must differ",
            ),
        );
    }
    findings
}

fn doubles(own: &[&Machine]) -> Vec<String> {
    let mut by_job: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for vm in own.iter().filter(|vm| !vm.is_doomed) {
        if let Some(job) = &vm.job {
            by_job.entry(job).or_default().push(&vm.name);
        }
    }
    let doubles = by_job.into_iter().filter(|(_, vms)| vms.len() > 1);
    doubles.map(|(job, vms)| format!("job {job}: {}", vms.join(", "))).collect()
}

fn names<'a>(vms: impl Iterator<Item = &'a &'a Machine>) -> Vec<String> {
    let mut names: Vec<String> = vms.map(|vm| vm.name.clone()).collect();
    if names.len() > SHOWN {
        let more = names.len() - SHOWN;
        names.truncate(SHOWN);
        names.push(format!("and {more} more"));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use roost_doctor::Verdict;

    fn worker(name: &str, job: &str) -> Machine {
        Machine {
            name: name.into(),
            owner: Some("roost".into()),
            job: Some(job.into()),
            folder: Some("group-v3".into()),
            ..Machine::default()
        }
    }

    #[test]
    fn own_vms_are_counted_and_doubles_are_failures() {
        let stranger = Machine { name: "db".into(), ..Machine::default() };
        let spare = Machine { is_spare: true, job: None, ..worker("provision-v2-x", "") };
        let findings = of("roost", &[stranger, worker("a", "1"), spare], Some("group-v3"));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(
            findings[0].found.contains("3 VMs")
                && findings[0].found.contains("1 workers, 1 spares")
        );
        let findings = of("roost", &[worker("a", "1"), worker("b", "1")], Some("group-v3"));
        assert_eq!(
            (findings[1].verdict, &*findings[1].details),
            (Verdict::Fail, &["job 1: a, b".to_owned()][..])
        );
        let marked = Machine { is_doomed: true, ..worker("b", "1") };
        assert_eq!(of("roost", &[worker("a", "1"), marked], None).len(), 1);
    }

    #[test]
    fn own_vms_in_another_folder_may_be_anothers() {
        let findings = of("roost", &[worker("a", "1")], Some("group-v9"));
        assert_eq!(
            (findings[1].verdict, &*findings[1].details),
            (Verdict::Warn, &["a".to_owned()][..])
        );
    }
}
