//! Many seeds of random demand and accidents. Whatever happened, in the end every pod has its one VM, no VM is without a pod, and what slept
//! wakes with its memory.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use roost_clock::Random;
use roost_cocoon_sim::{EpochRegistry, Fault, RegistryEffect, RegistryFault};
use roost_kubelet::key;
use roost_kubelet::planted::{Bug, plant};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::checker::{Remembered, is_true, problems, vm_name};
use crate::lab::{Lab, Running, is_ready, secs};

/// Of each quarter. More with `KUBELET_SEEDS=1000`; one of them again with `KUBELET_SEED=17`.
const SEEDS: u64 = 50;
/// So many more of each quarter are new every time.
const FRESH: u64 = 1;
/// More than enough for what goes wrong in every second world.
const ENOUGH: u64 = 60;
const STEPS: u64 = 40;
/// For several attempts at several steps, with the longest pause between them.
const PATIENCE: Duration = Duration::from_mins(50);
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const VERBS: [&str; 13] = [
    "vm run",
    "vm clone",
    "vm inspect",
    "vm start",
    "vm rm",
    "vm stop",
    "vm list",
    "image pull",
    "snapshot save",
    "snapshot inspect",
    "snapshot import",
    "snapshot export",
    "snapshot rm",
];

/// One world with its dice.
struct Campaign {
    lab: Lab,
    registry: EpochRegistry,
    random: Random,
    node: Option<Running>,
    remembered: Remembered,
    /// VMs that are to be in the registry because their pods were deleted so.
    saved: Vec<String>,
    /// Until when a name is not used again: the kubelet may still push what its last pod was to keep.
    resting: BTreeMap<&'static str, Instant>,
    story: Vec<String>,
}

impl Campaign {
    fn new(seed: u64) -> Self {
        let registry = EpochRegistry::default();
        Self {
            lab: Lab::with_epoch(&registry),
            registry,
            random: Random::from_seed(seed),
            node: None,
            remembered: Remembered::new(),
            saved: Vec::new(),
            resting: BTreeMap::new(),
            story: vec![format!("seed {seed}")],
        }
    }

    async fn run(seed: u64) -> Self {
        let mut campaign = Self::new(seed);
        campaign.restart(false).await;
        for _ in 0..STEPS {
            let pause = campaign.random.duration(Duration::ZERO, secs(20));
            sleep(pause).await;
            campaign.operate().await;
            campaign.step().await;
        }
        campaign
    }

    fn tell(&mut self, words: String) {
        self.story.push(words);
    }

    fn name(&mut self) -> &'static str {
        self.random.pick(&NAMES).unwrap()
    }

    async fn step(&mut self) {
        let name = self.name();
        match self.random.below(22) {
            0..=4 => self.create(name).await,
            5 | 6 => self.delete(name).await,
            7..=9 => self.hibernate(name, true).await,
            10 | 11 => self.hibernate(name, false).await,
            12 => self.restart(true).await,
            13 | 14 => self.fault(),
            15 | 16 => self.registry_fault(),
            17 => {
                let told = self.random.chance(0.5);
                self.tell(format!("crash {name}, told: {told}"));
                if self.forget(name).await {
                    self.lab.host.crash(&vm_name(name), told);
                }
            }
            18 => {
                self.tell(format!("somebody removes the VM of {name}"));
                if self.forget(name).await {
                    let _ = self.lab.host.with_host(|host| host.remove(&vm_name(name), true));
                }
            }
            19 => {
                self.tell("the runtime's events end".to_owned());
                self.lab.host.cut_events();
            }
            20 => {
                let compact = self.random.chance(0.5);
                self.tell(format!("watches end, history is forgotten: {compact}"));
                if compact {
                    self.lab.sim.compact();
                }
                self.lab.sim.cut_watches();
            }
            _ => self.lose_power().await,
        }
    }

    /// The guest's memory is about to be lost, and rightly so. Whether there is a VM at all.
    async fn forget(&mut self, name: &str) -> bool {
        let is_there = self.lab.vm_names().contains(&vm_name(name));
        if is_there {
            self.saved.retain(|saved| *saved != vm_name(name));
        }
        if is_there && let Some(pod) = self.lab.pod(name).await {
            self.remembered.remove(&pod.uid().unwrap_or_default());
        }
        is_there
    }

    async fn create(&mut self, name: &'static str) {
        let rests = self.resting.get(name).is_some_and(|until| Instant::now() < *until);
        if rests || self.lab.pod(name).await.is_some() {
            return;
        }
        // The operator deletes what it does not need any more before it uses a name again.
        self.registry.remove_tag(&vm_name(name), "hibernate");
        let source = self.name();
        let policy = if self.random.chance(0.3) { "always" } else { "never" };
        if source != name && self.random.chance(0.3) {
            self.tell(format!("create {name}, a fork of {source}"));
            let source = vm_name(source);
            let annotations = [
                (key::FORK_FROM, source.as_str()),
                (key::IMAGE, "img"),
                (key::SNAPSHOT_POLICY, policy),
            ];
            self.lab.apply(name, &annotations).await;
        } else {
            self.tell(format!("create {name}, snapshot policy {policy}"));
            let annotations =
                [(key::MODE, "run"), (key::IMAGE, "img"), (key::SNAPSHOT_POLICY, policy)];
            self.lab.apply(name, &annotations).await;
        }
    }

    async fn delete(&mut self, name: &'static str) {
        let force = self.random.chance(0.3);
        self.tell(format!("delete {name}, by force: {force}"));
        let Some(pod) = self.lab.pod(name).await else { return };
        let is_undisturbed = self.remembered.contains_key(&pod.uid().unwrap_or_default());
        let is_saved = pod.annotations().get(key::SNAPSHOT_POLICY).is_some_and(|it| it == "always");
        // To ask once more changes nothing, and what was asked for may be in the registry already.
        if !force && pod.metadata.deletion_timestamp.is_some() {
            return;
        }
        if is_saved && is_undisturbed && !force && !is_true(&pod, key::HIBERNATE) {
            self.registry.remove_tag(&vm_name(name), "latest");
            self.saved.push(vm_name(name));
        } else {
            self.saved.retain(|saved| *saved != vm_name(name));
        }
        let may_push = pod.annotations().get(key::LIFECYCLE_STATE).is_none_or(|it| it != "ready");
        if force && (may_push || is_true(&pod, key::HIBERNATE)) {
            self.resting.insert(name, Instant::now() + secs(3600));
        }
        let options = DeleteParams::default();
        let options = if force { options.grace_period(0) } else { options };
        // It may be gone already.
        let _ = self.lab.pods().delete(name, &options).await;
    }

    async fn hibernate(&mut self, name: &str, sleeps: bool) {
        let Some(pod) = self.lab.pod(name).await else { return };
        if is_true(&pod, key::HIBERNATE) == sleeps {
            return;
        }
        self.tell(format!("{name} is to sleep: {sleeps}"));
        let patch =
            json!({"metadata": {"annotations": {key::HIBERNATE: sleeps.then_some("true")}}});
        let _ = self.lab.pods().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    }

    /// What the operator does: it takes a pod with the id of a VM and a running container for awake, and deletes its tag. And guests work: each
    /// remembers something once it is up.
    async fn operate(&mut self) {
        let pods = self.lab.pods().list(&ListParams::default()).await.unwrap().items;
        for pod in pods {
            let has_slept = is_true(&pod, key::HIBERNATE)
                || pod.annotations().get(key::LIFECYCLE_STATE).is_none_or(|state| state != "ready");
            let containers =
                pod.status.as_ref().and_then(|status| status.container_statuses.clone());
            let runs = containers.unwrap_or_default().iter().any(|container| {
                container.state.as_ref().is_some_and(|state| state.running.is_some())
            });
            let (vm, uid) = (vm_name(&pod.name_any()), pod.uid().unwrap_or_default());
            let is_up = runs && pod.annotations().contains_key(key::VM_ID);
            if is_up && !is_true(&pod, key::HIBERNATE) {
                self.registry.remove_tag(&vm, "hibernate");
            }
            let is_new = !self.story.contains(&format!("{uid} has something to remember"));
            if is_up && is_ready(&pod) && !has_slept && is_new {
                self.tell(format!("{uid} has something to remember"));
                if self.lab.host.with_host(|host| host.remember(&vm, &uid)).is_ok() {
                    self.remembered.insert(uid.clone(), uid);
                }
            }
        }
    }

    /// The kubelet dies where it is and comes back, sometimes much later, sometimes only at the second try.
    async fn restart(&mut self, may_wait: bool) {
        if let Some(node) = self.node.take() {
            let outlive = self.random.chance(0.5);
            self.lab.host.commands_outlive_callers(outlive);
            node.kill().await;
            self.lab.host.commands_outlive_callers(false);
            let away = self.random.duration(Duration::ZERO, secs(if may_wait { 90 } else { 1 }));
            self.tell(format!("the kubelet dies for {away:?}, its commands go on: {outlive}"));
            sleep(away).await;
        }
        loop {
            match self.lab.start_with(&[("VK_ORPHAN_POLICY", "destroy")]).await {
                Ok(node) => {
                    self.node = Some(node);
                    return;
                }
                Err(error) => {
                    self.tell(format!("it does not start: {error}"));
                    sleep(secs(5)).await;
                }
            }
        }
    }

    async fn lose_power(&mut self) {
        self.tell("the host loses power".to_owned());
        if let Some(node) = self.node.take() {
            node.kill().await;
        }
        for name in NAMES {
            self.forget(name).await;
        }
        self.lab.host.lose_power();
        sleep(secs(60)).await;
        self.restart(false).await;
    }

    fn fault(&mut self) {
        let verb = *self.random.pick(&VERBS).unwrap();
        let times = u32::try_from(self.random.below(3)).unwrap() + 1;
        let fault = Fault::of(verb).times(times);
        let fault = match self.random.below(4) {
            0 => fault.fails("no space left on device"),
            1 => fault.fails("signal: killed").after_the_fact(),
            2 => fault.hangs().times(1),
            _ => Fault { delay_ms: 1 + self.random.below(120_000), ..fault },
        };
        self.tell(format!("{fault:?}"));
        self.lab.host.add_fault(fault);
    }

    fn registry_fault(&mut self) {
        let ways = [
            ("GET", "/manifests/"),
            ("PUT", "/manifests/"),
            ("DELETE", "/manifests/"),
            ("GET", "/blobs/"),
            ("POST", "/uploads/"),
            ("PATCH", "/uploads/"),
            ("PUT", "/uploads/"),
        ];
        let (method, path) = *self.random.pick(&ways).unwrap();
        let effect = match self.random.below(5) {
            0 => RegistryEffect::Hang,
            1 => RegistryEffect::Corrupt,
            2 => RegistryEffect::CutAfter(usize::try_from(self.random.below(600)).unwrap()),
            3 => RegistryEffect::Status(403),
            _ => RegistryEffect::Status(500),
        };
        let times = u32::try_from(self.random.below(6)).unwrap() + 1;
        self.tell(format!("the registry: {method} {path} {effect:?}, {times} times"));
        let (method, path) = (method.to_owned(), path.to_owned());
        self.registry.add_fault(RegistryFault { method, path, times, effect });
    }

    /// Peace: nothing fails any more, and everybody gets the time that they need.
    async fn settle(&mut self) -> Result<(), String> {
        self.lab.host.clear_faults();
        self.registry.clear_faults();
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.operate().await;
            let mut wrong = problems(&self.lab, &self.registry, &self.remembered).await;
            let tags = self.registry.tags();
            let lost = self.saved.iter().filter(|vm| !tags.contains(&format!("{vm}:latest")));
            wrong.extend(lost.map(|vm| format!("{vm} was to be saved before it went")));
            if wrong.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let journal = self.lab.host.journal();
                let last = &journal[journal.len().saturating_sub(30)..];
                return Err(format!("{wrong:#?}\n{:#?}\nlast calls: {last:#?}", self.story));
            }
            sleep(secs(10)).await;
        }
    }

    /// It settles; then it stays so with nothing done; then all that sleeps wakes with its memory.
    async fn judge(&mut self) -> Result<(), String> {
        self.settle().await?;
        // Once the longest pause between two attempts is over.
        sleep(secs(310)).await;
        let calls = self.lab.host.journal().len();
        sleep(secs(60)).await;
        let idle = self.lab.host.journal().split_off(calls);
        // The node looks at its runtime, and listens again where events ended.
        let is_usual =
            |call: &&String| call.starts_with("vm list") || call.starts_with("vm status");
        let busy: Vec<&String> = idle.iter().filter(|call| !is_usual(call)).collect();
        let pods = self.lab.pods().list(&ListParams::default()).await.unwrap().items;
        let waits = pods.iter().any(|pod| !is_ready(pod) && !is_true(pod, key::HIBERNATE));
        if !busy.is_empty() && !waits {
            return Err(format!("at rest: {busy:?}\n{:#?}", self.story));
        }
        for name in NAMES {
            self.hibernate(name, false).await;
        }
        self.settle().await
    }
}

async fn play(seed: u64) -> Result<(), String> {
    // A bug may also show as a panic.
    let played = async { Campaign::run(seed).await.judge().await };
    let played = AssertUnwindSafe(played).catch_unwind().await;
    played.unwrap_or_else(|_| Err(format!("seed {seed} ended in a panic")))
}

/// Quarters run side by side.
async fn play_quarter(quarter: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("KUBELET_SEED") {
        if seed % 4 == quarter {
            play(seed).await.unwrap_or_else(|why| panic!("{why}"));
        }
        return;
    }
    let count = number("KUBELET_SEEDS").unwrap_or(SEEDS);
    let fresh = Random::from_system().below(1 << 40) & !3;
    let old = (0..count).map(|number| number * 4 + quarter);
    let fresh: Vec<u64> = (0..FRESH).map(|number| fresh + number * 4 + quarter).collect();
    println!("{count} seeds, and {fresh:?}");
    for seed in old.chain(fresh) {
        play(seed).await.unwrap_or_else(|why| panic!("{why}"));
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_every_pod_has_one_vm_and_nothing_is_lost_or_left() {
    play_quarter(0).await;
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_in_the_second_quarter_nothing_is_lost_or_left() {
    play_quarter(1).await;
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_in_the_third_quarter_nothing_is_lost_or_left() {
    play_quarter(2).await;
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_in_the_fourth_quarter_nothing_is_lost_or_left() {
    play_quarter(3).await;
}

#[tokio::test(start_paused = true)]
async fn a_planted_bug_is_found() {
    // The tests of hibernation plant the others: what they need is rare in a random world.
    let planted = [Bug::RemovesUnsaved, Bug::ForgetsTags, Bug::LeavesVms, Bug::GivesUp];
    for bug in planted {
        plant(Some(bug));
        let mut found = None;
        for seed in 0..ENOUGH {
            if let Err(why) = play(seed).await {
                found = Some((seed, why));
                break;
            }
        }
        plant(None);
        let (seed, why) = found.unwrap_or_else(|| panic!("{bug:?} is not found by {ENOUGH} seeds"));
        let first: Vec<&str> = why.lines().take(3).collect();
        println!("{bug:?} is found by seed {seed}: {}", first.join(" "));
    }
}

#[tokio::test(start_paused = true)]
async fn the_checker_finds_what_is_planted() {
    let mut campaign = Campaign::new(1);
    campaign.restart(false).await;
    campaign.lab.run_pod("a").await;
    campaign.settle().await.unwrap();
    campaign.node.take().unwrap().kill().await;
    let host = campaign.lab.host.clone();
    let found = async |campaign: &Campaign| {
        problems(&campaign.lab, &campaign.registry, &campaign.remembered).await.join("; ")
    };
    let image = roost_microvm::RunOptions {
        name: "vk-default-x".into(),
        image: "img".into(),
        ..roost_microvm::RunOptions::default()
    };
    host.with_host(|host| host.run(&image, jiff::Timestamp::UNIX_EPOCH)).unwrap();
    assert_eq!(found(&campaign).await, "vk-default-x is a VM without a pod");
    host.with_host(|host| host.remove("vk-default-x", true)).unwrap();
    let uid = campaign.lab.pod("a").await.unwrap().uid().unwrap();
    campaign.remembered.insert(uid.clone(), "7".into());
    assert!(found(&campaign).await.starts_with("vk-default-a has lost its memory"));
    host.with_host(|host| host.remember("vk-default-a", "7")).unwrap();
    assert_eq!(found(&campaign).await, "");
    for (said, wrong) in [("creating", "vk-default-a says creating, not ready"), ("failed", "")] {
        campaign.lab.annotate("a", key::LIFECYCLE_STATE, Some(said)).await;
        assert_eq!(found(&campaign).await, wrong);
    }
    campaign.registry.put("vk-default-a", "hibernate", &json!({}), &[]);
    assert_eq!(found(&campaign).await, "vk-default-a is awake beside an old snapshot of itself");
    campaign.lab.annotate("a", key::HIBERNATE, Some("true")).await;
    assert_eq!(found(&campaign).await, "vk-default-a does not sleep");
    campaign.registry.remove_tag("vk-default-a", "hibernate");
    host.with_host(|host| host.remove("vk-default-a", true)).unwrap();
    assert_eq!(found(&campaign).await, "vk-default-a sleeps and nothing of it is kept");
    campaign.lab.annotate("a", key::HIBERNATE, None).await;
    assert_eq!(found(&campaign).await, "vk-default-a has no VM");
    let image = roost_microvm::RunOptions { name: "vk-default-a".into(), ..image };
    host.with_host(|host| host.run(&image, jiff::Timestamp::UNIX_EPOCH)).unwrap();
    campaign.remembered.clear();
    assert_eq!(found(&campaign).await, "vk-default-a names another VM than it has");
}
