use std::time::Duration;

use roost_clock::Random;
use roost_vcenter_sim::{Action, Rule};
use roost_vim::Client;
use roost_vim::wire::methods::{PowerOffVmTask, RenameTask};
use tokio::time::{sleep, timeout};

use crate::lab::{Lab, Mirror, options, settings, vms};

fn open(lab: &Lab) -> (usize, usize, usize) {
    let counters = lab.vcenter.counters();
    (counters.open_collectors, counters.open_filters, counters.open_views)
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_dropped_leaves_nothing_behind() {
    let lab = Lab::new(options()).await;
    let mut vms = lab.watch().await;
    vms.sync().await;
    let other = Mirror::new(lab.client.watch(lab.all_vms()).await.unwrap());
    assert_eq!(open(&lab), (1, 2, 2));
    drop(other);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(open(&lab), (1, 1, 1), "the other goes on");
    drop(vms);
    sleep(Duration::from_mins(3)).await;
    assert_eq!(open(&lab), (0, 0, 0));
    assert_eq!(lab.vcenter.counters().open_sessions, 1);
}

#[tokio::test(start_paused = true)]
async fn futures_dropped_at_any_moment_leave_nothing_behind() {
    let mut random = Random::from_seed(7);
    for round in 0..40 {
        let lab = Lab::new(vms(120)).await;
        for method in
            ["Create*", "WaitForUpdatesEx", "ModifyListView", "Destroy*", "PowerOffVM_Task"]
        {
            let delay = random.duration(Duration::ZERO, Duration::from_secs(3));
            lab.vcenter.faults().add(Rule::new(method, Action::LateAnswer(delay)));
        }
        let patience = random.duration(Duration::ZERO, Duration::from_secs(8));
        let this = lab.vcenter.find("/DC0/vm/DC0_C0_RP0_VM0").unwrap();
        let work = async {
            let (mut first, mut second) = (lab.watch().await, lab.watch().await);
            let off = lab.client.submit(&PowerOffVmTask { this: this.clone() }).await.unwrap();
            let _ = off.wait().await;
            first.sync().await;
            second.sync().await;
        };
        let _ = timeout(patience, work).await;
        sleep(Duration::from_mins(5)).await;
        assert_eq!(open(&lab), (0, 0, 0), "round {round}, dropped after {patience:?}");
        drop(lab.client);
        sleep(Duration::from_mins(1)).await;
        assert_eq!(lab.vcenter.counters().open_sessions, 0, "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connect_dropped_at_any_moment_leaves_no_session() {
    let lab = Lab::new(options()).await;
    lab.vcenter.faults().add(Rule::new("*", Action::LateAnswer(Duration::from_millis(100))));
    for millis in (0..400).step_by(10) {
        let transport = std::sync::Arc::new(crate::lab::Door(lab.vcenter.clone()));
        let connecting = Client::connect(
            settings(),
            transport,
            std::sync::Arc::new(roost_clock::SimClock::new()),
        );
        let _ = timeout(Duration::from_millis(millis), connecting).await;
        sleep(Duration::from_secs(10)).await;
        assert_eq!(lab.vcenter.counters().open_sessions, 1, "dropped after {millis} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_leaves_nothing_and_answers_those_who_wait() {
    let lab = Lab::new(options()).await;
    let mut vms = lab.watch().await;
    vms.sync().await;
    let this = lab.vcenter.find("/DC0/vm/DC0_H0_VM0").unwrap();
    lab.vcenter.faults().add(Rule::new("Rename_Task", Action::HangTask));
    let task = lab.client.submit(&RenameTask { this, new_name: "x".into() }).await.unwrap();
    let waiting = tokio::spawn(task.wait());
    sleep(Duration::from_secs(5)).await;
    lab.client.shutdown().await;
    let counters = lab.vcenter.counters();
    assert_eq!((counters.open_sessions, counters.open_collectors, counters.open_views), (0, 0, 0));
    assert_eq!(counters.calls_of("Logout"), 1);
    assert!(waiting.await.unwrap().is_err());
    assert_eq!(vms.subscription.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_keeps_the_client_alive_and_its_end_logs_out() {
    let lab = Lab::new(options()).await;
    let mut vms = lab.watch().await;
    drop(lab.client);
    vms.sync().await;
    assert!(!vms.objects.is_empty());
    drop(vms);
    sleep(Duration::from_secs(10)).await;
    let counters = lab.vcenter.counters();
    assert_eq!((counters.open_sessions, counters.open_collectors, counters.open_views), (0, 0, 0));
}
