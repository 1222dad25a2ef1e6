//! Faults by rule and seed.

use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use roost_kube_sim::{Action, KubeSim, Rule, When};
use serde_json::json;

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
