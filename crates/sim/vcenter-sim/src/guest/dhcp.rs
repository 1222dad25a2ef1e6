use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;

use crate::vm::Mac;

/// The network that guests without a static address get theirs from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DhcpRange {
    pub network: Ipv4Addr,
    pub prefix: u8,
}

impl Default for DhcpRange {
    fn default() -> Self {
        Self { network: Ipv4Addr::new(10, 128, 0, 0), prefix: 14 }
    }
}

/// Leases of a range: a card keeps its address until its VM is destroyed.
#[derive(Debug, Clone)]
pub(crate) struct Dhcp {
    last: u32,
    pub prefix: u8,
    next: u32,
    leases: HashMap<Mac, u32>,
    freed: BTreeSet<u32>,
}

impl Dhcp {
    pub(crate) fn new(range: DhcpRange) -> Self {
        let prefix = range.prefix.clamp(1, 30);
        let mask = u32::MAX << (32 - u32::from(prefix));
        let network = u32::from(range.network) & mask;
        // The first address is the network's, the second the gateway's, the last the broadcast.
        let (first, last) = (network + 2, (network | !mask) - 1);
        Self { last, prefix, next: first, leases: HashMap::new(), freed: BTreeSet::new() }
    }

    /// The card's address; `None` when the range is used up.
    pub(crate) fn lease(&mut self, mac: Mac) -> Option<Ipv4Addr> {
        if let Some(address) = self.leases.get(&mac) {
            return Some(Ipv4Addr::from(*address));
        }
        // Fresh addresses first: a reused one may still be in somebody's cache.
        let address = if self.next <= self.last {
            self.next += 1;
            self.next - 1
        } else {
            self.freed.pop_first()?
        };
        self.leases.insert(mac, address);
        Some(Ipv4Addr::from(address))
    }

    pub(crate) fn release(&mut self, mac: Mac) {
        if let Some(address) = self.leases.remove(&mac) {
            self.freed.insert(address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_keeps_its_address_and_a_small_range_runs_out() {
        let mut dhcp = Dhcp::new(DhcpRange { network: Ipv4Addr::new(192, 168, 7, 9), prefix: 30 });
        let first = dhcp.lease(Mac::generated(1));
        assert_eq!(first, Some(Ipv4Addr::new(192, 168, 7, 10)));
        assert_eq!(dhcp.lease(Mac::generated(1)), first);
        assert_eq!(dhcp.lease(Mac::generated(2)), None);
        dhcp.release(Mac::generated(1));
        assert_eq!(dhcp.lease(Mac::generated(2)), first);
    }
}
