use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Api, Client, ResourceExt};
use roost_controller::ControllerSettings;
use roost_controller::webhook::{Review, Verdict, Webhooks};
use roost_kube_sim::{Action, Rule, User, When};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::lab::{Lab, key, secs};
use crate::toy::{FINALIZER, Mood, Toy, toy};

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
    let client = lab.sim.client_as(User::named("door").in_group("system:masters"));
    let _replica = lab.replica_with(client, ControllerSettings::default(), None);
    // Rules that never act count what they are asked about.
    for resource in ["toys.toys.example.com", "toys.toys.example.com/status"] {
        let (verb, user, resource) = ("write".to_owned(), "door".to_owned(), resource.to_owned());
        let when = When { times: Some(0), ..When::default() };
        lab.sim.add_rule(Rule { verb, user, resource, when, ..Rule::default() });
    }
    let writes = || {
        let counted = lab.sim.rules();
        (counted[0].matched, counted[1].matched)
    };
    lab.settle().await;
    lab.create(&toy("a", 3)).await;
    lab.settle().await;
    assert_eq!(lab.world.passes(), 1, "one pass: finalizer, machine and status");
    assert_eq!(writes(), (1, 1), "one write of the finalizer and one of the status");
    lab.patch("a", json!({"spec": {"size": 4}})).await;
    lab.settle().await;
    assert_eq!(lab.world.passes(), 2);
    assert_eq!(writes(), (1, 2), "the status only");
    lab.delete("a").await;
    lab.settle().await;
    assert_eq!(writes(), (2, 2), "the finalizer only");
    assert_eq!(lab.world.passes(), 4, "one when it is marked and one when it is gone");
}

/// The time of the first resync, by seed.
async fn resync_of(seed: u64) -> Duration {
    let lab = Lab::with_seed(seed).await;
    let _replica = lab.replica();
    lab.create(&toy("a", 3)).await;
    lab.settle().await;
    let (began, passes) = (Instant::now(), lab.world.passes());
    while lab.world.passes() == passes {
        sleep(secs(1)).await;
    }
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn the_resync_of_two_processes_does_not_come_at_the_same_time() {
    let (one, other) = (resync_of(1).await, resync_of(2).await);
    assert_ne!(one.as_secs(), other.as_secs());
    for time in [one, other] {
        assert!((secs(26 * 60)..=secs(33 * 60)).contains(&time), "{time:?}");
    }
}

/// Passes of a routine key while urgent ones never end.
async fn passes_beside_urgent_ones(oldest_one_in: usize) -> u32 {
    let mut lab = Lab::new().await;
    lab.step = secs(1);
    let settings =
        ControllerSettings { oldest_one_in, ageing: None, ..ControllerSettings::default() };
    let replica = lab.replica_with(lab.client.clone(), settings, None);
    lab.create(&toy("old", 1)).await;
    for number in 0..12 {
        lab.create(&toy(&format!("urgent{number}"), 1)).await;
    }
    sleep(secs(30)).await;
    let passes = || lab.world.inside().passes["default/old"];
    let before = passes();
    for turn in 0..600 {
        for number in 0..12 {
            replica.trigger.enqueue(key(&format!("urgent{number}")), 50);
        }
        if turn == 1 {
            replica.trigger.enqueue(key("old"), -100);
        }
        sleep(Duration::from_millis(100)).await;
    }
    let served = passes() - before;
    lab.settle().await;
    served
}

#[tokio::test(start_paused = true)]
async fn one_worker_in_four_takes_the_oldest_key_so_that_none_starves() {
    assert_eq!(passes_beside_urgent_ones(4).await, 1);
    assert_eq!(passes_beside_urgent_ones(0).await, 0, "without such a worker it would starve");
}

#[tokio::test(start_paused = true)]
async fn the_priority_of_a_key_that_comes_back_is_the_one_it_has_by_then() {
    let mut lab = Lab::new().await;
    let mut urgent = toy("a", 1);
    urgent.annotations_mut().insert("urgent".to_owned(), String::new());
    lab.create(&urgent).await;
    lab.create(&toy("b", 1)).await;
    lab.create(&toy("c", 1)).await;
    lab.step = secs(10);
    let settings = ControllerSettings { workers: 1, ..ControllerSettings::default() };
    let replica = lab.replica_with(lab.client.clone(), settings, None);
    sleep(secs(60)).await;
    lab.world.inside().order.clear();
    // Handed out as routine, it fails, and is urgent when it comes back.
    *lab.mood.lock().unwrap() = Mood::Fails;
    replica.trigger.enqueue(key("a"), -5);
    sleep(Duration::from_millis(1)).await;
    *lab.mood.lock().unwrap() = Mood::Good;
    replica.trigger.enqueue(key("b"), 20);
    replica.trigger.enqueue(key("c"), 20);
    sleep(secs(60)).await;
    let order = lab.world.inside().order.clone();
    assert_eq!(order, ["a", "b", "a", "c"].map(|name| format!("default/{name}")));
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
    let says_yes = async |_: Review<Toy>| Ok(Verdict::allow());
    let hooks = Webhooks::default().validate("/validate", says_yes).measured(&replica.runtime);
    let webhook = "{webhook=\"/validate\"";
    for code in [200, 500] {
        let series =
            format!("controller_runtime_webhook_requests_total{webhook},code=\"{code}\"}}");
        assert!(replica.metric(&series).abs() < f64::EPSILON);
    }
    hooks.answer("/validate", json!({})).await.unwrap();
    let series = format!("controller_runtime_webhook_requests_total{webhook},code=\"200\"}}");
    assert!((replica.metric(&series) - 1.0).abs() < f64::EPSILON);
    let series = format!("controller_runtime_webhook_latency_seconds_count{webhook}}}");
    assert!((replica.metric(&series) - 1.0).abs() < f64::EPSILON);
    let series = format!("controller_runtime_webhook_requests_in_flight{webhook}}}");
    assert!(replica.metric(&series).abs() < f64::EPSILON);
    assert!(replica.metric("controller_runtime_webhook_panics_total").abs() < f64::EPSILON);
    assert!(replica.metric("rest_client_requests_total{code=\"200\",method=\"GET\"}") >= 2.0);
    assert!(replica.metric("rest_client_requests_total{code=\"200\",method=\"PATCH\"}") >= 2.0);
    let text = replica.metrics();
    for name in [
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_terminal_reconcile_errors_total",
        "controller_runtime_reconcile_panics_total",
        "controller_runtime_reconcile_timeouts_total",
        "controller_runtime_reconcile_time_seconds_bucket",
        "controller_runtime_max_concurrent_reconciles",
        "controller_runtime_active_workers",
        "rest_client_requests_total",
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
pub(crate) fn forgetful(lab: &Lab, inner: Client, short_lists: &Arc<AtomicU32>) -> Client {
    let (sim, left) = (lab.sim.clone(), Arc::clone(short_lists));
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

/// A dead connection: without an end to the wait the door would be blind until its next start.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_never_answered_is_asked_for_again() {
    let lab = Lab::new().await;
    let (verb, resource) = ("list".to_owned(), "toys.*".to_owned());
    let when = When { times: Some(1), ..When::default() };
    lab.sim.add_rule(Rule { verb, resource, when, action: Action::Hang, ..Rule::default() });
    lab.create(&toy("a", 1)).await;
    let replica = lab.replica();
    sleep(Duration::from_mins(2)).await;
    assert_eq!(lab.get("a").await.status.unwrap().size, 1);
    let series = "rest_client_requests_total{code=\"<error>\",method=\"GET\"}";
    assert!((replica.metric(series) - 1.0).abs() < f64::EPSILON);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_comes_back_empty_deletes_nothing() {
    let lab = Lab::new().await;
    let short_lists = Arc::new(AtomicU32::new(0));
    let client = forgetful(&lab, lab.sim.client(), &short_lists);
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
