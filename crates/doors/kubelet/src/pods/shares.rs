//! A VM gets the share of the host that its pod asks for.

use roost_controller::Key;
use roost_microvm::{Cgroups, VmRecord};

use super::work::PodWork;
use crate::contract::VmSpec;

impl PodWork {
    /// Asked for again whenever the VM has a new process.
    pub(crate) fn place(&self, key: &Key, spec: Option<&VmSpec>, vm: &VmRecord) {
        let (Some(groups), Some(spec)) = (&self.host.cgroups, spec) else { return };
        if vm.pid == 0 || !spec.managed || spec.shares.is_nothing() {
            return;
        }
        if let Err(error) = groups.place(&vm.id, vm.pid, &spec.shares) {
            tracing::warn!(pod = %key, "requests and limits do not hold for VM {}: {error}", vm.name());
        }
    }
}

/// The group of a VM that is gone.
pub(super) fn displace(groups: Option<&Cgroups>, vm: &VmRecord) {
    if let Some(groups) = groups {
        groups.remove(&vm.id);
    }
}
