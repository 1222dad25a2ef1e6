//! The steps that take time, each in a task of its own. Its end calls the pod's key; until then nothing else is done to the pod.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use roost_controller::{Events, Key, Trigger};
use roost_microvm::{PostClone, SourceImage, VmRecord};
use roost_supervise::Chain;
use tokio::task::JoinSet;

use super::bring_up::{BroughtUp, Way};
use super::host::Host;
use super::probe::{Pinger, address_of, probe};
use super::table::{Activity, Ending, Failure, PodTable, Tracked, Waiting};
use crate::contract::{Intent, LifecycleState, Mode, Os, VmSpec, observed_generation};

/// What the steps share.
#[derive(Debug, Clone)]
pub(crate) struct Shop {
    pub(crate) host: Arc<Host>,
    pub(crate) table: PodTable,
    pub(crate) trigger: Trigger,
    pub(crate) events: Events,
    pub(crate) pinger: Arc<dyn Pinger>,
    pub(crate) tasks: Arc<std::sync::Mutex<JoinSet<()>>>,
}

impl Shop {
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
        self.table.change(key, |pod| pod.activity = Some(activity));
        let (table, trigger, key) = (self.table.clone(), self.trigger.clone(), key.clone());
        self.spawn(async move {
            let done = Done { table, trigger, key };
            work.await;
            drop(done);
        });
    }

    pub(crate) fn bring_up(&self, pod: Arc<Pod>, key: &Key, spec: VmSpec) {
        let shop = self.clone();
        let activity =
            if spec.restore_from_hibernate { Activity::Waking } else { Activity::Creating };
        let generation = observed_generation(&pod);
        self.table.change(key, |seen| {
            seen.spec = Some(spec.clone());
            seen.say(LifecycleState::Creating, generation, "");
        });
        let task = key.clone();
        self.begin(key, activity(Waiting::Queued), async move {
            let began = shop.host.clock.now();
            let tell = |waiting| {
                shop.table.change(&task, |seen| seen.activity = Some(activity(waiting)));
                shop.trigger.signal(task.clone());
            };
            match shop.host.bring_up(&spec, &tell).await {
                Ok(up) => shop.came_up(&pod, &task, &spec, up, began),
                Err(error) => {
                    let text = Chain(&error).to_string();
                    shop.host.metrics.lifecycle("create", "failed");
                    shop.failed(&pod, &task, "CreateBringUpFailed", &format!("create: {text}"));
                }
            }
        });
    }

    fn came_up(&self, pod: &Pod, key: &Key, spec: &VmSpec, up: BroughtUp, began: Timestamp) {
        let now = self.host.clock.now();
        let mode = if spec.mode == Mode::Run && up.way == Way::Ran { "run" } else { "clone" };
        self.host.metrics.booted(mode, &up.vm.hypervisor, now.duration_since(began));
        self.host
            .metrics
            .lifecycle("create", if up.way == Way::Adopted { "adopted" } else { "ok" });
        let event = if up.way == Way::Woken { "Woken" } else { "ProviderCreateSuccess" };
        self.events.normal(pod, event, &format!("VM {} runs as {}", up.vm.name(), up.vm.id));
        let owed = (up.way.is_copy() && spec.os != Os::Windows).then(|| {
            let image = SourceImage::of(&up.image, self.host.runtime.is_cloud_image(&up.vm));
            PostClone::needed(&up.vm, image)
        });
        let script = owed.flatten().map(|owed| owed.script);
        self.table.change(key, |seen| {
            seen.failure = None;
            seen.started = Some(now);
            seen.vm = Some(up.vm.clone());
            seen.address = address_of(&self.host, seen, now);
            seen.ready = false;
            seen.hint = None;
            seen.post_clone = script.as_ref().map(|_| "running");
            if script.is_none() {
                seen.say(LifecycleState::Ready, observed_generation(pod), "");
            }
        });
        self.watch_guest(key.clone(), &up.vm);
        if let Some(script) = script {
            let (shop, key, pod, vm) = (self.clone(), key.clone(), pod.clone(), up.vm);
            self.spawn(async move { shop.fix_network(&pod, &key, &vm, script).await });
        }
    }

    /// Probes the VM from now on.
    pub(crate) fn watch_guest(&self, key: Key, vm: &VmRecord) {
        let (host, pinger) = (Arc::clone(&self.host), Arc::clone(&self.pinger));
        let (table, trigger) = (self.table.clone(), self.trigger.clone());
        self.spawn(probe(host, pinger, table, key, vm.id.clone(), trigger));
    }

    /// Something did not work: it is told and tried again later.
    pub(crate) fn failed(&self, pod: &Pod, key: &Key, reason: &'static str, text: &str) {
        let now = self.host.clock.now();
        let short: String = text.chars().take(500).collect();
        self.events.warning(pod, reason, &short);
        tracing::warn!(pod = %key, "{text}");
        self.table.change(key, |seen| {
            seen.failure =
                Some(Failure::again(seen.failure.as_ref(), reason, text.to_owned(), now));
            seen.say(LifecycleState::Failed, observed_generation(pod), text);
        });
    }

    pub(crate) fn hibernate(&self, pod: Arc<Pod>, key: &Key, spec: VmSpec, vm: VmRecord) {
        let shop = self.clone();
        let generation = observed_generation(&pod);
        self.table.change(key, |seen| seen.say(LifecycleState::Hibernating, generation, ""));
        let task = key.clone();
        self.begin(key, Activity::Hibernating, async move {
            match shop.host.hibernate(&spec, &vm).await {
                Ok(()) => {
                    shop.host.metrics.lifecycle("update", "hibernated");
                    shop.events.normal(pod.as_ref(), "Hibernated", "the VM is saved and removed");
                    shop.table.change(&task, |seen| {
                        (seen.vm, seen.address, seen.ready, seen.failure) =
                            (None, None, false, None);
                        seen.say(LifecycleState::Hibernated, generation, "");
                    });
                }
                Err(error) => {
                    shop.host.metrics.lifecycle("update", "hibernate_failed");
                    let text = format!("update: {}", Chain(&error));
                    shop.failed(&pod, &task, error.reason(), &text);
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
        let (shop, spec, task) = (self.clone(), seen.spec.clone(), key.clone());
        self.begin(key, Activity::Deleting, async move {
            match shop.host.delete(spec.as_ref(), &vm, grace_seconds).await {
                Ok(()) => {
                    shop.host.metrics.lifecycle("delete", "ok");
                    shop.table.change(&task, |seen| (seen.vm, seen.failure) = (None, None));
                }
                Err(error) => {
                    shop.host.metrics.lifecycle("delete", "failed");
                    let text = format!("delete: {}", Chain(&error));
                    if let Some(pod) = pod {
                        shop.failed(&pod, &task, "ProviderDeleteFailed", &text);
                    } else {
                        let now = shop.host.clock.now();
                        tracing::warn!(pod = %task, "{text}");
                        shop.table.change(&task, |seen| {
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
        let (shop, task) = (self.clone(), key.clone());
        self.begin(key, Activity::Restarting, async move {
            let now = shop.host.clock.now();
            let started = match shop.host.runtime.start(&vm.id).await {
                Ok(()) => shop.host.runtime.inspect(&vm.id).await,
                Err(error) => Err(error),
            };
            match started {
                Ok(fresh) => {
                    shop.events.normal(
                        pod.as_ref(),
                        "ResumedAfterRestart",
                        "the VM stopped and was started again",
                    );
                    shop.table.change(&task, |seen| {
                        seen.vm = Some(fresh);
                        seen.restarts = seen.restarts.saturating_add(1);
                        seen.restarted = Some(now);
                    });
                }
                Err(error) => {
                    let text = error.to_string();
                    shop.lose(&task, &vm, "RestartFailed", &text).await;
                }
            }
        });
    }

    pub(crate) fn give_up(&self, key: &Key, vm: VmRecord, reason: &'static str, message: String) {
        let (shop, task) = (self.clone(), key.clone());
        self.begin(key, Activity::Evicting, async move {
            shop.lose(&task, &vm, reason, &message).await;
        });
    }

    /// The VM is removed and the pod is marked to end. If it cannot be removed, the pod stays: two VMs of one pod are worse.
    async fn lose(&self, key: &Key, vm: &VmRecord, reason: &'static str, message: &str) {
        let now = self.host.clock.now();
        match self.host.remove(vm).await {
            Ok(()) => {
                let ending = Ending { reason, message: message.to_owned(), told: false };
                self.table.change(key, |seen| {
                    (seen.vm, seen.ending, seen.ready) = (None, Some(ending), false);
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
    /// What the lifecycle annotations are to say from now on.
    pub(crate) fn say(&mut self, state: LifecycleState, generation: i64, message: &str) {
        if let Some(next) = Intent::next(self.intent.as_ref(), state, generation, message) {
            self.intent = Some(next);
        }
    }
}

/// However a step ends, also by a panic, its pod is free again and looked at.
struct Done {
    table: PodTable,
    trigger: Trigger,
    key: Key,
}

impl Drop for Done {
    fn drop(&mut self) {
        self.table.change(&self.key, |pod| pod.activity = None);
        self.trigger.signal(self.key.clone());
    }
}
