//! The addresses that a configuration gives, and why it cannot be used if it cannot.

use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

use ipnet::Ipv4Net;

/// The address settings as a configuration file has them. An empty string is unset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressFile {
    /// CIDRs, separated by commas.
    pub iprange: String,
    pub gateway: String,
    pub subnet_mask: String,
    pub dns: String,
    /// With any of these, the three above them are not used.
    pub networks: Vec<NetworkFile>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkFile {
    pub iprange: String,
    pub gateway: String,
    pub subnet_mask: String,
}

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

/// What upstream assumes when a lone `iprange` has no mask.
const DEFAULT_MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);

/// A range over more subnets than this many bits number is a slip of the pen.
const MAX_SUBNET_BITS: u8 = 12;

impl AddressPlan {
    /// Reads all of it and reports every problem at once.
    pub fn parse(file: &AddressFile) -> Result<Self, Vec<Problem>> {
        let mut reading = Reading::default();
        let dns = reading.address("dns", &file.dns);
        let mut parsed = Vec::new();
        if file.networks.is_empty() {
            if file.iprange.trim().is_empty() {
                reading.address("gateway", &file.gateway);
                reading.mask("subnetMask", &file.subnet_mask);
            } else {
                parsed.push(Parsed {
                    path: "iprange".into(),
                    ranges: reading.ranges("iprange", &file.iprange),
                    gateway: reading.address("gateway", &file.gateway),
                    subnet_mask: reading
                        .mask("subnetMask", &file.subnet_mask)
                        .unwrap_or(DEFAULT_MASK),
                });
            }
        } else if !file.iprange.trim().is_empty() {
            reading.warn("iprange", "is not used because there are [[networks]]");
        }
        for (index, network) in file.networks.iter().enumerate() {
            let at = |field: &str| format!("networks[{index}].{field}");
            for (field, value) in [
                ("iprange", &network.iprange),
                ("gateway", &network.gateway),
                ("subnetMask", &network.subnet_mask),
            ] {
                if value.trim().is_empty() {
                    reading.problem(&at(field), "is mandatory");
                }
            }
            parsed.push(Parsed {
                path: at("iprange"),
                ranges: reading.ranges(&at("iprange"), &network.iprange),
                gateway: reading.address(&at("gateway"), &network.gateway),
                subnet_mask: reading
                    .mask(&at("subnetMask"), &network.subnet_mask)
                    .unwrap_or(DEFAULT_MASK),
            });
        }
        reading.into_plan(&parsed, dns)
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

/// One network, read but not yet joined with the others.
#[derive(Debug)]
struct Parsed {
    path: String,
    ranges: Vec<Ipv4Net>,
    gateway: Option<Ipv4Addr>,
    subnet_mask: Ipv4Addr,
}

#[derive(Debug, Default)]
struct Reading {
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Reading {
    fn problem(&mut self, path: &str, message: impl Into<String>) {
        self.problems.push(Problem { path: path.into(), message: message.into() });
    }

    fn warn(&mut self, path: &str, message: impl Into<String>) {
        self.warnings.push(Problem { path: path.into(), message: message.into() });
    }

    fn address(&mut self, path: &str, text: &str) -> Option<Ipv4Addr> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        let parsed = text.parse().ok();
        if parsed.is_none() {
            self.problem(path, format!("{text:?} is not an IPv4 address"));
        }
        parsed
    }

    fn mask(&mut self, path: &str, text: &str) -> Option<Ipv4Addr> {
        let mask = self.address(path, text)?;
        if ipnet::ipv4_mask_to_prefix(mask).is_err() {
            self.problem(path, format!("{mask} is not a subnet mask such as 255.255.255.0"));
        }
        Some(mask)
    }

    fn ranges(&mut self, path: &str, text: &str) -> Vec<Ipv4Net> {
        let mut ranges = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.parse::<Ipv4Net>() {
                Ok(net) => ranges.push(net.trunc()),
                Err(_) if part.parse::<Ipv4Addr>().is_ok() => {
                    self.problem(path, format!("{part} has no prefix length; write {part}/32"));
                }
                Err(_) if part.parse::<ipnet::Ipv6Net>().is_ok() => {
                    self.problem(path, format!("{part} is IPv6; only IPv4 ranges are given out"));
                }
                Err(_) => {
                    self.problem(path, format!("{part:?} is not a range such as 10.0.0.0/24"));
                }
            }
        }
        ranges
    }

    fn into_plan(
        mut self,
        parsed: &[Parsed],
        dns: Option<Ipv4Addr>,
    ) -> Result<AddressPlan, Vec<Problem>> {
        let mut blocked = Blocked::default();
        dns.into_iter()
            .chain(parsed.iter().filter_map(|network| network.gateway))
            .for_each(|address| blocked.add(address.to_bits(), address.to_bits()));
        for network in parsed {
            for range in &network.ranges {
                blocked.add_ends(*range);
                if let Ok(subnet) = Ipv4Net::with_netmask(range.addr(), network.subnet_mask) {
                    self.check_gateway(network, subnet);
                    self.block_subnets(&mut blocked, network, *range, subnet);
                }
            }
        }
        let mut plan = AddressPlan::default();
        for network in parsed {
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
                    self.warn(
                        &network.path,
                        format!("{range} has addresses that stand earlier too"),
                    );
                }
                for (first, last) in blocked.gaps(first, last) {
                    let network = Arc::clone(&shared);
                    plan.segments.push(Segment { first, last, number: plan.total, network });
                    plan.total += u64::from(last - first) + 1;
                }
                blocked.add(first, last);
            }
            if plan.total == before && !network.ranges.is_empty() && !repeats {
                self.problem(&network.path, "holds no address that can be given to a VM");
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
        network: &Parsed,
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
                &network.path,
                format!("{range} is far wider than its subnet mask {}", network.subnet_mask),
            );
            return;
        }
        self.warn(
            &network.path,
            format!("{range} is wider than its subnet mask {}", network.subnet_mask),
        );
        range.subnets(mask).into_iter().flatten().for_each(|subnet| blocked.add_ends(subnet));
    }

    fn check_gateway(&mut self, network: &Parsed, subnet: Ipv4Net) {
        if let Some(gateway) = network.gateway.filter(|gateway| !subnet.contains(gateway)) {
            let message = format!("the gateway {gateway} is outside of {}", subnet.trunc());
            if !self.warnings.iter().any(|known| known.message == message) {
                self.warn(&network.path, message);
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
