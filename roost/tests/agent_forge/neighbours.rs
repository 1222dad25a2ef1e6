//! The neighbours of HyperShift: on the API server as anybody else, and with hosts that a vCenter in another process boots.

use std::sync::{Mutex, PoisonError};

use roost_hypershift_sim::{Boot, Guests, Looking};
use roost_vim::Client;
use serde_json::Value;

use crate::wire::{Control, VcenterSim, Vm};

/// What the vCenter says over the wire of what it booted and of what runs, as of the last look.
#[derive(Debug)]
pub(crate) struct WireGuests {
    client: Client,
    control: Control,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    boots: Vec<Boot>,
    /// Uuids of the VMs that are powered on.
    running: Vec<String>,
}

impl Guests for WireGuests {
    fn look(&self) -> Looking<'_> {
        Box::pin(async move {
            let seen = self.read().await;
            let answered = seen.is_some();
            if let Some(seen) = seen {
                *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
            }
            answered
        })
    }

    fn boots(&self) -> Vec<Boot> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).boots.clone()
    }

    fn is_running(&self, uuid: &str) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.running.iter().any(|known| known == uuid)
    }
}

fn boot(said: &Value) -> Option<Boot> {
    let text = |key: &str| said[key].as_str().map(str::to_owned);
    let macs = said["macs"].as_array().into_iter().flatten();
    Some(Boot {
        vm: text("vm")?,
        uuid: text("uuid")?,
        macs: macs.filter_map(|mac| mac.as_str().map(str::to_owned)).collect(),
        iso: text("iso"),
    })
}

impl WireGuests {
    pub(crate) async fn of(vcenter: &VcenterSim) -> Self {
        let client = vcenter.client().await;
        let control = Control::new(vcenter.process.line("Control endpoint: "));
        Self { client, control, seen: Mutex::default() }
    }

    /// `None` if one of the two does not answer.
    async fn read(&self) -> Option<Seen> {
        let said = self.control.try_get("guests/boots").await?;
        let boots = said.as_array()?.iter().filter_map(boot).collect();
        let vms = Vm::try_read_all(&self.client).await.ok()?;
        let running = vms.into_iter().filter(|vm| vm.is_on).filter_map(|vm| vm.uuid).collect();
        Some(Seen { boots, running })
    }
}
