//! What a VM carries beside its hardware: tags, media in its drives, and what it is told apart by.

use roost_vim::wire::types::VirtualHardware;
use roost_vim::{Reconfigure, RestError, eject};

use super::retry::Pauses;
use super::{Hold, MachineError, Machines};
use crate::{Phase, VmId};

/// What tells one machine from another, as the server has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// The BIOS uuid.
    pub uuid: Option<String>,
    /// Of its cards, in their order.
    pub macs: Vec<String>,
}

impl Machines {
    /// The identity of a VM. One call.
    pub async fn identity(&self, vm: &VmId) -> Result<Identity, MachineError> {
        const PATHS: &[&str] = &["config.uuid", "config.hardware"];
        let machine = self.name_of(vm);
        let failed = MachineError::call(Phase::RECONFIGURING, &machine);
        let read = self.client().properties(&vm.moref(), PATHS).await.map_err(failed)?;
        let hardware = read.data::<VirtualHardware>("config.hardware");
        let devices = hardware.map(|hardware| hardware.device.as_slice()).unwrap_or_default();
        let macs = devices.iter().filter_map(|device| device.mac_address.clone());
        Ok(Identity {
            uuid: read.str("config.uuid").map(str::to_owned),
            macs: macs.filter(|mac| !mac.is_empty()).collect(),
        })
    }

    /// Puts tags on a VM, each by id or, if there is none of that id, by name. Those that are there already are fine.
    pub async fn attach_tags(&self, hold: &Hold, tags: &[String]) -> Result<(), MachineError> {
        let machine = self.name_of(hold.vm());
        let phase = Phase::RECONFIGURING;
        let mut pauses = Pauses::within(self.longest(phase));
        let work = async {
            for tag in tags {
                loop {
                    let Err(source) = self.attach_tag(hold, tag).await else { break };
                    let error = MachineError::Rest { phase, machine: machine.to_string(), source };
                    if !error.may_pass() || !pauses.pause().await {
                        return Err(error);
                    }
                }
            }
            Ok(())
        };
        self.phase(&machine, phase, work).await
    }

    async fn attach_tag(&self, hold: &Hold, wanted: &str) -> Result<(), RestError> {
        let vm = hold.vm().moref();
        if wanted.starts_with("urn:") {
            return self.client().attach_tag(wanted, &vm).await;
        }
        for category in self.client().tag_categories().await? {
            let tags = self.client().tags_of_category(&category.id).await?;
            if let Some(tag) = tags.iter().find(|tag| tag.name == wanted || tag.id == wanted) {
                return self.client().attach_tag(&tag.id, &vm).await;
            }
        }
        let message = format!("there is no tag {wanted}");
        Err(RestError::Failed { what: "attaching a tag", message })
    }

    /// Takes images out of all drives. False if there was none.
    pub async fn eject_images(&self, hold: &Hold) -> Result<bool, MachineError> {
        let machine = self.name_of(hold.vm());
        let failed = MachineError::vm(Phase::RECONFIGURING, &machine);
        let devices = self.client().devices(&hold.vm().moref()).await.map_err(failed)?;
        let has_image = |device: &&roost_vim::wire::types::VirtualDevice| {
            let file = device.backing.as_ref().and_then(|backing| backing.file_name.as_ref());
            device.is_cdrom() && file.is_some_and(|name| !name.is_empty())
        };
        let drives: Vec<_> = devices.iter().filter(has_image).map(eject).collect();
        if drives.is_empty() {
            return Ok(false);
        }
        let change = Reconfigure { devices: drives, ..Reconfigure::default() };
        self.reconfigure(hold, &change).await.map(|()| true)
    }
}
