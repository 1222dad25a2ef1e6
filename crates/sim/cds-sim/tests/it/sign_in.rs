//! Sessions: how they begin, how they are renewed, and what is said when they cannot be.

use std::sync::Arc;

use crate::lab::{HATCHERY, Lab, TOKEN, TOKEN_V2, chain, mins, secs, settings};
use futures_util::future::join_all;
use roost_cds::{Api, CallError, Client, ErrorKind, Probe, Settings, SettingsError};
use roost_cds_sim::{Consumer, Fault, Options, V1Demand};
use roost_clock::Clock as _;
use tokio::time::{self, Instant};

const V1_SIGN_IN: &str = "POST /auth/consumer/builtin/signin";
const V2_SIGN_IN: &str = "POST /v2/auth/consumer/hatchery/signin";

#[tokio::test(start_paused = true)]
async fn both_protocols_sign_in_and_register() {
    let lab = Lab::new();
    lab.client.sign_in().await.unwrap();
    let services = lab.api.services();
    assert_eq!(services[0].name, HATCHERY);
    assert_eq!(lab.v1().service().await.unwrap().unwrap().id, services[0].id);
    let hatchery = lab.api.hatchery(HATCHERY).unwrap();
    assert_eq!(hatchery.model_type, "vsphere");
    assert_eq!(hatchery.config["osArch"][0], "linux/amd64");
    assert_eq!(hatchery.public_key, services[0].public_key);
    assert!(lab.v1().api_key().await.unwrap().is_some());
    assert_eq!(lab.v1().api_key().await.unwrap(), lab.v2().api_key().await.unwrap());
}

/// As people sign in, and whoever only wants to know whether a token is good.
#[tokio::test(start_paused = true)]
async fn a_token_alone_opens_a_session_and_registers_nothing() {
    let mut options = Options::new(1);
    let token = "of a person".into();
    options.consumers.push(Consumer { token, service: None, groups: Vec::new() });
    let lab = Lab::with(options);
    let url = "http://cds.invalid".parse().unwrap();
    let api = Api::new(Arc::new(lab.api.clone()), &url, secs(10), lab.clock.clone());
    let probe = Probe::new(api);
    let bound = probe.sign_in_v1(&TOKEN.into()).await.unwrap_err();
    let reason = &bound.api().unwrap().from;
    assert_eq!(reason, "signing request doesn't match with consumer", "a hatchery's token");
    let session = probe.sign_in_v1(&"of a person".into()).await.unwrap();
    assert!(lab.api.services().is_empty());
    let refused = session.enabled_models().await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::Forbidden), "there is no service yet");

    lab.client.sign_in().await.unwrap();
    let registered = lab.api.services();
    let beside = probe.sign_in_v1(&"of a person".into()).await.unwrap();
    assert_eq!(lab.api.services(), registered, "nothing of it was touched");
    beside.end().await.unwrap();
    lab.v1().waiting_jobs().await.unwrap();
    assert_eq!(lab.api.calls(V1_SIGN_IN), 4, "the hatchery did not have to sign in again");

    let wrong = probe.sign_in_v1(&"stolen".into()).await.unwrap_err();
    assert_eq!(wrong.kind(), Some(ErrorKind::Forbidden));
    assert_eq!(wrong.api().unwrap().from, "invalid signin token");
    assert_eq!(probe.version().await.unwrap().time, Some(lab.clock.now()));
}

#[tokio::test(start_paused = true)]
async fn every_call_has_the_headers_that_the_api_expects() {
    let lab = Lab::new();
    lab.v1().waiting_jobs().await.unwrap();
    let sign_in = &lab.sent.requests("signin")[0];
    assert_eq!(sign_in.line, "POST http://cds.invalid/auth/consumer/builtin/signin");
    assert_eq!(sign_in.header("authorization"), "");
    let poll = &lab.sent.requests("/queue/")[0];
    assert_eq!(poll.line, "GET http://cds.invalid/queue/workflows?modelType=vsphere");
    assert_eq!(poll.header("date"), "1 Jan 2026 10:00:00 +0000");
    assert_eq!(poll.header("x-cds-remotetime"), "1 Jan 2026 10:00:00 +0000");
    assert_eq!(poll.header("content-type"), "application/json");
    assert_eq!(poll.header("authorization").split('.').count(), 3, "Bearer and a JWT");
    assert!(poll.header("authorization").starts_with("Bearer "));
    assert_eq!(poll.header("cookie"), "", "the cookie of the sign-in is not sent back");
}

#[tokio::test(start_paused = true)]
async fn the_region_of_the_answer_replaces_the_configured_one() {
    let mut settings = settings(HATCHERY);
    settings.registration.region = Some("configured".into());
    let lab = Lab::of(Options::new(1), settings);
    assert_eq!(lab.v2().region().await.unwrap(), "default");
    lab.v2().waiting_jobs().await.unwrap();
    assert_eq!(lab.sent.requests("/v2/queue/default?osarch=linux/amd64").len(), 1);
    lab.api.move_hatchery(HATCHERY, "eu-west");
    time::sleep(mins(60)).await;
    lab.v2().waiting_jobs().await.unwrap();
    assert_eq!(lab.sent.requests("/v2/queue/eu-west").len(), 1, "learnt at the next sign-in");
}

#[tokio::test(start_paused = true)]
async fn a_session_is_renewed_before_it_expires_with_the_whole_payload() {
    let lab = Lab::without_need_of_heartbeats();
    lab.v1().waiting_jobs().await.unwrap();
    time::sleep(mins(58)).await;
    lab.v1().waiting_jobs().await.unwrap();
    assert_eq!(lab.api.calls(V1_SIGN_IN), 1, "still good");
    time::sleep(mins(1)).await;
    lab.v1().waiting_jobs().await.unwrap();
    assert_eq!(lab.api.calls(V1_SIGN_IN), 2, "one minute before the end");
    let sign_ins = lab.sent.requests("signin");
    assert_eq!(sign_ins[0].json(), sign_ins[1].json());
    assert_eq!(lab.api.services().len(), 1, "the same service");
}

#[tokio::test(start_paused = true)]
async fn a_401_renews_the_session_and_the_call_still_succeeds() {
    let lab = Lab::new();
    lab.client.sign_in().await.unwrap();
    lab.api.forget_sessions();
    lab.v1().waiting_jobs().await.unwrap();
    lab.v2().waiting_jobs().await.unwrap();
    assert_eq!((lab.api.calls(V1_SIGN_IN), lab.api.calls(V2_SIGN_IN)), (2, 2));
    lab.api.inject(Fault::on("GET /worker").nth(1).answer(401, 10));
    lab.v1().workers().await.unwrap();
    assert_eq!(lab.api.calls(V1_SIGN_IN), 3);
}

#[tokio::test(start_paused = true)]
async fn a_route_that_always_says_401_is_an_error_and_no_storm() {
    let lab = Lab::new();
    lab.api.inject(Fault::on("GET /worker").answer(401, 10));
    let error = lab.v1().workers().await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::NotAuthenticated));
    assert_eq!(lab.api.calls(V1_SIGN_IN), 2);
}

#[tokio::test(start_paused = true)]
async fn many_calls_at_once_sign_in_once() {
    let lab = Lab::with(Options { latency: (secs(1), secs(2)), ..Options::new(1) });
    join_all((0..50).map(|_| lab.v1().waiting_jobs())).await.into_iter().for_each(|jobs| {
        jobs.unwrap();
    });
    assert_eq!(lab.api.calls(V1_SIGN_IN), 1);
    lab.api.forget_sessions();
    let calls = join_all((0..50).map(|_| lab.v1().waiting_jobs())).await;
    assert!(calls.iter().all(Result::is_ok));
    assert_eq!(lab.api.calls(V1_SIGN_IN), 2);
}

#[tokio::test(start_paused = true)]
async fn many_calls_at_once_share_a_sign_in_that_fails() {
    let lab = Lab::with(Options { latency: (secs(1), secs(1)), ..Options::new(1) });
    lab.api.inject(Fault::on(V1_SIGN_IN).answer(403, 11));
    let calls = join_all((0..50).map(|_| lab.v1().waiting_jobs())).await;
    assert!(calls.iter().all(|call| matches!(call, Err(CallError::SignIn { .. }))));
    assert_eq!(lab.sent.requests("signin").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_first_sign_in_waits_five_minutes_for_an_api_that_starts() {
    let lab = Lab::new();
    lab.api.go_down();
    let api = lab.api.clone();
    tokio::spawn(async move {
        time::sleep(mins(4)).await;
        api.come_back();
    });
    lab.client.sign_in().await.unwrap();

    let lab = Lab::new();
    lab.api.go_down();
    let started = Instant::now();
    let error = lab.client.sign_in().await.unwrap_err();
    assert!(chain(&error).starts_with("signing in to CDS V1: POST /auth"), "{}", chain(&error));
    assert!((mins(4)..=mins(6)).contains(&started.elapsed()), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_regenerated_token_is_noticed_at_the_next_sign_in_and_the_error_says_so() {
    let lab = Lab::new();
    lab.client.sign_in().await.unwrap();
    let new = lab.api.regenerate_token(HATCHERY).unwrap();
    lab.v2().waiting_jobs().await.expect("the session is still good");
    time::sleep(mins(61)).await;
    let error = lab.v2().waiting_jobs().await.unwrap_err();
    let text = chain(&error);
    assert!(text.starts_with("signing in to CDS V2: ") && text.contains("HTTP 403"), "{text}");
    assert!(!text.contains(TOKEN_V2) && !text.contains(new.expose()), "{text}");
    let renewed = Settings { token_v2: Some(new), ..settings(HATCHERY) };
    let client =
        Client::new(renewed, std::sync::Arc::new(lab.api.clone()), lab.clock.clone()).unwrap();
    client.v2().unwrap().waiting_jobs().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn another_name_than_that_of_the_token_is_refused() {
    let lab = Lab::of(Options::new(1), settings("somebody-else"));
    for error in [
        lab.v1().waiting_jobs().await.map(|_| ()).unwrap_err(),
        lab.v2().waiting_jobs().await.map(|_| ()).unwrap_err(),
    ] {
        assert!(chain(&error).contains("HTTP 403"), "{}", chain(&error));
    }
}

#[tokio::test(start_paused = true)]
async fn signing_out_ends_the_session_and_needs_none_to_do_nothing() {
    let lab = Lab::new();
    lab.client.sign_out().await;
    assert_eq!(lab.sent.requests("").len(), 0);
    lab.client.sign_in().await.unwrap();
    lab.client.sign_out().await;
    assert_eq!(lab.api.calls("POST /auth/consumer/signout"), 1);
    lab.v1().waiting_jobs().await.unwrap();
    assert_eq!(lab.api.calls(V1_SIGN_IN), 2);
}

#[tokio::test(start_paused = true)]
async fn a_second_sign_in_keeps_the_region_of_the_first() {
    let mut first = settings(HATCHERY);
    first.registration.region = Some("eu-west".into());
    let lab = Lab::of(Options::new(1), first);
    lab.v1().sign_in().await.unwrap();
    let mut second = settings(HATCHERY);
    second.registration.region = Some("us-east".into());
    let api = std::sync::Arc::new(lab.api.clone());
    let restarted = Client::new(second, api, lab.clock.clone()).unwrap();
    restarted.v1().unwrap().sign_in().await.unwrap();
    assert_eq!(lab.api.services()[0].region.as_deref(), Some("eu-west"));
    let job = lab.api.add_v1_job(V1Demand::new().region("us-east"));
    let jobs = restarted.v1().unwrap().waiting_jobs().await.unwrap();
    assert_eq!(jobs[0].id, job, "a poll asks for what the client wants");
}

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_work_are_refused_at_once() {
    let lab = Lab::new();
    let refused = |change: fn(&mut Settings)| {
        let mut settings = settings(HATCHERY);
        change(&mut settings);
        let api = std::sync::Arc::new(lab.api.clone());
        Client::new(settings, api, lab.clock.clone()).unwrap_err()
    };
    assert_eq!(refused(|s| s.registration.name.clear()), SettingsError::NoName);
    assert_eq!(refused(|s| s.url = "http://u:p@api".parse().unwrap()), SettingsError::Credentials);
    assert_eq!(
        refused(|s| s.url = "ftp://api".parse().unwrap()),
        SettingsError::Scheme { scheme: "ftp".into() }
    );
    let no_token = refused(|s| (s.token, s.token_v2) = (None, Some("".into())));
    assert_eq!(no_token, SettingsError::NoToken);
}
