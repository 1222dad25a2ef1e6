//! What a person has to look at.

use roost_views::words::count;
use roost_views::{NeedKind, NeedView, OutageView};

use crate::run::{Window, view};

/// What can be done about jobs that a gate turns away.
pub(super) fn advice(gate: &str) -> Option<&'static str> {
    Some(match gate {
        "unknown-flavor" => {
            "Add the flavor to [[hatchery.vsphere.flavors]], or have the job ask for one that is there. Jobs go on by themselves."
        }
        "no-template" => {
            "Put a template of this name into the datacenter, or have the model name another. Jobs go on by themselves when it appears."
        }
        "no-image" | "model-spec" | "no-command" => {
            "The owner of the worker model has to correct it. Jobs go on within a minute."
        }
        "bad-id" | "no-model-named" | "bad-memory" => {
            "Whoever wrote the job has to correct it and start it again."
        }
        "attempts" => {
            "See with `roost explain` why its workers fail; `roost recheck` tries it again at once."
        }
        _ => return None,
    })
}

pub(super) fn needs(window: &Window) -> Vec<NeedView> {
    let mut needs: Vec<NeedView> = window.failing_templates().iter().map(failing).collect();
    needs.extend(not_joining(&window.not_joining()));
    needs.extend(window.other_process().map(other_process));
    needs
}

fn failing((template, times): &(String, u32)) -> NeedView {
    NeedView {
        kind: NeedKind::TemplateFails,
        door: super::WORDS.name.to_owned(),
        words: format!(
            "template {template} fails: {} in a row",
            count((*times).into(), "attempt", "attempts")
        ),
        advice: "See what its last VMs died of in the decisions, and correct the template. One VM at a time is tried meanwhile.".to_owned(),
        since: None,
        count: (*times).into(),
        names: vec![template.clone()],
        href: "/decisions?verdict=failed".to_owned(),
        runbook: Some("template-keeps-failing".to_owned()),
    }
}

fn not_joining(vms: &[view::Vm]) -> Option<NeedView> {
    let since = vms.iter().filter_map(|vm| vm.stage_since).min();
    let number = vms.len() as u64;
    (number > 0).then(|| NeedView {
        kind: NeedKind::NotJoining,
        door: super::WORDS.name.to_owned(),
        words: format!(
            "{} started and CDS does not know {}",
            count(number, "worker was", "workers were"),
            if number == 1 { "it" } else { "them" }
        ),
        advice: "See /tmp/worker.log in the VM: usually the guest cannot reach the CDS API, or its worker binary.".to_owned(),
        since,
        count: number,
        names: vms.iter().take(NeedView::NAMES).map(|vm| vm.name.to_string()).collect(),
        href: "/vms?phase=joining".to_owned(),
        runbook: Some("worker-starts-fail".to_owned()),
    })
}

fn other_process(words: String) -> NeedView {
    NeedView {
        kind: NeedKind::OtherProcess,
        door: super::WORDS.name.to_owned(),
        words,
        advice: "Stop one of the two: one name is one hatchery.".to_owned(),
        since: None,
        count: 1,
        names: Vec::new(),
        href: "/decisions?bound_by=other-process".to_owned(),
        runbook: Some("other-process".to_owned()),
    }
}

pub(super) fn outages(window: &Window) -> Vec<OutageView> {
    let deaf = window.deaf_queues().into_iter();
    deaf.map(|(queue, since, trouble)| OutageView {
        server: format!("CDS ({queue})"),
        since,
        trouble,
        goes_on:
            "Workers that run go on with their jobs, and VMs that are being made are finished."
                .to_owned(),
        held: "New jobs are not heard of, and no worker is deleted because CDS does not know it."
            .to_owned(),
        next_try: "It is asked again every 20 s.".to_owned(),
        runbook: Some("cds-link-down".to_owned()),
    })
    .collect()
}
