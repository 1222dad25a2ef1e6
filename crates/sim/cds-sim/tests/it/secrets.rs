//! Nothing that must not be seen is seen: not in logs of any level, not in errors, not in `Debug`, not in URLs.

use std::process::Command;

use crate::lab::log::Log;
use crate::lab::{HATCHERY, Lab, MODEL, TOKEN, TOKEN_V2, chain, mins, secs};
use roost_cds::v1::{Model, VirtualMachine};
use roost_cds::{Commands, HeartbeatSettings, MonitoringStatus, Purpose, QueueSettings, Secret};
use roost_cds_sim::{Fault, V1Demand, V2Demand, demo_hatchery_key};
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::time;

/// Runs itself again in a process of its own: a log line that a test of another thread came by first, without a log, is not captured here.
#[test]
fn a_day_of_trouble_leaves_no_secret_in_logs_errors_debug_or_urls() {
    const CHILD: &str = "ROOST_CDS_TEST_ALONE";
    if std::env::var_os(CHILD).is_some() {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
        return runtime.unwrap().block_on(a_day_of_trouble());
    }
    let name = "secrets::a_day_of_trouble_leaves_no_secret_in_logs_errors_debug_or_urls";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{complained}");
    assert!(said.contains("1 passed"), "{said}");
}

async fn a_day_of_trouble() {
    let (log, _guard) = Log::capture();
    let mut lab = Lab::new();
    let mut seen: Vec<String> = Vec::new();
    let password = "correct-horse-battery";
    let machine = VirtualMachine {
        password: "{{.secrets.pw}}".into(),
        pre_cmd: "export CDS_CONFIG={{.Config}}".into(),
        ..VirtualMachine::default()
    };
    let model = Model { name: "m".into(), model_virtual_machine: machine, ..Model::default() };
    let path = lab.api.add_model(model, vec![("secrets.pw", password.into())]);
    let mut secrets: Vec<Secret> =
        vec![TOKEN.into(), TOKEN_V2.into(), password.into(), demo_hatchery_key()];

    for beat in lab.client.heartbeats(HeartbeatSettings::default()) {
        tokio::spawn(beat.run(MonitoringStatus::default));
    }
    let (hints, mut receiver) = mpsc::channel(64);
    for watch in lab.client.queue_watches(QueueSettings::default()) {
        tokio::spawn(watch.run(hints.clone()));
    }
    tokio::spawn(async move { while receiver.recv().await.is_some() {} });

    let model = lab.v1().model(&path).await.unwrap();
    let filled = lab.v1().model_password(&model).await.unwrap();
    let id = lab.api.add_v1_job(V1Demand::new());
    let config = lab.v1_worker("keen-bohr", id);
    let script =
        Commands::from(&model.model_virtual_machine).script(Purpose::Job, &config).unwrap();
    secrets.extend([config.api_token.clone(), config.encode(), filled.clone()]);
    seen.push(format!("{model:?} {filled:?} {config:?} {script:?} {:?}", lab.client));
    lab.v1().book(id).await.unwrap();
    lab.start(&config).await.unwrap().unwrap();

    // A token that is refused, an API that breaks, times out, and forgets sessions.
    lab.api.regenerate_token(HATCHERY).unwrap();
    lab.api.forget_sessions();
    lab.api.add_v2_job(V2Demand::new(MODEL)).unwrap();
    seen.push(chain(&lab.v2().waiting_jobs().await.unwrap_err()));
    let mut late = config;
    late.api_token = Secret::new(format!("{}x", late.api_token.expose()));
    secrets.push(late.api_token.clone());
    let error = lab.start(&late).await.unwrap().unwrap_err();
    seen.push(format!("{} {error:?}", chain(&error)));
    for fault in [
        Fault::on("POST /auth/**").first(4).cut(),
        Fault::on("GET /worker").first(4).delay(secs(20)),
        Fault::on("GET /queue/**").first(9).answer(401, 10),
        Fault::on("GET /**").first(9).answer_after(500, 0),
    ] {
        lab.api.forget_sessions();
        lab.api.inject(fault);
        if let Err(error) = lab.v1().workers().await {
            seen.push(format!("{} {error:?}", chain(&error)));
        }
        lab.api.close_websockets(1011);
        time::sleep(mins(5)).await;
    }
    lab.client.sign_out().await;

    for request in lab.sent.requests("") {
        seen.push(request.line.clone());
        let header = request.header("authorization");
        if let Some(session) = header.strip_prefix("Bearer ") {
            secrets.push(session.into());
            assert!(request.headers["authorization"].is_sensitive());
        }
        seen.push(format!("{:?}", request.headers));
    }
    let (log, seen) = (log.text(), seen.join("\n"));
    assert!(log.contains("CDS answered") && log.contains("tried again"), "the log was captured");
    assert!(secrets.len() > 100, "sessions were seen");
    for secret in &secrets {
        // A part is as good as the whole: the middle of a JWT, a line of a key.
        let text = secret.expose();
        let middle = if text.len() < 60 { text } else { &text[text.len() / 3..text.len() * 2 / 3] };
        for (place, content) in [("a log", &log), ("an error, Debug or URL", &seen)] {
            assert!(!content.contains(middle), "{middle} is in {place}");
        }
    }
}
