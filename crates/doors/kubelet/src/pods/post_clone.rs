//! A copied guest gets its own network: the script is run in it, and shown to people where it cannot.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use roost_controller::Key;
use roost_microvm::{ExecOptions, ExecStreams, PostClone, SourceImage, VmRecord};
use roost_supervise::Chain;
use tokio::time::{Instant, sleep, timeout};

use super::table::{Debt, PostCloneState};
use super::work::PodWork;
use crate::contract::{LifecycleState, Os, VmSpec, observed_generation};

const PAUSE: Duration = Duration::from_secs(3);
const WITHIN: Duration = Duration::from_mins(3);
/// A guest daemon that hangs is left, and asked again.
const ONCE: Duration = Duration::from_secs(30);

/// What a guest still needs before its network is its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owed {
    /// A static address, through the console of Windows.
    Addresses,
    /// A script in a copied Linux guest.
    Script(String),
}

impl PodWork {
    /// `image`: what the VM's disk was made from.
    pub(super) fn owed(
        &self,
        spec: &VmSpec,
        vm: &VmRecord,
        is_copy: bool,
        image: &str,
    ) -> Option<Owed> {
        if !spec.managed {
            return None;
        }
        if spec.os == Os::Windows {
            return vm.has_static_address().then_some(Owed::Addresses);
        }
        let image = SourceImage::of(image, self.host.runtime.is_cloud_image(vm));
        let script = is_copy.then(|| PostClone::needed(vm, image)).flatten();
        script.map(|owed| Owed::Script(owed.script))
    }

    /// Beside everything else: the pod is shown as running meanwhile.
    pub(super) fn settle_debt(&self, pod: &Pod, key: &Key, vm: VmRecord, owed: Owed) {
        let (work, key, pod) = (self.clone(), key.clone(), pod.clone());
        self.spawn_look(async move {
            match owed {
                Owed::Addresses => work.set_static_addresses(&pod, &key, &vm).await,
                Owed::Script(script) => work.fix_network(&pod, &key, &vm, script).await,
            }
        });
    }

    /// A kubelet that died made this guest, or was about to give it its network. What it owed is owed still.
    pub(super) fn resume_post_clone(&self, pod: Arc<Pod>, key: &Key, spec: VmSpec, vm: VmRecord) {
        self.table.change(key, |seen| seen.debt = Debt::Checked);
        let (work, key) = (self.clone(), key.clone());
        self.spawn_look(async move {
            let is_known = work.table.get(&key).is_some_and(|seen| seen.post_clone.is_some());
            // Only what hibernates leaves a tag, so a VM beside one was woken from it.
            let is_copy = is_known || spec.is_copy() || work.was_woken(&key, &spec, &vm).await;
            let owed = work.owed(&spec, &vm, is_copy, &vm.config.image);
            let is_same = work.table.change(&key, |seen| {
                let is_same = seen.vm.as_ref().is_some_and(|seen| seen.id == vm.id);
                if is_same {
                    seen.debt = Debt::None;
                    seen.post_clone = owed.as_ref().map(|_| PostCloneState::Running);
                }
                is_same
            });
            if let (Some(true), Some(owed)) = (is_same, owed) {
                work.settle_debt(&pod, &key, vm, owed);
            }
            work.trigger.signal(key);
        });
    }

    /// Asked until there is an answer, for as long as it is the pod's VM.
    async fn was_woken(&self, key: &Key, spec: &VmSpec, vm: &VmRecord) -> bool {
        let is_same =
            |seen: &super::table::Tracked| seen.vm.as_ref().is_some_and(|seen| seen.id == vm.id);
        while self.table.get(key).is_some_and(|seen| is_same(&seen)) {
            match self.host.is_hibernated(spec).await {
                Ok(is_hibernated) => return is_hibernated,
                Err(error) => tracing::warn!(pod = %key, "{}", Chain(&error)),
            }
            sleep(PAUSE).await;
        }
        false
    }

    pub(super) async fn fix_network(&self, pod: &Pod, key: &Key, vm: &VmRecord, script: String) {
        let deadline = Instant::now() + WITHIN;
        let mut last = String::new();
        while Instant::now() < deadline {
            let options = ExecOptions {
                argv: ["sh", "-c", &script].map(str::to_owned).to_vec(),
                ..ExecOptions::default()
            };
            let run = self.host.runtime.exec(&vm.id, options, ExecStreams::default());
            match timeout(ONCE, run).await {
                Ok(Ok(0)) => return self.post_clone_ended(pod, key, vm, None),
                Ok(Ok(code)) => last = format!("it ended with {code}"),
                Ok(Err(error)) if error.is_vm_gone() => return,
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => last = format!("the guest did not answer within {ONCE:?}"),
            }
            sleep(PAUSE).await;
        }
        self.post_clone_ended(pod, key, vm, Some((last, script)));
    }

    fn post_clone_ended(
        &self,
        pod: &Pod,
        key: &Key,
        vm: &VmRecord,
        failed: Option<(String, String)>,
    ) {
        let generation = observed_generation(pod);
        self.table.change(key, |seen| {
            if seen.vm.as_ref().is_none_or(|seen| seen.id != vm.id) {
                return;
            }
            match failed {
                None => {
                    seen.post_clone = Some(PostCloneState::Done);
                    seen.say(LifecycleState::Ready, generation, "");
                    self.events.normal(pod, "PostCloneSucceeded", "the guest's network is its own");
                }
                Some((why, script)) => {
                    let text =
                        format!("create: the network of the guest could not be set up: {why}");
                    self.events.warning(pod, "PostCloneExecExhausted", &text);
                    seen.post_clone = Some(PostCloneState::Failed);
                    seen.hint = Some(script);
                    seen.say(LifecycleState::Failed, generation, &text);
                }
            }
        });
        self.trigger.signal(key.clone());
    }
}
