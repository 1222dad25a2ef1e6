//! W30: what CDS's hatchery prints, nobody reads here: not in a log at its loudest, not in errors, decisions, metrics, views or messages.

use roost_cds::JobStatus;
use roost_cds_sim::{Fault, V1Demand};
use roost_fleet::Query;
use roost_vcenter_sim::{Action, Rule, When};
use tokio::time::sleep;

use crate::lab::{Conduct, DEBIAN, GUEST_PASSWORD, Lab, Log, Setup, VCENTER_PASSWORD, mins};

/// With successes, failures of every step, lost sessions and a restart.
#[tokio::test(start_paused = true)]
async fn no_secret_is_ever_told_to_anybody() {
    let (log, _guard) = Log::capture();
    let setup = Setup::new("hv1").pool("debian12", 1).push("models", |entry| {
        entry.insert("modelVMWare".into(), "other".into());
        entry.insert("username".into(), "cds".into());
        entry.insert("password".into(), "other-guest-secret-5".into());
    });
    let setup = setup.provision("injectEnvVars", vec!["SECRET_KEY=injected-secret-7"]);
    let text = setup.text();
    let mut lab = Lab::of(setup).await;
    lab.v1_model("classic");
    let mut number = 0;
    lab.guests.conduct(move |_| {
        number += 1;
        if number % 3 == 0 { Conduct::ScriptFails } else { Conduct::Obedient }
    });
    for method in ["CloneVM_Task", "PowerOnVM_Task", "StartProgramInGuest", "ReconfigVM_Task"] {
        for action in [Action::CutAfter, Action::fault("RuntimeFault", "no"), Action::LoseSession] {
            let rule = Rule::new(method, action).when(When::Chance(0.15));
            lab.vcenter.faults().add(rule);
        }
    }
    lab.cds.inject(Fault::on("**").chance(0.03).answer(500, 0));
    lab.cds.inject(Fault::on("GET /**").chance(0.03).answer(401, 10));
    for _ in 0..6 {
        let jobs = [lab.job(), lab.v1_job(V1Demand::new().model(DEBIAN))];
        sleep(mins(5)).await;
        lab.restart().await;
        for job in jobs {
            lab.truth.look();
            let _ = lab.cds.job(&job);
        }
    }
    lab.vcenter.faults().clear();
    lab.cds.clear_faults();
    lab.guests.conduct(|_| Conduct::Obedient);
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;

    let mut secrets = vec![
        VCENTER_PASSWORD.to_owned(),
        GUEST_PASSWORD.to_owned(),
        "other-guest-secret-5".to_owned(),
        "injected-secret-7".to_owned(),
        "consumer-token-of-hv1-7f3a".to_owned(),
        "hatchery-token-of-hv1-91bc".to_owned(),
        "BEGIN RSA PRIVATE KEY".to_owned(),
    ];
    // The configurations of all workers, and the tokens in them.
    for program in lab.vcenter.guest_programs() {
        if let Some(config) = program.variable("CDS_CONFIG") {
            let read = roost_cds::WorkerConfig::decode(&roost_cds::Secret::from(config)).unwrap();
            secrets.extend([config.to_owned(), read.api_token.expose().to_owned()]);
        }
    }
    assert!(
        secrets.len() > 14 && text.contains(VCENTER_PASSWORD),
        "the test has what it looks for"
    );
    let journal = lab.hatchery().journal().find(&Query::default());
    let infos: Vec<_> = lab.cds.jobs().into_iter().flat_map(|job| job.infos).collect();
    let annotations: Vec<_> = lab.vcenter.glance().into_iter().map(|vm| vm.annotation).collect();
    let services = format!("{:?} {:?}", lab.cds.services(), lab.cds.hatchery("hv1"));
    let view = serde_json::to_string(&lab.hatchery().view()).unwrap();
    for (place, said) in [
        ("the log", log.text()),
        ("decisions", format!("{journal:?}")),
        ("metrics", lab.service.metrics()),
        ("views", view),
        ("the hatchery itself", format!("{:?} {:?}", lab.hatchery(), lab.service.config())),
        ("messages to jobs", format!("{infos:?}")),
        ("annotations", format!("{annotations:?}")),
        ("what CDS shows of the service", services),
        ("status", format!("{:?}", lab.hatchery().status())),
    ] {
        for secret in &secrets {
            assert!(!said.contains(secret.as_str()), "{place} holds {secret:?}");
        }
    }
}
