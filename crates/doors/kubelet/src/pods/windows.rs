//! A Windows guest with a static address gets it through its serial console, because it has no network before.

use k8s_openapi::api::core::v1::Pod;
use roost_controller::Key;
use roost_microvm::{SacConsole, SacError, StaticNic, VmRecord};
use roost_supervise::Chain;

use super::table::PostCloneState;
use super::work::PodWork;
use crate::contract::{LifecycleState, observed_generation};

impl PodWork {
    pub(super) async fn set_static_addresses(&self, pod: &Pod, key: &Key, vm: &VmRecord) {
        let nics = StaticNic::of(&vm.network_configs);
        let path = self.host.runtime.console(vm);
        let set = async {
            let mut console = SacConsole::dial(&path).await?;
            console.set_addresses(&nics, vm.network_configs.len()).await
        };
        let set: Result<(), SacError> = set.await;
        let generation = observed_generation(pod);
        self.table.change(key, |seen| {
            if seen.vm.as_ref().is_none_or(|seen| seen.id != vm.id) {
                return;
            }
            match set {
                Ok(()) => {
                    seen.post_clone = Some(PostCloneState::Done);
                    seen.say(LifecycleState::Ready, generation, "");
                    let text = "the guest has its static addresses";
                    self.events.normal(pod, "PostCloneSucceeded", text);
                }
                Err(error) => {
                    let text = format!("create: static address of the guest: {}", Chain(&error));
                    self.events.warning(pod, event(&error), &text);
                    tracing::warn!(pod = %key, "{text}");
                    seen.post_clone = Some(PostCloneState::Failed);
                    seen.say(LifecycleState::Failed, generation, &text);
                }
            }
        });
        self.trigger.signal(key.clone());
    }
}

/// The reason by which people know the step.
fn event(error: &SacError) -> &'static str {
    match error {
        SacError::Dial { .. } | SacError::NoPrompt => "PostCloneSACDialFailed",
        SacError::TooFewCards { .. } => "PostCloneSACEnumFailed",
        SacError::Talk { .. } | SacError::Silent { .. } => "PostCloneSACSetFailed",
        SacError::NotTaken { .. } => "PostCloneSACVerifyFailed",
    }
}
