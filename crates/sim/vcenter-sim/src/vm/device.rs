use std::fmt;
use std::sync::Arc;

use roost_vim_wire::MoRef;
use roost_vim_wire::types::VirtualDevice;

use crate::vm::{Disk, network_ref};

/// A device: what it shares with others of its kind, and what is its own. The wire form is made when it is read.
#[derive(Debug, Clone)]
pub(crate) struct Device {
    pub base: Arc<VirtualDevice>,
    pub own: Own,
}

#[derive(Debug, Clone)]
pub(crate) enum Own {
    Nothing,
    Disk(Disk),
    Nic(Mac),
}

impl Device {
    pub(crate) fn shared(base: &Arc<VirtualDevice>) -> Self {
        Self { base: Arc::clone(base), own: Own::Nothing }
    }

    pub(crate) fn key(&self) -> i32 {
        self.base.key
    }

    pub(crate) fn mac(&self) -> Option<Mac> {
        match self.own {
            Own::Nic(mac) => Some(mac),
            Own::Nothing | Own::Disk(_) => None,
        }
    }

    /// The network of a card.
    pub(crate) fn network(&self) -> Option<MoRef> {
        let backing = self.base.backing.as_ref()?;
        match &backing.port {
            Some(port) => port.portgroup_key.as_deref().map(network_ref),
            None => backing.network.clone(),
        }
    }

    /// Whether it is plugged in when the VM is on.
    pub(crate) fn is_connected(&self) -> bool {
        self.base.connectable.as_ref().is_none_or(|connectable| connectable.connected)
    }
}

/// The address of a network card.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Mac(pub [u8; 6]);

impl Mac {
    /// The `serial`th address of the range that a vCenter generates from.
    pub(crate) fn generated(serial: u32) -> Self {
        let [_, high, mid, low] = serial.to_be_bytes();
        Self([0x00, 0x50, 0x56, 0x80 | high & 0x3f, mid, low])
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 6];
        let mut parts = text.trim().split([':', '-']);
        for byte in &mut bytes {
            *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
        }
        parts.next().is_none().then_some(Self(bytes))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, rest @ ..] = self.0;
        write!(f, "{first:02x}")?;
        rest.iter().try_for_each(|byte| write!(f, ":{byte:02x}"))
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_addresses_are_vmwares_and_distinct() {
        assert_eq!(Mac::generated(1).to_string(), "00:50:56:80:00:01");
        assert_eq!(Mac::generated(0x3f_ffff).to_string(), "00:50:56:bf:ff:ff");
        assert_eq!(Mac::parse("00:50:56:80:00:01"), Some(Mac::generated(1)));
        assert_eq!(Mac::parse("00:50:56"), None);
    }
}
