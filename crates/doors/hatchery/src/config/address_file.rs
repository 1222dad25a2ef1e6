//! The address settings as CDS's configuration has them, read into a plan.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use roost_fleet::{AddressPlan, AddressRanges, Problem};

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

/// What upstream assumes when a lone `iprange` has no mask.
const DEFAULT_MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);

impl AddressFile {
    /// Reads all of it and reports every problem at once.
    pub fn plan(&self) -> Result<AddressPlan, Vec<Problem>> {
        let mut reading = TextReader::default();
        let dns = reading.address("dns", &self.dns);
        let (mut parsed, mut unused) = (Vec::new(), false);
        if self.networks.is_empty() {
            if self.iprange.trim().is_empty() {
                reading.address("gateway", &self.gateway);
                reading.mask("subnetMask", &self.subnet_mask);
            } else {
                parsed.push(AddressRanges {
                    at: "iprange".into(),
                    ranges: reading.ranges("iprange", &self.iprange),
                    gateway: reading.address("gateway", &self.gateway),
                    subnet_mask: reading
                        .mask("subnetMask", &self.subnet_mask)
                        .unwrap_or(DEFAULT_MASK),
                });
            }
        } else if !self.iprange.trim().is_empty() {
            unused = true;
        }
        for (index, network) in self.networks.iter().enumerate() {
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
            parsed.push(AddressRanges {
                at: at("iprange"),
                ranges: reading.ranges(&at("iprange"), &network.iprange),
                gateway: reading.address(&at("gateway"), &network.gateway),
                subnet_mask: reading
                    .mask(&at("subnetMask"), &network.subnet_mask)
                    .unwrap_or(DEFAULT_MASK),
            });
        }
        let mut problems = reading.problems;
        match AddressPlan::new(&parsed, dns) {
            Ok(plan) if problems.is_empty() && unused => Ok(plan.with_warning(Problem {
                path: "iprange".into(),
                message: "is not used because there are [[networks]]".into(),
            })),
            Ok(plan) if problems.is_empty() => Ok(plan),
            Ok(_) => Err(problems),
            Err(more) => {
                problems.extend(more);
                Err(problems)
            }
        }
    }
}

#[derive(Debug, Default)]
struct TextReader {
    problems: Vec<Problem>,
}

impl TextReader {
    fn problem(&mut self, path: &str, message: impl Into<String>) {
        self.problems.push(Problem { path: path.into(), message: message.into() });
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
}

#[cfg(test)]
mod tests;
