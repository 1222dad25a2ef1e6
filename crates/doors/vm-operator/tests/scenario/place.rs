//! Where VMs go, and how often a server in trouble is asked.

use std::sync::Arc;

use kube::ResourceExt as _;
use roost_clock::SimClock;
use roost_testbed::Site;
use roost_vcenter_sim::{Action, Options, Rule, TemplateOptions, Vcenter};
use roost_vm_operator::Zone;
use roost_vm_operator::api::names::label;
use tokio::time::sleep;

use crate::lab::{Lab, minutes, vm};

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
