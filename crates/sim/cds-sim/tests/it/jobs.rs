//! Jobs from the queue to their end, with workers that sign in, work, race, fail and die.

use crate::lab::{HATCHERY, Lab, MODEL, chain, mins, secs};
use jiff::SignedDuration;
use roost_cds::v1::{Model, ModelPath};
use roost_cds::{ClaimedModel, JobId, JobStatus, Secret, V1Worker, WorkerStatus};
use roost_cds_sim::{Fault, JobEvent, Outcome, V1Demand, V2Demand, WorkerEnd, WorkerError};
use tokio::time;

fn v1_model(lab: &Lab) -> ModelPath {
    let model = Model {
        name: "debian12".into(),
        model_type: "vsphere".into(),
        need_registration: true,
        nb_spawn_err: 3,
        ..Model::default()
    };
    lab.api.add_model(model, vec![])
}

#[tokio::test(start_paused = true)]
async fn a_v1_job_is_booked_executed_and_done() {
    let mut lab = Lab::new();
    let id = lab.api.add_v1_job(V1Demand::new().takes(mins(3)));
    lab.v1().book(id).await.unwrap();
    let config = lab.v1_worker("keen-bohr", id);
    let worker = lab.start(&config);
    time::sleep(mins(2)).await;
    let workers = lab.v1().workers().await.unwrap();
    assert_eq!(
        (workers[0].name.as_str(), workers[0].status),
        ("keen-bohr", WorkerStatus::Building)
    );
    assert_eq!((workers[0].job_run_id, workers[0].hatchery_name.as_str()), (Some(id), HATCHERY));
    assert!(lab.other().v1().unwrap().workers().await.unwrap().is_empty(), "own workers only");
    assert_eq!(worker.await.unwrap().unwrap(), WorkerEnd::Worked(JobStatus::Success));
    let report = lab.api.job(&JobId::V1(id)).unwrap();
    assert_eq!(report.status, JobStatus::Success);
    assert_eq!((report.holders(), report.executions()), (vec![HATCHERY], vec!["keen-bohr"]));
    assert_eq!(report.waited(), Some(SignedDuration::ZERO));
    assert!(lab.api.workers().is_empty() && lab.api.double_workers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_v2_job_is_taken_executed_and_done() {
    let mut lab = Lab::new();
    for (outcome, status) in
        [(Outcome::Success, JobStatus::Success), (Outcome::Fail, JobStatus::Fail)]
    {
        let id = lab.api.add_v2_job(V2Demand::new(MODEL).ends(outcome).takes(mins(20))).unwrap();
        lab.v2().take(&id).await.unwrap();
        let config = lab.v2_worker("keen-bohr", &id);
        let worker = lab.start(&config);
        time::sleep(mins(10)).await;
        let workers = lab.v2().workers().await.unwrap();
        assert_eq!((workers[0].run_job_id.as_str(), workers.len()), (id.as_str(), 1));
        assert_eq!(worker.await.unwrap().unwrap(), WorkerEnd::Worked(status));
        let workers = lab.v2().workers().await.unwrap();
        assert_eq!(workers[0].status, WorkerStatus::Disabled, "listed for some seconds more");
        time::sleep(secs(11)).await;
        assert!(lab.api.workers().is_empty());
        let report = lab.api.job(&JobId::V2(id)).unwrap();
        assert_eq!(report.status, status);
        let events: Vec<_> = report.history.into_iter().map(|entry| entry.event).collect();
        let (hatchery, worker) = (HATCHERY.to_owned(), "keen-bohr".to_owned());
        assert_eq!(
            events,
            [
                JobEvent::Queued,
                JobEvent::Taken { hatchery },
                JobEvent::WorkerSignedIn { worker: worker.clone() },
                JobEvent::WorkerTook { worker: worker.clone() },
                JobEvent::Ended { status, reason: String::new() },
                JobEvent::WorkerGone { worker },
            ]
        );
    }
}

/// Two hatcheries book the same V1 job at the same moment; which worker takes it decides.
#[tokio::test(start_paused = true)]
async fn of_two_workers_for_one_v1_job_only_one_executes_it() {
    let mut lab = Lab::new();
    let other = lab.other();
    let id = lab.api.add_v1_job(V1Demand::new().takes(mins(2)));
    lab.api.inject(Fault::on("POST /queue/workflows/*/book").booking_race());
    lab.v1().book(id).await.unwrap();
    other.v1().unwrap().book(id).await.expect("the race is lost by nobody");
    let winner = lab.v1_worker("keen-bohr", id);
    let winner = lab.start(&winner);
    time::sleep(secs(5)).await;
    let loser = lab.v1_worker_of("hv2", "calm-curie", id);
    let loser = lab.start(&loser);
    assert_eq!(loser.await.unwrap().unwrap(), WorkerEnd::NothingToDo, "ends quietly");
    assert_eq!(winner.await.unwrap().unwrap(), WorkerEnd::Worked(JobStatus::Success));
    let report = lab.api.job(&JobId::V1(id)).unwrap();
    assert_eq!(report.executions(), ["keen-bohr"]);
    assert_eq!(report.status, JobStatus::Success);
}

#[tokio::test(start_paused = true)]
async fn two_workers_of_one_hatchery_for_one_job_are_noticed() {
    let mut lab = Lab::new();
    let id = lab.api.add_v2_job(V2Demand::new(MODEL).takes(mins(5))).unwrap();
    lab.v2().take(&id).await.unwrap();
    let first = lab.v2_worker("first", &id);
    let first = lab.start(&first);
    time::sleep(secs(5)).await;
    lab.v2().release(&id).await.unwrap();
    lab.v2().take(&id).await.unwrap();
    let second = lab.v2_worker("second", &id);
    let second = lab.start(&second);
    let _ = tokio::join!(first, second);
    let doubles = lab.api.double_workers();
    assert_eq!(doubles[0].workers, ["first", "second"]);
    assert!(doubles[0].is_of_one_hatchery());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_died_before_its_successor_came_is_no_double() {
    let mut lab = Lab::new();
    let id = lab.api.add_v2_job(V2Demand::new(MODEL).takes(mins(5))).unwrap();
    lab.v2().take(&id).await.unwrap();
    let first = lab.v2_worker("first", &id);
    let first = lab.start(&first);
    time::sleep(secs(5)).await;
    first.abort();
    lab.v2().release(&id).await.unwrap();
    lab.v2().take(&id).await.unwrap();
    let second = lab.v2_worker("second", &id);
    let second = lab.start(&second).await.unwrap().unwrap();
    assert_eq!(second, WorkerEnd::Worked(JobStatus::Success));
    assert_eq!(lab.api.double_workers(), []);
    assert_eq!(lab.api.job(&JobId::V2(id)).unwrap().executions(), ["first", "second"]);
}

#[tokio::test(start_paused = true)]
async fn disabling_a_worker_at_work_fails_its_v1_job() {
    let mut lab = Lab::new();
    let id = lab.api.add_v1_job(V1Demand::new().takes(mins(10)));
    let config = lab.v1_worker("keen-bohr", id);
    lab.v1().book(id).await.unwrap();
    let worker = lab.start(&config);
    time::sleep(mins(1)).await;
    let listed = lab.v1().workers().await.unwrap().remove(0);
    lab.v1().disable_worker(&listed.id).await.unwrap();
    assert_eq!(lab.api.job(&JobId::V1(id)).unwrap().status, JobStatus::Fail);
    assert_eq!(worker.await.unwrap().unwrap(), WorkerEnd::Dismissed);
    assert_eq!(lab.v1().workers().await.unwrap()[0].status, WorkerStatus::Disabled);
    time::sleep(mins(6)).await;
    assert!(lab.api.workers().is_empty(), "deleted after five minutes without a beat");
}

#[tokio::test(start_paused = true)]
async fn a_worker_disabled_by_somebody_else_stops_in_the_middle_of_its_job() {
    let mut lab = Lab::new();
    let id = lab.api.add_v2_job(V2Demand::new(MODEL).takes(mins(10))).unwrap();
    lab.v2().take(&id).await.unwrap();
    let config = lab.v2_worker("keen-bohr", &id);
    let worker = lab.start(&config);
    time::sleep(mins(1)).await;
    lab.api.disable_worker("keen-bohr");
    time::sleep(secs(11)).await;
    assert!(lab.api.workers().is_empty(), "a disabled V2 worker is deleted within ten seconds");
    assert_eq!(lab.api.job(&JobId::V2(id)).unwrap().status, JobStatus::Stopped);
    assert_eq!(worker.await.unwrap().unwrap(), WorkerEnd::Dismissed);
}

#[tokio::test(start_paused = true)]
async fn the_job_of_a_worker_that_died_fails_in_v1_and_is_stopped_in_v2() {
    let mut lab = Lab::new();
    let v1 = lab.api.add_v1_job(V1Demand::new().ends(Outcome::Crash));
    let v2 = lab.api.add_v2_job(V2Demand::new(MODEL).ends(Outcome::Crash)).unwrap();
    lab.v1().book(v1).await.unwrap();
    lab.v2().take(&v2).await.unwrap();
    let (first, second) = (lab.v1_worker("one", v1), lab.v2_worker("two", &v2));
    let (first, second) = tokio::join!(lab.start(&first), lab.start(&second));
    assert_eq!(first.unwrap().unwrap(), WorkerEnd::Died);
    assert_eq!(second.unwrap().unwrap(), WorkerEnd::Died);
    time::sleep(mins(4)).await;
    let status = |id: &JobId| lab.api.job(id).unwrap().status;
    let (v1, v2) = (JobId::V1(v1), JobId::V2(v2));
    assert_eq!((status(&v1), status(&v2)), (JobStatus::Building, JobStatus::Building));
    time::sleep(mins(3)).await;
    assert_eq!((status(&v1), status(&v2)), (JobStatus::Fail, JobStatus::Stopped));
}

#[tokio::test(start_paused = true)]
async fn a_taken_job_without_a_worker_waits_again_after_ten_minutes_and_no_release_is_counted() {
    let mut lab = Lab::new();
    let id = lab.api.add_v2_job(V2Demand::new(MODEL)).unwrap();
    lab.v2().take(&id).await.unwrap();
    let config = lab.v2_worker("late", &id);
    time::sleep(secs(661)).await;
    let report = lab.api.job(&JobId::V2(id.clone())).unwrap();
    assert_eq!((report.status, report.releases().len()), (JobStatus::Waiting, 0));
    let error = lab.start(&config).await.unwrap().unwrap_err();
    assert!(chain(&error).contains("HTTP 403"), "too late: {}", chain(&error));
    time::sleep(mins(60)).await;
    assert_eq!(lab.api.job(&JobId::V2(id)).unwrap().status, JobStatus::Fail, "waited an hour");
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_believed_only_with_a_token_that_its_hatchery_signed_in_the_last_hour() {
    let mut lab = Lab::new();
    let id = lab.api.add_v1_job(V1Demand::new());
    let mut unknown = lab.v1_worker_of("nobody", "w", id);
    let expired = lab.v1_worker("w", id);
    let mut forged = lab.v1_worker("w", id);
    let (message, signature) = forged.api_token.expose().rsplit_once('.').unwrap();
    let signature: String = signature.chars().rev().collect();
    forged.api_token = Secret::new(format!("{message}.{signature}"));
    lab.v1().book(id).await.unwrap();
    for config in [forged, unknown.clone()] {
        let error = lab.start(&config).await.unwrap().unwrap_err();
        assert!(matches!(error, WorkerError::SignIn { .. }), "{error:?}");
    }
    time::sleep(mins(61)).await;
    lab.v1().book(id).await.unwrap();
    let error = lab.start(&expired).await.unwrap().unwrap_err();
    assert!(matches!(error, WorkerError::SignIn { .. }), "{error:?}");
    unknown.api_token = Secret::default();
    assert!(lab.start(&unknown).await.unwrap().is_err());
    assert!(lab.api.job(&JobId::V1(id)).unwrap().workers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_token_is_for_a_job_or_for_a_registration_and_never_for_both() {
    let mut lab = Lab::new();
    lab.client.sign_in().await.unwrap();
    let id = lab.api.add_v1_job(V1Demand::new());
    for (job_id, register_only) in [(id, true), (0, false)] {
        let (name, hatchery_name) = ("w".into(), HATCHERY.into());
        let model = ClaimedModel::default();
        let worker = V1Worker { name, model, job_id, register_only, hatchery_name };
        let config = lab.v1_config(worker);
        assert!(lab.start(&config).await.unwrap().is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn registering_shows_what_a_model_can_do() {
    let mut lab = Lab::new();
    let path = v1_model(&lab);
    lab.v1().book_model(&path).await.unwrap();
    let model = lab.v1().model(&path).await.unwrap();
    let config = lab.v1_config(V1Worker {
        name: "register-keen-bohr".into(),
        model: ClaimedModel { id: model.id, name: model.name },
        job_id: 0,
        register_only: true,
        hatchery_name: HATCHERY.into(),
    });
    assert_eq!(lab.start(&config).await.unwrap().unwrap(), WorkerEnd::Registered);
    let model = lab.v1().model(&path).await.unwrap();
    assert_eq!((model.need_registration, model.nb_spawn_err), (false, 0));
    assert_eq!(model.registered_os.as_deref(), Some("linux"));
    let binaries: Vec<_> = model.registered_capabilities.iter().map(|c| &*c.value).collect();
    assert_eq!(binaries, ["bash", "curl", "docker", "git"]);
    assert!(lab.api.workers().is_empty());
    lab.api.change_model(&path, |model| model.need_registration = true);
    assert!(lab.v1().enabled_models().await.unwrap()[0].need_registration, "asked for again");
}

#[tokio::test(start_paused = true)]
async fn a_worker_lives_through_lost_answers_and_still_works_once() {
    let mut lab = Lab::new();
    for (pattern, job) in [
        ("POST /v2/queue/*/job/*/worker/signin", "v2"),
        ("POST /v2/queue/*/job/*/worker/take", "v2"),
        ("POST /v2/queue/*/job/*/result", "v2"),
        ("POST /auth/consumer/worker/signin", "v1"),
        ("POST /queue/workflows/*/take", "v1"),
        ("POST /queue/workflows/*/result", "v1"),
    ] {
        lab.api.clear_faults();
        lab.api.inject(Fault::on(pattern).first(1).cut_after());
        let (config, id) = if job == "v1" {
            let id = lab.api.add_v1_job(V1Demand::new());
            lab.v1().book(id).await.unwrap();
            (lab.v1_worker("w", id), JobId::V1(id))
        } else {
            let id = lab.api.add_v2_job(V2Demand::new(MODEL)).unwrap();
            lab.v2().take(&id).await.unwrap();
            (lab.v2_worker("w", &id), JobId::V2(id))
        };
        let end = lab.start(&config).await.unwrap().unwrap();
        assert_eq!(end, WorkerEnd::Worked(JobStatus::Success), "{pattern}");
        let report = lab.api.job(&id).unwrap();
        assert_eq!(
            (report.status, report.executions().len()),
            (JobStatus::Success, 1),
            "{pattern}"
        );
        time::sleep(secs(11)).await;
        assert!(lab.api.workers().is_empty(), "{pattern}");
    }
    assert_eq!(lab.api.double_workers(), []);
}

#[tokio::test(start_paused = true)]
async fn workers_of_a_deleted_service_are_adopted_by_its_successor() {
    let mut lab = Lab::new();
    let id = lab.api.add_v1_job(V1Demand::new().takes(mins(5)));
    lab.v1().book(id).await.unwrap();
    let config = lab.v1_worker("keen-bohr", id);
    let worker = lab.start(&config);
    time::sleep(secs(5)).await;
    lab.api.delete_service(HATCHERY);
    lab.api.forget_sessions();
    assert_eq!(lab.v1().workers().await.unwrap()[0].name, "keen-bohr");
    assert_eq!(worker.await.unwrap().unwrap(), WorkerEnd::Worked(JobStatus::Success));
}
