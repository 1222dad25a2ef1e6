//! One login per vCenter, however many doors of this process work in it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use roost_fleet::Fleet;

/// The vCenters that are open. A handle; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fleets(Arc<Mutex<BTreeMap<String, Fleet>>>);

impl Fleets {
    /// The one at this address, if a door has opened it.
    pub(crate) fn at(&self, address: &str) -> Option<Fleet> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&place(address)).map(Fleet::lent)
    }

    pub(crate) fn share(&self, address: &str, fleet: &Fleet) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(place(address), fleet.lent());
    }

    pub(crate) fn all(&self) -> Vec<Fleet> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

/// Host and port: `https://VC.example/sdk` and `vc.example:443` are one vCenter.
fn place(address: &str) -> String {
    let address = address.trim().to_lowercase();
    let (usual, rest) = match address.split_once("://") {
        Some(("http", rest)) => (80, rest),
        Some((_, rest)) => (443, rest),
        None => (443, address.as_str()),
    };
    let host = rest.split('/').next().unwrap_or_default();
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port { host.to_owned() } else { format!("{host}:{usual}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_vcenter_is_one_however_it_is_written() {
        for same in ["vc.example", "VC.example:443", "https://vc.example/sdk", " vc.example/ "] {
            assert_eq!(place(same), "vc.example:443", "{same}");
        }
        assert_eq!(place("http://127.0.0.1:8989/sdk"), "127.0.0.1:8989");
        assert_eq!(place("http://vc"), "vc:80");
    }
}
