//! The ways in which an object goes, and what keeps it.

use kube::ResourceExt as _;
use roost_vcenter_sim::Power;
use roost_vim::Reconfigure;
use roost_vim::wire::types::Hidden;
use roost_vm_operator::api::names::{annotation, extra_config, label};
use tokio::time::sleep;

use crate::lab::{Lab, minutes, secs, vm};

#[tokio::test(start_paused = true)]
async fn a_deleted_vm_is_shut_down_destroyed_and_only_then_its_object_goes() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    lab.delete("web-0").await;
    lab.until_gone("web-0").await;
    assert!(lab.machine("web-0").is_none());
    assert_eq!(lab.site.vcenter.counters().calls_of("ShutdownGuest"), 1);
    assert_eq!(lab.site.vcenter.vm_names().len(), 3 + 1, "nobody else's was touched");
    sleep(minutes(1)).await;
    assert!(lab.events().await.iter().any(|(reason, _)| reason == "DeleteSuccess"));
}

#[tokio::test(start_paused = true)]
async fn a_paused_or_held_vm_is_neither_changed_nor_deleted_until_it_is_let_go() {
    let lab = Lab::new().await;
    for (name, mark) in [
        ("paused", annotation::PAUSED.to_owned()),
        ("held", format!("{}net", annotation::DELETE_CHECK_PREFIX)),
    ] {
        lab.apply(&vm(name)).await;
        lab.until_on(name).await;
        lab.annotate(name, &mark, Some("")).await;
        lab.delete(name).await;
        sleep(minutes(10)).await;
        assert!(lab.machine(name).is_some() && !lab.is_gone(name).await, "{name}");
        lab.annotate(name, &mark, None).await;
        lab.until_gone(name).await;
        assert!(lab.machine(name).is_none(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_administrators_pause_keeps_a_vm_and_lifting_it_resumes_the_deletion_at_once() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    let machine = lab.machine("web-0").unwrap().moref;
    let pause = |value: &str| Reconfigure {
        extra_config: vec![(extra_config::PAUSE.to_owned(), Hidden(value.to_owned()))],
        ..Reconfigure::default()
    };
    lab.fleet.client().reconfigure(&machine, &pause("true")).await.unwrap();
    let paused = |value| {
        move |vm: &roost_vm_operator::api::VirtualMachine| {
            vm.labels().get(label::PAUSED).map(String::as_str) == value
        }
    };
    lab.until("paused", "web-0", paused(Some("admin"))).await;
    lab.delete("web-0").await;
    sleep(minutes(10)).await;
    assert!(lab.machine("web-0").is_some());
    let before = lab.calls();
    sleep(minutes(10)).await;
    assert!(lab.calls() - before < 5, "no storm of retries: {}", lab.calls() - before);
    lab.fleet.client().reconfigure(&machine, &pause("")).await.unwrap();
    sleep(minutes(6)).await;
    assert!(lab.is_gone("web-0").await && lab.machine("web-0").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_is_to_be_kept_loses_our_marks_and_stays() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    lab.annotate("web-0", annotation::SKIP_DELETE_PLATFORM_RESOURCE, Some("")).await;
    lab.delete("web-0").await;
    lab.until_gone("web-0").await;
    let machine = lab.machine("web-0").unwrap();
    assert_eq!(machine.power, Power::On);
    let ours: Vec<_> =
        machine.extra_config.iter().filter(|(key, _)| extra_config::is_own(key)).collect();
    assert!(ours.is_empty(), "{ours:?}");
}

#[tokio::test(start_paused = true)]
async fn a_vm_deleted_while_it_is_made_is_destroyed_once_and_leaves_nothing() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    for _ in 0..600 {
        if lab.site.vcenter.counters().calls_of("CloneVM_Task") > 0 {
            break;
        }
        sleep(secs(1) / 10).await;
    }
    lab.delete("web-0").await;
    lab.until_gone("web-0").await;
    assert!(lab.machine("web-0").is_none());
    assert_eq!(lab.site.vcenter.counters().calls_of("CloneVM_Task"), 1);
    assert_eq!(lab.site.vcenter.counters().calls_of("Destroy_Task"), 1);
}
