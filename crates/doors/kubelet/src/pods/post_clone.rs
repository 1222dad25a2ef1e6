//! A copied guest gets its own network: the script is run in it, and shown to people where it cannot.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use roost_controller::Key;
use roost_microvm::{ExecOptions, ExecStreams, VmRecord};
use tokio::time::{Instant, sleep, timeout};

use super::work::PodWork;
use crate::contract::{LifecycleState, observed_generation};

const PAUSE: Duration = Duration::from_secs(3);
const WITHIN: Duration = Duration::from_mins(3);
/// A guest daemon that hangs is left, and asked again.
const ONCE: Duration = Duration::from_secs(30);

impl PodWork {
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
                    seen.post_clone = Some("done");
                    seen.say(LifecycleState::Ready, generation, "");
                    self.events.normal(pod, "PostCloneSucceeded", "the guest's network is its own");
                }
                Some((why, script)) => {
                    let text =
                        format!("create: the network of the guest could not be set up: {why}");
                    self.events.warning(pod, "PostCloneExecExhausted", &text);
                    seen.post_clone = Some("failed");
                    seen.hint = Some(script);
                    seen.say(LifecycleState::Failed, generation, &text);
                }
            }
        });
        self.trigger.signal(key.clone());
    }
}
