//! What must be known of a template before it is cloned.

use std::fmt;

use roost_vim_wire::types::{
    VirtualDevice, VirtualHardware, VirtualMachineSnapshotInfo,
    VirtualMachineToolsStatus as ToolsStatus,
};
use roost_vim_wire::{MoRef, Value};

use super::error::{Step, VmError};
use crate::device::first_disk;
use crate::{Observer, Properties};

/// The facts of a template that go into a clone request and into the checks before it. Read once; a template rarely changes.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateFacts {
    pub vm: MoRef,
    pub name: String,
    /// Any VM can be cloned; only a template cannot be powered on by mistake.
    pub is_template: bool,
    pub cpus: i32,
    pub memory_mb: i64,
    pub disks: Vec<VirtualDevice>,
    pub nics: Vec<VirtualDevice>,
    pub current_snapshot: Option<MoRef>,
    pub tools: Option<ToolsStatus>,
}

const PATHS: &[&str] =
    &["name", "config.template", "config.hardware", "snapshot", "guest.toolsStatus"];

impl TemplateFacts {
    fn of(vm: &MoRef, read: &Properties) -> Self {
        let hardware = read.data::<VirtualHardware>("config.hardware").cloned().unwrap_or_default();
        let snapshot = read.data::<VirtualMachineSnapshotInfo>("snapshot");
        Self {
            vm: vm.clone(),
            name: read.str("name").unwrap_or_default().into(),
            is_template: read.bool("config.template").unwrap_or_default(),
            cpus: hardware.num_cpu,
            memory_mb: hardware.memory_mb.into(),
            disks: hardware.device.iter().filter(|device| device.is_disk()).cloned().collect(),
            nics: hardware.device.iter().filter(|device| device.is_nic()).cloned().collect(),
            current_snapshot: snapshot.and_then(|snapshot| snapshot.current_snapshot.clone()),
            tools: read.get("guest.toolsStatus").and_then(Value::as_str).map(ToolsStatus::from),
        }
    }

    pub(crate) fn first_disk(&self) -> Option<&VirtualDevice> {
        first_disk(&self.disks)
    }

    /// Whether a disk has a parent that clones can share.
    pub fn has_parent_disk(&self) -> bool {
        self.disks
            .iter()
            .any(|disk| disk.backing.as_ref().is_some_and(|backing| backing.parent.is_some()))
    }

    /// What will not go as wished with clones of this template.
    pub fn warnings(&self, use_: &TemplateUse) -> Vec<TemplateWarning> {
        let mut warnings = Vec::new();
        if use_.linked && self.current_snapshot.is_none() && !self.has_parent_disk() {
            warnings.push(TemplateWarning::NothingToShare);
        }
        if self.disks.is_empty() {
            warnings.push(TemplateWarning::NoDisk);
        }
        if use_.nics.is_some_and(|wanted| wanted != self.nics.len()) {
            let wanted = use_.nics.unwrap_or_default();
            warnings.push(TemplateWarning::NicCount { wanted, has: self.nics.len() });
        }
        if use_.guest && matches!(self.tools, None | Some(ToolsStatus::NotInstalled)) {
            warnings.push(TemplateWarning::NoTools);
        }
        warnings
    }
}

/// What clones of a template are wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TemplateUse {
    /// Clones shall share the template's disks.
    pub linked: bool,
    /// The number of network cards that addresses are given for.
    pub nics: Option<usize>,
    /// Customization or guest operations, both of which need tools in the guest.
    pub guest: bool,
}

/// A reason why clones of a template will be slow, fail, or never become ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateWarning {
    NothingToShare,
    NoDisk,
    NicCount { wanted: usize, has: usize },
    NoTools,
}

impl fmt::Display for TemplateWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingToShare => f.write_str(
                "it has no snapshot and no disk with a parent, so that a linked clone copies the whole disk; take a snapshot of it",
            ),
            Self::NoDisk => f.write_str("it has no disk"),
            Self::NicCount { wanted, has } => {
                write!(f, "it has {has} network cards where {wanted} are expected, so that customization may fail")
            }
            Self::NoTools => f.write_str(
                "VMware Tools are not installed in it, so that it gets no address and no guest operation will work",
            ),
        }
    }
}

impl Observer {
    /// Reads what must be known of a template, or of any VM that is to be cloned.
    pub async fn template_facts(&self, vm: &MoRef) -> Result<TemplateFacts, VmError> {
        let read =
            self.properties(vm, PATHS).await.map_err(VmError::call(Step::ReadTemplate, vm))?;
        Ok(TemplateFacts::of(vm, &read))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use roost_vim_wire::types::{VirtualDeviceBackingInfo, VirtualDeviceConnectInfo};

    use super::*;
    use crate::NewDisk;

    /// The template of the recorded clone request: one E1000 card and one disk.
    pub(crate) fn template() -> TemplateFacts {
        let card = VirtualDevice {
            key: 4000,
            connectable: Some(VirtualDeviceConnectInfo {
                start_connected: true,
                allow_guest_control: true,
                ..Default::default()
            }),
            controller_key: Some(100),
            unit_number: Some(7),
            address_type: Some("generated".into()),
            mac_address: Some("00:0c:29:63:65:61".into()),
            wake_on_lan_enabled: Some(true),
            ..VirtualDevice::of("VirtualE1000")
        };
        let disk = NewDisk::thin(10 << 30).device(2000, 1000, 0).unwrap();
        TemplateFacts {
            vm: MoRef::vm("vm-62"),
            name: "tmpl-debian12".into(),
            is_template: true,
            cpus: 1,
            memory_mb: 1024,
            disks: vec![disk],
            nics: vec![card],
            current_snapshot: None,
            tools: Some(ToolsStatus::NotRunning),
        }
    }

    pub(crate) fn with_parent_disk(mut template: TemplateFacts) -> TemplateFacts {
        let backing = template.disks[0].backing.as_mut().unwrap();
        backing.parent =
            Some(Box::new(VirtualDeviceBackingInfo::of("VirtualDiskFlatVer2BackingInfo")));
        template
    }

    #[test]
    fn a_good_template_has_no_warning() {
        let wanted = TemplateUse { linked: true, nics: Some(1), guest: true };
        assert_eq!(with_parent_disk(template()).warnings(&wanted), []);
        assert_eq!(template().warnings(&TemplateUse::default()), []);
    }

    #[test]
    fn every_trouble_with_a_template_is_told_at_once() {
        let bare = TemplateFacts { disks: Vec::new(), nics: Vec::new(), tools: None, ..template() };
        let warnings = bare.warnings(&TemplateUse { linked: true, nics: Some(2), guest: true });
        assert_eq!(
            warnings,
            [
                TemplateWarning::NothingToShare,
                TemplateWarning::NoDisk,
                TemplateWarning::NicCount { wanted: 2, has: 0 },
                TemplateWarning::NoTools,
            ]
        );
        assert!(warnings[0].to_string().contains("take a snapshot"));
    }

    #[test]
    fn a_snapshot_alone_is_enough_to_share() {
        let snapshot = MoRef::new(roost_vim_wire::MoType::VirtualMachineSnapshot, "snapshot-1");
        let template = TemplateFacts { current_snapshot: Some(snapshot), ..template() };
        assert_eq!(template.warnings(&TemplateUse { linked: true, ..TemplateUse::default() }), []);
    }
}
