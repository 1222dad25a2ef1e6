//! The neighbours of HyperShift: on the API server as anybody else, and with hosts that a vCenter in another process boots.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use roost_hypershift_sim::{Boot, Guests};
use roost_vim::UuidKind;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::wire::{Control, VcenterSim};

const LOOK: Duration = Duration::from_millis(500);

/// What the vCenter says over the wire of what it booted, looked at again and again.
#[derive(Debug, Default)]
pub(crate) struct WireGuests {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    boots: Vec<Boot>,
    /// By uuid: whether its VM is still there.
    running: Vec<String>,
}

impl Guests for WireGuests {
    fn boots(&self) -> Vec<Boot> {
        self.seen.lock().unwrap().boots.clone()
    }

    fn is_running(&self, uuid: &str) -> bool {
        self.seen.lock().unwrap().running.iter().any(|known| known == uuid)
    }
}

fn boot(said: &Value) -> Boot {
    let text = |key: &str| said[key].as_str().map(str::to_owned);
    let macs = said["macs"].as_array().into_iter().flatten();
    Boot {
        vm: text("vm").unwrap(),
        uuid: text("uuid").unwrap(),
        macs: macs.map(|mac| mac.as_str().unwrap().to_owned()).collect(),
        iso: text("iso"),
    }
}

impl WireGuests {
    /// Looks until the handle is aborted.
    pub(crate) async fn follow(self: &Arc<Self>, vcenter: &VcenterSim) -> JoinHandle<()> {
        let guests = Arc::clone(self);
        let client = vcenter.client().await;
        let control = Control::new(vcenter.process.line("Control endpoint: "));
        tokio::spawn(async move {
            loop {
                let said = control.get("guests/boots").await;
                let boots: Vec<Boot> = said.as_array().unwrap().iter().map(boot).collect();
                let mut running = Vec::new();
                for boot in &boots {
                    let found = client.find_vm_by_uuid(&boot.uuid, UuidKind::Bios).await;
                    if found.is_ok_and(|vm| vm.is_some()) {
                        running.push(boot.uuid.clone());
                    }
                }
                *guests.seen.lock().unwrap() = Seen { boots, running };
                tokio::time::sleep(LOOK).await;
            }
        })
    }
}
