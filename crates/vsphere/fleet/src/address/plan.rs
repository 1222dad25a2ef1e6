//! The addresses that a configuration gives, and why it cannot be used if it cannot.

use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

use ipnet::Ipv4Net;

/// One thing to correct, led by the path to edit: `networks[1].gateway`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub path: String,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Ranges of one network, with what its guests are told. `at` is where the configuration has them, and leads problems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRanges {
    pub at: String,
    pub ranges: Vec<Ipv4Net>,
    pub gateway: Option<Ipv4Addr>,
    pub subnet_mask: Ipv4Addr,
}

/// What a guest is told about its network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    pub gateway: Option<Ipv4Addr>,
    pub subnet_mask: Ipv4Addr,
    pub dns: Option<Ipv4Addr>,
}

/// Every address that may be given to a VM, in the order of the configuration: none twice, and never a network,
/// broadcast, gateway or name server address.
///
/// The default has no address: VMs then get theirs from a DHCP server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressPlan {
    segments: Vec<Segment>,
    /// Positions in `segments`, by first address.
    by_address: Vec<usize>,
    total: u64,
    warnings: Vec<Problem>,
}

/// Addresses that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    first: u32,
    last: u32,
    /// The number of its first address in the order of the configuration.
    number: u64,
    network: Arc<Network>,
}

/// A range over more subnets than this many bits number is a slip of the pen.
const MAX_SUBNET_BITS: u8 = 12;

impl AddressPlan {
    /// Joins the networks in their order and reports every problem at once. A name server's address is never given.
    pub fn new(networks: &[AddressRanges], dns: Option<Ipv4Addr>) -> Result<Self, Vec<Problem>> {
        Joining::default().into_plan(networks, dns)
    }

    /// The addresses of one range, whose guests are told of no gateway and no name server.
    pub fn of_range(range: Ipv4Net) -> Result<Self, Vec<Problem>> {
        let at = range.to_string();
        let ranges = vec![range.trunc()];
        Self::new(
            &[AddressRanges { at, ranges, gateway: None, subnet_mask: range.netmask() }],
            None,
        )
    }

    /// With one more oddity that whoever read the configuration found.
    #[must_use]
    pub fn with_warning(mut self, warning: Problem) -> Self {
        self.warnings.insert(0, warning);
        self
    }

    /// How many addresses there are to give.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether there are none, so that a VM asks a DHCP server.
    pub fn is_dhcp(&self) -> bool {
        self.total == 0
    }

    /// What is odd but does not stand in the way.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// All of them, first to be given first.
    pub fn iter(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.segments.iter().flat_map(|s| s.first..=s.last).map(Ipv4Addr::from_bits)
    }

    pub fn contains(&self, address: Ipv4Addr) -> bool {
        self.number_of(address).is_some()
    }

    /// The network that an address of this plan is in.
    pub fn network_of(&self, address: Ipv4Addr) -> Option<&Arc<Network>> {
        self.segment_of(address).map(|segment| &segment.network)
    }

    pub(super) fn number_of(&self, address: Ipv4Addr) -> Option<u64> {
        let segment = self.segment_of(address)?;
        Some(segment.number + u64::from(address.to_bits() - segment.first))
    }

    pub(super) fn address_of(&self, number: u64) -> Option<Ipv4Addr> {
        let after = self.segments.partition_point(|segment| segment.number <= number);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        let bits = u64::from(segment.first) + (number - segment.number);
        u32::try_from(bits).ok().filter(|bits| *bits <= segment.last).map(Ipv4Addr::from_bits)
    }

    fn segment_of(&self, address: Ipv4Addr) -> Option<&Segment> {
        let bits = address.to_bits();
        let after = self.by_address.partition_point(|at| self.segments[*at].first <= bits);
        let segment = &self.segments[*self.by_address.get(after.checked_sub(1)?)?];
        (bits <= segment.last).then_some(segment)
    }
}

#[derive(Debug, Default)]
struct Joining {
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Joining {
    fn problem(&mut self, path: &str, message: impl Into<String>) {
        self.problems.push(Problem { path: path.into(), message: message.into() });
    }

    fn warn(&mut self, path: &str, message: impl Into<String>) {
        self.warnings.push(Problem { path: path.into(), message: message.into() });
    }

    fn into_plan(
        mut self,
        networks: &[AddressRanges],
        dns: Option<Ipv4Addr>,
    ) -> Result<AddressPlan, Vec<Problem>> {
        let mut blocked = Blocked::default();
        dns.into_iter()
            .chain(networks.iter().filter_map(|network| network.gateway))
            .for_each(|address| blocked.add(address.to_bits(), address.to_bits()));
        for network in networks {
            for range in &network.ranges {
                blocked.add_ends(*range);
                if let Ok(subnet) = Ipv4Net::with_netmask(range.addr(), network.subnet_mask) {
                    self.check_gateway(network, subnet);
                    self.block_subnets(&mut blocked, network, *range, subnet);
                }
            }
        }
        let mut plan = AddressPlan::default();
        for network in networks {
            let shared = Arc::new(Network {
                gateway: network.gateway,
                subnet_mask: network.subnet_mask,
                dns,
            });
            let (before, mut repeats) = (plan.total, false);
            for range in &network.ranges {
                let (first, last) = (range.network().to_bits(), range.broadcast().to_bits());
                let given = plan.segments.iter().any(|s| s.first <= last && first <= s.last);
                if given {
                    repeats = true;
                    self.warn(&network.at, format!("{range} has addresses that stand earlier too"));
                }
                for (first, last) in blocked.gaps(first, last) {
                    let network = Arc::clone(&shared);
                    plan.segments.push(Segment { first, last, number: plan.total, network });
                    plan.total += u64::from(last - first) + 1;
                }
                blocked.add(first, last);
            }
            if plan.total == before && !network.ranges.is_empty() && !repeats {
                self.problem(&network.at, "holds no address that can be given to a VM");
            }
        }
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        plan.by_address = (0..plan.segments.len()).collect();
        plan.by_address.sort_by_key(|at| plan.segments[*at].first);
        plan.warnings = self.warnings;
        Ok(plan)
    }

    /// Also inside of a range that is wider than its mask, the ends of each subnet are no host's.
    fn block_subnets(
        &mut self,
        blocked: &mut Blocked,
        network: &AddressRanges,
        range: Ipv4Net,
        subnet: Ipv4Net,
    ) {
        let (prefix, mask) = (range.prefix_len(), subnet.prefix_len());
        if prefix >= mask {
            blocked.add_ends(subnet.trunc());
            return;
        }
        if mask - prefix > MAX_SUBNET_BITS {
            self.problem(
                &network.at,
                format!("{range} is far wider than its subnet mask {}", network.subnet_mask),
            );
            return;
        }
        self.warn(
            &network.at,
            format!("{range} is wider than its subnet mask {}", network.subnet_mask),
        );
        range.subnets(mask).into_iter().flatten().for_each(|subnet| blocked.add_ends(subnet));
    }

    fn check_gateway(&mut self, network: &AddressRanges, subnet: Ipv4Net) {
        if let Some(gateway) = network.gateway.filter(|gateway| !subnet.contains(gateway)) {
            let message = format!("the gateway {gateway} is outside of {}", subnet.trunc());
            if !self.warnings.iter().any(|known| known.message == message) {
                self.warn(&network.at, message);
            }
        }
    }
}

/// Addresses that are not to be given, or are in the plan already.
#[derive(Debug, Default)]
struct Blocked(BTreeSet<(u32, u32)>);

impl Blocked {
    fn add(&mut self, first: u32, last: u32) {
        self.0.insert((first, last));
    }

    /// The network and broadcast address; a block of one or two addresses has neither.
    fn add_ends(&mut self, net: Ipv4Net) {
        if net.prefix_len() < 31 {
            for end in [net.network(), net.broadcast()] {
                self.add(end.to_bits(), end.to_bits());
            }
        }
    }

    /// What is left of the addresses from `first` to `last`.
    fn gaps(&self, first: u32, last: u32) -> Vec<(u32, u32)> {
        let mut gaps = Vec::new();
        let mut next = u64::from(first);
        for &(from, to) in self.0.iter().filter(|(from, to)| *from <= last && first <= *to) {
            if let Some(end) = from.checked_sub(1).filter(|end| u64::from(*end) >= next) {
                gaps.push((u32::try_from(next).unwrap_or(u32::MAX), end));
            }
            next = next.max(u64::from(to) + 1);
        }
        if next <= u64::from(last) {
            gaps.push((u32::try_from(next).unwrap_or(u32::MAX), last));
        }
        gaps
    }
}

#[cfg(test)]
mod tests;
