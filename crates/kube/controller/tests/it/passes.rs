use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Api, Client, ResourceExt};
use roost_controller::ControllerSettings;
use roost_kube_sim::{Action, Rule, When};
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, key, secs};
use crate::toy::{FINALIZER, Mood, toy};

#[tokio::test(start_paused = true)]
async fn an_object_becomes_a_machine_and_goes_with_it() {
    let lab = Lab::new().await;
    let replica = lab.replica();
    let uid = lab.create(&toy("a", 3)).await.uid().unwrap();
    lab.settle().await;
    let made = lab.get("a").await;
    assert_eq!(made.finalizers(), [FINALIZER]);
    assert_eq!(made.status.as_ref().unwrap().size, 3);
    assert_eq!(lab.world.inside().machines.get(&uid), Some(&3));

    lab.patch("a", json!({"spec": {"size": 4}})).await;
    lab.settle().await;
    assert_eq!(lab.get("a").await.status.unwrap().size, 4);

    lab.delete("a").await;
    lab.settle().await;
    assert!(lab.toys().get_opt("a").await.unwrap().is_none());
    assert!(lab.world.inside().machines.is_empty());
    replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn own_writes_cause_no_further_pass() {
    let lab = Lab::new().await;
    let _replica = lab.replica();
    lab.settle().await;
    lab.create(&toy("a", 3)).await;
    lab.settle().await;
    assert_eq!(lab.world.passes(), 1, "one pass: finalizer, machine and status");
    lab.patch("a", json!({"spec": {"size": 4}})).await;
    lab.settle().await;
    assert_eq!(lab.world.passes(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_settled_object_is_reconciled_100_times_with_no_write() {
    let lab = Lab::new().await;
    let replica = lab.replica();
    lab.create(&toy("a", 3)).await;
    lab.settle().await;
    let (revision, passes) = (lab.sim.revision(), lab.world.passes());
    for _ in 0..100 {
        replica.trigger.signal(key("a"));
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(lab.world.passes(), passes + 100);
    assert_eq!(lab.sim.revision(), revision);
}

#[tokio::test(start_paused = true)]
async fn a_restart_looks_at_everything_and_writes_nothing() {
    let lab = Lab::new().await;
    let replica = lab.replica();
    for number in 0..200 {
        lab.create(&toy(&format!("t{number}"), number)).await;
    }
    lab.settle().await;
    replica.stop().await;
    let (revision, passes) = (lab.sim.revision(), lab.world.passes());
    // A rule that never acts counts what it is asked about.
    lab.sim.add_rule(Rule { when: When { times: Some(0), ..When::default() }, ..Rule::default() });
    let _replica = lab.replica();
    lab.settle().await;
    assert_eq!(lab.world.passes(), passes + 200);
    assert_eq!(lab.sim.revision(), revision);
    let calls = lab.sim.rules()[0].matched;
    assert!(calls <= 4, "two kinds are watched, but {calls} calls were made");
}

#[tokio::test(start_paused = true)]
async fn the_resync_timer_looks_at_everything_again() {
    let lab = Lab::new().await;
    let _replica = lab.replica();
    lab.create(&toy("a", 3)).await;
    lab.settle().await;
    let passes = lab.world.passes();
    sleep(Duration::from_mins(26)).await;
    assert_eq!(lab.world.passes(), passes);
    sleep(Duration::from_mins(8)).await;
    assert_eq!(lab.world.passes(), passes + 1);
}

#[tokio::test(start_paused = true)]
async fn urgent_objects_come_first_and_the_initial_list_last() {
    let mut lab = Lab::new().await;
    for number in 0..10 {
        lab.create(&toy(&format!("old{number}"), 1)).await;
    }
    let mut urgent = toy("urgent", 1);
    urgent.annotations_mut().insert("urgent".to_owned(), String::new());
    lab.create(&urgent).await;
    lab.step = secs(10);
    let settings = ControllerSettings { workers: 1, ..ControllerSettings::default() };
    let replica = lab.replica_with(lab.client.clone(), settings, None);
    sleep(secs(5)).await;
    lab.create(&toy("new", 1)).await;
    replica.trigger.enqueue(key("old9"), 7);
    sleep(secs(200)).await;
    let order = lab.world.inside().order.clone();
    let place = |name: &str| order.iter().position(|key| *key == format!("default/{name}"));
    assert_eq!(place("urgent"), Some(0), "{order:?}");
    assert_eq!((place("old9"), place("new")), (Some(1), Some(2)), "{order:?}");
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_kind_calls_those_that_name_it() {
    let lab = Lab::new().await;
    let _replica = lab.replica();
    for (name, secret) in [("a", Some("s1")), ("b", Some("s2")), ("c", None)] {
        let mut toy = toy(name, 1);
        toy.spec.secret_name = secret.map(str::to_owned);
        lab.create(&toy).await;
    }
    lab.settle().await;
    let before = lab.world.inside().passes.clone();
    let secrets: Api<Secret> = Api::namespaced(lab.client.clone(), "default");
    let metadata = ObjectMeta { name: Some("s1".to_owned()), ..ObjectMeta::default() };
    let secret = Secret { metadata, ..Secret::default() };
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    lab.settle().await;
    let after = lab.world.inside().passes.clone();
    assert_eq!(after["default/a"], before["default/a"] + 1);
    assert_eq!(after["default/b"], before["default/b"]);
    assert_eq!(after["default/c"], before["default/c"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_counted_and_the_key_comes_back() {
    let lab = Lab::new().await;
    *lab.mood.lock().unwrap() = Mood::Panics;
    let replica = lab.replica();
    lab.create(&toy("a", 1)).await;
    lab.settle().await;
    assert!(replica.metric("controller_runtime_reconcile_panics_total{controller=\"toy\"}") > 3.0);
    *lab.mood.lock().unwrap() = Mood::Good;
    sleep(secs(20)).await;
    assert_eq!(lab.get("a").await.status.unwrap().size, 1);
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_hangs_is_dropped_at_its_timeout_and_others_go_on() {
    let lab = Lab::new().await;
    *lab.mood.lock().unwrap() = Mood::Hangs;
    let settings =
        ControllerSettings { workers: 2, timeout: secs(60), ..ControllerSettings::default() };
    let replica = lab.replica_with(lab.client.clone(), settings, None);
    lab.create(&toy("a", 1)).await;
    lab.settle().await;
    *lab.mood.lock().unwrap() = Mood::Good;
    lab.create(&toy("b", 2)).await;
    lab.settle().await;
    assert_eq!(lab.get("b").await.status.unwrap().size, 2);
    assert!(lab.get("a").await.status.is_none());
    sleep(secs(60)).await;
    assert_eq!(lab.get("a").await.status.unwrap().size, 1);
    let series = "controller_runtime_reconcile_timeouts_total{controller=\"toy\"}";
    assert!((replica.metric(series) - 1.0).abs() < f64::EPSILON);
}

#[tokio::test(start_paused = true)]
async fn an_error_for_a_person_is_not_retried_until_something_changes() {
    let lab = Lab::new().await;
    *lab.mood.lock().unwrap() = Mood::WantsHelp;
    let replica = lab.replica();
    lab.create(&toy("a", 1)).await;
    sleep(secs(600)).await;
    assert_eq!(lab.world.passes(), 1);
    let series = "controller_runtime_terminal_reconcile_errors_total{controller=\"toy\"}";
    assert!((replica.metric(series) - 1.0).abs() < f64::EPSILON);
    *lab.mood.lock().unwrap() = Mood::Good;
    lab.patch("a", json!({"metadata": {"labels": {"help": "came"}}})).await;
    lab.settle().await;
    assert_eq!(lab.get("a").await.status.unwrap().size, 1);
}

#[tokio::test(start_paused = true)]
async fn errors_are_retried_with_growing_pauses() {
    let lab = Lab::new().await;
    *lab.mood.lock().unwrap() = Mood::Fails;
    let _replica = lab.replica();
    lab.create(&toy("a", 1)).await;
    sleep(secs(10)).await;
    let first = lab.world.passes();
    assert!((10..=12).contains(&first), "5 ms doubled for ten seconds: {first}");
    sleep(secs(90)).await;
    assert!(lab.world.passes() <= first + 5);
}

#[tokio::test(start_paused = true)]
async fn a_cut_watch_a_gap_and_a_list_lose_nothing_and_delete_nothing() {
    let lab = Lab::new().await;
    let _replica = lab.replica();
    for number in 0..5 {
        lab.create(&toy(&format!("t{number}"), 1)).await;
    }
    lab.settle().await;
    for round in 2..5 {
        lab.make_a_gap();
        lab.patch("t0", json!({"spec": {"size": round}})).await;
        lab.create(&toy(&format!("new{round}"), round)).await;
        if round == 3 {
            lab.delete("t4").await;
        }
        sleep(secs(120)).await;
        lab.settle().await;
        assert_eq!(lab.get("t0").await.status.unwrap().size, round);
        assert_eq!(lab.get(&format!("new{round}")).await.status.unwrap().size, round);
    }
    assert!(lab.toys().get_opt("t4").await.unwrap().is_none());
    assert_eq!(lab.world.inside().machines.len(), 4 + 3);
}

#[tokio::test(start_paused = true)]
async fn an_object_without_finalizer_that_is_deleted_in_a_gap_is_noticed() {
    let lab = Lab::new().await;
    *lab.mood.lock().unwrap() = Mood::WantsHelp;
    let _replica = lab.replica();
    lab.create(&toy("a", 1)).await;
    lab.settle().await;
    assert_eq!(lab.world.passes(), 1);
    lab.make_a_gap();
    lab.delete("a").await;
    sleep(secs(120)).await;
    assert_eq!(lab.world.passes(), 2, "the deletion is an event");
}

#[tokio::test(start_paused = true)]
async fn the_metrics_have_their_upstream_names() {
    let lab = Lab::new().await;
    let replica = lab.replica();
    lab.create(&toy("a", 1)).await;
    lab.settle().await;
    let series = "controller_runtime_reconcile_total{controller=\"toy\",result=\"success\"}";
    assert!(replica.metric(series) >= 1.0);
    for result in ["error", "requeue", "requeue_after"] {
        replica.metric(&format!(
            "controller_runtime_reconcile_total{{controller=\"toy\",result=\"{result}\"}}"
        ));
    }
    let text = replica.metrics();
    for name in [
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_terminal_reconcile_errors_total",
        "controller_runtime_reconcile_panics_total",
        "controller_runtime_reconcile_timeouts_total",
        "controller_runtime_reconcile_time_seconds_bucket",
        "controller_runtime_max_concurrent_reconciles",
        "controller_runtime_active_workers",
        "workqueue_depth",
        "workqueue_adds_total",
        "workqueue_retries_total",
        "workqueue_queue_duration_seconds_bucket",
        "workqueue_work_duration_seconds_bucket",
        "workqueue_unfinished_work_seconds",
        "workqueue_longest_running_processor_seconds",
    ] {
        assert!(text.contains(&format!("{name}{{")), "{name} in\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_during_a_pass_causes_another() {
    let mut lab = Lab::new().await;
    lab.step = secs(2);
    let _replica = lab.replica();
    lab.create(&toy("a", 1)).await;
    sleep(secs(1)).await;
    let patch = Patch::Merge(json!({"spec": {"size": 2}}));
    lab.toys().patch("a", &PatchParams::default(), &patch).await.unwrap();
    sleep(secs(10)).await;
    assert_eq!(lab.get("a").await.status.unwrap().size, 2);
    lab.settle().await;
}

/// A pass that had looked at the old object wrote its status after a conflict on top of the new one. The store had the new one
/// then, so the watch brought nothing new, and nobody looked at the change.
#[tokio::test(start_paused = true)]
async fn a_change_that_a_conflict_brought_in_causes_another_pass() {
    let mut lab = Lab::new().await;
    lab.step = secs(2);
    lab.sim.add_rule(Rule {
        verb: "watch".to_owned(),
        action: Action::LateEvents { by_ms: 4000 },
        ..Rule::default()
    });
    let _replica = lab.replica();
    lab.settle().await;
    lab.create(&toy("a", 1)).await;
    // The pass has begun with size 1; the watch will tell of size 2 after the pass has written.
    sleep(Duration::from_millis(5500)).await;
    lab.patch("a", json!({"spec": {"size": 2}})).await;
    sleep(secs(60)).await;
    assert_eq!(lab.get("a").await.status.unwrap().size, 2);
    lab.settle().await;
}

/// A campaign found it: the pass wants a finalizer that is there already, has nothing to write after the conflict, and then writes
/// the status, which hides what else it did not see.
#[tokio::test(start_paused = true)]
async fn a_conflict_that_leaves_nothing_to_write_causes_another_pass() {
    let mut lab = Lab::new().await;
    lab.step = secs(2);
    lab.sim.add_rule(Rule {
        verb: "watch".to_owned(),
        action: Action::LateEvents { by_ms: 4000 },
        ..Rule::default()
    });
    let _replica = lab.replica();
    lab.settle().await;
    lab.create(&toy("a", 1)).await;
    // The pass will see the toy without a finalizer, and not that it is to go.
    sleep(Duration::from_millis(3800)).await;
    lab.patch("a", json!({"metadata": {"finalizers": [FINALIZER]}})).await;
    lab.delete("a").await;
    sleep(secs(60)).await;
    assert!(lab.toys().get_opt("a").await.unwrap().is_none());
    lab.settle().await;
}

/// A client whose lists of toys come back empty while there are some left to serve so.
fn forgetful(lab: &Lab, short_lists: &Arc<AtomicU32>) -> Client {
    let (inner, sim, left) = (lab.sim.client(), lab.sim.clone(), Arc::clone(short_lists));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (inner, query) = (inner.clone(), request.uri().query().unwrap_or_default().to_owned());
        let is_list = request.uri().path().ends_with("/toys") && !query.contains("watch=");
        let version = sim.revision().to_string();
        let take_one = |left: u32| left.checked_sub(1);
        let is_short =
            is_list && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one).is_ok();
        async move {
            if !is_short {
                return inner.send(request).await;
            }
            let empty = json!({
                "apiVersion": "toys.example.com/v1", "kind": "ToyList",
                "metadata": {"resourceVersion": version}, "items": [],
            });
            Ok(http::Response::new(Body::from(empty.to_string().into_bytes())))
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn a_list_that_comes_back_empty_deletes_nothing() {
    let lab = Lab::new().await;
    let short_lists = Arc::new(AtomicU32::new(0));
    let client = forgetful(&lab, &short_lists);
    let replica = lab.replica_with(client, ControllerSettings::default(), None);
    for number in 0..5 {
        lab.create(&toy(&format!("t{number}"), 1)).await;
    }
    lab.settle().await;
    short_lists.store(1, Ordering::Relaxed);
    lab.make_a_gap();
    lab.delete("t0").await;
    sleep(secs(60)).await;
    assert_eq!(short_lists.load(Ordering::Relaxed), 0, "a short list was served");
    assert!(lab.toys().get_opt("t0").await.unwrap().is_none(), "what was deleted is gone");
    for number in 1..5 {
        assert_eq!(
            lab.world.inside().passes[&format!("default/t{number}")],
            1,
            "not even looked at"
        );
    }
    assert_eq!(lab.world.inside().machines.len(), 4);
    replica.trigger.signal(key("t1"));
    lab.settle().await;
    assert_eq!(lab.world.inside().passes["default/t1"], 2);
}
