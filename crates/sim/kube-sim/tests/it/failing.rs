//! Faults by rule and seed.

use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use roost_kube_sim::{Action, KubeSim, Rule, When};
use serde_json::json;
use tokio::time::Instant;

use crate::world::{refusal, sim};

fn config(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

fn rule(verb: &str, action: Action) -> Rule {
    Rule { verb: verb.into(), resource: "configmaps".into(), action, ..Rule::default() }
}

#[tokio::test(start_paused = true)]
async fn a_rule_acts_on_the_requests_it_names_and_as_often_as_it_says() {
    let sim = sim();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    let twice = When { skip: 1, times: Some(2), ..When::default() };
    let id = sim.add_rule(Rule { when: twice, ..rule("create", Action::Conflict) });
    let mut codes = Vec::new();
    for index in 0..4 {
        let made = api.create(&PostParams::default(), &config(&format!("c{index}"))).await;
        codes.push(made.err().map(|error| refusal::<()>(Err(error)).code));
    }
    assert_eq!(codes, [None, Some(409), Some(409), None]);
    let report = sim.rules().pop().unwrap();
    assert_eq!((report.id, report.matched, report.fired), (id, 4, 2));
    assert!(sim.remove_rule(id) && !sim.remove_rule(id));

    sim.add_rule(rule("list", Action::TooManyRequests { retry_after: 7 }));
    let refused = refusal(api.list(&ListParams::default()).await);
    assert_eq!((refused.code, refused.details.unwrap().retry_after_seconds), (429, 7));
    let request = http::Request::get("/api/v1/namespaces/default/configmaps");
    let request = request.body(kube::client::Body::empty()).unwrap();
    assert_eq!(sim.client().send(request).await.unwrap().headers()["retry-after"], "7");
    sim.clear_rules();

    // Done, but nobody is told: what a controller must be ready for.
    sim.add_rule(rule("create", Action::CutAfter));
    api.create(&PostParams::default(), &config("lost")).await.unwrap_err();
    assert!(sim.object("", "configmaps", "default", "lost").is_some());
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_fails_the_same_requests() {
    async fn run() -> Vec<bool> {
        let sim = sim();
        let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
        let often = When { chance: 0.5, ..When::default() };
        sim.add_rule(Rule { when: often, ..rule("get", Action::Timeout) });
        api.create(&PostParams::default(), &config("a")).await.unwrap();
        let mut outcomes = Vec::new();
        for _ in 0..32 {
            outcomes.push(api.get("a").await.is_ok());
        }
        outcomes
    }
    let first = run().await;
    assert!(first.contains(&true) && first.contains(&false));
    assert_eq!(run().await, first);
}

/// What a watcher has seen in the end is what there is, whatever happened on the way.
async fn watched_to_the_end(sim: &KubeSim, disturb: impl Fn(&KubeSim, usize)) -> Vec<String> {
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    let (reader, writer) = kube::runtime::reflector::store();
    let mut stream =
        watcher(api.clone(), watcher::Config::default()).default_backoff().reflect(writer).boxed();
    let work = async {
        for index in 0..20 {
            let name = format!("c{index:02}");
            while api.create(&PostParams::default(), &config(&name)).await.is_err() {
                if api.get(&name).await.is_ok() {
                    break;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            disturb(sim, index);
            if index % 3 == 0 {
                let _ = api
                    .patch(
                        &name,
                        &PatchParams::default(),
                        &Patch::Merge(json!({"data": {"n": "1"}})),
                    )
                    .await;
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        tokio::time::sleep(Duration::from_mins(5)).await;
    };
    tokio::select! {
        () = work => {}
        () = async { while stream.next().await.is_some() {} } => {}
    }
    let mut names: Vec<_> =
        reader.state().iter().filter_map(|object| object.metadata.name.clone()).collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_everything_through_cuts_gaps_repeats_delays_and_restarts() {
    let all: Vec<_> = (0..20).map(|index| format!("c{index:02}")).collect();
    for action in [
        Action::CutWatch { after: 2 },
        Action::WatchGone { after: 3 },
        Action::DuplicateEvents,
        Action::LateEvents { by_ms: 500 },
        Action::TooManyRequests { retry_after: 1 },
    ] {
        let sim = sim();
        sim.add_rule(Rule {
            when: When { chance: 0.7, ..When::default() },
            ..rule("watch", action.clone())
        });
        assert_eq!(watched_to_the_end(&sim, |_, _| {}).await, all, "{action:?}");
    }
    let sim = sim();
    let seen = watched_to_the_end(&sim, |sim, index| match index {
        4 => sim.restart(Duration::from_secs(30)),
        9 => {
            sim.cut_watches();
            sim.compact();
        }
        _ => {}
    });
    assert_eq!(seen.await, all);
}

/// What each fault does to the events of a watch: their names, the answer at its end, and how late the first came.
async fn disturbed(action: Action) -> (Vec<String>, Duration) {
    let sim = sim();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    sim.add_rule(rule("watch", action));
    let watch = WatchParams::default().timeout(30).disable_bookmarks();
    let mut stream = Box::pin(api.watch(&watch, "1").await.unwrap());
    for name in ["a", "b", "c"] {
        api.create(&PostParams::default(), &config(name)).await.unwrap();
    }
    let (began, mut first) = (Instant::now(), None);
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        first = first.or(Some(began.elapsed()));
        seen.push(match event {
            Ok(WatchEvent::Added(object)) => object.metadata.name.unwrap(),
            Ok(WatchEvent::Error(status)) => status.code.to_string(),
            other => panic!("{other:?}"),
        });
    }
    (seen, first.unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn faults_of_watches_do_what_their_names_say() {
    let at_once = Duration::ZERO;
    for (action, events, late) in [
        (Action::Delay { by_ms: 0 }, &["a", "b", "c"][..], at_once),
        (Action::CutWatch { after: 2 }, &["a", "b"], at_once),
        (Action::WatchGone { after: 1 }, &["a", "410"], at_once),
        (Action::DuplicateEvents, &["a", "a", "b", "b", "c", "c"], at_once),
        (Action::LateEvents { by_ms: 700 }, &["a", "b", "c"], Duration::from_millis(700)),
    ] {
        let (seen, took) = disturbed(action.clone()).await;
        assert_eq!(
            (seen, took),
            (events.iter().map(ToString::to_string).collect(), late),
            "{action:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn faults_of_answers_do_what_their_names_say() {
    let sim = sim();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    let create = async |action: Action, name: &str| {
        sim.clear_rules();
        sim.add_rule(Rule {
            when: When { times: Some(1), ..When::default() },
            ..rule("create", action)
        });
        let began = Instant::now();
        let (params, object) = (PostParams::default(), config(name));
        let made = tokio::time::timeout(Duration::from_mins(1), api.create(&params, &object));
        let code = match made.await {
            Ok(Ok(_)) => 201,
            Ok(Err(kube::Error::Api(status))) => status.code,
            Ok(Err(_)) => 0,
            Err(_) => 1,
        };
        let is_there = sim.object("", "configmaps", "default", name).is_some();
        (code, is_there, began.elapsed().as_secs())
    };
    assert_eq!(create(Action::Timeout, "a").await, (504, false, 0));
    assert_eq!(create(Action::Status { code: 507 }, "b").await, (507, false, 0));
    assert_eq!(create(Action::CutBefore, "c").await, (0, false, 0), "nothing was done");
    assert_eq!(create(Action::CutAfter, "d").await, (0, true, 0), "it was done");
    assert_eq!(create(Action::Delay { by_ms: 9000 }, "e").await, (201, true, 9));
    assert_eq!(create(Action::DelayAfter { by_ms: 9000 }, "h").await, (201, true, 9));
    assert_eq!(
        create(Action::DelayAfter { by_ms: 90_000 }, "i").await,
        (1, true, 60),
        "it was done, and the answer comes too late"
    );
    assert_eq!(create(Action::Hang, "f").await, (1, false, 60), "no answer comes");
    // It goes away with all watches, refuses everybody for its time, and comes back with its objects.
    let from = sim.revision().to_string();
    let mut watch = Box::pin(api.watch(&WatchParams::default(), &from).await.unwrap());
    assert_eq!(create(Action::Restart { for_ms: 5000 }, "g").await, (0, false, 0));
    while let Some(Ok(_)) = watch.next().await {}
    assert_eq!(sim.watches(), 0);
    assert!(api.get("d").await.is_err(), "it is away");
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(api.get("d").await.is_ok(), "it is back");
}
