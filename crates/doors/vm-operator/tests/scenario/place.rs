//! Where VMs go, and how often a server in trouble is asked.

use std::sync::Arc;

use kube::ResourceExt as _;
use roost_clock::SimClock;
use roost_door::FrontDoor as _;
use roost_testbed::Site;
use roost_vcenter_sim::{Action, Options, Power, Rule, TemplateOptions, Vcenter};
use roost_vm_operator::Zone;
use roost_vm_operator::api::VirtualMachine;
use roost_vm_operator::api::condition::ConditionType;
use roost_vm_operator::api::names::label;
use roost_vm_operator::api::vm::PowerState;
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, condition, minutes, secs, vm};

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_be_had_is_asked_for_with_growing_pauses() {
    let mut lab = Lab::idle().await;
    lab.apply(&vm("web-0")).await;
    let broken = Action::fault("RuntimeFault", "no filters today");
    lab.site.vcenter.faults().add(Rule::new("CreateFilter", broken));
    lab.start();
    sleep(minutes(30)).await;
    let asked = lab.site.vcenter.counters().calls_of("CreateFilter");
    assert!((2..=200).contains(&asked), "asked {asked} times in half an hour");
    assert!(lab.machine("web-0").is_none());
    lab.site.vcenter.faults().clear();
    lab.until_on("web-0").await;
}

/// Upstream's controller waits for its next resync then, half an hour.
#[tokio::test(start_paused = true)]
async fn where_vcenter_cannot_be_waited_on_vms_are_looked_at_by_time_and_it_shows() {
    let mut lab = Lab::idle().await;
    let deaf = Action::fault("RuntimeFault", "no news today");
    lab.site.vcenter.faults().add(Rule::new("WaitForUpdatesEx", deaf));
    lab.start();
    lab.apply(&vm("web-0")).await;
    let begun = tokio::time::Instant::now();
    lab.until_on("web-0").await;
    assert!(begun.elapsed() < minutes(5), "{:?}", begun.elapsed());
    let words = |lab: &Lab| {
        let tiles = lab.shown.as_ref().unwrap().summary().tiles;
        tiles.iter().any(|tile| tile.words.contains("tells no changes"))
    };
    assert!(words(&lab), "people see it");

    // What somebody does at vCenter is noticed, and put right.
    lab.site.vcenter.set_power("web-0", Power::Off).unwrap();
    sleep(minutes(1)).await;
    assert_eq!(lab.machine("web-0").unwrap().power, Power::On);
    lab.patch("web-0", json!({ "spec": { "powerState": "PoweredOff", "powerOffMode": "Hard" } }))
        .await;
    lab.until("off", "web-0", |vm| vm.current_power_state() == Some(PowerState::PoweredOff)).await;

    lab.site.vcenter.faults().clear();
    sleep(minutes(1)).await;
    assert!(!words(&lab), "it is over");
    let calls = lab.calls();
    sleep(minutes(10)).await;
    assert!(lab.calls() - calls <= 4, "nobody reads any more: {}", lab.calls() - calls);
    lab.delete("web-0").await;
    lab.until_gone("web-0").await;
    sleep(secs(1)).await;
    assert!(lab.machine("web-0").is_none());
}

#[tokio::test(start_paused = true)]
async fn without_a_recommendation_the_roomiest_zone_is_taken_and_always_the_same_one() {
    let mut chosen = Vec::new();
    for _ in 0..2 {
        let clock = Arc::new(SimClock::new());
        let options = Options {
            clusters: 2,
            standalone_hosts: 0,
            templates: vec![TemplateOptions::new(Site::TEMPLATE)],
            ..Options::default()
        };
        let site = Site { vcenter: Vcenter::start(options, clock.clone()), clock };
        let mut lab = Lab::at(site).await;
        let zone = |name: &str, cluster: &str| Zone {
            name: name.into(),
            resource_pool: format!("/DC0/host/{cluster}/Resources"),
            datastore: Some("LocalDS_0".into()),
        };
        lab.settings.provider.zones = vec![zone("zone-b", "DC0_C1"), zone("zone-a", "DC0_C0")];
        let without_drs = Action::fault("NotSupported", "DRS is off");
        lab.site.vcenter.faults().add(Rule::new("PlaceVmsXCluster", without_drs));
        lab.start();
        for name in ["web-0", "web-1"] {
            lab.apply(&vm(name)).await;
            let on = lab.until_on(name).await;
            chosen.push(on.labels()[label::ZONE].clone());
        }
    }
    assert_eq!(chosen[..2], chosen[2..], "the second time as the first");
    assert_ne!(chosen[0], chosen[1], "the first VM takes some of the room of its zone");
}

#[tokio::test(start_paused = true)]
async fn a_zone_that_is_none_of_ours_is_named() {
    let lab = Lab::new().await;
    let mut wanted = vm("web-0");
    wanted.labels_mut().insert(label::ZONE.to_owned(), "elsewhere".to_owned());
    lab.apply(&wanted).await;
    let named = |vm: &VirtualMachine| {
        condition(vm, ConditionType::PlacementReady) == Some(("False", "ZoneMismatch"))
    };
    lab.until("misplaced", "web-0", named).await;
    sleep(minutes(1)).await;
    assert!(lab.machine("web-0").is_none());
}
