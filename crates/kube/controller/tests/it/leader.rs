use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams};
use roost_controller::{ControllerSettings, LeaseSettings};
use roost_kube_sim::{Action, Rule, User, When};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::lab::{Lab, Replica, secs};
use crate::toy::toy;

/// The longest time between two looks of a candidate.
const LOOK: Duration = Duration::from_millis(1200);

async fn lease(lab: &Lab) -> Lease {
    Api::<Lease>::namespaced(lab.client.clone(), "default").get("toys").await.unwrap()
}

async fn holder(lab: &Lab) -> String {
    lease(lab).await.spec.unwrap().holder_identity.unwrap()
}

/// Runs for a while and checks at each step that at most one of the replicas leads.
async fn one_leads_for(time: Duration, replicas: &[&Replica]) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        let leaders = replicas.iter().filter(|replica| replica.status.is_leader()).count();
        assert!(leaders <= 1, "{leaders} lead at once");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_two_works_and_the_other_stands_by_with_a_full_view() {
    let lab = Lab::new().await;
    let first = lab.candidate("one");
    sleep(secs(1)).await;
    let second = lab.candidate("two");
    lab.create(&toy("a", 1)).await;
    one_leads_for(secs(60), &[&first, &second]).await;
    assert!(first.status.is_leader() && second.status.is_synced());
    assert_eq!(holder(&lab).await, "one");
    assert_eq!(lease(&lab).await.spec.unwrap().lease_transitions, Some(0));
    assert_eq!(lab.world.passes(), 1);
    lab.settle().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_the_other_takes_over_within_the_lease() {
    let lab = Lab::new().await;
    let first = lab.candidate("one");
    sleep(secs(1)).await;
    let second = lab.candidate("two");
    sleep(secs(30)).await;
    first.crash().await;
    let crashed = Instant::now();
    lab.create(&toy("a", 1)).await;
    second.status.leads().await;
    let took = crashed.elapsed();
    // The duration of the lease, from the look that showed the last renewal.
    assert!(took <= secs(15) + LOOK, "{took:?}");
    assert!(took >= secs(10), "a lease that may still be held was taken after {took:?}");
    lab.settle().await;
    assert_eq!(lab.get("a").await.status.unwrap().size, 1);
    assert_eq!(lease(&lab).await.spec.unwrap().lease_transitions, Some(1));
}

#[tokio::test(start_paused = true)]
async fn on_shutdown_the_lease_is_given_up_and_taken_at_once() {
    let lab = Lab::new().await;
    let first = lab.candidate("one");
    sleep(secs(1)).await;
    let second = lab.candidate("two");
    sleep(secs(30)).await;
    let stopped = Instant::now();
    first.stop().await;
    assert_eq!(holder(&lab).await, "");
    second.status.leads().await;
    assert!(stopped.elapsed() <= secs(2), "{:?}", stopped.elapsed());
    assert_eq!(holder(&lab).await, "two");
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_running_passes_finish_before_the_lease_is_given_up() {
    let mut lab = Lab::new().await;
    lab.step = secs(20);
    let first = lab.candidate("one");
    lab.create(&toy("a", 1)).await;
    sleep(secs(5)).await;
    let second = lab.candidate("two");
    let stopping = tokio::spawn(first.stop());
    sleep(secs(10)).await;
    assert_eq!(holder(&lab).await, "one", "the pass still runs");
    assert!(!second.status.is_leader());
    stopping.await.unwrap();
    assert_eq!(lab.get("a").await.status.unwrap().size, 1, "the pass was finished");
    second.status.leads().await;
    sleep(secs(60)).await;
    lab.settle().await;
}

/// A campaign found it: the process looked for the signal that it had been given already, and went on.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_in_the_drain_ends_the_process_all_the_same() {
    let mut lab = Lab::new().await;
    lab.step = secs(25);
    let first = lab.candidate("one");
    lab.create(&toy("a", 1)).await;
    sleep(secs(5)).await;
    let second = lab.candidate("two");
    sleep(secs(5)).await;
    let (verb, resource) = ("update".to_owned(), "leases*".to_owned());
    let rule = Rule { verb, resource, action: Action::Timeout, ..Rule::default() };
    let rule = lab.sim.add_rule(rule);
    let stopping = tokio::spawn(first.stop());
    sleep(secs(14)).await;
    assert!(stopping.is_finished(), "it lost the lease and had been told to end");
    lab.sim.remove_rule(rule);
    stopping.await.unwrap();
    second.status.leads().await;
    sleep(secs(60)).await;
    lab.settle().await;
    assert_eq!(lab.get("a").await.status.unwrap().size, 1);
}

/// The leader is cut off from the API server. It must have stopped before anybody else begins.
#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_before_the_other_begins() {
    for action in [Action::Hang, Action::CutBefore, Action::Timeout] {
        let mut lab = Lab::new().await;
        lab.step = secs(30);
        let user = User::named("cut-off").in_group("system:masters");
        let lease = LeaseSettings::new("default", "toys", "one");
        let client = lab.sim.client_as(user);
        let first = lab.replica_with(client, ControllerSettings::default(), Some(lease));
        sleep(secs(1)).await;
        let second = lab.candidate("two");
        // A pass is under way when it happens.
        lab.create(&toy("a", 1)).await;
        sleep(secs(5)).await;
        let user = "cut-off".to_owned();
        lab.sim.add_rule(Rule { resource: "leases*".to_owned(), user, action, ..Rule::default() });
        let cut = Instant::now();
        while first.status.is_leader() {
            one_leads_for(Duration::from_millis(100), &[&first, &second]).await;
        }
        let stopped = cut.elapsed();
        assert!(stopped <= secs(12), "it worked on for {stopped:?}");
        while !second.status.is_leader() {
            one_leads_for(Duration::from_millis(100), &[&first, &second]).await;
        }
        let began = cut.elapsed();
        assert!(began >= stopped + secs(2), "stopped at {stopped:?}, taken over at {began:?}");
        assert!(began <= secs(15) + LOOK, "taken over after {began:?}");
        one_leads_for(secs(60), &[&first, &second]).await;
        lab.settle().await;
        assert_eq!(lab.get("a").await.status.unwrap().size, 1);
    }
}

fn on_leases(user: &str, verb: &str, times: Option<u64>, action: Action) -> Rule {
    let (user, verb, resource) = (user.to_owned(), verb.to_owned(), "leases*".to_owned());
    Rule {
        user,
        verb,
        resource,
        when: When { times, ..When::default() },
        action,
        ..Rule::default()
    }
}

fn candidate_as(lab: &Lab, user: &str) -> Replica {
    let client = lab.sim.client_as(User::named(user).in_group("system:masters"));
    let lease = LeaseSettings::new("default", "toys", user);
    lab.replica_with(client, ControllerSettings::default(), Some(lease))
}

#[tokio::test(start_paused = true)]
async fn a_look_that_hangs_keeps_a_standby_from_nothing() {
    let lab = Lab::new().await;
    let first = lab.candidate("one");
    sleep(secs(1)).await;
    let second = candidate_as(&lab, "two");
    sleep(secs(30)).await;
    lab.sim.add_rule(on_leases("two", "get", Some(1), Action::Hang));
    sleep(secs(2)).await;
    first.crash().await;
    let crashed = Instant::now();
    lab.create(&toy("a", 1)).await;
    second.status.leads().await;
    let took = crashed.elapsed();
    // It may miss one renewal while it waits for the answer that never comes.
    assert!(took <= secs(15 + 5) + LOOK, "{took:?}");
    assert!(took >= secs(10), "a lease that may still be held was taken after {took:?}");
    lab.settle().await;
    assert_eq!(lab.get("a").await.status.unwrap().size, 1);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_once_does_not_cost_the_lease() {
    let lab = Lab::new().await;
    let first = candidate_as(&lab, "one");
    sleep(secs(5)).await;
    lab.sim.add_rule(on_leases("one", "update", Some(1), Action::Hang));
    for _ in 0..300 {
        sleep(Duration::from_millis(100)).await;
        assert!(first.status.is_leader());
    }
    assert_eq!(lab.sim.rules()[0].fired, 1);
    assert_eq!(lease(&lab).await.spec.unwrap().lease_transitions, Some(0));
}

/// The lease bears its name, but it learns of that when the lease may be gone again.
#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_after_the_time_it_bought_begins_no_pass() {
    let lab = Lab::new().await;
    lab.create(&toy("a", 1)).await;
    let late = Action::DelayAfter { by_ms: 10_500 };
    let rule = lab.sim.add_rule(on_leases("slow", "write", None, late));
    let slow = candidate_as(&lab, "slow");
    for _ in 0..600 {
        sleep(Duration::from_millis(100)).await;
        assert!(!slow.status.is_leader());
    }
    assert_eq!(holder(&lab).await, "slow");
    assert_eq!(lab.world.passes(), 0);
    let status = "leader_election_master_status{name=\"toys\"}";
    assert!(slow.metric(status).abs() < f64::EPSILON);
    lab.sim.remove_rule(rule);
    slow.status.leads().await;
    lab.settle().await;
    assert_eq!(lab.world.passes(), 1);
    assert!((slow.metric(status) - 1.0).abs() < f64::EPSILON);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_else_touched_is_given_up_all_the_same() {
    let lab = Lab::new().await;
    let first = lab.candidate("one");
    sleep(secs(5)).await;
    let leases: Api<Lease> = Api::namespaced(lab.client.clone(), "default");
    let patch = Patch::Merge(json!({"metadata": {"labels": {"seen": "yes"}}}));
    leases.patch("toys", &PatchParams::default(), &patch).await.unwrap();
    first.stop().await;
    assert_eq!(holder(&lab).await, "");
    assert_eq!(lease(&lab).await.metadata.labels.unwrap()["seen"], "yes");
}
