//! Where VMs go, what they are attached to, and what that costs the vCenter.

use std::collections::BTreeMap;

use roost_cds::JobStatus;
use roost_cds_sim::V2Demand;
use roost_vcenter_sim::{Power, Timings};
use tokio::time::{Instant, sleep};

use crate::lab::{DEBIAN, Lab, Note, Setup, UBUNTU, WorldOptions, mins, secs, wait_until};

/// D35: the card itself is edited and put on the network. CDS's hatchery sends the abstract type of a card; what kind of card it is stays the
/// template's, in both.
#[tokio::test(start_paused = true)]
async fn a_clone_keeps_the_card_of_its_template_and_is_put_on_the_configured_network() {
    let setup = Setup::new("hv1").set("cardName", "e1000");
    let lab = Lab::of(setup).await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).takes(mins(5)));
    lab.wait_for(&job, JobStatus::Building).await;
    let cards = |name: &str| {
        let vm = lab.vcenter.vm(name).unwrap();
        vm.devices.into_iter().filter(|device| device.mac_address.is_some()).collect::<Vec<_>>()
    };
    let (template, worker) = (cards("debian12"), cards(&lab.vm_of(&job).unwrap().name));
    assert_eq!((template.len(), worker.len()), (1, 1));
    assert_eq!(worker[0].class, template[0].class);
    assert_ne!(worker[0].mac_address, template[0].mac_address);
    let port = |card: &roost_vim::wire::types::VirtualDevice| {
        card.backing.as_ref().is_some_and(|backing| backing.port.is_some())
    };
    assert!(port(&template[0]) && !port(&worker[0]), "the template is on a distributed switch");
}

/// D36: CDS's hatchery reads the VMs of all datacenters.
#[tokio::test(start_paused = true)]
async fn what_is_in_other_datacenters_is_not_looked_at() {
    let options = WorldOptions { datacenters: 2, ..WorldOptions::default() };
    let lab = Lab::in_world(options, Setup::new("hv1").pool("debian12", 1)).await;
    lab.wait_for_spares(1).await;
    let (warm, cold) = (lab.job(), lab.v2_job(V2Demand::new(UBUNTU)));
    lab.wait_for_all(&[warm, cold], JobStatus::Building).await;
    for vm in lab.own_vms() {
        let path = lab.vcenter.vm(&vm.name).unwrap().path;
        assert!(path.starts_with("/DC0/"), "{path}");
    }
    let in_first = |name: &str| lab.vcenter.vm(name).is_some_and(|vm| vm.path.starts_with("/DC0/"));
    let all = lab.vcenter.glance();
    assert!(all.iter().any(|vm| !in_first(&vm.name)), "there are others");
    // Two templates and three strangers in each.
    let seen = lab.hatchery().view().overview.link.vms;
    assert_eq!(seen, (5 + lab.own_vms().len()) as u64, "of {}", all.len());
    lab.truth.others_are_untouched(&lab);
}

/// W13: six or seven listings of everything for each job, in CDS's hatchery.
#[tokio::test(start_paused = true)]
async fn what_a_job_costs_does_not_grow_with_the_inventory() {
    let mut costs: Vec<BTreeMap<String, u64>> = Vec::new();
    for strangers in [3, 300] {
        let options = WorldOptions { strangers, ..WorldOptions::default() };
        let setup = Setup::new("hv1").pool("debian12", 1);
        let lab = Lab::in_world(options, setup).await;
        sleep(mins(5)).await;
        lab.wait_for_spares(1).await;
        lab.vcenter.reset_counters();
        let (warm, cold) = (lab.job(), lab.v2_job(V2Demand::new(UBUNTU)));
        lab.wait_for_all(&[warm, cold], JobStatus::Success).await;
        lab.wait_until_clean(1).await;
        let mut calls: BTreeMap<_, _> = lab.vcenter.counters().calls.into_iter().collect();
        // By the clock, and the long poll, which answers once for each change.
        calls.retain(|name, _| !matches!(name.as_str(), "WaitForUpdatesEx" | "CurrentTime"));
        costs.push(calls);
    }
    let total = |calls: &BTreeMap<String, u64>| calls.values().sum::<u64>();
    let (few, many) = (total(&costs[0]), total(&costs[1]));
    assert!(many <= few + 5, "{few} calls among 3 VMs and {many} among 300: {costs:#?}");
}

/// A restart costs what the servers need for their answers, and a second for that of whoever may be at work under our name.
#[tokio::test(start_paused = true)]
async fn a_start_waits_for_answers_only() {
    // Several pages of VMs.
    let timings = Timings::instant();
    let options = WorldOptions { strangers: 500, timings, ..WorldOptions::default() };
    let setup = Setup::new("hv1").pool("debian12", 2);
    let mut lab = Lab::in_world(options, setup).await;
    lab.wait_for_spares(2).await;
    let long: Vec<_> = (0..3).map(|_| lab.v2_job(V2Demand::new(DEBIAN).takes(mins(60)))).collect();
    lab.wait_for_all(&long, JobStatus::Building).await;
    lab.wait_for_spares(2).await;
    for _ in 0..3 {
        let began = Instant::now();
        lab.restart().await;
        let took = began.elapsed();
        assert!(took < std::time::Duration::from_millis(1_200), "it opened after {took:?}");
        sleep(secs(20)).await;
    }
}

/// W1: who finds the last address taken goes away empty-handed and holds up nobody. CDS's hatchery kept its lock, for good.
#[tokio::test(start_paused = true)]
async fn whoever_loses_the_last_address_holds_up_nobody() {
    let setup = Setup::new("hv1")
        .addresses("10.9.0.0/29", "10.9.0.6", "255.255.255.248")
        .max_workers(12)
        .pool("debian12", 2)
        .set("workerProvisioningPoolSize", 2);
    let lab = Lab::of(setup).await;
    lab.wait_for_spares(2).await;
    let jobs: Vec<_> = (0..12).map(|_| lab.v2_job(V2Demand::new(UBUNTU).takes(mins(2)))).collect();
    sleep(secs(20)).await;
    let taken = jobs.iter().filter(|job| lab.status(job) != JobStatus::Waiting).count();
    assert_eq!(taken, 3, "five addresses, two of which the spares have");
    // Once there are VMs it is known how long they may live.
    sleep(secs(60)).await;
    let left = jobs.iter().find(|job| lab.bound_by(job) == Some("address")).unwrap();
    let why = lab.verdict(left).unwrap().reason.to_string();
    assert!(why.contains("5 of 5 taken") && why.contains("the next one"), "{why}");
    lab.wait_for_all(&jobs, JobStatus::Success).await;
    for job in &jobs {
        let report = lab.cds.job(job).unwrap();
        assert_eq!((report.holders().len(), report.releases().len()), (1, 0), "{job}");
    }
    lab.wait_until_clean(2).await;
}

/// D26: an address is taken from the moment it is promised: no VM has it yet, and nobody else gets it.
#[tokio::test(start_paused = true)]
async fn an_address_is_taken_from_its_promise_on() {
    let setup = Setup::new("hv1").addresses("10.9.0.0/29", "10.9.0.6", "255.255.255.248");
    let lab = Lab::of(setup.pool("debian12", 3).set("workerProvisioningPoolSize", 3)).await;
    let jobs: Vec<_> = (0..2).map(|_| lab.v2_job(V2Demand::new(UBUNTU).takes(mins(9)))).collect();
    wait_until("all five are cloned", mins(5), || {
        lab.own_vms().iter().filter(|vm| vm.power == Power::On || vm.has_run).count() == 5
    })
    .await;
    let mut given: Vec<String> =
        lab.own_vms().iter().map(|vm| Note::of(vm).unwrap().ip_address).collect();
    given.sort();
    assert_eq!(given, ["10.9.0.1", "10.9.0.2", "10.9.0.3", "10.9.0.4", "10.9.0.5"]);
    lab.wait_for_all(&jobs, JobStatus::Success).await;
}
