//! The gates that a job passes before anything is reserved for it, in their order, each with its reason. Those that are about room are in
//! `capacity`.

use roost_cds::v1::ModelPath;
use roost_cds::{JobId, JobStatus, v2};
use roost_cds_sim::{Outcome, V1Demand, V2Demand};
use roost_clock::Clock as _;
use roost_fleet::{Decided, NextLook};
use roost_vcenter_sim::{Power, TemplateOptions};
use serde_json::json;
use tokio::time::sleep;
use toml::{Table, Value};

use crate::lab::{
    Conduct, DEBIAN, GUEST_PASSWORD, GoVm, Lab, Note, Setup, UBUNTU, mins, secs, wait_until,
};

async fn wait_bound(lab: &Lab, job: &JobId, gate: &str) -> String {
    let what = format!("{job} is bound by {gate}");
    wait_until(&what, mins(5), || lab.bound_by(job) == Some(gate)).await;
    lab.verdict(job).unwrap().reason.to_string()
}

async fn registered(lab: &Lab, name: &str) -> ModelPath {
    let path = lab.v1_model(name);
    wait_until("it is registered", mins(60), || {
        lab.cds.model(&path).is_some_and(|model| !model.need_registration)
    })
    .await;
    path
}

pub(crate) fn as_code(lab: &Lab, name: &str, model_type: &str, image: &str) -> String {
    let path = format!("PROJ/github/org/repo/{name}");
    let model = v2::Model {
        name: name.into(),
        os_arch: "linux/amd64".into(),
        model_type: model_type.into(),
        spec: v2::ModelSpec(json!({"image": image})),
        ..v2::Model::default()
    };
    lab.cds.add_v2_model(&v2::AsCodePath::parse(&path).unwrap(), model);
    path
}

#[tokio::test(start_paused = true)]
async fn a_model_of_another_type_is_not_ours() {
    let lab = Lab::new().await;
    // CDS offers jobs by the type that their model had when they were queued.
    let path = as_code(&lab, "container", "vsphere", "debian12");
    let job = lab.v1_job(V1Demand::new().model(&path));
    as_code(&lab, "container", "docker", "debian:12");
    let why = wait_bound(&lab, &job, "model-type").await;
    assert!(why.contains("is of type \"docker\", not vsphere"), "{why}");
    assert_eq!(lab.verdict(&job).unwrap().verdict, Decided::Skipped);
    assert_eq!(lab.cds.job(&job).unwrap().holders(), [""; 0]);
    as_code(&lab, "container", "vsphere", "debian12");
    lab.wait_for(&job, JobStatus::Success).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_v2_token_models_as_code_cannot_be_read() {
    let lab = Lab::of(Setup::new("hv1").only_v1()).await;
    let job = lab.v1_job(V1Demand::new().model(DEBIAN));
    let why = wait_bound(&lab, &job, "no-v2-token").await;
    assert!(why.contains(DEBIAN), "{why}");
    assert_eq!(lab.cds.job(&job).unwrap().holders(), [""; 0]);
}

/// D8: also for a job without requirements of its own.
#[tokio::test(start_paused = true)]
async fn a_model_without_a_command_starts_no_worker() {
    let lab = Lab::new().await;
    let path = registered(&lab, "classic").await;
    lab.cds.change_model(&path, |model| model.model_virtual_machine.cmd.clear());
    sleep(secs(30)).await;
    let job = lab.v1_job(V1Demand::new().model("shared.infra/classic"));
    let why = wait_bound(&lab, &job, "no-command").await;
    assert!(why.contains("shared.infra/classic"), "{why}");
    assert_eq!(lab.verdict(&job).unwrap().verdict, Decided::Refused);
}

/// 2.4: such a job waits for us, and is not somebody else's.
#[tokio::test(start_paused = true)]
async fn a_job_on_a_model_that_nobody_has_registered_waits_and_counts_as_waiting() {
    let setup = Setup::new("hv1").provision("maxConcurrentRegistering", -1);
    let lab = Lab::of(setup).await;
    lab.v1_model("classic");
    sleep(secs(30)).await;
    let job = lab.v1_job(V1Demand::new().model("classic"));
    wait_bound(&lab, &job, "needs-registration").await;
    assert_eq!(lab.verdict(&job).unwrap().verdict, Decided::Deferred);
    assert_eq!(lab.hatchery().view().overview.queue.waiting, 1);
}

#[tokio::test(start_paused = true)]
async fn a_model_with_too_many_spawn_errors_serves_nobody_until_its_owner_has_looked() {
    let lab = Lab::new().await;
    let path = registered(&lab, "classic").await;
    lab.cds.change_model(&path, |model| model.nb_spawn_err = 6);
    sleep(secs(30)).await;
    let job = lab.v1_job(V1Demand::new().model("classic"));
    wait_bound(&lab, &job, "spawn-errors").await;
    lab.cds.change_model(&path, |model| model.nb_spawn_err = 0);
    lab.wait_for(&job, JobStatus::Success).await;
}

/// D16: as CDS does from 0.57, if the operator wants it.
#[tokio::test(start_paused = true)]
async fn v1_models_can_be_switched_off() {
    let lab = Lab::of(Setup::new("hv1").set("disableWorkerModelV1", true)).await;
    let path = lab.v1_model("classic");
    let old = lab.v1_job(V1Demand::new().model("classic"));
    wait_bound(&lab, &old, "models-v1-disabled").await;
    let new = lab.v1_job(V1Demand::new().model(DEBIAN));
    lab.wait_for(&new, JobStatus::Success).await;
    assert!(lab.cds.model(&path).unwrap().need_registration, "nor are they registered");
    assert_eq!(lab.cds.calls("GET /worker/model/enabled"), 0);
}

/// D18: what a VM says about itself counts, also if another process wrote it.
#[tokio::test(start_paused = true)]
async fn a_job_that_a_vm_says_it_serves_gets_no_second_one() {
    let lab = Lab::new().await;
    lab.hatchery().controls().pause("a test");
    let job = lab.job();
    let colleague = lab.colleague("svc-go@vsphere.local").await;
    let now = lab.clock.now().to_string();
    let annotation = json!({
        "hatchery_name": "hv1",
        "worker_name": "keen-bohr",
        "vmware_model_path": "debian12",
        "created": now,
        "worker_start_time": now,
        "job_id": job.to_string(),
    });
    let annotation = annotation.to_string();
    let vm = GoVm { name: "keen-bohr", annotation, power: Power::On, address: None };
    lab.make_vm(&colleague, vm).await;
    lab.hatchery().controls().resume("a test");
    let why = wait_bound(&lab, &job, "request").await;
    assert!(why.contains("needs 1, 1 of 1 taken"), "{why}");
    assert_eq!(lab.cds.job(&job).unwrap().holders(), [""; 0]);
    // It never registers, and goes; then the job gets another.
    lab.wait_for(&job, JobStatus::Success).await;
    assert!(lab.vm_named("keen-bohr").is_none_or(|vm| Note::of(&vm).unwrap().to_delete));
}

/// 6.2, 6.3: a worker that CDS has disabled holds its slot while its VM runs, and nobody's after that.
#[tokio::test(start_paused = true)]
async fn a_disabled_worker_makes_room_when_its_vm_is_gone() {
    let lab = Lab::of(Setup::new("hv1").max_workers(1)).await;
    lab.guests.conduct(|_| Conduct::StaysOn);
    for demand in [true, false] {
        let first = if demand {
            lab.v1_job(V1Demand::new().model(DEBIAN).ends(Outcome::Hang))
        } else {
            lab.v2_job(V2Demand::new(DEBIAN).ends(Outcome::Hang))
        };
        lab.wait_for(&first, JobStatus::Building).await;
        let vm = lab.vm_of(&first).unwrap();
        let second = lab.v2_job(V2Demand::new(DEBIAN).takes(secs(20)));
        wait_bound(&lab, &second, "workers").await;
        lab.cds.disable_worker(&vm.name);
        lab.wait_for(&second, JobStatus::Success).await;
        assert!(lab.vm_named(&vm.name).is_none(), "it went before the other came");
        lab.cds.stop_job(&first);
        let last = lab.vm_of(&second).unwrap().name;
        wait_until("all are gone", mins(90), || lab.vm_named(&last).is_none()).await;
    }
}

/// Specification 6.8.
#[tokio::test(start_paused = true)]
async fn a_v1_job_without_a_model_gets_the_default_that_has_one_of_its_binaries() {
    let default = |model: &str, binary: &str| {
        let mut entry = Table::new();
        entry.insert("workerModelV2".into(), model.into());
        entry.insert("binaries".into(), Value::Array(vec![binary.into()]));
        Value::Table(entry)
    };
    let defaults = Value::Array(vec![default(UBUNTU, "go"), default(DEBIAN, "git")]);
    let lab = Lab::of(Setup::new("hv1").set("defaultWorkerModelsV2", defaults)).await;
    let any = lab.v1_job(V1Demand::new().takes(mins(5)));
    let git = lab.v1_job(V1Demand::new().binary("make").binary("git").takes(mins(5)));
    let none = lab.v1_job(V1Demand::new().binary("fortran"));
    for (job, template) in [(&any, "ubuntu24"), (&git, "debian12")] {
        lab.wait_for(job, JobStatus::Building).await;
        assert_eq!(Note::of(&lab.vm_of(job).unwrap()).unwrap().vmware_model_path, template);
    }
    wait_bound(&lab, &none, "no-model-matches").await;
}

/// Only a person can put the template there, or have named another; the job goes on when it appears.
#[tokio::test(start_paused = true)]
async fn a_job_without_its_template_is_refused_untaken_and_goes_on_when_there_is_one() {
    let setup = Setup::new("hv1").push("models", |entry| {
        entry.insert("modelVMWare".into(), "late".into());
        entry.insert("username".into(), "cds".into());
        entry.insert("password".into(), GUEST_PASSWORD.into());
    });
    let lab = Lab::of(setup).await;
    let path = as_code(&lab, "late", "vsphere", "late");
    let job = lab.v2_job(V2Demand::new(&path));
    let why = wait_bound(&lab, &job, "no-template").await;
    assert_eq!(why, "there is no template \"late\" in the datacenter");
    let verdict = lab.verdict(&job).unwrap();
    assert_eq!((verdict.verdict, verdict.next_look), (Decided::Refused, NextLook::OnChange));
    sleep(mins(1)).await;
    let queue = lab.hatchery().view().overview.queue;
    assert_eq!((queue.waiting, queue.oldest_waiting_secs, queue.refused), (0, None, 1));
    let report = lab.cds.job(&job).unwrap();
    assert_eq!(report.holders(), [""; 0]);
    assert_eq!(report.infos.iter().filter(|info| info.contains("late")).count(), 1);
    let credentials =
        roost_vcenter_sim::Credentials { user: "cds".into(), password: GUEST_PASSWORD.into() };
    let template =
        TemplateOptions { guest_credentials: Some(credentials), ..TemplateOptions::new("late") };
    lab.vcenter.add_template(&template).unwrap();
    lab.wait_for(&job, JobStatus::Success).await;
}
