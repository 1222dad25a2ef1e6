use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::vm::Vm;
use crate::VmId;

/// What a condition says of a VM at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check<T> {
    Met(T),
    NotYet,
    /// It cannot be met any more; the words say why.
    Never(&'static str),
}

/// Why a wait for a VM ended without its condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    #[error("{vm} did not get there within {after:?}{}", if *.stale { " (the view of the datacenter is not up to date)" } else { "" })]
    Deadline { vm: VmId, after: Duration, stale: bool },
    #[error("{vm}: {why}")]
    Never { vm: VmId, why: &'static str },
}

/// Who waits for which VM. A change rings for those of its own VM only.
#[derive(Debug, Default)]
pub(super) struct Waits {
    bells: BTreeMap<VmId, Bell>,
}

#[derive(Debug, Default)]
struct Bell {
    notify: Arc<Notify>,
    waiting: usize,
}

impl Waits {
    pub(super) fn enter(&mut self, vm: &VmId) -> Arc<Notify> {
        let bell = self.bells.entry(vm.clone()).or_default();
        bell.waiting += 1;
        Arc::clone(&bell.notify)
    }

    pub(super) fn leave(&mut self, vm: &VmId) {
        if let Some(bell) = self.bells.get_mut(vm) {
            bell.waiting -= 1;
            if bell.waiting == 0 {
                self.bells.remove(vm);
            }
        }
    }

    pub(super) fn ring(&self, vm: &VmId) {
        if let Some(bell) = self.bells.get(vm) {
            bell.notify.notify_waiters();
        }
    }
}

/// Conditions that come up again and again, to be given to [`Mirror::wait_until`](crate::Mirror::wait_until).
pub mod condition {
    use std::net::IpAddr;
    use std::sync::Arc;

    use super::{Check, Vm};
    use crate::Power;

    const GONE: &str = "the VM is gone";
    const OFF: &str = "the VM is powered off";

    fn of_running<T>(
        mut test: impl FnMut(&Vm) -> Option<T>,
    ) -> impl FnMut(Option<&Arc<Vm>>) -> Check<T> {
        move |vm| match vm {
            None => Check::Never(GONE),
            Some(vm) if vm.power == Power::Off => Check::Never(OFF),
            Some(vm) => test(vm).map_or(Check::NotYet, Check::Met),
        }
    }

    /// Programs can be started in the guest.
    pub fn guest_ready() -> impl FnMut(Option<&Arc<Vm>>) -> Check<()> {
        of_running(|vm| vm.guest.operations_ready.then_some(()))
    }

    /// The guest has this address on any NIC.
    pub fn has_address(wanted: IpAddr) -> impl FnMut(Option<&Arc<Vm>>) -> Check<IpAddr> {
        of_running(move |vm| {
            let reported = vm.guest.nics.iter().flat_map(|nic| nic.addresses.iter());
            reported.chain(&vm.guest.address).any(|address| *address == wanted).then_some(wanted)
        })
    }

    /// The guest has an IPv4 address that others can reach, by what the server calls primary or else on any NIC.
    pub fn any_address() -> impl FnMut(Option<&Arc<Vm>>) -> Check<IpAddr> {
        of_running(|vm| {
            let reported = vm.guest.nics.iter().flat_map(|nic| nic.addresses.iter());
            vm.guest.address.iter().chain(reported).copied().find(|address| match address {
                IpAddr::V4(v4) => !(v4.is_loopback() || v4.is_link_local() || v4.is_unspecified()),
                IpAddr::V6(_) => false,
            })
        })
    }

    pub fn powered(wanted: Power) -> impl FnMut(Option<&Arc<Vm>>) -> Check<()> {
        move |vm| match vm {
            None => Check::Never(GONE),
            Some(vm) if vm.power == wanted => Check::Met(()),
            Some(_) => Check::NotYet,
        }
    }

    pub fn gone() -> impl FnMut(Option<&Arc<Vm>>) -> Check<()> {
        |vm| if vm.is_none() { Check::Met(()) } else { Check::NotYet }
    }
}
