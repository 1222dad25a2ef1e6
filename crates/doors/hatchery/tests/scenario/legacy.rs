//! Taking over from CDS's own hatchery and giving back to it: VMs of both of its versions are adopted, and it could read ours.

use jiff::SignedDuration;
use roost_cds::{JobId, JobStatus};
use roost_cds_sim::V2Demand;
use roost_clock::Clock as _;
use roost_fleet::Query;
use roost_vcenter_sim::{Action, Power, Rule};
use roost_vim::Client;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::lab::{DEBIAN, GoVm, Lab, Note, Setup, WorldOptions, mins, wait_until};

const ADDRESS: &str = "10.15.0.9";

/// Of CDS 0.57: a spare says that it is one, and a worker when it became one.
fn u2(lab: &Lab, name: &str, more: &Value) -> String {
    let mut note = json!({
        "hatchery_name": "hv1",
        "worker_name": name,
        "vmware_model_path": "debian12",
        "created": lab.clock.now().to_string(),
        "worker_start_time": "0001-01-01T00:00:00Z",
        "ip_address": ADDRESS,
    });
    note.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    note.to_string()
}

/// Of CDS before 0.57: no start time, and what was claimed still says that it is a spare.
fn u1(lab: &Lab, name: &str, more: &Value) -> String {
    let mut note: Value = serde_json::from_str(&u2(lab, name, more)).unwrap();
    note.as_object_mut().unwrap().remove("worker_start_time");
    note.to_string()
}

struct Before {
    lab: Lab,
    go: Client,
}

impl Before {
    async fn of(setup: Setup) -> Self {
        let lab = Lab::closed(WorldOptions::default(), setup);
        let go = lab.colleague("svc-go@vsphere.local").await;
        Self { lab, go }
    }

    async fn leaves(&self, name: &str, annotation: String, power: Power) {
        let address = Some(ADDRESS.parse().unwrap());
        self.lab.make_vm(&self.go, GoVm { name, annotation, power, address }).await;
    }
}

/// D42: no event is asked for.
#[tokio::test(start_paused = true)]
async fn a_spare_of_cds_is_claimed_like_our_own() {
    for (name, is_new) in
        [("provision-v2-ip-10-15-0-9-keen-bohr", true), ("provision-v2-keen-bohr", false)]
    {
        let mut before = Before::of(Setup::new("hv1").pool("debian12", 1)).await;
        let spare = json!({"provisioning": true});
        let note = if is_new { u2 } else { u1 }(&before.lab, name, &spare);
        before.leaves(name, note, Power::On).await;
        wait_until("it has booted", mins(10), || before.lab.vm_named(name).unwrap().ip.is_some())
            .await;
        before.lab.vcenter.set_power(name, Power::Off).unwrap();
        before.lab.open().await;
        let moref = before.lab.vm_named(name).unwrap().moref;
        let job = before.lab.job();
        before.lab.wait_for(&job, JobStatus::Building).await;
        let worker = before.lab.vm_of(&job).unwrap();
        assert_eq!(worker.moref, moref, "{name}");
        assert_eq!(worker.ip, Some(ADDRESS.parse().unwrap()));
        before.lab.wait_for(&job, JobStatus::Success).await;
        before.lab.wait_until_clean(1).await;
    }
}

/// D30
#[tokio::test(start_paused = true)]
async fn a_spare_that_cds_left_half_made_is_finished() {
    let mut before = Before::of(Setup::new("hv1").pool("debian12", 1)).await;
    let name = "provision-v2-ip-10-15-0-9-keen-bohr";
    let note = u2(&before.lab, name, &json!({"provisioning": true}));
    before.leaves(name, note, Power::On).await;
    before.lab.open().await;
    before.lab.wait_for_spares(1).await;
    assert_eq!(before.lab.own_names(), [name]);
}

/// An address that a VM of CDS has is taken, also if the VM is off.
#[tokio::test(start_paused = true)]
async fn addresses_of_cds_vms_are_not_given_out_again() {
    let setup = Setup::new("hv1")
        .addresses("10.15.0.8/30", "10.15.0.10", "255.255.255.252")
        .pool("debian12", 1);
    let mut before = Before::of(setup).await;
    let name = "provision-v2-ip-10-15-0-9-keen-bohr";
    before.leaves(name, u2(&before.lab, name, &json!({"provisioning": true})), Power::On).await;
    before.lab.vcenter.set_power(name, Power::Off).unwrap();
    before.lab.open().await;
    let job = before.lab.v2_job(V2Demand::new("PROJ/github/org/repo/ubuntu24"));
    wait_until("it waits for an address", mins(3), || before.lab.bound_by(&job) == Some("address"))
        .await;
}

/// D18, D20, D21: a worker of 0.57 says since when; it is retired by that.
#[tokio::test(start_paused = true)]
async fn a_finished_worker_of_cds_is_cleaned_up() {
    let mut before = Before::of(Setup::new("hv1")).await;
    let started = before.lab.clock.now() - SignedDuration::from_mins(30);
    let worker = json!({"job_id": "77", "worker_start_time": started.to_string()});
    before.leaves("happy-hopper", u2(&before.lab, "happy-hopper", &worker), Power::Off).await;
    before.lab.open().await;
    before.lab.wait_until_clean(0).await;
}

/// D20: only for VMs that say nothing themselves the events are asked, as CDS did before 0.57.
#[tokio::test(start_paused = true)]
async fn a_worker_that_cds_claimed_silently_is_judged_by_its_events() {
    let mut before = Before::of(Setup::new("hv1")).await;
    let spare = "provision-v2-keen-bohr";
    let note = u1(&before.lab, spare, &json!({"provisioning": true}));
    before.leaves(spare, note, Power::On).await;
    let moref = before.lab.vm_named(spare).unwrap().moref;
    before.go.power_off(&moref).await.unwrap();
    sleep(mins(300)).await;
    // The claim: renamed, powered on, and nothing written down.
    before.go.rename(&moref, "happy-hopper").await.unwrap();
    before.go.power_on(&moref, None).await.unwrap();
    before.lab.open().await;
    sleep(mins(6)).await;
    assert!(before.lab.vm_named("happy-hopper").is_some(), "it was started minutes ago");
    wait_until("it never registered", mins(60), || before.lab.vm_named("happy-hopper").is_none())
        .await;
}

/// W22: without events, its birth is what is left.
#[tokio::test(start_paused = true)]
async fn a_worker_whose_events_have_aged_out_goes_by_its_birth() {
    let options = WorldOptions { event_retention: 20, ..WorldOptions::default() };
    let mut lab = Lab::closed(options, Setup::new("hv1"));
    let go = lab.colleague("svc-go@vsphere.local").await;
    let annotation = u1(&lab, "happy-hopper", &json!({"provisioning": true}));
    let vm = GoVm { name: "happy-hopper", annotation, power: Power::Off, address: None };
    lab.make_vm(&go, vm).await;
    for number in 0..30 {
        lab.vcenter.add_vm(&format!("stranger-{number}"), Power::On).unwrap();
    }
    sleep(mins(300)).await;
    lab.open().await;
    lab.wait_until_clean(0).await;
}

/// A job that CDS's hatchery was serving when it was stopped goes on, and its VM is cleaned up afterwards.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_at_work_when_the_hatchery_is_exchanged_goes_on() {
    let mut lab = Lab::new().await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).takes(mins(20)));
    lab.wait_for(&job, JobStatus::Building).await;
    let vm = lab.vm_of(&job).unwrap();
    // As 0.57 would have written it: without what only we write.
    let mut note: Value = serde_json::from_str(vm.annotation.as_deref().unwrap()).unwrap();
    note.as_object_mut().unwrap().remove("flavor");
    note.as_object_mut().unwrap().remove("worker_model_path");
    lab.crash();
    let go = lab.colleague("svc-go@vsphere.local").await;
    let change = roost_vim::Reconfigure::annotation(note.to_string());
    go.reconfigure(&vm.moref, &change).await.unwrap();
    lab.open().await;
    lab.wait_for(&job, JobStatus::Success).await;
    assert_eq!(lab.cds.job(&job).unwrap().executions().len(), 1);
    lab.wait_until_clean(0).await;
}

/// A hatchery of CDS that comes back reads what it needs: the keys, types and formats of 7.2.
#[tokio::test(start_paused = true)]
async fn cds_can_read_our_spares_and_workers() {
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
    lab.wait_for_spares(1).await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).takes(mins(10)));
    lab.wait_for(&job, JobStatus::Building).await;
    lab.wait_for_spares(1).await;
    let known = [
        "hatchery_name",
        "worker_name",
        "provisioning",
        "worker_model_path",
        "vmware_model_path",
        "created",
        "worker_start_time",
        "job_id",
        "ip_address",
        "flavor",
        // Ours. Go's decoder passes over what it does not know.
        "roost_process",
    ];
    for vm in lab.own_vms() {
        let text = vm.annotation.as_deref().unwrap();
        let note: Value = serde_json::from_str(text).unwrap();
        for (key, value) in note.as_object().unwrap() {
            assert!(known.contains(&key.as_str()), "{key} in {text}");
            assert_eq!(value.is_boolean(), key == "provisioning", "{key} in {text}");
        }
        for time in ["created", "worker_start_time"] {
            let _: jiff::Timestamp = note[time].as_str().unwrap().parse().unwrap();
        }
        let note = Note::of(&vm).unwrap();
        assert_eq!((&*note.worker_name, &*note.hatchery_name), (&*vm.name, "hv1"));
        let is_spare = vm.name.starts_with("provision-v2");
        assert_eq!((note.provisioning, note.job_id.is_empty()), (is_spare, is_spare));
        assert!(is_spare || JobId::parse(&note.job_id) == Some(job.clone()));
    }
}

/// W20: CDS's hatchery reads the last 50 events. When its start is not among them the worker stays for ever.
#[tokio::test(start_paused = true)]
async fn a_start_is_found_behind_any_number_of_later_events() {
    let mut before = Before::of(Setup::new("hv1")).await;
    let name = "happy-hopper";
    let note = u1(&before.lab, name, &json!({"provisioning": true}));
    before.leaves(name, note, Power::On).await;
    let moref = before.lab.vm_named(name).unwrap().moref;
    for _ in 0..40 {
        before.go.rename(&moref, "renamed-hopper").await.unwrap();
        before.go.rename(&moref, name).await.unwrap();
    }
    before.lab.open().await;
    wait_until("it never registered", mins(60), || before.lab.vm_named(name).is_none()).await;
}

/// W20: an error was taken for a VM without events.
#[tokio::test(start_paused = true)]
async fn a_worker_whose_events_cannot_be_read_stays_until_they_can() {
    let mut before = Before::of(Setup::new("hv1")).await;
    let name = "happy-hopper";
    let note = u1(&before.lab, name, &json!({"provisioning": true}));
    before.leaves(name, note, Power::On).await;
    let faults = before.lab.vcenter.faults();
    for method in ["QueryEvents", "CreateCollectorForEvents"] {
        faults.add(Rule::new(method, Action::fault("RuntimeFault", "the database is away")));
    }
    before.lab.open().await;
    sleep(mins(300)).await;
    assert!(before.lab.vm_named(name).is_some());
    before.lab.vcenter.faults().clear();
    wait_until("it is too old", mins(30), || before.lab.vm_named(name).is_none()).await;
}

/// The Go hatchery leaves spares that share an address: 12 on 3 addresses were seen. Each address runs once at a time; the others go.
#[tokio::test(start_paused = true)]
async fn of_spares_that_share_an_address_one_runs_at_a_time_and_the_others_go() {
    let before = Before::of(Setup::new("hv1").pool("debian12", 6)).await;
    let Before { mut lab, go } = before;
    lab.truth.counts_only_addresses_in_use();
    for number in 0..12 {
        let address: std::net::Ipv4Addr = [10, 15, 0, 21 + number % 3].into();
        let name = format!("provision-v2-go-{number}");
        let more = json!({"provisioning": true, "ip_address": address.to_string()});
        let annotation = u2(&lab, &name, &more);
        let vm = GoVm { name: &name, annotation, power: Power::On, address: Some(address) };
        lab.make_vm(&go, vm).await;
        lab.vcenter.set_power(&name, Power::Off).unwrap();
    }
    let jobs = lab.jobs(5);
    lab.open().await;
    lab.wait_for_all(&jobs, JobStatus::Success).await;
    lab.wait_until_clean(6).await;
    let mut addresses: Vec<String> =
        lab.own_vms().iter().map(|vm| Note::of(vm).unwrap().ip_address).collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 6, "each spare has its own");
    let said = lab.hatchery().journal().find(&Query::default());
    let shown = said.iter().filter(|decision| decision.to_string().contains("has its address"));
    assert!(shown.count() >= 9, "those that went say why");
}
