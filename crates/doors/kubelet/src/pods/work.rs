//! The steps that take time, each in a task of its own. Its end calls the pod's key; until then nothing else is done to the pod.

use std::sync::Arc;

use futures_util::FutureExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use roost_controller::{Events, Key, Trigger};
use roost_microvm::{Progress, VmRecord};
use roost_supervise::Chain;
use roost_views::Verdict;
use serde_json::json;
use tokio::task::JoinSet;

use super::bring_up::{BroughtUp, Way};
use super::host::Host;
use super::probe::{Guest, Pinger, address_of, probe};
use super::retire::Retired;
use super::steering::Steering;
use super::table::{Activity, Debt, Ending, Failure, PodTable, PostCloneState, Tracked, Waiting};
use super::vm_watch::{Suspects, follow_process};
use crate::contract::{Intent, LifecycleState, Mode, Os, VmSpec, key, observed_generation};
use crate::planted::{self, Bug};

/// A guest that does not answer its probe gets this long to shut down.
const UNHEALTHY_GRACE_SECONDS: u64 = 10;

/// How often it is seen how far a transfer is.
const PROGRESS: std::time::Duration = std::time::Duration::from_secs(5);

/// What the steps share.
#[derive(Clone)]
pub(crate) struct PodWork {
    pub(crate) client: Client,
    pub(crate) host: Arc<Host>,
    pub(crate) table: PodTable,
    pub(crate) trigger: Trigger,
    pub(crate) events: Events,
    pub(crate) pinger: Arc<dyn Pinger>,
    pub(crate) tasks: Arc<std::sync::Mutex<JoinSet<()>>>,
    pub(crate) suspects: Suspects,
    pub(crate) steering: Steering,
}

impl std::fmt::Debug for PodWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PodWork").field("table", &self.table).finish_non_exhaustive()
    }
}

impl PodWork {
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// A look at a VM, beside everything else.
    pub(super) fn spawn_look(&self, look: impl Future<Output = ()> + Send + 'static) {
        self.spawn(look);
    }

    /// Marks the pod as busy and begins.
    fn begin(
        &self,
        key: &Key,
        activity: Activity,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let now = self.host.clock.now();
        self.table.change(key, |pod| pod.enter(activity, now));
        let done = Done { work: self.clone(), key: key.clone() };
        self.spawn(async move {
            tokio::select! {
                biased;
                () = work => {}
                () = done.show_progress() => {}
            }
            drop(done);
        });
    }

    pub(crate) fn bring_up(&self, pod: Arc<Pod>, key: &Key, spec: VmSpec) {
        let work = self.clone();
        let activity =
            if spec.restore_from_hibernate { Activity::Waking } else { Activity::Creating };
        let generation = observed_generation(&pod);
        let progress = self.transfer(key);
        self.table.change(key, |seen| seen.say(LifecycleState::Creating, generation, ""));
        let task = key.clone();
        self.begin(key, activity(Waiting::Queued), async move {
            let began = work.host.clock.now();
            let tell = |waiting| {
                let now = work.host.clock.now();
                work.table.change(&task, |seen| seen.enter(activity(waiting), now));
                work.trigger.signal(task.clone());
            };
            match work.host.bring_up(&spec, &tell, &progress).await {
                Ok(up) => work.came_up(&pod, &task, &spec, up, began),
                Err(error) => {
                    let (op, result) = if error.is_of_a_wake() && !spec.restore_from_hibernate {
                        ("update", "wake_failed")
                    } else {
                        ("create", "failed")
                    };
                    work.host.metrics.lifecycle(op, result);
                    let text = format!("{op}: {}", Chain(&error));
                    work.failed(&pod, &task, error.reason(), &text);
                }
            }
        });
    }

    fn came_up(&self, pod: &Pod, key: &Key, spec: &VmSpec, up: BroughtUp, began: Timestamp) {
        let now = self.host.clock.now();
        let mode = if spec.mode == Mode::Run && up.way == Way::Ran { "run" } else { "clone" };
        self.host.metrics.booted(mode, &up.vm.hypervisor, now.duration_since(began));
        match up.way {
            Way::Adopted => self.host.metrics.lifecycle("create", "adopted"),
            // A pod that was made to wake is new; one that slept goes on.
            Way::Woken if !spec.restore_from_hibernate => {
                self.host.metrics.lifecycle("update", "woken");
            }
            Way::Woken | Way::Given | Way::Cloned | Way::Ran => {
                self.host.metrics.lifecycle("create", "ok");
            }
        }
        let event = if up.way == Way::Woken { "Woken" } else { "ProviderCreateSuccess" };
        let said = format!("VM {} runs as {}", up.vm.name(), up.vm.id);
        self.events.normal(pod, event, &said);
        let verdict = if up.way == Way::Adopted { Verdict::Adopted } else { Verdict::Spawned };
        let reason = format!("{said}: {}", up.way.words());
        self.host.journal.pod(verdict, &key.to_string(), Some(up.vm.name()), &reason);
        self.place(key, Some(spec), &up.vm);
        let owed = self.owed(spec, &up.vm, up.is_copy, &up.image);
        self.table.change(key, |seen| {
            seen.failure = None;
            seen.started = Some(now);
            seen.vm = Some(up.vm.clone());
            seen.address = address_of(&self.host, seen, now);
            seen.ready = false;
            seen.hint = None;
            (seen.debt, seen.adopted) = (Debt::None, None);
            seen.post_clone = owed.as_ref().map(|_| PostCloneState::Running);
            if owed.is_none() {
                seen.say(LifecycleState::Ready, observed_generation(pod), "");
            }
        });
        self.watch_guest(key.clone(), &up.vm);
        self.open_ports(pod, &up.vm);
        if let Some(owed) = owed {
            self.settle_debt(pod, key, up.vm, owed);
        }
    }

    /// The ports that the pod names are found at the VM's address, where that needs doing.
    fn open_ports(&self, pod: &Pod, vm: &VmRecord) {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let ports = containers.flat_map(|container| container.ports.iter().flatten());
        let ports: Vec<u16> =
            ports.filter_map(|port| u16::try_from(port.container_port).ok()).collect();
        if ports.is_empty() || !self.host.runtime.capabilities().forwards_ports {
            return;
        }
        let (runtime, vm) = (Arc::clone(&self.host.runtime), vm.id.clone());
        self.spawn(async move {
            for port in ports {
                if let Err(error) = runtime.reach(&vm, port).await {
                    tracing::warn!(vm, "port {port} cannot be reached: {error}");
                }
            }
        });
    }

    /// Probes the VM from now on, and follows its process.
    pub(crate) fn watch_guest(&self, key: Key, vm: &VmRecord) {
        self.watch_process(vm);
        self.spawn(probe(Guest {
            host: Arc::clone(&self.host),
            pinger: Arc::clone(&self.pinger),
            table: self.table.clone(),
            trigger: self.trigger.clone(),
            key,
            vm: vm.id.clone(),
        }));
    }

    fn watch_process(&self, vm: &VmRecord) {
        if vm.pid != 0 {
            self.spawn(follow_process(self.clone(), vm.clone()));
        }
    }

    /// Something did not work: it is told and tried again later.
    pub(crate) fn failed(&self, pod: &Pod, key: &Key, reason: &'static str, text: &str) {
        let now = self.host.clock.now();
        let short: String = text.chars().take(500).collect();
        self.events.warning(pod, reason, &short);
        tracing::warn!(pod = %key, "{text}");
        self.host.journal.pod(Verdict::Failed, &key.to_string(), None, text);
        self.table.change(key, |seen| {
            let mut failure = Failure::again(seen.failure.as_ref(), reason, text.to_owned(), now);
            if planted::is(Bug::GivesUp) {
                failure.retry = Timestamp::MAX;
            }
            seen.failure = Some(failure);
            seen.say(LifecycleState::Failed, observed_generation(pod), text);
        });
    }

    pub(crate) fn hibernate(&self, pod: Arc<Pod>, key: &Key, spec: VmSpec, vm: VmRecord) {
        let work = self.clone();
        let generation = observed_generation(&pod);
        self.table.change(key, |seen| seen.say(LifecycleState::Hibernating, generation, ""));
        let (task, progress) = (key.clone(), self.transfer(key));
        self.begin(key, Activity::Hibernating, async move {
            let confirm = work.still_hibernates(&pod, &task).boxed();
            let retired = work.host.hibernate(&spec, &vm, &progress, confirm).await;
            work.table.change(&task, |seen| seen.is_leaving = false);
            if spec.os == Os::Windows && !matches!(retired, Ok(Retired::Gone)) {
                work.refresh(&task, &vm).await;
            }
            match retired {
                Ok(Retired::NotWanted) => {
                    tracing::info!(pod = %task, "the VM stays: it is wanted awake again");
                    work.table.change(&task, |seen| {
                        (seen.has_stale_tag, seen.failure) = (true, None);
                        seen.say(LifecycleState::Ready, generation, "");
                    });
                }
                Ok(Retired::Gone) => {
                    work.host.metrics.lifecycle("update", "hibernated");
                    work.events.normal(pod.as_ref(), "Hibernated", "the VM is saved and removed");
                    let reason = "hibernated: the VM is saved and removed";
                    work.decided(Verdict::Released, &task, &vm, reason);
                    work.table.change(&task, |seen| {
                        (seen.vm, seen.address, seen.ready, seen.failure) =
                            (None, None, false, None);
                        seen.has_stale_tag = false;
                        seen.say(LifecycleState::Hibernated, generation, "");
                    });
                }
                Err(error) => {
                    work.table.change(&task, |seen| seen.has_stale_tag = true);
                    work.host.metrics.lifecycle("update", "hibernate_failed");
                    let text = format!("update: {}", Chain(&error));
                    work.failed(&pod, &task, error.reason(), &text);
                }
            }
        });
    }

    /// Whoever waits for a wake takes a pod with the id of a VM for awake, so the id goes before the VM does.
    async fn still_hibernates(&self, pod: &Pod, key: &Key) -> Result<bool, kube::Error> {
        self.table.change(key, |seen| seen.is_leaving = true);
        let api: Api<Pod> =
            Api::namespaced(self.client.clone(), key.namespace().unwrap_or_default());
        let annotations = json!({key::VM_ID: null, key::VM_IP: null});
        let patch = json!({"metadata": {"uid": pod.metadata.uid, "annotations": annotations}});
        match api.patch(key.name(), &PatchParams::default(), &Patch::Merge(patch)).await {
            // One that is to go is saved as its policy says, not as one that will wake.
            Ok(now) => Ok(now.metadata.deletion_timestamp.is_none()
                && VmSpec::of(&now).is_ok_and(|spec| spec.hibernate)),
            // It is gone, or another has its name: it does not want its VM back.
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Its cards may be others than before.
    async fn refresh(&self, key: &Key, vm: &VmRecord) {
        if let Ok(fresh) = self.host.runtime.inspect(&vm.id).await {
            self.table.change(key, |seen| {
                if seen.vm.as_ref().is_some_and(|seen| seen.id == fresh.id) {
                    (seen.vm, seen.address) = (Some(fresh), None);
                }
            });
        }
    }

    /// What was saved of a VM that goes on is removed.
    pub(crate) fn drop_tag(&self, pod: Arc<Pod>, key: &Key, vm: VmRecord) {
        let (work, task) = (self.clone(), key.clone());
        self.begin(key, Activity::DroppingTag, async move {
            match work.host.drop_tag(vm.name()).await {
                Ok(()) => {
                    work.table.change(&task, |seen| {
                        (seen.has_stale_tag, seen.failure) = (false, None);
                    });
                }
                Err(error) => {
                    let text = format!("update: {}", Chain(&error));
                    work.failed(&pod, &task, error.reason(), &text);
                }
            }
        });
    }

    /// `pod` is absent where only its VM is left.
    pub(crate) fn delete(
        &self,
        pod: Option<Arc<Pod>>,
        key: &Key,
        seen: &Tracked,
        grace_seconds: u64,
    ) {
        let Some(vm) = seen.vm.clone() else { return };
        if planted::is(Bug::LeavesVms) {
            self.table.change(key, |seen| seen.vm = None);
            self.trigger.signal(key.clone());
            return;
        }
        let (work, spec, task) = (self.clone(), seen.spec.clone(), key.clone());
        let progress = self.transfer(key);
        self.begin(key, Activity::Deleting, async move {
            match work.host.delete(spec.as_ref(), &vm, grace_seconds, &progress).await {
                Ok(()) => {
                    work.host.metrics.lifecycle("delete", "ok");
                    work.decided(Verdict::Deleted, &task, &vm, "its pod was deleted");
                    work.table.change(&task, |seen| {
                        (seen.vm, seen.failure, seen.is_removed) = (None, None, true);
                    });
                }
                Err(error) => {
                    work.host.metrics.lifecycle("delete", "failed");
                    let text = format!("delete: {}", Chain(&error));
                    if let Some(pod) = pod {
                        work.failed(&pod, &task, "ProviderDeleteFailed", &text);
                    } else {
                        let now = work.host.clock.now();
                        tracing::warn!(pod = %task, "{text}");
                        work.table.change(&task, |seen| {
                            let failure = Failure::again(
                                seen.failure.as_ref(),
                                "ProviderDeleteFailed",
                                text,
                                now,
                            );
                            seen.failure = Some(failure);
                        });
                    }
                }
            }
        });
    }

    pub(crate) fn restart(&self, pod: Arc<Pod>, key: &Key, vm: VmRecord) {
        let (work, task) = (self.clone(), key.clone());
        self.begin(key, Activity::Restarting, async move {
            let now = work.host.clock.now();
            let unhealthy = work.table.get(&task).and_then(|seen| seen.unhealthy);
            if let Some(why) = &unhealthy {
                let text = format!("the VM is started anew: {why}");
                work.events.warning(pod.as_ref(), "Unhealthy", &text);
                tracing::warn!(pod = %task, "{text}");
                if let Err(error) = work.host.runtime.stop(&vm.id, UNHEALTHY_GRACE_SECONDS).await {
                    tracing::warn!(pod = %task, "the guest did not stop by itself: {error}");
                }
            }
            let started = match work.host.runtime.start(&vm.id).await {
                Ok(()) => work.host.runtime.inspect(&vm.id).await,
                Err(error) => Err(error),
            };
            match started {
                Ok(fresh) => {
                    work.events.normal(
                        pod.as_ref(),
                        "ResumedAfterRestart",
                        "the VM stopped and was started again",
                    );
                    work.watch_process(&fresh);
                    let spec = work.table.get(&task).and_then(|seen| seen.spec);
                    work.place(&task, spec.as_ref(), &fresh);
                    let why = unhealthy.as_deref().unwrap_or("it had stopped");
                    let reason = format!("the VM was started again: {why}");
                    work.decided(Verdict::Changed, &task, &fresh, &reason);
                    work.table.change(&task, |seen| {
                        (seen.vm, seen.failure) = (Some(fresh), None);
                        seen.restarts = seen.restarts.saturating_add(1);
                        seen.unhealthy = None;
                        seen.restarted = Some(now);
                    });
                }
                Err(error) => {
                    let text = error.to_string();
                    work.lose(&task, &vm, "RestartFailed", &text).await;
                }
            }
        });
    }

    pub(crate) fn give_up(&self, key: &Key, vm: VmRecord, reason: &'static str, message: String) {
        let (work, task) = (self.clone(), key.clone());
        self.begin(key, Activity::Evicting, async move {
            work.lose(&task, &vm, reason, &message).await;
        });
    }

    /// The VM is removed and the pod is marked to end. If it cannot be removed, the pod stays: two VMs of one pod are worse.
    async fn lose(&self, key: &Key, vm: &VmRecord, reason: &'static str, message: &str) {
        let now = self.host.clock.now();
        match self.host.remove(vm).await {
            Ok(()) => {
                let ending = Ending { reason, message: message.to_owned(), told: false };
                self.decided(Verdict::Deleted, key, vm, &format!("{reason}: {message}"));
                self.table.change(key, |seen| {
                    (seen.vm, seen.ending, seen.ready) = (None, Some(ending), false);
                    seen.failure = None;
                });
            }
            Err(error) => {
                let text = Chain(&error).to_string();
                tracing::warn!(pod = %key, "{text}");
                self.table.change(key, |seen| {
                    seen.failure = Some(Failure::again(seen.failure.as_ref(), reason, text, now));
                });
            }
        }
    }

    fn decided(&self, verdict: Verdict, key: &Key, vm: &VmRecord, reason: &str) {
        self.host.journal.pod(verdict, &key.to_string(), Some(vm.name()), reason);
    }

    /// Bytes that are fetched or sent for a pod are counted from now on.
    fn transfer(&self, key: &Key) -> Progress {
        let progress = Progress::default();
        self.table.change(key, |seen| seen.transfer = Some(progress.clone()));
        progress
    }

    /// Ends all steps where they are, without waiting.
    pub(crate) fn abandon(&self) {
        let mut tasks = self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let steps = std::mem::take(&mut *tasks);
        drop(tasks);
        drop(steps);
    }

    /// A task's last act ended badly, or the kubelet ends: nothing is left running.
    pub(crate) async fn stop(&self) {
        let mut tasks = {
            let mut tasks = self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        tasks.shutdown().await;
    }
}

impl Tracked {
    /// Nothing is left to do, so the annotations say how it stands. A death between a step and its word is made good here.
    pub(crate) fn settle(&mut self, hibernate: bool, generation: i64) {
        let owes = self.debt != Debt::None
            || matches!(self.post_clone, Some(PostCloneState::Running | PostCloneState::Failed));
        self.failure = None;
        match &self.vm {
            _ if self.ending.is_some() => {}
            Some(_) if !owes => self.say(LifecycleState::Ready, generation, ""),
            None if hibernate => self.say(LifecycleState::Hibernated, generation, ""),
            _ => {}
        }
    }

    /// What the lifecycle annotations are to say from now on.
    pub(crate) fn say(&mut self, state: LifecycleState, generation: i64, message: &str) {
        if let Some(next) = Intent::next(self.intent.as_ref(), state, generation, message) {
            self.intent = Some(next);
        }
    }
}

/// However a step ends, also by a panic, its pod is free again and looked at.
struct Done {
    work: PodWork,
    key: Key,
}

impl Done {
    /// Has the pod looked at whenever a transfer has made some way, for as long as the step lasts.
    async fn show_progress(&self) {
        let mut shown = None;
        loop {
            tokio::time::sleep(PROGRESS).await;
            let transfer = self.work.table.get(&self.key).and_then(|seen| seen.transfer);
            let tenths = transfer.and_then(|transfer| transfer.tenths());
            if tenths != shown {
                shown = tenths;
                self.work.trigger.signal(self.key.clone());
            }
        }
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        self.work.table.leave(&self.key, self.work.host.clock.now());
        self.work.trigger.signal(self.key.clone());
    }
}
