//! The control endpoint: the typed API as JSON.

use crate::lab::{HATCHERY, Lab, MODEL, secs};
use bytes::Bytes;
use http::Request;
use roost_cds_sim::{Options, Timings, V1Demand, V2Demand};
use serde_json::{Value, json};
use tokio::time;

fn lab() -> Lab {
    Lab::with(Options { control_endpoint: true, ..Options::new(1) })
}

/// `line` is a method and what follows `/roost/control/`.
async fn control(lab: &Lab, line: &str, body: Value) -> (u16, Value) {
    let (method, place) = line.split_once(' ').unwrap();
    let uri = format!("http://cds.invalid/roost/control/{place}");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(uri).body(Bytes::from(body)).unwrap();
    let answer = lab.api.handle(request).await.unwrap();
    (answer.status().as_u16(), serde_json::from_slice(answer.body()).unwrap())
}

async fn get(lab: &Lab, place: &str) -> Value {
    let (status, answer) = control(lab, &format!("GET {place}"), Value::Null).await;
    assert_eq!(status, 200, "{place}: {answer}");
    answer
}

async fn post(lab: &Lab, place: &str, body: Value) -> Value {
    let (status, answer) = control(lab, &format!("POST {place}"), body).await;
    assert_eq!(status, 200, "{place}: {answer}");
    answer
}

#[tokio::test(start_paused = true)]
async fn it_is_there_only_if_it_was_asked_for() {
    let (status, _) = control(&Lab::new(), "GET summary", Value::Null).await;
    assert_eq!(status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_job_is_queued_followed_and_counted() {
    let mut lab = lab();
    let demand = json!({"protocol": "v2", "model": MODEL, "flavor": "small", "takes_ms": 2000});
    let id = post(&lab, "jobs", demand).await["id"].as_str().unwrap().to_owned();
    let v1 = json!({"protocol": "v1", "model": MODEL, "binaries": ["git"], "outcome": "fail"});
    let other = post(&lab, "jobs", v1).await["id"].as_str().unwrap().to_owned();
    let summary = get(&lab, "summary").await;
    assert_eq!((&summary["waiting"], &summary["done"]), (&json!(2), &json!(0)));

    lab.client.sign_in().await.unwrap();
    lab.v2().take(&id).await.unwrap();
    let info = lab.v2().job(&id).await.unwrap();
    assert_eq!(info.run_job.job.runs_on.flavor, "small");
    let config = lab.v2_worker("keen-bohr", &id);
    let worker = lab.start(&config);
    time::sleep(secs(1)).await;
    let workers = get(&lab, "workers").await;
    let shown = json!([{"name": "keen-bohr", "hatchery": HATCHERY, "status": "Building", "job": id,
                        "id": workers[0]["id"]}]);
    assert_eq!(workers, shown);
    worker.await.unwrap().unwrap();
    time::sleep(secs(11)).await;

    let job = get(&lab, &format!("jobs/{id}")).await;
    assert_eq!((&job["protocol"], &job["status"]), (&json!("v2"), &json!("Success")));
    assert_eq!(job["executions"], json!(["keen-bohr"]));
    let history = job["history"].as_array().unwrap();
    let events: Vec<_> = history.iter().map(|entry| entry["event"].as_str().unwrap()).collect();
    let wanted = ["queued", "taken", "worker_signed_in", "worker_took", "ended", "worker_gone"];
    assert_eq!(events, wanted);
    assert_eq!(history[1]["hatchery"], HATCHERY);
    assert!(history[1]["at"].as_str().unwrap().ends_with('Z'), "{job}");
    assert_eq!(get(&lab, "jobs").await.as_array().unwrap().len(), 2);

    post(&lab, &format!("jobs/{other}/stop"), Value::Null).await;
    let wanted = json!({"waiting": 0, "running": 0, "done": 1, "failed": 1, "vanished": 0,
                        "double_workers": 0});
    assert_eq!(get(&lab, "summary").await, wanted);
    assert_eq!(get(&lab, "double_workers").await, json!([]));
    assert_eq!(get(&lab, "calls").await["POST /v2/queue/{}/job/{}/hatchery/take"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_v2_job_is_queued_for_the_region_of_the_hatchery() {
    let options = Options { control_endpoint: true, ..Options::new(1) };
    let lab = Lab::with(options.hatchery("first", "t", "eu-west"));
    let id = post(&lab, "jobs", json!({"protocol": "v2", "model": MODEL})).await["id"].clone();
    let elsewhere = json!({"protocol": "v2", "model": MODEL, "region": "us"});
    post(&lab, "jobs", elsewhere).await;
    let settings = roost_cds::Settings { token: None, ..crate::lab::settings("first") };
    let settings = roost_cds::Settings { token_v2: Some("t".into()), ..settings };
    let api = std::sync::Arc::new(lab.api.clone());
    let client = roost_cds::Client::new(settings, api, lab.clock.clone()).unwrap();
    let waiting = client.v2().unwrap().waiting_jobs().await.unwrap();
    let ids: Vec<_> = waiting.iter().map(|job| json!(job.id)).collect();
    assert_eq!(ids, [id]);
}

#[tokio::test(start_paused = true)]
async fn faults_act_and_go_and_do_not_touch_the_endpoint_itself() {
    let lab = lab();
    lab.client.sign_in().await.unwrap();
    let workers = async || lab.v1().workers().await.is_ok();
    post(&lab, "faults", json!({"on": "GET /worker"})).await;
    assert!(!workers().await);
    control(&lab, "DELETE faults", Value::Null).await;
    assert!(workers().await);
    let answer = json!({"answer": {"status": 403, "id": 11}});
    post(&lab, "faults", json!({"on": "**", "nth": 1, "effect": answer})).await;
    assert_eq!(get(&lab, "workers").await, json!([]), "which is not counted, either");
    assert!(!workers().await && workers().await);
    for fault in [
        json!({"on": "**", "chance": 0.1, "effect": {"delay_ms": 100}}),
        json!({"on": "**", "first": 2, "effect": "cut_after"}),
        json!({"event": "lose", "nth": 1}),
        json!({"event": {"duplicate": {"more": 2, "apart_ms": 10}}}),
        json!({"event": {"close": 1011}}),
        json!({"chaos": 0.1}),
    ] {
        post(&lab, "faults", fault).await;
    }
    control(&lab, "DELETE faults", Value::Null).await;

    post(&lab, "down", Value::Null).await;
    assert!(!workers().await);
    get(&lab, "summary").await;
    post(&lab, "up", Value::Null).await;
    assert!(workers().await);
    control(&lab, "DELETE sessions", Value::Null).await;
    assert!(workers().await && lab.api.calls("POST /auth/consumer/builtin/signin") == 2);
    post(&lab, "websockets/close", json!({"code": 1001})).await;
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_is_refused_in_words() {
    let lab = lab();
    for (line, body, status, part) in [
        ("POST jobs", json!({"model": MODEL}), 400, "protocol"),
        ("POST jobs", json!({"protocol": "v3"}), 400, "v3"),
        ("POST jobs", json!({"protocol": "v2"}), 400, "names a model"),
        ("POST jobs", json!({"protocol": "v2", "model": "P/g/o/r/nope"}), 400, "P/g/o/r/nope"),
        ("POST jobs", json!({"protocol": "v2", "model": MODEL, "binaries": ["x"]}), 400, "V2"),
        ("POST jobs", json!({"protocol": "v1", "flavour": "x"}), 400, "flavour"),
        ("POST faults", json!({}), 400, "one of on"),
        ("POST faults", json!({"on": "**", "effect": "explode"}), 400, "explode"),
        ("POST faults", json!({"on": "**", "nth": 1, "first": 1}), 400, "at most one"),
        ("POST faults", json!({"chaos": 0.1, "nth": 1}), 400, "chance already"),
        ("GET jobs/7", Value::Null, 404, "jobs/7"),
        ("POST jobs/x/stop", Value::Null, 404, "jobs/x"),
        ("POST workers/nobody/disable", Value::Null, 404, "nobody"),
        ("PUT summary", Value::Null, 404, "PUT summary"),
    ] {
        let (answered, answer) = control(&lab, line, body).await;
        let words = answer["error"].as_str().unwrap();
        assert!(answered == status && words.contains(part), "{line}: {answered} {words}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_that_looks_more_often_acts_sooner() {
    let look = std::time::Duration::from_millis(500);
    let timings = Timings { look, v2_scheduling: secs(5), ..Timings::default() };
    let lab = Lab::with(Options { timings, ..Options::new(1) });
    let id = lab.api.add_v2_job(V2Demand::new(MODEL)).unwrap();
    lab.api.add_v1_job(V1Demand::new());
    lab.v2().take(&id).await.unwrap();
    time::sleep(secs(9)).await;
    let waiting = lab.v2().waiting_jobs().await.unwrap();
    assert_eq!(waiting.len(), 1, "it waits again");
}

#[tokio::test(start_paused = true)]
async fn calls_and_bytes_are_counted_by_client_and_route() {
    let lab = lab();
    let ask = async |agent: &str, path: &str| {
        let uri = format!("http://cds.invalid{path}");
        let request = Request::get(uri).header("user-agent", agent).body(Bytes::from("12345"));
        lab.api.handle(request.unwrap()).await.unwrap().body().len()
    };
    let sent = ask("CDS/0.57", "/worker").await + ask("CDS/0.57", "/worker").await;
    ask("roost/1", "/no/such/place").await;
    let counters = get(&lab, "counters").await;
    let wanted = json!({"calls": 2, "bytes_in": 10, "bytes_out": sent});
    assert_eq!(counters["clients"]["CDS/0.57"]["GET /worker"], wanted, "also what was refused");
    assert_eq!(counters["clients"]["roost/1"]["(no such route)"]["calls"], 1);
    let (status, _) = control(&lab, "DELETE counters", Value::Null).await;
    assert_eq!((status, get(&lab, "counters").await), (200, json!({"clients": {}})));
}
