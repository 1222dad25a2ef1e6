//! Over a real socket.

use std::sync::{Arc, Once};
use std::time::Duration;

use reqwest::{Client, Response, StatusCode};
use roost_views::{DecisionQuery, DecisionView, Overview};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Console;
use super::app::ROUTES;
use crate::Settings;
use crate::fake::{Fake, FakeSteer, decision};

pub(super) struct Lab {
    pub(super) fake: Arc<Fake>,
    steer: Arc<FakeSteer>,
    base: String,
    client: Client,
    close: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

pub(super) async fn lab_with_token() -> Lab {
    lab_with(with_token()).await
}

async fn lab() -> Lab {
    lab_with(Settings::default()).await
}

async fn lab_with(settings: Settings) -> Lab {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let fake = Arc::new(Fake::default());
    let (close, closing) = oneshot::channel();
    let steer = Arc::clone(&fake.steer);
    let console = Console { house: Arc::new(fake.house()), settings };
    let server = tokio::spawn(console.serve(listener, async {
        let _ = closing.await;
    }));
    let client = Client::builder().no_proxy().build().unwrap();
    Lab { fake, steer, base, client, close, server }
}

impl Lab {
    async fn get(&self, path: &str) -> Response {
        self.client.get(format!("{}{path}", self.base)).send().await.unwrap()
    }

    /// With the token.
    pub(super) async fn ask(&self, method: &str, path: &str) -> Value {
        let method = method.to_uppercase().parse().unwrap();
        let request = self.client.request(method, format!("{}{path}", self.base));
        parsed(request.bearer_auth("s3cret").send().await.unwrap()).await
    }

    async fn json(&self, path: &str) -> (u16, Value) {
        let answer = self.get(path).await;
        assert_eq!(answer.headers()["content-type"], "application/json", "{path}");
        (answer.status().as_u16(), parsed(answer).await)
    }
}

async fn parsed<T: DeserializeOwned>(answer: Response) -> T {
    serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
}

#[tokio::test]
async fn a_door_answers_paths_of_its_own_and_says_which_are_open() {
    let lab = lab_with(with_token()).await;
    assert_eq!(lab.json("/bakery/status").await.1, json!({"from": "the door"}));
    let ask = |path: &str| {
        let request = lab.client.get(format!("{}{path}", lab.base));
        request.header("X-Forwarded-For", "10.0.0.7").send()
    };
    assert_eq!(ask("/bakery/status").await.unwrap().status(), StatusCode::OK);
    assert_eq!(ask("/bakery/recipes").await.unwrap().status(), StatusCode::UNAUTHORIZED);
    let handlers = lab.fake.shown().answered.iter().map(|it| it.handler).collect::<Vec<_>>();
    assert_eq!(handlers, ["/bakery/status", "/bakery/status", "/bakery/recipes"]);
    let metrics = lab.get("/metrics").await;
    assert_eq!(metrics.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(metrics.text().await.unwrap(), "bakery_jobs_count 3\n");
}

#[tokio::test]
async fn every_answer_of_the_api_says_what_time_it_is() {
    // Commands fetched the whole overview to learn it.
    let lab = lab().await;
    let now = lab.get("/api/v1/jobs/42").await.headers()["roost-now"].to_str().unwrap().to_owned();
    assert_eq!(now.parse::<jiff::Timestamp>().unwrap(), crate::fake::NOW);
    assert!(!lab.get("/readyz").await.headers().contains_key("roost-now"));
}

#[tokio::test]
async fn probes_answer_in_plain_words() {
    let lab = lab().await;
    let readyz = lab.get("/readyz").await;
    assert_eq!((readyz.status().as_u16(), readyz.text().await.unwrap().as_str()), (200, "ok\n"));
    let verbose = lab.get("/readyz?verbose").await.text().await.unwrap();
    assert_eq!(verbose, "[+]inventory ok: 12 VMs\nreadyz check passed\n");
    lab.fake.shown().ready = false;
    let readyz = lab.get("/readyz").await;
    assert_eq!(readyz.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(lab.get("/livez").await.status(), StatusCode::OK, "a restart would not help");
}

#[tokio::test]
async fn the_api_shows_the_views_as_they_are() {
    let lab = lab().await;
    let overview: Overview = parsed(lab.get("/api/v1/overview").await).await;
    assert_eq!(overview, lab.fake.house().overview());
    assert_eq!(overview.doors[0].nouns, "jobs");
    assert_eq!(lab.json("/api/v1/jobs").await.1[0]["state"], "waiting");
    let job = lab.json("/api/v1/jobs/42").await.1;
    assert_eq!((&job["job"]["oven"], &job["job"]["door"]), (&json!("v2"), &json!("bakery")));
    assert_eq!(job["job"], job["request"], "under its door's noun, too");
    assert_eq!(lab.json("/api/v1/requests").await.1, lab.json("/api/v1/jobs").await.1);
    assert_eq!(job["decisions"][0]["gates"][0]["limit"], 10);
    assert_eq!(lab.json("/api/v1/jobs/a%2Fb%20c").await.1["job"]["id"], "a/b c");
    assert_eq!(lab.json("/api/v1/vms").await.1[0]["kind"], "worker");
    for id in ["vm-7", "w-1"] {
        assert_eq!(lab.json(&format!("/api/v1/vms/{id}")).await.1["vm"]["id"], "vm-7");
    }
    assert_eq!(lab.json("/api/v1/pools").await.1, json!([]));
}

#[tokio::test]
async fn decisions_are_asked_for_by_what_they_say() {
    let lab = lab().await;
    lab.fake.decides(decision(7));
    assert_eq!(lab.json("/api/v1/decisions").await.1[0]["seq"], 7);
    lab.json("/api/v1/decisions?subject=42&verdict=deferred&bound_by=workers&after=3&limit=5")
        .await;
    lab.json("/api/v1/decisions?subject=&verdict=&bound_by=&after=&limit=").await;
    lab.json("/api/v1/decisions?limit=99999999999").await;
    let full = DecisionQuery {
        subject: Some("42".into()),
        verdict: Some("deferred".into()),
        bound_by: Some("workers".into()),
        events: false,
        after: Some(3),
        limit: Some(5),
    };
    let limited = |limit| DecisionQuery { limit: Some(limit), ..DecisionQuery::default() };
    assert_eq!(lab.fake.shown().asked, [limited(200), full, limited(200), limited(1_000)]);
}

#[tokio::test]
async fn the_beginning_of_an_id_will_do_if_no_other_begins_so() {
    let lab = lab().await;
    let jobs = ["05d907f2-one", "05d907f2-two", "69c80595-three"].map(crate::fake::job);
    lab.fake.shown().jobs.extend(jobs);
    for path in ["/api/v1/jobs/69c8", "/api/v1/requests/-/69c80595", "/api/v1/requests/bakery/69c8"]
    {
        let (code, body) = lab.json(path).await;
        assert_eq!((code, &body["job"]["id"]), (200, &"69c80595-three".into()), "{path}: {body}");
    }
    let (code, body) = lab.json("/api/v1/requests/-/05d9").await;
    let said = "several begin with 05d9: 05d907f2-one, 05d907f2-two";
    assert_eq!((code, &body["error"]), (409, &said.into()));
    let page = lab.client.get(format!("{}/jobs/69c8", lab.base)).send().await.unwrap();
    assert!(page.status().is_success());
    assert!(page.text().await.unwrap().contains("69c80595-three"));

    let about = |seq, subject: &str| DecisionView { subject: subject.into(), ..decision(seq) };
    lab.fake.decides(about(1, "05d907f2-one"));
    lab.fake.decides(about(2, "69c80595-three"));
    let (code, body) = lab.json("/api/v1/decisions?subject=69c8").await;
    assert_eq!((code, body.as_array().unwrap().len()), (200, 1), "{body}");
    let (code, body) = lab.json("/api/v1/decisions?subject=05d9").await;
    assert_eq!((code, &body["error"]), (409, &said.into()));
    assert_eq!(lab.json("/api/v1/decisions?subject=nobody").await.1, json!([]));
    for (path, status, words) in [
        ("/decisions?subject=69c8", 200, "69c80595"),
        ("/decisions?subject=05d9", 200, said),
        ("/jobs/05d9", 404, said),
        ("/jobs/69c80595-thre1", 404, "do you mean 69c80595-three?"),
        ("/vms/w-2", 404, "do you mean w-1?"),
        ("/vms/nothing-like-it", 404, "is not one of ours, or is gone"),
    ] {
        let page = lab.get(path).await;
        assert_eq!(page.status(), status, "{path}");
        let html = page.text().await.unwrap();
        assert!(html.contains(words), "{words:?} is not on {path}:\n{html}");
    }
}

#[tokio::test]
async fn lists_are_had_as_csv_and_the_day_as_samples() {
    let lab = lab().await;
    lab.fake.shown().jobs.push(crate::fake::job("=1+1"));
    lab.fake.decides(decision(7));
    for (path, lines) in [
        ("/api/v1/jobs?format=csv", 3),
        ("/api/v1/jobs?format=csv&q=1%2B1", 2),
        ("/api/v1/vms?format=csv", 2),
        ("/api/v1/decisions?format=csv", 2),
        ("/api/v1/decisions?format=csv&subject=none", 1),
        ("/api/v1/deletions?format=csv", 2),
    ] {
        let answer = lab.get(path).await;
        assert_eq!(answer.headers()["content-type"], "text/csv; charset=utf-8", "{path}");
        assert!(answer.headers().contains_key("content-disposition"), "{path}");
        let text = answer.text().await.unwrap();
        assert_eq!(text.lines().count(), lines, "{path}:\n{text}");
    }
    let (code, body) = lab.json("/api/v1/decisions?format=xml").await;
    assert_eq!((code, &body["error"]), (400, &"format must be json or csv, is \"xml\"".into()));

    // The port looks once a second; the first look is at its start.
    let history = loop {
        let (code, history) = lab.json("/api/v1/history").await;
        assert_eq!(code, 200);
        if history["samples"].as_array().is_some_and(|samples| !samples.is_empty()) {
            break history;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(history["doors"], json!(["bakery"]));
    assert_eq!(history["samples"][0]["waiting"], 1);
    assert_eq!(history["samples"][0]["doors"], json!([[1, 0, 0, 0, 0, 0]]));
    assert_eq!(history["marks"][0]["kind"], "restart");
    let (_, none) = lab.json("/api/v1/history?minutes=0").await;
    assert_eq!(none["samples"], json!([]));
    assert_eq!(lab.json("/api/v1/history?minutes=many").await.0, 400);
}

#[tokio::test]
async fn what_cannot_be_answered_says_why_in_json() {
    let lab = lab().await;
    for (path, status, words) in [
        ("/api/v1/jobs/43", 404, "job 43 is not known"),
        ("/api/v1/requests/-/nothing", 404, "nothing is neither a job nor a VM of ours"),
        ("/api/v1/vms/w-2", 404, "VM w-2 is not known; do you mean w-1?"),
        ("/api/v1/vms/vm-8", 404, "VM vm-8 is not one of ours"),
        ("/api/v1/jobs/%ff", 400, "Invalid URL"),
        ("/api/v1/decisions?limit=many", 400, "limit must be a number, is \"many\""),
        ("/api/v1/decisions?verdit=kept", 400, "Failed to deserialize query string"),
        ("/none", 404, "there is nothing at /none"),
        ("/api/v1/pods", 404, "there is nothing at /api/v1/pods"),
        ("/pods/1", 404, "there is nothing at /pods/1"),
        ("/debug/pprof/heap", 404, "there is nothing at /debug/pprof/heap"),
    ] {
        let (code, body) = lab.json(path).await;
        assert_eq!(code, status, "{path}");
        let said = body["error"].as_str().unwrap();
        assert!(said.starts_with(words), "{path}: {said}");
    }
    let posted = lab.client.post(format!("{}/bakery/status", lab.base)).send().await.unwrap();
    assert_eq!(posted.status(), StatusCode::METHOD_NOT_ALLOWED);
    let said: Value = parsed(posted).await;
    assert_eq!(said["error"], "this path can only be read");
}

#[tokio::test]
async fn from_elsewhere_the_token_is_needed_except_for_what_is_open() {
    let lab = lab_with(Settings { token: Some("s3cret".into()), ..Settings::default() }).await;
    let ask = |path: &str, token: Option<&str>| {
        // As a proxy on this machine would pass it on.
        let mut request = lab.client.get(format!("{}{path}", lab.base));
        request = request.header("X-Forwarded-For", "10.0.0.7");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        request.send()
    };
    for path in ["/api/v1/jobs", "/api/v1/events", "/", "/none"] {
        for token in [None, Some("guess")] {
            let denied = ask(path, token).await.unwrap();
            assert_eq!(denied.status(), StatusCode::UNAUTHORIZED, "{path}");
            assert_eq!(denied.headers()["www-authenticate"], r#"Bearer realm="roost""#);
            assert!(parsed::<Value>(denied).await["error"].is_string(), "{path}");
        }
    }
    assert_eq!(ask("/api/v1/jobs", Some("s3cret")).await.unwrap().status(), StatusCode::OK);
    for path in ["/bakery/status", "/metrics", "/livez", "/readyz"] {
        assert_eq!(ask(path, None).await.unwrap().status(), StatusCode::OK, "{path}");
    }
    let posted = lab.client.post(format!("{}/api/v1/jobs", lab.base)).send().await.unwrap();
    assert_eq!(posted.status(), StatusCode::UNAUTHORIZED, "changing is never free");
}

#[tokio::test]
async fn every_answer_is_counted_under_its_route() {
    let lab = lab().await;
    let read = || {
        let streams = |path: &str| path.ends_with("/events") || path.starts_with("/live/");
        let routes = ROUTES.into_iter().filter(|route| route.method == "get");
        routes.map(|route| route.path).filter(move |path| !streams(path))
    };
    for path in read() {
        lab.get(&path.replace("{id}", "vm-7").replace("{nouns}", "jobs")).await;
    }
    lab.get("/none/at/all").await;
    let shown = lab.fake.shown();
    let handlers: Vec<_> = shown.answered.iter().map(|answered| answered.handler).collect();
    assert_eq!(handlers, read().chain(["other"]).collect::<Vec<_>>());
    let metrics = shown.answered.iter().find(|answered| answered.handler == "/metrics").unwrap();
    assert_eq!((metrics.status, metrics.response_bytes), (200, 20));
}

#[tokio::test]
async fn nothing_is_cached_or_guessed_at() {
    let lab = lab().await;
    for path in ["/api/v1/overview", "/bakery/status", "/none"] {
        let answer = lab.get(path).await;
        assert_eq!(answer.headers()["cache-control"], "no-store", "{path}");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff", "{path}");
    }
}

/// Reads until the text is there.
async fn read_until(answer: &mut Response, text: &str) -> String {
    let mut read = String::new();
    let reading = async {
        while !read.contains(text) {
            let chunk = answer.chunk().await.unwrap().expect("the stream goes on");
            read.push_str(str::from_utf8(&chunk).unwrap());
        }
    };
    let in_time = timeout(Duration::from_secs(20), reading).await;
    in_time.unwrap_or_else(|_| panic!("no {text:?}"));
    read
}

#[tokio::test]
async fn changes_and_decisions_come_as_events() {
    let lab = lab().await;
    let mut events = lab.get("/api/v1/events").await;
    assert_eq!(events.headers()["content-type"], "text/event-stream");
    let first = read_until(&mut events, "\n\n").await;
    assert!(first.starts_with("event: overview\ndata: {\"service\":\"nest\""), "{first}");
    lab.fake.decides(decision(7));
    let next = read_until(&mut events, "\"seq\":7").await;
    assert!(next.contains("event: decision\nid: 7\ndata: {\"seq\":7,"), "{next}");
    lab.fake.changes(|overview| overview.queue.waiting = 9);
    read_until(&mut events, "\"waiting\":9").await;
}

#[tokio::test]
async fn there_is_an_end_to_how_many_may_listen() {
    let lab = lab().await;
    let mut listening = Vec::new();
    for _ in 0..64 {
        listening.push(lab.get("/api/v1/events").await);
    }
    assert_eq!(lab.get("/api/v1/events").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(lab.get("/api/v1/overview").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn closing_ends_streams_and_idle_connections_and_takes_no_new_ones() {
    let lab = lab().await;
    let mut events = lab.get("/api/v1/events").await;
    read_until(&mut events, "\n\n").await;
    let address = lab.base.trim_start_matches("http://").to_owned();
    let mut idle = TcpStream::connect(&address).await.unwrap();
    idle.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = [0; 12];
    idle.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    lab.close.send(()).unwrap();
    let ended = async { while events.chunk().await.unwrap().is_some() {} };
    timeout(Duration::from_secs(20), ended).await.expect("the stream ends");
    timeout(Duration::from_secs(20), lab.server).await.expect("the server ends").unwrap();
    assert!(TcpStream::connect(&address).await.is_err());
}

fn with_token() -> Settings {
    Settings { token: Some("s3cret".into()), ..Settings::default() }
}

#[tokio::test]
async fn an_action_is_done_for_whoever_has_the_token_and_for_nobody_else() {
    let lab = lab_with(with_token()).await;
    let post = |path: &str, token: Option<&str>, body: &str| {
        let request = lab.client.post(format!("{}/api/v1{path}", lab.base)).body(body.to_owned());
        match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
        .send()
    };
    for token in [None, Some("guess")] {
        let refused = post("/actions/pause", token, "").await.unwrap();
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
        assert!(parsed::<Value>(refused).await["error"].is_string());
    }
    assert!(lab.steer.0.lock().unwrap().is_empty());
    for (path, body, status, words) in [
        ("/actions/pause", "", 200, "PauseSpawning"),
        ("/actions/resume", "{}", 200, "ResumeSpawning"),
        ("/actions/drain", r#"{"reason": "host\nupgrade"}"#, 200, "Drain"),
        ("/actions/freeze", "", 200, "FreezeDeletions"),
        ("/actions/thaw", "", 200, "ResumeDeletions { found: StartOver }"),
        ("/actions/thaw", r#"{"found": "approve"}"#, 200, "ResumeDeletions { found: Approve }"),
        ("/vms/vm-7/delete", "", 200, "DeleteVm { vm: \"vm-7\" }"),
        (
            "/jobs/a%2Fb/recheck",
            "",
            200,
            "Recheck { request: RequestId { door: \"bakery\", id: \"a/b\" } }",
        ),
        (
            "/requests/-/42/recheck",
            "",
            200,
            "Recheck { request: RequestId { door: \"bakery\", id: \"42\" } }",
        ),
        (
            "/jobs/a%2Fb/pause",
            "",
            200,
            "PauseRequest { request: RequestId { door: \"bakery\", id: \"a/b\" } }",
        ),
        (
            "/requests/-/42/resume",
            "",
            200,
            "ResumeRequest { request: RequestId { door: \"bakery\", id: \"42\" } }",
        ),
        ("/pods/7/recheck", "", 404, "there is nothing at /api/v1/pods"),
        ("/vms/vm-0/delete", "", 404, "VM vm-0 is not known"),
        ("/pools/debian12/refill", "", 409, "the host is down"),
        ("/actions/explode", "", 404, "there is no action \"explode\""),
        ("/actions/pause", "{", 400, "the body is not what it should be"),
        ("/actions/pause", r#"{"reson": "x"}"#, 400, "the body is not what it should be"),
    ] {
        let answer = post(path, Some("s3cret"), body).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{path} {body}");
        let said: Value = parsed(answer).await;
        let key = if status == 200 { "words" } else { "error" };
        assert!(said[key].as_str().unwrap().starts_with(words), "{path}: {said}");
        assert_eq!(said.get("done").is_some(), status == 200);
    }
    let orders = lab.steer.0.lock().unwrap();
    assert_eq!(orders[0].to_string(), "whoever has the token, from 127.0.0.1");
    assert_eq!(orders[2].reason.as_deref(), Some("host upgrade"));
    assert!(!format!("{orders:?}").contains("s3cret"));
}

#[tokio::test]
async fn without_a_token_in_the_configuration_nobody_acts_and_too_much_is_not_read() {
    let plain = lab().await;
    let post = format!("{}/api/v1/actions/pause", plain.base);
    let refused = plain.client.post(&post).bearer_auth("any").send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert_eq!(plain.get("/api/v1/actions/pause").await.status(), StatusCode::METHOD_NOT_ALLOWED);
    let lab = lab_with(with_token()).await;
    let post = format!("{}/api/v1/actions/pause", lab.base);
    let long = "x".repeat(20_000);
    let refused = lab.client.post(&post).bearer_auth("s3cret").body(long).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn every_page_is_html_that_can_load_nothing_from_elsewhere() {
    let lab = lab().await;
    for path in ["/", "/jobs", "/jobs/42", "/vms", "/vms/vm-7", "/decisions", "/deletions", "/link"]
    {
        let answer = lab.get(path).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8", "{path}");
        let policy = answer.headers()["content-security-policy"].to_str().unwrap();
        assert_eq!(
            policy,
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; \
             connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        );
        assert_eq!(answer.headers()["referrer-policy"], "no-referrer");
        let html = answer.text().await.unwrap();
        let without_icon = html.replace("http://www.w3.org/2000/svg", "");
        assert!(!without_icon.contains("http://") && !html.contains("https://"), "{path}");
        assert!(!html.contains(" style=") && !html.contains("<style"), "{path}");
        assert!(html.contains("href=\"#main\"") && html.contains("<main id=\"main\""), "{path}");
    }
    let gone = lab.get("/jobs/43").await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    assert!(gone.text().await.unwrap().contains("job 43 is not known"));
}

#[tokio::test]
async fn a_person_from_elsewhere_gets_a_place_for_the_token() {
    let lab = lab_with(with_token()).await;
    let ask = |path: &str| {
        let request = lab.client.get(format!("{}{path}", lab.base));
        request.header("X-Forwarded-For", "10.0.0.7").header("Accept", "text/html").send()
    };
    let page = ask("/jobs").await.unwrap();
    assert_eq!(page.status(), StatusCode::UNAUTHORIZED);
    let html = page.text().await.unwrap();
    assert!(html.contains("a bearer token is needed") && html.contains("id=\"signin\""), "{html}");
    assert!(!html.contains("nest"), "says nothing of the service");
    for path in ["/assets/roost.css", "/assets/roost.js"] {
        assert_eq!(ask(path).await.unwrap().status(), StatusCode::OK, "{path}");
    }
    let api = ask("/api/v1/jobs").await.unwrap();
    assert_eq!(api.headers()["content-type"], "application/json");
}

#[tokio::test]
async fn an_open_page_is_told_only_what_changed() {
    let lab = lab().await;
    let mut live = lab.get("/live/").await;
    assert_eq!(live.headers()["content-type"], "text/event-stream");
    let first = read_until(&mut live, "\n\n").await;
    assert!(first.contains("b>1</b> jobs waiting"), "{first}");
    lab.fake.changes(|overview| overview.queue.waiting = 9);
    let next = read_until(&mut live, "\n\n").await;
    assert!(next.contains("\"9\"") && !next.contains("jobs waiting"), "{next}");
    assert!(next.len() < first.len() / 20, "{} after {}", next.len(), first.len());
    assert_eq!(lab.get("/live/jobs/43").await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_configuration_is_shown_without_secrets() {
    let lab = lab().await;
    assert_eq!(lab.json("/api/v1/config").await.1, json!({"maxCpus": 40}));
}
