//! What we did ourselves is seen at once, also while the stream is far behind.

use std::sync::Arc;
use std::time::Duration;

use roost_fleet::{Check, Mirror, Power, Vm, VmId, Wrote, condition};
use roost_vcenter_sim::{Action, Rule};
use roost_vim::Reconfigure;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::lab::{LAB, Lab, MINUTE, SECOND, wait_for};

/// Every answer of the stream comes this late, with the state that was.
fn delay_stream(lab: &Lab, late: Duration) {
    lab.vcenter.faults().add(Rule::new("WaitForUpdatesEx", Action::LateAnswer(late)));
}

/// Fails the test when the VM is ever shown otherwise.
fn always(mirror: &Mirror, vm: &VmId, holds: fn(Option<&Arc<Vm>>) -> bool) -> JoinHandle<()> {
    let (mirror, vm) = (mirror.clone(), vm.clone());
    let mut changes = mirror.changes();
    tokio::spawn(async move {
        loop {
            let seen = mirror.vm(&vm);
            assert!(holds(seen.as_ref()), "what was before is shown: {seen:?}");
            if changes.changed().await.is_err() {
                return;
            }
        }
    })
}

async fn ends_well(watch: JoinHandle<()>) {
    watch.abort();
    assert!(watch.await.unwrap_err().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_claimed_spare_is_seen_claimed() {
    for late in [Duration::ZERO, 20 * SECOND, 3 * MINUTE] {
        let lab = Lab::new(30).await;
        let vm = lab.id("DC0_C0_RP0_VM3");
        lab.client.power_off(&vm.moref()).await.unwrap();
        lab.mirror.changed(&vm, Wrote::new().power(Power::Off));
        sleep(MINUTE).await;
        if !late.is_zero() {
            delay_stream(&lab, late);
        }
        let claim = Reconfigure {
            name: Some("worker-1".into()),
            cpus: Some(8),
            memory_mb: Some(4096),
            ..Reconfigure::annotation("hv1/job-1")
        };
        lab.client.reconfigure(&vm.moref(), &claim).await.unwrap();
        let wrote = Wrote::new().name("worker-1").annotation("hv1/job-1").cpus(8).memory_mb(4096);
        lab.mirror.changed(&vm, wrote);
        assert_eq!(lab.mirror.snapshot().serving(&LAB.request("job-1")).count(), 1);
        let watch = always(&lab.mirror, &vm, |vm| {
            vm.is_some_and(|vm| vm.cpus == 8 && vm.request().is_some() && &*vm.name == "worker-1")
        });
        lab.client.power_on(&vm.moref(), None).await.unwrap();
        lab.mirror.changed(&vm, Wrote::new().power(Power::On));
        let on = always(&lab.mirror, &vm, |vm| vm.is_some_and(|vm| vm.is_on()));
        // What takes minutes to answer is given up by the client, and tells of no guest.
        if late < MINUTE {
            lab.mirror.wait_until(&vm, 15 * MINUTE, condition::guest_ready()).await.unwrap();
            assert!(
                lab.vcenter.vm("worker-1").unwrap().guest_operations_ready,
                "not the boot before"
            );
        }
        sleep(20 * MINUTE).await;
        ends_well(on).await;
        ends_well(watch).await;
        assert!(lab.mirror.vm(&vm).unwrap().change_version.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn on_a_server_that_announces_its_changes_no_extra_call_is_made() {
    let lab = Lab::new(30).await;
    let vm = lab.id("DC0_C0_RP0_VM3");
    sleep(MINUTE).await;
    lab.vcenter.reset_counters();
    for (round, power) in [Power::Off, Power::On, Power::Off].into_iter().enumerate() {
        if power == Power::On {
            lab.client.power_on(&vm.moref(), None).await.unwrap();
        } else {
            lab.client.power_off(&vm.moref()).await.unwrap();
        }
        lab.mirror.changed(&vm, Wrote::new().power(power));
        let annotation = format!("hv1/job-{round}");
        let change = Reconfigure::annotation(annotation.as_str());
        lab.client.reconfigure(&vm.moref(), &change).await.unwrap();
        lab.mirror.changed(&vm, Wrote::new().annotation(annotation));
        sleep(5 * MINUTE).await;
    }
    let counters = lab.vcenter.counters();
    assert_eq!(counters.calls_of("RetrievePropertiesEx"), 0, "{:?}", counters.calls);
}

#[tokio::test(start_paused = true)]
async fn a_clone_is_there_at_once_and_what_is_destroyed_is_gone_at_once() {
    for late in [Duration::ZERO, 3 * MINUTE] {
        let lab = Lab::new(10).await;
        if !late.is_zero() {
            delay_stream(&lab, late);
        }
        let template = lab.template().await;
        let request = lab.clone_of("worker-9", "hv1/job-9");
        let made = VmId::from(&lab.client.clone_vm(&template, &request).await.unwrap());
        lab.mirror.created(&made, Wrote::new().name("worker-9").annotation("hv1/job-9"));
        assert_eq!(lab.mirror.snapshot().serving(&LAB.request("job-9")).count(), 1);
        let watch = always(&lab.mirror, &made, |vm| vm.is_some_and(|vm| vm.owner().is_some()));
        sleep(10 * MINUTE).await;
        ends_well(watch).await;
        assert_eq!(lab.mirror.vm(&made).unwrap().cpus, 1, "and by now it is known whole");

        lab.client.destroy(&made.moref()).await.unwrap();
        lab.mirror.destroyed(&made);
        let watch = always(&lab.mirror, &made, |vm| vm.is_none());
        sleep(10 * MINUTE).await;
        ends_well(watch).await;
        assert_eq!(lab.names(), lab.true_names());
    }
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_dies_right_after_its_start_is_not_shown_running_for_long() {
    let lab = Lab::new(10).await;
    let vm = lab.id("DC0_C0_RP0_VM3");
    lab.client.power_off(&vm.moref()).await.unwrap();
    lab.mirror.changed(&vm, Wrote::new().power(Power::Off));
    sleep(MINUTE).await;
    lab.client.power_on(&vm.moref(), None).await.unwrap();
    lab.mirror.changed(&vm, Wrote::new().power(Power::On));
    lab.vcenter.set_power("DC0_C0_RP0_VM3", roost_vcenter_sim::Power::Off).unwrap();
    lab.mirror.wait_until(&vm, 5 * SECOND, condition::powered(Power::Off)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_change_that_somebody_undoes_is_seen_undone() {
    let lab = Lab::new(10).await;
    let vm = lab.id("DC0_C0_RP0_VM3");
    let annotate = |text: &'static str| {
        let (client, moref) = (lab.client.clone(), vm.moref());
        async move { client.reconfigure(&moref, &Reconfigure::annotation(text)).await.unwrap() }
    };
    annotate("hv1/job-1").await;
    lab.mirror.changed(&vm, Wrote::new().annotation("hv1/job-1"));
    annotate("hv2/job-2").await;
    let owner = |vm: Option<&Arc<Vm>>| match vm.and_then(|vm| vm.owner().cloned()) {
        Some(owner) if &*owner == "hv2" => Check::Met(()),
        _ => Check::NotYet,
    };
    lab.mirror.wait_until(&vm, 5 * SECOND, owner).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn our_knowledge_outlives_a_lost_session() {
    let lab = Lab::new(10).await;
    delay_stream(&lab, 30 * SECOND);
    let vm = lab.id("DC0_C0_RP0_VM3");
    lab.client.reconfigure(&vm.moref(), &Reconfigure::annotation("hv1/job-1")).await.unwrap();
    lab.mirror.changed(&vm, Wrote::new().annotation("hv1/job-1"));
    let watch = always(&lab.mirror, &vm, |vm| vm.is_some_and(|vm| vm.request().is_some()));
    lab.vcenter.expire_sessions();
    sleep(10 * MINUTE).await;
    lab.vcenter.faults().clear();
    wait_for("the stream is back", || lab.mirror.freshness().complete).await;
    sleep(10 * MINUTE).await;
    ends_well(watch).await;
}
