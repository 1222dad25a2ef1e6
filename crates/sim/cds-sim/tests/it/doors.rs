//! What the simulator answers to those who do not keep the rules, and how it answers at all.

use crate::lab::{HATCHERY, Lab, MODEL, REGION, TOKEN, mins, secs};
use bytes::Bytes;
use http::{Request, Response};
use roost_cds::{JobId, JobStatus, SocketError};
use roost_cds_sim::{V1Demand, V2Demand};
use serde_json::Value;
use tokio::time;

async fn ask(lab: &Lab, line: &str, headers: &[(&str, &str)], body: &str) -> Response<Bytes> {
    let (method, path) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(format!("http://cds.invalid{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    lab.api.handle(request.body(Bytes::from(body.to_owned())).unwrap()).await.unwrap()
}

fn refusal(answer: &Response<Bytes>) -> (u16, u64) {
    let body: Value = serde_json::from_slice(answer.body()).unwrap();
    (answer.status().as_u16(), body["id"].as_u64().unwrap())
}

/// The session tokens of V1 and V2, as the client sends them.
async fn sessions(lab: &Lab) -> [String; 2] {
    lab.v1().cdn_config().await.unwrap();
    lab.v2().cdn_config().await.unwrap();
    let cdn = lab.sent.requests("/config/cdn");
    [cdn[0].header("authorization").to_owned(), cdn[1].header("authorization").to_owned()]
}

#[tokio::test(start_paused = true)]
async fn answers_have_the_headers_and_bodies_of_the_real_api() {
    let lab = Lab::new();
    let [v1, _] = sessions(&lab).await;
    let auth = [("authorization", v1.as_str())];
    let answer = ask(&lab, "POST /services/heartbeat", &auth, "{}").await;
    assert_eq!((answer.status().as_u16(), answer.body().len()), (204, 0));
    for header in
        ["request-id", "x-api-time", "x-api-nanoseconds-time", "x-api-process-time", "etag"]
    {
        assert!(answer.headers().contains_key(header), "{header}");
    }
    let answer = ask(&lab, "POST /auth/consumer/signout", &auth, "").await;
    assert_eq!((answer.status().as_u16(), &answer.body()[..]), (200, &b"null"[..]));
    assert_eq!(refusal(&ask(&lab, "GET /worker", &auth, "").await), (401, 10), "signed out");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_keep_the_rules_is_refused_by_number() {
    let lab = Lab::new();
    let [v1, v2] = sessions(&lab).await;
    let (v1, v2) = ([("authorization", v1.as_str())], [("authorization", v2.as_str())]);
    let cookie = [v1[0], ("cookie", "jwt_token=x")];
    let job = lab.api.add_v2_job(V2Demand::new(MODEL).region("elsewhere")).unwrap();
    let elsewhere = format!("GET /v2/queue/elsewhere/job/{job}");
    let here = format!("GET /v2/queue/{REGION}/job/{job}");
    let no_uuid = format!("GET /v2/queue/{REGION}/job/7");
    let no_project = "GET /v2/project/NONE/vcs/github/repository/org%2Frepo/workermodel/debian12";
    let token_alone = format!(r#"{{"token":"{TOKEN}"}}"#);
    let forged = [("authorization", "Bearer a.b.c")];
    for (line, headers, body, wanted) in [
        ("GET /nothing", &v1[..], "", (404, 38)),
        ("GET /worker", &[], "", (401, 10)),
        ("GET /worker", &forged, "", (401, 10)),
        ("GET /worker", &v2, "", (403, 11)),
        ("GET /v2/worker", &v1, "", (403, 11)),
        ("GET /worker", &cookie, "", (403, 11)),
        ("POST /services/heartbeat", &v1, "{", (400, 74)),
        ("GET /queue/workflows/x/infos", &v1, "", (400, 74)),
        // A V1 job that does not exist is refused like one of others.
        ("GET /queue/workflows/9/infos", &v1, "", (403, 11)),
        ("POST /queue/workflows/9/book", &v1, "{}", (403, 11)),
        ("DELETE /queue/workflows/9/book", &v1, "", (403, 11)),
        ("POST /queue/workflows/9/spawn/infos", &v1, "[]", (403, 11)),
        (elsewhere.as_str(), &v2, "", (404, 38)),
        ("GET /v2/queue/nowhere", &v2, "", (404, 38)),
        (no_uuid.as_str(), &v2, "", (500, 1)),
        (no_project, &v2, "", (404, 30)),
        (here.as_str(), &v2, "", (403, 11)),
        ("POST /worker/x/disable", &v1, "", (404, 38)),
        ("POST /auth/consumer/builtin/signin", &[], r#"{"token":"no","service":{}}"#, (403, 11)),
        ("POST /auth/consumer/builtin/signin", &[], &token_alone, (403, 11)),
        ("POST /worker/refresh", &v1, "", (403, 11)),
    ] {
        assert_eq!(refusal(&ask(&lab, line, headers, body).await), wanted, "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_v2_public_key_that_cannot_be_read_is_kept_all_the_same() {
    let lab = Lab::new();
    lab.v2().waiting_jobs().await.unwrap();
    let mut form = lab.sent.requests("signin")[0].json();
    form["public_key"] = "LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0K".into();
    let answer = ask(&lab, "POST /v2/auth/consumer/hatchery/signin", &[], &form.to_string()).await;
    assert_eq!(answer.status().as_u16(), 200);
    let told: serde_json::Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!(told["up_to_date"], false, "whatever version was told");
}

/// The message is the same for all errors of one number; the reason stands in `from`.
#[tokio::test(start_paused = true)]
async fn a_refusal_says_its_reason_apart_from_its_message() {
    let lab = Lab::new();
    let [_, v2] = sessions(&lab).await;
    let auth = [("authorization", v2.as_str())];
    let body = |answer: &Response<Bytes>| -> serde_json::Value {
        serde_json::from_slice(answer.body()).unwrap()
    };
    let answer = ask(&lab, "GET /v2/queue/nowhere", &auth, "").await;
    assert_eq!(body(&answer)["message"], "resource not found");
    assert_eq!(body(&answer)["from"], "region nowhere not found");
    let garbage = r#"{"token":"no","service":{}}"#;
    let answer = ask(&lab, "POST /auth/consumer/builtin/signin", &[], garbage).await;
    assert_eq!(body(&answer)["message"], "forbidden");
    assert_eq!(body(&answer)["from"], "invalid signin token");
}

#[tokio::test(start_paused = true)]
async fn a_v2_hatchery_without_workers_gets_null_and_reads_an_empty_list() {
    let lab = Lab::new();
    let [_, v2] = sessions(&lab).await;
    let answer = ask(&lab, "GET /v2/worker", &[("authorization", v2.as_str())], "").await;
    assert_eq!(&answer.body()[..], b"null");
    assert_eq!(lab.v2().workers().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_websocket_needs_a_session_and_answers_a_wrong_filter() {
    let lab = Lab::new();
    let open = |path: &str, auth: &str| {
        let uri = format!("http://cds.invalid{path}");
        let request = Request::get(uri).header("authorization", auth).body(()).unwrap();
        let api = lab.api.clone();
        async move { api.websocket(request).await }
    };
    let refused = |result: Result<roost_cds::Socket, SocketError>| match result {
        Err(SocketError::Refused(answer)) => refusal(&answer),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(open("/ws", "Bearer nobody").await), (401, 10));
    let [v1, v2] = sessions(&lab).await;
    assert_eq!(refused(open("/ws", &v2).await), (403, 11));
    assert_eq!(refused(open("/v2/hatchery/ws", &v1).await), (403, 11));
    assert_eq!(refused(open("/elsewhere", &v1).await), (404, 38));
    let mut socket = open("/ws", &v1).await.unwrap();
    lab.api.add_v1_job(V1Demand::new());
    socket.outgoing.send("nonsense".into()).await.unwrap();
    let answer = socket.incoming.recv().await.unwrap().unwrap();
    assert!(answer.contains(r#""status":"KO""#), "and no event before a filter: {answer}");
    let single = r#"{"type":"queue","hatchery_type":"vsphere"}"#;
    socket.outgoing.send(single.into()).await.unwrap();
    time::sleep(secs(1)).await;
    let id = lab.api.add_v1_job(V1Demand::new());
    let event = socket.incoming.recv().await.unwrap().unwrap();
    assert!(event.contains(&format!(r#""id":{id}"#)), "{event}");
}

#[tokio::test(start_paused = true)]
async fn groups_decide_who_sees_a_job() {
    use roost_cds_sim::{Consumer, Options};
    let mut options = Options::new(1);
    let groups = vec!["team".to_owned()];
    let service = Some("narrow".to_owned());
    options.consumers.push(Consumer { token: "narrow".into(), service, groups });
    let lab = Lab::with(options);
    let mut settings = crate::lab::settings("narrow");
    (settings.token, settings.token_v2) = (Some("narrow".into()), None);
    let api = std::sync::Arc::new(lab.api.clone());
    let narrow = roost_cds::Client::new(settings, api, lab.clock.clone()).unwrap();
    let shared = lab.api.add_v1_job(V1Demand::new());
    let team = lab.api.add_v1_job(V1Demand::new().group("team"));
    let ids = |jobs: Vec<roost_cds::v1::Job>| jobs.iter().map(|job| job.id).collect::<Vec<_>>();
    assert_eq!(ids(lab.v1().waiting_jobs().await.unwrap()), [shared, team]);
    assert_eq!(ids(narrow.v1().unwrap().waiting_jobs().await.unwrap()), [team]);
}

#[tokio::test(start_paused = true)]
async fn a_request_is_carried_out_even_if_nobody_waits_for_the_answer() {
    let lab = Lab::new();
    lab.client.sign_in().await.unwrap();
    let id = lab.api.add_v1_job(V1Demand::new());
    lab.api.inject(roost_cds_sim::Fault::on("POST /queue/**").delay(mins(1)));
    let booking = time::timeout(secs(5), lab.v1().book(id)).await;
    assert!(booking.is_err());
    time::sleep(mins(1)).await;
    let report = lab.api.job(&JobId::V1(id)).unwrap();
    assert_eq!((report.hatchery.as_deref(), report.status), (Some(HATCHERY), JobStatus::Waiting));
}
