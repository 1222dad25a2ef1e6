//! What a `VirtualMachine` means: used by priority, flows, status and explanations alike.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::{PowerOpMode, PowerState, PromoteDisksMode, VirtualMachine, VirtualMachineStatus};
use crate::api::condition::{ConditionType, is_true};
use crate::api::names::{annotation, finalizer, label};

/// Who paused a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PauseState {
    Running,
    ByDevops,
    ByAdmin,
    ByBoth,
}

impl PauseState {
    pub fn new(devops: bool, admin: bool) -> Self {
        match (devops, admin) {
            (false, false) => Self::Running,
            (true, false) => Self::ByDevops,
            (false, true) => Self::ByAdmin,
            (true, true) => Self::ByBoth,
        }
    }

    /// The value of the label; `None` takes it away.
    pub fn label(self) -> Option<&'static str> {
        match self {
            Self::Running => None,
            Self::ByDevops => Some("devops"),
            Self::ByAdmin => Some("admin"),
            Self::ByBoth => Some("both"),
        }
    }
}

/// Which programs prepare a guest of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestFamily {
    Linux,
    Windows,
    Other,
}

/// Parts of vSphere's ids of guests that run Linux.
const LINUX_PARTS: [&str; 24] = [
    "linux", "ubuntu", "debian", "rhel", "centos", "sles", "suse", "fedora", "oracle", "photon",
    "coreos", "asianux", "amazon", "rocky", "alma", "opensuse", "mandr", "turbo", "redhat", "oes",
    "nld", "sjds", "flatcar", "crxpod",
];

impl GuestFamily {
    /// By vSphere's id, such as `ubuntu64Guest` or `windows2022srvNext_64Guest`.
    pub fn of(guest_id: &str) -> Self {
        let id = guest_id.to_ascii_lowercase();
        if id.starts_with("win") {
            Self::Windows
        } else if LINUX_PARTS.iter().any(|part| id.contains(part)) {
            Self::Linux
        } else {
            Self::Other
        }
    }
}

impl VirtualMachineStatus {
    pub fn is(&self, condition: ConditionType) -> bool {
        is_true(&self.conditions, condition)
    }

    pub fn has_primary_ip(&self) -> bool {
        self.network
            .as_ref()
            .is_some_and(|net| !net.primary_ip4.is_empty() || !net.primary_ip6.is_empty())
    }
}

impl VirtualMachine {
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
    }

    pub fn is(&self, condition: ConditionType) -> bool {
        is_true(self.conditions(), condition)
    }

    pub fn is_created(&self) -> bool {
        self.is(ConditionType::Created)
    }

    pub fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The power state as it is, if it is known.
    pub fn current_power_state(&self) -> Option<PowerState> {
        self.status.as_ref()?.power_state
    }

    /// Is another power state wanted than there is? No wish beside a known state counts as another.
    pub fn waits_for_power_state(&self) -> bool {
        self.spec.power_state != self.current_power_state()
    }

    /// Is the VM on its way from on to off?
    pub fn is_powering_off(&self) -> bool {
        self.current_power_state() == Some(PowerState::PoweredOn)
            && self.spec.power_state == Some(PowerState::PoweredOff)
    }

    /// Has it a network to get an address from? Without a word on networks in the spec, the cards that were seen decide: a VM without any
    /// would otherwise wait for ever.
    pub fn has_network(&self) -> bool {
        match &self.spec.network {
            Some(network) => !network.disabled,
            None => self
                .status
                .as_ref()
                .and_then(|status| status.network.as_ref())
                .is_some_and(|network| !network.interfaces.is_empty()),
        }
    }

    /// The first of its addresses, of the older family before the newer one.
    pub fn primary_ip(&self) -> Option<&str> {
        let network = self.status.as_ref()?.network.as_ref()?;
        let both = [network.primary_ip4.as_str(), network.primary_ip6.as_str()];
        both.into_iter().find(|ip| !ip.is_empty())
    }

    pub fn has_primary_ip(&self) -> bool {
        self.status.as_ref().is_some_and(VirtualMachineStatus::has_primary_ip)
    }

    /// Powered on, with a network, without an address.
    pub fn waits_for_address(&self) -> bool {
        self.current_power_state() == Some(PowerState::PoweredOn)
            && self.has_network()
            && !self.has_primary_ip()
    }

    pub fn promote_disks_mode(&self) -> PromoteDisksMode {
        self.spec.promote_disks_mode.unwrap_or(PromoteDisksMode::Online)
    }

    pub fn waits_for_disk_promotion(&self) -> bool {
        self.promote_disks_mode() != PromoteDisksMode::Disabled
            && !self.is(ConditionType::DiskPromotionSynced)
    }

    pub fn power_off_mode(&self) -> PowerOpMode {
        self.spec.power_off_mode.unwrap_or(PowerOpMode::TrySoft)
    }

    pub fn suspend_mode(&self) -> PowerOpMode {
        self.spec.suspend_mode.unwrap_or(PowerOpMode::TrySoft)
    }

    pub fn restart_mode(&self) -> PowerOpMode {
        self.spec.restart_mode.unwrap_or(PowerOpMode::TrySoft)
    }

    /// Has somebody with access to the object paused it?
    pub fn is_paused_by_annotation(&self) -> bool {
        self.annotations().contains_key(annotation::PAUSED)
    }

    pub fn is_paused_by_label(&self) -> bool {
        self.labels().contains_key(label::PAUSED)
    }

    /// Shall the VM outlive its object?
    pub fn skips_platform_delete(&self) -> bool {
        self.annotations().contains_key(annotation::SKIP_DELETE_PLATFORM_RESOURCE)
    }

    /// The components that hold back the power-on.
    pub fn power_on_checks(&self) -> Vec<&str> {
        self.checks(annotation::POWER_ON_CHECK_PREFIX)
    }

    /// The components that hold back the deletion.
    pub fn delete_checks(&self) -> Vec<&str> {
        self.checks(annotation::DELETE_CHECK_PREFIX)
    }

    fn checks(&self, prefix: &str) -> Vec<&str> {
        self.annotations().keys().filter_map(|key| key.strip_prefix(prefix)).collect()
    }

    pub fn has_finalizer(&self) -> bool {
        self.finalizers().iter().any(|known| known == finalizer::VM)
    }

    pub fn has_deprecated_finalizer(&self) -> bool {
        self.finalizers().iter().any(|known| known == finalizer::DEPRECATED_VM)
    }

    /// A node of a cluster made by Cluster API: no backup and no snapshots.
    pub fn is_cluster_node(&self) -> bool {
        label::CLUSTER_ROLES.iter().any(|role| self.labels().contains_key(*role))
    }

    /// Made without a class.
    pub fn is_classless(&self) -> bool {
        self.spec.class_name.is_empty() && self.spec.class.is_none()
    }

    /// `namespace/name`, as the VM's extraConfig has it.
    pub fn namespaced_name(&self) -> String {
        format!("{}/{}", self.namespace().unwrap_or_default(), self.name_any())
    }
}
