//! Random demand, faults of both servers, persons and crashes, from a seed. At no moment may a foreign VM be touched, an object have two VMs, or a VM go
//! whose object nobody deleted; afterwards everything is as the objects ask for, nothing is left, and nobody works any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use prometheus_client::registry::Registry;
use roost_clock::{Clock as _, Random};
use roost_controller::LeaseSettings;
use roost_fleet::Fleet;
use roost_kube_sim::{Action as KubeAction, Rule as KubeRule, User, When as KubeWhen};
use roost_vcenter_sim::{Action, Outage, Power, Rule, When};
use roost_vm_operator::api::names::extra_config;
use roost_vm_operator::api::vm::{PowerOpMode, PowerState};
use roost_vm_operator::api::{VirtualMachine, VirtualMachineSnapshot};
use roost_vm_operator::planted::{Bug, plant};
use roost_vm_operator::{OwnVms, VmOperator};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::lab::{Lab, NAMESPACE, minutes, secs, vm};

const TURMOIL: Duration = Duration::from_mins(2);
/// Until everything is as wanted after the faults have ended; back-offs go up to some minutes.
const PEACE: Duration = Duration::from_mins(20);
/// So long that it puts nothing right which news and retries should.
const RESYNC: Duration = Duration::from_hours(6);
/// How long a VM may outlive its object.
const LEFT_BEHIND: Duration = Duration::from_mins(2);
const DOOR: &str = "vm-operator";

/// What must hold, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Invariant {
    /// VMs of others stay as they are.
    ForeignVmsStay,
    /// An object has one VM at most, and for its whole life the same one.
    OneVmPerObject,
    /// No VM outlives its object.
    NoVmIsLeft,
    /// No VM goes whose object nobody deleted.
    NoVmIsLost,
    /// When the faults are over, everything becomes as the objects ask for, and stays so.
    EverythingSettles,
    /// Then nobody writes.
    RestIsSilent,
}

/// An invariant that does not hold, and how it shows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Broken {
    invariant: Invariant,
    how: String,
}

impl Broken {
    fn new(invariant: Invariant, how: String) -> Self {
        Self { invariant, how }
    }
}

/// One process of the door: a session and a memory of its own.
struct Replica {
    fleet: Fleet,
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Replica {
    /// `None` if vCenter does not let it in at present.
    async fn start(lab: &Lab, number: usize, random: Random) -> Option<Self> {
        let opening = lab.site.open(vec![Arc::new(OwnVms)]);
        let fleet = tokio::time::timeout(secs(30), opening).await.ok()?.ok()?;
        fleet.cover(&lab.site.find("/DC0"));
        let mut settings = lab.settings.clone();
        let lease = LeaseSettings::new(NAMESPACE, DOOR, &format!("replica-{number}-{random:?}"));
        // Renewed less often than usual: most of what a campaign costs would be renewals.
        let (duration, retry_period) = (secs(60), secs(20));
        settings.lease =
            Some(LeaseSettings { duration, renew_deadline: secs(40), retry_period, ..lease });
        let mut registry = Registry::default();
        let operator = VmOperator::new(&lab.door, fleet.clone(), settings, random, &mut registry);
        let (shutdown, ended) = oneshot::channel::<()>();
        let task = tokio::spawn(operator.run(async {
            let _ = ended.await;
        }));
        Some(Self { fleet, shutdown: Some(shutdown), task })
    }

    async fn end(mut self, is_crash: bool) {
        if is_crash {
            self.task.abort();
        } else if let Some(shutdown) = self.shutdown.take() {
            let _ = shutdown.send(());
        }
        let _ = self.task.await;
        let _ = tokio::time::timeout(secs(5), self.fleet.shut_down()).await;
    }
}

fn kube_rule(verb: &str, resource: &str, chance: f64, action: KubeAction) -> KubeRule {
    KubeRule {
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        user: DOOR.to_owned(),
        when: KubeWhen { chance, ..KubeWhen::default() },
        action,
        ..KubeRule::default()
    }
}

fn break_things(lab: &Lab, random: &mut Random) {
    let kube = [
        kube_rule("patch", "*", 0.2, KubeAction::Conflict),
        kube_rule("patch", "*", 0.1, KubeAction::CutAfter),
        kube_rule("patch", "*", 0.1, KubeAction::CutBefore),
        kube_rule("patch", "*", 0.1, KubeAction::Delay { by_ms: 3000 }),
        kube_rule("*", "*", 0.05, KubeAction::Status { code: 500 }),
        kube_rule("*", "*", 0.05, KubeAction::TooManyRequests { retry_after: 2 }),
        kube_rule("create", "*", 0.2, KubeAction::CutAfter),
        kube_rule("watch", "*", 0.3, KubeAction::CutWatch { after: 3 }),
        kube_rule("watch", "*", 0.3, KubeAction::WatchGone { after: 5 }),
        kube_rule("watch", "*", 0.3, KubeAction::LateEvents { by_ms: 3000 }),
        kube_rule("watch", "*", 0.3, KubeAction::DuplicateEvents),
        kube_rule("update", "leases.*", 0.2, KubeAction::CutAfter),
    ];
    for rule in kube {
        if random.chance(0.3) {
            lab.sim().add_rule(rule);
        }
    }
    let outage = Outage { lasts: secs(40), refuses: true };
    let vcenter = [
        ("CloneVM_Task", 0.3, Action::fail_task("NoDiskSpace", "full")),
        ("CloneVM_Task", 0.3, Action::CutAfter),
        ("CloneVM_Task", 0.2, Action::CutBefore),
        ("CloneVM_Task", 0.2, Action::DelayTask(minutes(2))),
        ("PowerO*VM_Task", 0.2, Action::fail_task("GenericVmConfigFault", "no")),
        ("PowerO*VM_Task", 0.2, Action::CutAfter),
        ("ReconfigVM_Task", 0.2, Action::fail_task("GenericVmConfigFault", "no")),
        ("ReconfigVM_Task", 0.2, Action::CutAfter),
        ("ReconfigVM_Task", 0.2, Action::DelayTask(secs(30))),
        ("CreateSnapshot*_Task", 0.3, Action::CutAfter),
        ("CreateSnapshot*_Task", 0.3, Action::fail_task("SnapshotFault", "no")),
        ("RevertToSnapshot_Task", 0.3, Action::CutAfter),
        ("RemoveSnapshot_Task", 0.3, Action::fail_task("TaskInProgress", "busy")),
        ("Destroy_Task", 0.3, Action::fail_task("TaskInProgress", "busy")),
        ("Destroy_Task", 0.3, Action::CutAfter),
        ("ShutdownGuest", 0.3, Action::fault("ToolsUnavailable", "no")),
        ("FindAllByUuid", 0.2, Action::Status(503)),
        ("WaitForUpdatesEx", 0.02, Action::LoseSession),
        ("WaitForUpdatesEx", 0.01, Action::Restart(outage)),
        ("WaitForUpdatesEx", 0.1, Action::Delay(secs(8))),
        ("RetrievePropertiesEx", 0.05, Action::CutBefore),
    ];
    for (method, chance, action) in vcenter {
        if random.chance(0.3) {
            lab.site.vcenter.faults().add(Rule::new(method, action).when(When::Chance(chance)));
        }
    }
}

/// What must hold at every moment.
#[derive(Default)]
struct Watchman {
    /// The VM that each object has, by the object's uid.
    vms: BTreeMap<String, String>,
    /// VMs without an object, and since when.
    left: BTreeMap<String, Instant>,
    complaints: BTreeSet<Broken>,
}

impl Watchman {
    fn complain(&mut self, invariant: Invariant, how: String) {
        self.complaints.insert(Broken::new(invariant, how));
    }

    /// Looks at both sides at one instant.
    fn look(&mut self, lab: &Lab, foreign: &BTreeMap<String, Power>) {
        let vms = lab.site.vcenter.vm_names();
        let mut by_owner: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut others = BTreeMap::new();
        for name in &vms {
            let Some(machine) = lab.site.vcenter.vm(name) else { continue };
            let key = extra_config::NAMESPACED_NAME;
            match machine.extra_config.iter().find(|(own, _)| own == key) {
                Some((_, owner)) => {
                    by_owner.entry(owner.clone()).or_default().push(machine.moref.id.to_string());
                }
                None => {
                    others.insert(name.clone(), machine.power);
                }
            }
        }
        if others != *foreign {
            let how = format!("VMs of others were {foreign:?} and are {others:?}");
            self.complain(Invariant::ForeignVmsStay, how);
        }
        let objects: Vec<Known> = objects_of(lab);
        let wanted: BTreeMap<&str, &Known> =
            objects.iter().map(|object| (object.path.as_str(), object)).collect();
        self.left.retain(|owner, _| by_owner.contains_key(owner));
        for (owner, machines) in &by_owner {
            if machines.len() > 1 {
                self.complain(
                    Invariant::OneVmPerObject,
                    format!("{owner} has the VMs {machines:?}"),
                );
            }
            let Some(object) = wanted.get(owner.as_str()) else {
                let since = *self.left.entry(owner.clone()).or_insert_with(Instant::now);
                if since.elapsed() > LEFT_BEHIND {
                    self.complain(
                        Invariant::NoVmIsLeft,
                        format!("the VM of {owner} was left behind"),
                    );
                }
                continue;
            };
            self.left.remove(owner);
            let known = self.vms.entry(object.uid.clone()).or_insert_with(|| machines[0].clone());
            if *known != machines[0] {
                let how = format!("{owner} had {known} and has {}", machines[0]);
                self.complain(Invariant::OneVmPerObject, how);
            }
        }
        for object in &objects {
            let has_vm = by_owner.contains_key(&object.path);
            let had = self.vms.get(&object.uid);
            if let Some(had) = had.filter(|_| !has_vm && !object.is_being_deleted) {
                let how = format!("{} has lost {had} and nobody deleted it", object.path);
                self.complain(Invariant::NoVmIsLost, how);
            }
        }
    }
}

/// What the watchman knows of an object.
struct Known {
    path: String,
    uid: String,
    is_being_deleted: bool,
}

/// Read beside the API, which may be out of order.
fn objects_of(lab: &Lab) -> Vec<Known> {
    let known = |object: serde_json::Value| {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        Known {
            path: format!("{}/{}", text("namespace"), text("name")),
            uid: text("uid"),
            is_being_deleted: metadata["deletionTimestamp"].is_string(),
        }
    };
    let all = lab.sim().objects("vmoperator.vmware.com", "virtualmachines");
    all.into_iter().map(known).collect()
}

struct Campaign {
    lab: Lab,
    random: Random,
    replicas: Vec<Option<Replica>>,
    foreign: BTreeMap<String, Power>,
    watchman: Watchman,
}

impl Campaign {
    async fn new(seed: u64) -> Self {
        let mut lab = Lab::seeded(seed).await;
        lab.door = lab.sim().client_as(User::named(DOOR).in_group("system:masters"));
        lab.settings.provider.max_creates = 2;
        lab.settings.resync = RESYNC;
        lab.settings.provider.per_namespace = true;
        let mut random = Random::from_seed(seed).fork("campaign");
        lab.settings.provider.async_create = random.chance(0.8);
        lab.settings.workers = 1 + usize::try_from(random.below(6)).unwrap();
        let of = |name: &String| Some((name.clone(), lab.site.vcenter.vm(name)?.power));
        let foreign = lab.site.vcenter.vm_names().iter().filter_map(of).collect();
        break_things(&lab, &mut random);
        let (replicas, watchman) = (vec![None, None], Watchman::default());
        Self { lab, random, replicas, foreign, watchman }
    }

    async fn start(&mut self, number: usize) {
        let random = self.random.fork("replica");
        self.replicas[number] = Replica::start(&self.lab, number, random).await;
    }

    async fn turmoil(&mut self) {
        self.start(0).await;
        let end = Instant::now() + TURMOIL;
        while Instant::now() < end {
            for _ in 0..self.random.below(4) {
                sleep(self.random.duration(Duration::ZERO, secs(10))).await;
                self.watchman.look(&self.lab, &self.foreign);
            }
            match self.random.below(24) {
                0..=5 => self.create().await,
                6..=10 => self.change().await,
                11..=12 => self.delete().await,
                13..=14 => self.snapshot().await,
                15 => self.revert().await,
                16 => self.meddle(),
                17 => self.lab.sim().restart(self.random.duration(secs(1), secs(20))),
                18 => {
                    self.lab.sim().cut_watches();
                    self.lab.sim().compact();
                }
                19 => self.lab.site.vcenter.expire_sessions(),
                20..=22 => self.replace(true).await,
                _ => self.replace(false).await,
            }
        }
    }

    fn name(&mut self) -> String {
        format!("vm-{}", self.random.below(5))
    }

    async fn create(&mut self) {
        let mut wanted = vm(&self.name());
        wanted.spec.power_state = Some(if self.random.chance(0.8) {
            PowerState::PoweredOn
        } else {
            PowerState::PoweredOff
        });
        wanted.spec.power_off_mode =
            self.random.pick(&[None, Some(PowerOpMode::Hard)]).copied().flatten();
        let _ = self.lab.api().create(&PostParams::default(), &wanted).await;
    }

    async fn change(&mut self) {
        let name = self.name();
        let power = ["PoweredOn", "PoweredOff"][usize::from(self.random.chance(0.4))];
        let class = ["small", "large"][usize::from(self.random.chance(0.5))];
        let patch = match self.random.below(5) {
            0 | 1 => json!({ "spec": { "powerState": power } }),
            2 => json!({ "spec": { "className": class } }),
            3 => {
                json!({ "spec": { "nextRestartTime": self.lab.site.clock.now().to_string(), "restartMode": "Hard" } })
            }
            _ => {
                json!({ "spec": { "powerState": power, "className": class, "advanced": { "changeBlockTracking": true } } })
            }
        };
        let vms = self.lab.api::<VirtualMachine>();
        let _ = vms.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
    }

    async fn delete(&mut self) {
        let name = self.name();
        let vms = self.lab.api::<VirtualMachine>();
        let _ = vms.delete(&name, &DeleteParams::default()).await;
    }

    async fn snapshot(&mut self) {
        let (name, vm) = (format!("snap-{}", self.random.below(3)), self.name());
        let snapshots = self.lab.api::<VirtualMachineSnapshot>();
        if self.random.chance(0.3) {
            let _ = snapshots.delete(&name, &DeleteParams::default()).await;
            return;
        }
        let mut wanted = VirtualMachineSnapshot::new(
            &name,
            roost_vm_operator::api::VirtualMachineSnapshotSpec {
                vm_name: vm,
                ..Default::default()
            },
        );
        wanted.metadata.namespace = Some(NAMESPACE.into());
        let _ = snapshots.create(&PostParams::default(), &wanted).await;
    }

    async fn revert(&mut self) {
        let Ok(all) = self.lab.api::<VirtualMachineSnapshot>().list(&ListParams::default()).await
        else {
            return;
        };
        let ready: Vec<_> =
            all.items.into_iter().filter(VirtualMachineSnapshot::is_ready).collect();
        let Some(snapshot) = self.random.pick(&ready) else { return };
        let patch = json!({ "spec": { "currentSnapshotName": snapshot.name_any() } });
        let vms = self.lab.api::<VirtualMachine>();
        let _ =
            vms.patch(&snapshot.spec.vm_name, &PatchParams::default(), &Patch::Merge(patch)).await;
    }

    /// Somebody at vCenter switches a VM on or off.
    fn meddle(&mut self) {
        let name = self.name();
        let power = if self.random.chance(0.5) { Power::On } else { Power::Off };
        let _ = self.lab.site.vcenter.set_power(&name, power);
    }

    /// Ends a replica, by crash or in good order, or starts one that is gone.
    async fn replace(&mut self, is_crash: bool) {
        let number = usize::try_from(self.random.below(2)).unwrap();
        match self.replicas[number].take() {
            None => self.start(number).await,
            Some(replica) => replica.end(is_crash).await,
        }
    }

    /// What is not as the objects ask for.
    async fn unsettled(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let Ok(objects) = self.lab.api::<VirtualMachine>().list(&ListParams::default()).await
        else {
            return vec!["the API server does not answer".to_owned()];
        };
        for object in &objects.items {
            let name = object.name_any();
            if object.is_being_deleted() {
                wrong.push(format!("{name} is still being deleted"));
                continue;
            }
            let Some(machine) = self.lab.machine(&name) else {
                wrong.push(format!("{name} has no VM: {:?}", object.conditions()));
                continue;
            };
            let unique_id = object.status.as_ref().map(|status| status.unique_id.clone());
            if unique_id.as_deref() != Some(&*machine.moref.id) {
                wrong.push(format!("{name} shows {unique_id:?} and is {}", machine.moref));
            }
            let wanted = object.spec.power_state;
            let is = if machine.power == Power::On {
                PowerState::PoweredOn
            } else {
                PowerState::PoweredOff
            };
            if wanted != Some(is) || object.current_power_state() != Some(is) {
                let shown = object.current_power_state();
                wrong.push(format!(
                    "{name} is {is}, shows {shown:?}, wanted {wanted:?}: {:?}",
                    object.conditions()
                ));
            }
            if is == PowerState::PoweredOn && !object.has_primary_ip() {
                wrong.push(format!("{name} shows no address"));
            }
            if is == PowerState::PoweredOff {
                let cpus = if object.spec.class_name == "large" { 4 } else { 2 };
                if machine.cpus != cpus {
                    let has = machine.cpus;
                    let known = object.annotations();
                    wrong.push(format!(
                        "{name} has {has} CPUs, wanted {cpus}: {known:?} {:?}",
                        object.conditions()
                    ));
                }
            }
            if !object.spec.current_snapshot_name.is_empty() && !is_revert_refused(object) {
                wrong.push(format!(
                    "{name} still goes back to {}",
                    object.spec.current_snapshot_name
                ));
            }
        }
        let names: BTreeSet<String> = objects.items.iter().map(ResourceExt::name_any).collect();
        for name in self.lab.site.vcenter.vm_names() {
            if !names.contains(&name) && !self.foreign.contains_key(&name) {
                wrong.push(format!("VM {name} has no object"));
            }
        }
        let snapshots = self.lab.api::<VirtualMachineSnapshot>().list(&ListParams::default()).await;
        for snapshot in snapshots.map(|list| list.items).unwrap_or_default() {
            let name = snapshot.name_any();
            let is_there = self
                .lab
                .machine(&snapshot.spec.vm_name)
                .is_some_and(|vm| vm.snapshots.contains(&name));
            if snapshot.metadata.deletion_timestamp.is_some() {
                wrong.push(format!("{name} is still being deleted"));
            } else if names.contains(&snapshot.spec.vm_name) && !(snapshot.is_ready() && is_there) {
                let vm = objects.items.iter().find(|it| it.name_any() == snapshot.spec.vm_name);
                let asks = vm.map(|vm| vm.spec.current_snapshot_name.clone());
                wrong.push(format!(
                    "{name} is not ready, there {is_there}, revert {asks:?}: {:?} {:?}",
                    snapshot.status,
                    vm.map(|vm| vm.conditions().to_vec())
                ));
            }
        }
        wrong
    }

    async fn run(&mut self) -> Result<(), Broken> {
        self.turmoil().await;
        self.lab.sim().clear_rules();
        self.lab.site.vcenter.faults().clear();
        if let Some(second) = self.replicas[1].take() {
            second.end(false).await;
        }
        while self.replicas[0].is_none() {
            self.start(0).await;
        }
        let peace = Instant::now();
        loop {
            sleep(secs(20)).await;
            self.watchman.look(&self.lab, &self.foreign);
            if let Some(broken) = self.watchman.complaints.first() {
                return Err(broken.clone());
            }
            let wrong = self.unsettled().await;
            if wrong.is_empty() {
                break;
            }
            if peace.elapsed() > PEACE {
                let how = format!("did not settle: {wrong:#?}");
                return Err(Broken::new(Invariant::EverythingSettles, how));
            }
        }
        // Then nobody works any more, but for the lease.
        sleep(minutes(2)).await;
        let writes = self.writes().await;
        sleep(minutes(3)).await;
        let written = self.writes().await;
        if writes != written {
            let how = format!("at rest objects are still written: {writes:?} {written:?}");
            return Err(Broken::new(Invariant::RestIsSilent, how));
        }
        let wrong = self.unsettled().await;
        if wrong.is_empty() {
            return Ok(());
        }
        let how = format!("did not stay settled: {wrong:#?}");
        Err(Broken::new(Invariant::EverythingSettles, how))
    }

    /// The version of every object.
    async fn writes(&self) -> BTreeMap<String, Option<String>> {
        let vms = self.lab.api::<VirtualMachine>().list(&ListParams::default()).await.unwrap();
        let snapshots =
            self.lab.api::<VirtualMachineSnapshot>().list(&ListParams::default()).await.unwrap();
        let vms = vms.items.into_iter().map(|it| (it.name_any(), it.resource_version()));
        let snapshots =
            snapshots.items.into_iter().map(|it| (it.name_any(), it.resource_version()));
        vms.chain(snapshots).collect()
    }
}

fn is_revert_refused(vm: &VirtualMachine) -> bool {
    let kind = roost_vm_operator::api::condition::ConditionType::SnapshotRevertSucceeded;
    crate::lab::condition(vm, kind).is_some_and(|(status, reason)| {
        status == "False" && reason != "VirtualMachineSnapshotRevertInProgress"
    })
}

fn run_seed(seed: u64) -> Result<(), Broken> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut campaign = Campaign::new(seed).await;
        campaign.run().await
    })
}

fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// The same in every run of the suite; `ROOST_SEEDS=1000` runs 1000 fresh ones instead.
const FIXED: u64 = 200;
/// Drawn anew in every run of the suite.
const FRESH: u64 = 8;

/// Those of the suite; or the one that `ROOST_SEED` names; or as many fresh ones as `ROOST_SEEDS` says.
fn seeds() -> Vec<u64> {
    let mut random = Random::from_system();
    let mut fresh = |many: u64| -> Vec<u64> { (0..many).map(|_| random.next_u64()).collect() };
    match (given("ROOST_SEED"), given("ROOST_SEEDS")) {
        (Some(seed), _) => vec![seed],
        (None, Some(many)) => fresh(many),
        (None, None) => {
            let fresh = fresh(FRESH);
            println!("fresh seeds: {fresh:?}");
            (0..FIXED).chain(fresh).collect()
        }
    }
}

/// Each seed is a world of its own, so two of them can run side by side. What failed, by seed.
fn run_all(seeds: &[u64]) -> Vec<(u64, Broken)> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failed = Vec::new();
        while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(broken) = run_seed(*seed) {
                eprintln!("ROOST_SEED={seed} breaks {:?}: {}", broken.invariant, broken.how);
                failed.push((*seed, broken));
            }
        }
        failed
    };
    std::thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn random_demand_and_faults_lose_double_and_leave_nothing() {
    let seeds = seeds();
    let failed = run_all(&seeds);
    let named: Vec<String> =
        failed.iter().map(|(seed, broken)| format!("{seed}: {:?}", broken.invariant)).collect();
    assert!(named.is_empty(), "{} of {} seeds fail: {named:?}", named.len(), seeds.len());
}

/// What the first seed breaks that notices the bug.
fn broken_by(bug: Bug) -> Option<Invariant> {
    plant(Some(bug));
    let broken = (0..100).find_map(|seed| run_seed(seed).err());
    plant(None);
    broken.map(|broken| broken.invariant)
}

/// A campaign that cannot fail shows nothing. A VM that is not known by its identity gets no twin, because its name is taken: its object just never gets it.
/// One that is left has lost its mark, and is one of others.
#[test]
fn planted_bugs_are_found() {
    for (bug, invariant) in [
        (Bug::ForgetsIdentity, Invariant::EverythingSettles),
        (Bug::LeavesVms, Invariant::ForeignVmsStay),
        (Bug::ForgetsErrors, Invariant::EverythingSettles),
    ] {
        assert_eq!(broken_by(bug), Some(invariant), "{bug:?}");
    }
}
