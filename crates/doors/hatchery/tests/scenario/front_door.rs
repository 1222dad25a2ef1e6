//! What the house is shown of a hatchery: how jobs stand, what needs a person, and what is unreachable.

use std::path::Path;
use std::sync::Arc;

use prometheus_client::registry::Registry;
use roost_cds::JobStatus;
use roost_cds_sim::{Fault, V2Demand};
use roost_door::{Feed, FrontDoor as _, disagreement, needs_of};
use roost_hatchery::metrics::Metrics;
use roost_hatchery::{Build, HatcheryDoor};
use roost_vcenter_sim::{Action, Rule};
use roost_views::{NeedKind, RequestState};
use tokio::time::sleep;

use crate::gates::as_code;
use crate::lab::{Lab, Setup, mins, wait_until};

fn door(lab: &Lab) -> Arc<HatcheryDoor> {
    let mut registry = Registry::default();
    let metrics = Arc::new(Metrics::register(&mut registry, "hv1"));
    let (window, controls) = (lab.hatchery().window(), Some(lab.hatchery().controls()));
    HatcheryDoor::new(window, controls, registry, metrics, Build::default(), &Feed::default())
}

fn assert_runbook(name: Option<&str>) {
    let page = format!("../../../docs/runbooks/{}.md", name.unwrap());
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(&page).is_file(), "{page}");
}

#[tokio::test(start_paused = true)]
async fn headline_list_and_vms_agree_from_the_first_job_to_the_last_deletion() {
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
    lab.wait_for_spares(1).await;
    let door = door(&lab);
    let jobs = lab.jobs(4);
    let mut seen = Vec::new();
    wait_until("all are done and deleted", mins(60), || {
        assert_eq!(disagreement(&*door), None);
        seen.extend(door.requests().iter().map(|job| job.state));
        jobs.iter().all(|job| lab.status(job) == JobStatus::Success) && lab.own_vms().len() == 1
    })
    .await;
    for state in [RequestState::Starting, RequestState::Working] {
        assert!(seen.contains(&state), "{state:?} was never seen");
    }
}

/// A pause made waiting jobs of refused ones, and an alert fired.
#[tokio::test(start_paused = true)]
async fn a_refused_job_stays_refused_while_spawning_is_paused() {
    let setup = Setup::new("hv1").push("models", |entry| {
        entry.insert("modelVMWare".into(), "late".into());
        entry.insert("username".into(), "cds".into());
        entry.insert("password".into(), "guest".into());
    });
    let lab = Lab::of(setup).await;
    let door = door(&lab);
    let path = as_code(&lab, "late", "vsphere", "late");
    let job = lab.v2_job(V2Demand::new(&path));
    let state = || {
        let all = door.requests();
        all.into_iter().find(|it| it.id.id == job.to_string()).map(|it| it.state)
    };
    wait_until("it is refused", mins(5), || state() == Some(RequestState::Refused)).await;
    lab.hatchery().controls().pause("jo");
    sleep(mins(10)).await;
    assert_eq!(state(), Some(RequestState::Refused));
    assert_eq!((door.summary().queue.refused, door.summary().queue.waiting), (1, 0));
    let [need] = needs_of(&*door).try_into().unwrap();
    assert_eq!((need.kind, need.count), (NeedKind::Refused, 1));
    assert!(need.advice.contains("template of this name"), "{need:?}");
    assert_runbook(need.runbook.as_deref());
}

#[tokio::test(start_paused = true)]
async fn a_template_that_fails_again_and_again_needs_a_person() {
    let lab = Lab::new().await;
    let door = door(&lab);
    let full = Action::fail_task("NoDiskSpace", "the datastore is full");
    lab.vcenter.faults().add(Rule::new("CloneVM_Task", full));
    lab.job();
    let fails = || door.needs().into_iter().find(|need| need.kind == NeedKind::TemplateFails);
    wait_until("it is told", mins(60), || fails().is_some()).await;
    let need = fails().unwrap();
    assert!(need.words.contains("debian12") && need.count >= 3, "{need:?}");
    assert_runbook(need.runbook.as_deref());
    lab.vcenter.faults().clear();
    // The first one may be out of attempts by now.
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    wait_until("one that came up is well", mins(5), || fails().is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_cds_that_is_away_is_said_in_words_until_it_is_back() {
    let lab = Lab::new().await;
    let door = door(&lab);
    sleep(mins(1)).await;
    assert_eq!(door.outages(), []);
    lab.cds.inject(Fault::on("**").first(30).answer(503, 0));
    wait_until("it is told", mins(5), || !door.outages().is_empty()).await;
    for outage in door.outages() {
        assert!(outage.server.starts_with("CDS (V"), "{outage:?}");
        assert!(outage.since.is_some() && outage.trouble.is_some(), "{outage:?}");
        assert!(outage.next_try.contains("20 s"), "{outage:?}");
        assert_runbook(outage.runbook.as_deref());
    }
    wait_until("it is back", mins(30), || door.outages().is_empty()).await;
}
