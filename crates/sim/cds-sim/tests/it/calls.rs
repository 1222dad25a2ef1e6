//! Single calls when the API is slow, unwell, or answers into the void.

use crate::lab::{HATCHERY, Lab, MODEL, chain, io_kind, mins, secs};
use roost_cds::v1::{Model, ModelPath, SpawnError, SpawnInfo, VirtualMachine};
use roost_cds::v2::{AsCodePath, InfoLevel};
use roost_cds::{CallError, ErrorKind, JobId, JobStatus, Secret};
use roost_cds_sim::{Fault, V1Demand, V2Demand};
use roost_clock::Clock;
use tokio::time::{self, Instant};

const TAKE: &str = "POST /v2/queue/*/job/*/hatchery/take";
const BOOK: &str = "POST /queue/workflows/*/book";

#[tokio::test(start_paused = true)]
async fn bursts_of_409_and_500_and_broken_connections_are_tried_three_times() {
    for fault in [
        Fault::on("GET /worker").first(2).answer(409, 0),
        Fault::on("GET /worker").first(2).answer(500, 0),
        Fault::on("GET /worker").first(2).answer(503, 0),
        Fault::on("GET /worker").first(2).cut(),
    ] {
        let lab = Lab::new();
        lab.client.sign_in().await.unwrap();
        lab.api.inject(fault);
        let started = Instant::now();
        lab.v1().workers().await.unwrap();
        assert_eq!(started.elapsed(), 2 * std::time::Duration::from_millis(250));
    }
}

#[tokio::test(start_paused = true)]
async fn after_three_attempts_the_error_says_what_was_tried() {
    let lab = Lab::new();
    lab.client.sign_in().await.unwrap();
    lab.api.inject(Fault::on("GET /worker").answer(502, 0));
    let error = lab.v1().workers().await.unwrap_err();
    assert_eq!(lab.sent.requests("GET http://cds.invalid/worker").len(), 3);
    assert_eq!(
        chain(&error),
        "GET /worker: refused: an error has occurred: injected (HTTP 502, error 0, request "
            .to_owned()
            + &error.api().unwrap().request_id
            + ")"
    );
    lab.api.clear_faults();
    lab.api.go_down();
    let error = lab.v1().workers().await.unwrap_err();
    assert_eq!(io_kind(&error), Some(std::io::ErrorKind::ConnectionReset));
    assert!(error.to_string().contains("GET /worker: no whole answer after 3 attempts"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn other_refusals_are_final() {
    let lab = Lab::new();
    lab.client.sign_in().await.unwrap();
    for (status, id) in [(400, 74), (403, 11), (404, 38), (429, 0)] {
        lab.api.clear_faults();
        lab.api.inject(Fault::on("GET /config/cdn").answer(status, id));
        let before = lab.sent.requests("/config/cdn").len();
        let error = lab.v1().cdn_config().await.unwrap_err();
        assert_eq!(error.status().unwrap().as_u16(), status);
        assert_eq!(lab.sent.requests("/config/cdn").len(), before + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_given_up_at_the_time_out_of_each_attempt() {
    let lab = Lab::new();
    lab.client.sign_in().await.unwrap();
    lab.api.inject(Fault::on("GET /worker/model/enabled").delay(secs(11)));
    let started = Instant::now();
    let error = lab.v1().enabled_models().await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { attempts: 3, .. }), "{error:?}");
    assert_eq!(started.elapsed().as_millis(), 30_500);
    lab.api.clear_faults();
    lab.api.inject(Fault::on("GET /worker/model/enabled").delay(secs(9)));
    lab.v1().enabled_models().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_worker_list_that_takes_longer_than_five_seconds_in_all_is_an_error_and_not_an_empty_list()
 {
    let lab = Lab::new();
    lab.client.sign_in().await.unwrap();
    lab.api.inject(Fault::on("GET /worker").delay(secs(6)));
    lab.api.inject(Fault::on("GET /v2/worker").delay(secs(6)));
    let started = Instant::now();
    lab.v1().workers().await.unwrap_err();
    lab.v2().workers().await.unwrap_err();
    assert!(started.elapsed() <= secs(10), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_take_whose_answer_is_lost_is_still_a_take() {
    for lost in [
        Fault::on(TAKE).nth(1).cut_after(),
        Fault::on(TAKE).first(3).cut_after(),
        Fault::on(TAKE).nth(1).answer_after(504, 0),
        Fault::on(TAKE).nth(1).delay(secs(12)),
    ] {
        let lab = Lab::new();
        let id = lab.api.add_v2_job(V2Demand::new(MODEL)).unwrap();
        lab.api.inject(lost.clone());
        let job = lab.v2().take(&id).await.unwrap_or_else(|error| panic!("{lost:?}: {error}"));
        assert_eq!((job.status, job.hatchery_name.as_str()), (JobStatus::Scheduling, HATCHERY));
        assert_eq!(lab.api.job(&JobId::V2(id)).unwrap().holders(), [HATCHERY]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_take_that_never_arrived_is_an_error() {
    let lab = Lab::new();
    let id = lab.api.add_v2_job(V2Demand::new(MODEL)).unwrap();
    lab.api.inject(Fault::on(TAKE).cut());
    assert!(lab.v2().take(&id).await.unwrap_err().may_have_happened());
    assert_eq!(lab.api.job(&JobId::V2(id)).unwrap().status, JobStatus::Waiting);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_another_hatchery_took_is_gone() {
    let lab = Lab::new();
    let id = lab.api.add_v2_job(V2Demand::new(MODEL)).unwrap();
    lab.other().v2().unwrap().take(&id).await.unwrap();
    let error = lab.v2().take(&id).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::NotFound));
    assert!(error.is_gone());
    // Also when the first answer is lost: that the job is taken does not mean that it is ours.
    lab.api.inject(Fault::on(TAKE).nth(1).cut_after());
    assert!(lab.v2().take(&id).await.is_err());
    lab.v2().release(&id).await.expect("nothing of ours to release");
    assert_eq!(lab.api.job(&JobId::V2(id)).unwrap().hatchery.as_deref(), Some("hv2"));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_ended_cannot_be_taken() {
    let lab = Lab::new();
    let id = lab.api.add_v2_job(V2Demand::new(MODEL)).unwrap();
    lab.api.stop_job(&JobId::V2(id.clone()));
    let error = lab.v2().take(&id).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::WrongRequest));
}

#[tokio::test(start_paused = true)]
async fn the_fifth_release_fails_the_job_and_a_lost_answer_does_not_count_twice() {
    let lab = Lab::new();
    let id = lab.api.add_v2_job(V2Demand::new(MODEL)).unwrap();
    let report = || lab.api.job(&JobId::V2(id.clone())).unwrap();
    lab.api.inject(Fault::on("DELETE /v2/queue/*/job/*/hatchery/take").nth(2).cut_after());
    for released in 1..=5 {
        lab.v2().take(&id).await.unwrap();
        lab.v2().release(&id).await.unwrap();
        assert_eq!(report().releases().len(), released);
        assert_eq!(report().status == JobStatus::Fail, released == 5, "after {released}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_booking_whose_answer_is_lost_is_still_a_booking() {
    for lost in [Fault::on(BOOK).nth(1).cut_after(), Fault::on(BOOK).first(3).cut_after()] {
        let lab = Lab::new();
        let id = lab.api.add_v1_job(V1Demand::new());
        lab.api.inject(lost);
        lab.v1().book(id).await.unwrap();
        assert_eq!(lab.api.job(&JobId::V1(id)).unwrap().holders(), [HATCHERY]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_booked_job_is_refused_to_others_for_two_minutes() {
    let lab = Lab::new();
    let (other, id) = (lab.other(), lab.api.add_v1_job(V1Demand::new()));
    let booking = lab.v1().book(id).await.unwrap();
    assert_eq!((booking.project_key.as_str(), booking.job_name.as_str()), ("PROJ", "build"));
    let body = &lab.sent.requests("/book")[0].body;
    assert_eq!(body, r#"{"delay":0}"#);
    let job = other.v1().unwrap().job(id).await.unwrap();
    assert_eq!((job.booked_by.name.as_str(), job.is_free()), (HATCHERY, false));
    assert!(other.v1().unwrap().waiting_jobs().await.unwrap().is_empty());
    let error = other.v1().unwrap().book(id).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::JobAlreadyBooked));
    time::sleep(mins(2)).await;
    other.v1().unwrap().book(id).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_release_leaves_the_booking_of_another_hatchery_alone() {
    let lab = Lab::new();
    let id = lab.api.add_v1_job(V1Demand::new());
    lab.v1().book(id).await.unwrap();
    time::sleep(mins(2)).await;
    lab.other().v1().unwrap().book(id).await.unwrap();
    lab.v1().release(id).await.unwrap();
    assert_eq!(lab.api.job(&JobId::V1(id)).unwrap().hatchery.as_deref(), Some("hv2"));
}

#[tokio::test(start_paused = true)]
async fn a_release_is_fine_when_there_is_nothing_to_release() {
    let lab = Lab::new();
    let id = lab.api.add_v1_job(V1Demand::new());
    lab.v1().release(id).await.unwrap();
    lab.v1().book(id).await.unwrap();
    lab.api.inject(Fault::on("DELETE /queue/workflows/*/book").nth(1).cut_after());
    lab.v1().release(id).await.unwrap();
    assert_eq!(lab.api.job(&JobId::V1(id)).unwrap().hatchery, None);
    lab.v1().release(424_242).await.expect("a job that is gone");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_v1_job_can_be_failed_once() {
    let lab = Lab::new();
    let id = lab.api.add_v1_job(V1Demand::new());
    let starts = SpawnInfo::hatchery_starts(lab.clock.now(), HATCHERY, "keen-bohr", "m");
    lab.v1().add_spawn_infos(id, &[starts]).await.unwrap();
    lab.api.inject(Fault::on("POST /queue/workflows/*/result").nth(1).cut_after());
    lab.v1().fail(id, "no luck").await.unwrap();
    let report = lab.api.job(&JobId::V1(id)).unwrap();
    assert_eq!(report.status, JobStatus::Fail);
    assert_eq!(report.infos, ["MsgSpawnInfoHatcheryStarts: hv1, keen-bohr, m"]);
    let error = lab.v1().fail(id, "again").await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::Forbidden));
    assert!(!error.is_gone(), "it is there, and does not wait: {error}");
}

#[tokio::test(start_paused = true)]
async fn v2_infos_reach_the_jobs_log() {
    let lab = Lab::new();
    let id = lab.api.add_v2_job(V2Demand::new(MODEL).flavor("large")).unwrap();
    lab.v2().add_info(&id, InfoLevel::Info, "starting").await.unwrap();
    assert_eq!(lab.api.job(&JobId::V2(id.clone())).unwrap().infos, ["starting"]);
    let info = lab.v2().job(&id).await.unwrap();
    assert_eq!(info.run_job.job.runs_on.flavor, "large");
    assert_eq!(info.model.vsphere_spec().unwrap().image, "debian12-template");
    let plain = lab.api.add_v2_job(V2Demand::new(MODEL)).unwrap();
    let info = lab.v2().job(&plain).await.unwrap();
    assert_eq!(info.run_job.job.runs_on.model, MODEL, "a plain string on the wire");
}

#[tokio::test(start_paused = true)]
async fn models_are_listed_read_booked_and_reported() {
    let lab = Lab::new();
    let machine = VirtualMachine {
        image: "debian12-base".into(),
        cmd: "worker".into(),
        password: "{{.secrets.vsphere_password}}".into(),
        ..VirtualMachine::default()
    };
    let model = Model {
        name: "debian12".into(),
        model_type: "vsphere".into(),
        need_registration: true,
        model_virtual_machine: machine,
        ..Model::default()
    };
    let secret = ("secrets.vsphere_password", Secret::from("clear"));
    let path = lab.api.add_model(model, vec![secret]);
    let models = lab.v1().enabled_models().await.unwrap();
    assert_eq!(models[0].path(), path);
    let model = lab.v1().model(&path).await.unwrap();
    assert_eq!(lab.v1().model_password(&model).await.unwrap().expose(), "clear");
    lab.v1().book_model(&path).await.unwrap();
    let other = lab.other();
    let error = other.v1().unwrap().book_model(&path).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::ModelAlreadyBooked));
    let report = SpawnError::new("no address", None);
    lab.v1().report_spawn_error(&path, &report).await.unwrap();
    assert_eq!(lab.api.model(&path).unwrap().nb_spawn_err, 1);
    other.v1().unwrap().book_model(&path).await.expect("freed by the report");
    time::sleep(mins(6)).await;
    lab.v1().service().await.unwrap();
    lab.api.change_model(&path, |model| model.disabled = true);
    let missing = ModelPath::parse("nobody/nothing");
    assert!(lab.other().v1().unwrap().model(&missing).await.unwrap_err().is_gone());
}

#[tokio::test(start_paused = true)]
async fn the_list_of_models_follows_changes() {
    let lab = Lab::new();
    let model = |name: &str| Model { name: name.into(), ..Model::default() };
    let b = lab.api.add_model(model("b"), vec![]);
    lab.api.add_model(model("a"), vec![]);
    let names = async || -> Vec<String> {
        lab.v1().enabled_models().await.unwrap().into_iter().map(|model| model.name).collect()
    };
    assert_eq!(names().await, ["a", "b"], "by name");
    lab.api.change_model(&b, |model| model.need_registration = true);
    assert!(lab.v1().enabled_models().await.unwrap()[1].need_registration);
    lab.api.remove_model(&b);
    assert_eq!(names().await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_model_as_code_is_read_by_its_path_and_branch() {
    let lab = Lab::new();
    let path = AsCodePath::parse(MODEL).unwrap();
    assert_eq!(lab.v2().worker_model(&path).await.unwrap().name, "debian12");
    let branch = AsCodePath { branch: "other".into(), ..path };
    assert!(lab.v2().worker_model(&branch).await.unwrap_err().is_gone());
}

#[tokio::test(start_paused = true)]
async fn the_cdn_is_asked_of_v2_and_may_be_missing() {
    let lab = Lab::new();
    assert_eq!(lab.client.cdn_config().await.unwrap().tcp_url, "cdn.invalid:8090");
    assert_eq!(lab.api.calls("GET /v2/config/cdn"), 1);
    assert_eq!(lab.v1().cdn_config().await.unwrap().http_url, "http://cdn.invalid:8089");
    let lab = Lab::with(roost_cds_sim::Options { cdn: None, ..roost_cds_sim::Options::new(1) });
    assert!(lab.client.cdn_config().await.unwrap_err().is_gone());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_vanished_is_gone_in_both_protocols() {
    let lab = Lab::new();
    let v1 = lab.api.add_v1_job(V1Demand::new());
    let v2 = lab.api.add_v2_job(V2Demand::new(MODEL)).unwrap();
    lab.api.inject(Fault::on("GET /queue/workflows/*/infos").vanish());
    lab.api.inject(Fault::on("GET /v2/queue/*/job/*").vanish());
    let error = lab.v1().job(v1).await.unwrap_err();
    assert!(error.is_gone(), "{error}");
    assert_eq!(error.status().map(|status| status.as_u16()), Some(403), "as CDS says it");
    let error = lab.v2().job(&v2).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::NotFound));
}

/// CDS purges the rows of ended runs within seconds, and refuses every question about them with 403 and error 11. That means gone if it serves
/// the session otherwise, and nothing at all if it does not.
#[tokio::test(start_paused = true)]
async fn a_v1_job_that_is_refused_is_gone_only_while_other_calls_succeed() {
    let lab = Lab::new();
    let id = lab.api.add_v1_job(V1Demand::new());
    lab.v1().book(id).await.unwrap();
    lab.v1().fail(id, "no template").await.unwrap();
    lab.v1().book(id).await.expect("until it is purged, its end is not looked at");
    time::sleep(secs(20)).await;
    let info = SpawnInfo::hatchery_starts(lab.clock.now(), "h", "w", "m");
    for error in [
        lab.v1().job(id).await.unwrap_err(),
        lab.v1().book(id).await.unwrap_err(),
        lab.v1().add_spawn_infos(id, &[info]).await.unwrap_err(),
        lab.v1().fail(id, "no template").await.unwrap_err(),
    ] {
        assert!(error.is_gone(), "{error}");
    }
    lab.v1().release(id).await.expect("nothing is left to give back");

    lab.api.delete_service(HATCHERY);
    let error = lab.v1().job(id).await.unwrap_err();
    assert!(!error.is_gone(), "nothing is served: {error}");
    assert_eq!(error.kind(), Some(ErrorKind::Forbidden));
}
