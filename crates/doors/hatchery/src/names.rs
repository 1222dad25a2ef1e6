//! What a VM's name says. CDS tells VMs apart by prefix, and so must whoever takes over from it.

use std::fmt;
use std::net::Ipv4Addr;

use roost_cds::Protocol;

/// A VM's name, understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VmName<'a> {
    /// A spare, for V1 or V2 models; with its address, if the name holds one.
    Spare { protocol: Protocol, address: Option<Ipv4Addr> },
    /// Begins with `provision-` and is no spare that we know how to use.
    OtherSpare,
    /// Registers a V1 model.
    Registering,
    /// A V1 template that is being built.
    Building { model: &'a str },
    /// A spare that is marked for deletion.
    Retired,
    /// A worker, or somebody else's VM.
    Worker,
}

const SPARE: &str = "provision-";
const SPARE_V1: &str = "provision-v1";
const SPARE_V2: &str = "provision-v2";
const ADDRESS: &str = "-ip-";
const REGISTER: &str = "register-";
const BUILDING: &str = "-tmp";
const RETIRED: &str = "retired-";

impl<'a> VmName<'a> {
    pub fn of(name: &'a str) -> Self {
        if let Some(rest) = name.strip_prefix(SPARE_V2) {
            return Self::Spare { protocol: Protocol::V2, address: address(rest) };
        }
        if name.starts_with(SPARE_V1) {
            return Self::Spare { protocol: Protocol::V1, address: None };
        }
        if name.starts_with(SPARE) {
            return Self::OtherSpare;
        }
        if name.starts_with(REGISTER) {
            return Self::Registering;
        }
        if name.starts_with(RETIRED) {
            return Self::Retired;
        }
        match name.strip_suffix(BUILDING) {
            Some(model) if !model.is_empty() => Self::Building { model },
            _ => Self::Worker,
        }
    }

    pub fn is_spare(self) -> bool {
        matches!(self, Self::Spare { .. } | Self::OtherSpare)
    }

    /// Whether a VM of ours with such a name takes a worker's slot: any but spares.
    pub fn counts_as_worker(self) -> bool {
        match self {
            Self::Registering | Self::Building { .. } | Self::Worker => true,
            Self::Spare { .. } | Self::OtherSpare | Self::Retired => false,
        }
    }

    pub fn address(self) -> Option<Ipv4Addr> {
        match self {
            Self::Spare { address, .. } => address,
            _ => None,
        }
    }
}

/// What stands before the random part of a new VM's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamePrefix {
    /// Nothing: a worker for a job.
    Worker,
    Register,
    Spare {
        protocol: Protocol,
        address: Option<Ipv4Addr>,
    },
}

/// Without the hyphen that joins it to the random part. Only names of V2 spares hold an address: CDS knows no other.
impl fmt::Display for NamePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worker => Ok(()),
            Self::Register => f.write_str("register"),
            Self::Spare { protocol: Protocol::V1, .. } => f.write_str(SPARE_V1),
            Self::Spare { protocol: Protocol::V2, address: None } => f.write_str(SPARE_V2),
            Self::Spare { protocol: Protocol::V2, address: Some(address) } => {
                write!(f, "{SPARE_V2}{ADDRESS}{}", address.to_string().replace('.', "-"))
            }
        }
    }
}

/// The VM in which the template of a V1 model is built.
pub fn building(model: &str) -> String {
    format!("{model}{BUILDING}")
}

/// What a spare is called once it is marked for deletion: no longer by a prefix that keeps CDS's own clean-up away from it.
pub fn retired(name: &str) -> String {
    format!("{RETIRED}{}", name.strip_prefix(SPARE).unwrap_or(name))
}

/// `-ip-10-0-0-7-keen-bohr`
fn address(rest: &str) -> Option<Ipv4Addr> {
    let mut octets = rest.strip_prefix(ADDRESS)?.split('-');
    let mut octet = || octets.next()?.parse::<u8>().ok();
    Some(Ipv4Addr::new(octet()?, octet()?, octet()?, octet()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_as_cds_does() {
        let v2 = |address| VmName::Spare { protocol: Protocol::V2, address };
        for (name, wanted) in [
            ("provision-v2-keen-bohr", v2(None)),
            ("provision-v2-ip-10-0-0-7-keen-bohr", v2(Some(Ipv4Addr::new(10, 0, 0, 7)))),
            ("provision-v2-ip-10-0-0-700-keen-bohr", v2(None)),
            ("provision-v2-ip-10-0-0", v2(None)),
            ("provision-v1-keen-bohr", VmName::Spare { protocol: Protocol::V1, address: None }),
            ("provision-v3-keen-bohr", VmName::OtherSpare),
            ("register-keen-bohr", VmName::Registering),
            ("debian12-tmp", VmName::Building { model: "debian12" }),
            ("-tmp", VmName::Worker),
            ("retired-v2-keen-bohr", VmName::Retired),
            ("keen-bohr", VmName::Worker),
        ] {
            assert_eq!(VmName::of(name), wanted, "{name}");
        }
    }

    #[test]
    fn an_address_in_a_prefix_is_read_back() {
        let address = Some(Ipv4Addr::new(192, 168, 0, 255));
        let prefix = NamePrefix::Spare { protocol: Protocol::V2, address };
        assert_eq!(prefix.to_string(), "provision-v2-ip-192-168-0-255");
        assert_eq!(VmName::of(&format!("{prefix}-keen-bohr")).address(), address);
        let v1 = NamePrefix::Spare { protocol: Protocol::V1, address };
        assert_eq!(v1.to_string(), "provision-v1");
        assert_eq!(NamePrefix::Worker.to_string(), "");
    }

    #[test]
    fn a_retired_spare_is_no_spare_by_name() {
        assert_eq!(retired("provision-v2-keen-bohr"), "retired-v2-keen-bohr");
        assert!(!VmName::of(&retired("provision-v2-keen-bohr")).is_spare());
        assert_eq!(VmName::of(&building("debian12")), VmName::Building { model: "debian12" });
    }
}
