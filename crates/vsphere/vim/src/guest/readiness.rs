//! When a guest can be worked with.

use std::net::IpAddr;
use std::time::Duration;

use roost_supervise::Backoff;
use roost_vim_wire::types::GuestNicInfo;
use roost_vim_wire::{MoRef, Value};
use tokio::time::Instant;

use super::error::GuestError;
use crate::{CallError, Faulted, Observer, Properties};

/// Tools need some seconds after they first report.
pub(super) const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));

/// Whether a call failed only because the guest is not up yet. A VM that is off will not come up by waiting.
pub(super) fn is_not_yet(error: &CallError) -> bool {
    let is_not_up = error.is_fault("InvalidState") && !error.is_fault("InvalidPowerState");
    is_not_up || error.is_fault("GuestOperationsUnavailable") || error.is_fault("InvalidGuestLogin")
}

impl Observer {
    /// Waits on the property stream until the guest says that it takes operations. The first calls may still be refused: see
    /// [`GuestObserver::ready_by`](crate::GuestObserver::ready_by).
    pub async fn wait_for_guest_operations(
        &self,
        vm: &MoRef,
        deadline: Instant,
    ) -> Result<(), GuestError> {
        const READY: &str = "guest.guestOperationsReady";
        // The other one only for the words of a missed deadline.
        let paths = [READY, "guest.toolsRunningStatus"];
        let wait = self
            .wait_for(vm, &paths, deadline, |seen| (seen.bool(READY) == Some(true)).then_some(()));
        wait.await.map_err(|source| GuestError::Wait { vm: vm.clone(), source })
    }

    /// Waits on the property stream until the guest has an address: `expected` on any of its cards, or without it the first
    /// that another machine can reach.
    pub async fn wait_for_address(
        &self,
        vm: &MoRef,
        expected: Option<IpAddr>,
        deadline: Instant,
    ) -> Result<IpAddr, GuestError> {
        const PATHS: &[&str] = &["guest.ipAddress", "guest.net"];
        let wait = self.wait_for(vm, PATHS, deadline, |seen| {
            let mut addresses = addresses(seen);
            match expected {
                Some(expected) => addresses.find(|address| *address == expected),
                None => addresses.find(is_reachable),
            }
        });
        wait.await.map_err(|source| GuestError::Wait { vm: vm.clone(), source })
    }
}

/// Every address that the guest reports, the primary one first.
fn addresses(seen: &Properties) -> impl Iterator<Item = IpAddr> {
    let primary = seen.str("guest.ipAddress").into_iter();
    let cards = seen.get("guest.net").into_iter().flat_map(Value::data_items::<GuestNicInfo>);
    let all = primary.chain(cards.flat_map(|card| card.ip_address.iter().map(String::as_str)));
    all.filter_map(|text| text.parse().ok())
}

/// Not the machine itself, and not an address that it gave itself for want of a better one.
fn is_reachable(address: &IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !is_link_local && !address.is_loopback() && !address.is_unspecified()
}

#[cfg(test)]
mod tests {
    use roost_vim_wire::types::DynamicProperty;
    use roost_vim_wire::{Fault, Field, LocalizedMethodFault};

    use super::*;

    #[test]
    fn only_a_guest_that_is_coming_up_is_waited_for() {
        for (class, want) in [
            ("GuestOperationsUnavailable", true),
            ("InvalidGuestLogin", true),
            ("InvalidState", true),
            ("InvalidPowerState", false),
            ("GuestPermissionDenied", false),
            ("ManagedObjectNotFound", false),
        ] {
            let fault = LocalizedMethodFault::new(Fault::of(class), "");
            let error = CallError::Fault { method: "StartProgramInGuest", fault: Box::new(fault) };
            assert_eq!(is_not_yet(&error), want, "{class}");
        }
    }

    #[test]
    fn every_address_of_every_card_counts() {
        let card = |addresses: &[&str]| GuestNicInfo {
            ip_address: addresses.iter().map(|text| (*text).into()).collect(),
            ..Default::default()
        };
        let net = vec![card(&["fe80::1", "169.254.3.4"]), card(&["10.0.0.7", "not an address"])];
        let seen = Properties::new(
            vec![
                DynamicProperty { name: "guest.ipAddress".into(), val: Value::string("fe80::9") },
                DynamicProperty { name: "guest.net".into(), val: net.to_value().unwrap() },
            ],
            Vec::new(),
        );
        let all: Vec<_> = addresses(&seen).map(|address| address.to_string()).collect();
        assert_eq!(all, ["fe80::9", "fe80::1", "169.254.3.4", "10.0.0.7"]);
        assert_eq!(addresses(&seen).find(is_reachable).unwrap().to_string(), "10.0.0.7");
    }
}
