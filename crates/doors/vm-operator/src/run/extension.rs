//! The extension that VMs are marked to be managed by. vCenter takes the mark without it; registered, people see a name and a summary beside a VM.

use std::sync::Arc;
use std::time::Duration;

use roost_controller::Status;
use roost_supervise::{Backoff, Chain};
use roost_vim::wire::Element;
use tokio::time::sleep;

use crate::api::names::SUPERVISOR_EXTENSION;
use crate::flow::Context;

const AGAIN: Backoff = Backoff::new(Duration::from_secs(5), Duration::from_mins(30));

/// Ends when it is registered. Only the leader asks; VMs are made meanwhile.
pub(crate) async fn run(cx: Arc<Context>, status: Status) {
    let key = &cx.provider.settings.extension_key;
    // The Supervisor's is registered by the Supervisor.
    if key.is_empty() || key == SUPERVISOR_EXTENSION {
        return;
    }
    let mut failures = 0;
    loop {
        status.leads().await;
        let registered = cx.provider.fleet.client().ensure_extension(extension(&cx, key)).await;
        match registered {
            Ok(()) => return tracing::info!("the vCenter knows the extension {key}"),
            Err(error) => {
                let pause = AGAIN.pause(failures);
                failures += 1;
                tracing::warn!(
                    "the extension {key} is not registered, again in {pause:?}: {}",
                    Chain(&error)
                );
                sleep(pause).await;
            }
        }
    }
}

fn extension(cx: &Context, key: &str) -> Element {
    let description = Element::new("description")
        .with_field("label", &"Roost VM operator".to_owned())
        .with_field("summary", &"VirtualMachine objects of Kubernetes".to_owned());
    Element::new("extension")
        .with(description)
        .with_field("key", &key.to_owned())
        .with_field("version", &env!("CARGO_PKG_VERSION").to_owned())
        .with_field("lastHeartbeatTime", &cx.now())
}
