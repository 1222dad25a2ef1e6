use roost_clock::Clock as _;
use roost_fleet::condition;
use roost_vcenter_sim::{Action, Outage, Power, Rule};
use tokio::time::sleep;

use crate::lab::{Lab, MINUTE, SECOND, wait_for};

#[tokio::test(start_paused = true)]
async fn lost_sessions_make_nobody_leave() {
    let lab = Lab::new(260).await;
    let watch = lab.nobody_may_leave();
    for round in 1..=3 {
        lab.vcenter.expire_sessions();
        sleep(2 * MINUTE).await;
        let state = lab.mirror.stream().borrow().clone();
        assert_eq!((state.synced, state.resyncs), (true, round));
        assert!(lab.mirror.freshness().complete);
    }
    assert_eq!(lab.names(), lab.true_names());
    watch.abort();
    assert!(watch.await.unwrap_err().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_server_makes_nobody_leave_but_those_who_left() {
    let lab = Lab::new(260).await;
    let watch = lab.nobody_may_leave();
    lab.vcenter.restart(Outage { lasts: 10 * MINUTE, refuses: true });
    sleep(5 * MINUTE).await;
    let down = lab.mirror.freshness();
    assert!(!down.complete, "{down:?}");
    assert!(down.trouble.is_some());
    assert!(lab.age() > 4 * MINUTE);
    assert_eq!(down.items, 261, "what was known is still known");
    watch.abort();
    assert!(watch.await.unwrap_err().is_cancelled());

    lab.vcenter.kill_vm("DC0_C0_RP0_VM5").unwrap();
    lab.vcenter.add_vm("while-we-were-away", Power::Off).unwrap();
    wait_for("the server is back", || lab.mirror.freshness().complete).await;
    assert_eq!(lab.names(), lab.true_names());
    assert!(!lab.names().contains("DC0_C0_RP0_VM5"));
    assert!(lab.age() <= MINUTE);
}

#[tokio::test(start_paused = true)]
async fn pages_that_break_off_make_nobody_leave() {
    let lab = Lab::new(450).await;
    let watch = lab.nobody_may_leave();
    for nth in 1..=4 {
        let cut =
            Rule::new("WaitForUpdatesEx", Action::CutAfter).when(roost_vcenter_sim::When::Nth(nth));
        lab.vcenter.faults().add(cut.once());
        lab.vcenter.expire_sessions();
        sleep(3 * MINUTE).await;
        lab.vcenter.faults().clear();
        wait_for("it is complete again", || lab.mirror.freshness().complete).await;
        assert_eq!(lab.names(), lab.true_names());
    }
    watch.abort();
    assert!(watch.await.unwrap_err().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_following_and_begins_again_loses_nothing() {
    let mut lab = Lab::new(40).await;
    lab.following.abort();
    sleep(SECOND).await;
    assert!(!lab.mirror.freshness().complete, "nobody follows");
    lab.vcenter.kill_vm("DC0_C0_RP0_VM5").unwrap();
    lab.vcenter.add_vm("meanwhile", Power::Off).unwrap();
    sleep(SECOND).await;
    assert!(lab.names().contains("DC0_C0_RP0_VM5"), "nobody said otherwise");
    lab.follow();
    assert!(lab.mirror.wait_complete(MINUTE).await);
    assert_eq!(lab.names(), lab.true_names());
}

#[tokio::test(start_paused = true)]
async fn a_hung_stream_is_stale_and_a_wait_says_so() {
    let lab = Lab::new(10).await;
    sleep(MINUTE).await;
    lab.vcenter.faults().add(Rule::new("WaitForUpdatesEx", Action::Hang));
    lab.vcenter.faults().add(Rule::new("Create*", Action::Hang));
    let vm = lab.id("DC0_C0_RP0_VM1");
    let late = lab.mirror.wait_until(&vm, 20 * MINUTE, condition::gone()).await.unwrap_err();
    assert!(late.to_string().contains("not up to date"), "{late}");
    let max_age = roost_fleet::GuardRules::default().max_age;
    assert!(lab.mirror.freshness().check(lab.clock.now(), max_age).is_err());
    lab.vcenter.faults().clear();
    sleep(5 * MINUTE).await;
    assert!(lab.mirror.freshness().check(lab.clock.now(), max_age).is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_client_is_the_end_of_following() {
    let Lab { client, following, mirror, .. } = Lab::new(5).await;
    client.shutdown().await;
    following.await.unwrap();
    assert!(!mirror.freshness().complete);
    assert_eq!(mirror.snapshot().len(), 6);
}
