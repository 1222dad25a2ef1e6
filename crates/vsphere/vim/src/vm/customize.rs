//! What a guest is told about itself at its first boot.

use std::net::{IpAddr, Ipv4Addr};

use roost_vim_wire::types::{
    CustomizationAdapterMapping, CustomizationGlobalIPSettings, CustomizationIPSettings,
    CustomizationIdentitySettings, CustomizationIpGenerator, CustomizationName, CustomizationSpec,
    Hidden,
};

/// Name, addresses and time zone of a guest, applied by its tools at the next power on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Customization {
    pub identity: GuestIdentity,
    pub dns_servers: Vec<IpAddr>,
    pub dns_suffixes: Vec<String>,
    /// For the cards in their order. The server wants exactly one entry for each card: cards without one here get theirs by
    /// DHCP. Cloud-init takes addresses from its metadata instead.
    pub nics: Vec<NicAddress>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestIdentity {
    Linux {
        host_name: HostName,
        domain: String,
        time_zone: Option<String>,
        script: Option<Hidden>,
    },
    /// Since vSphere 7.0.3.
    CloudInit {
        metadata: String,
        userdata: Option<Hidden>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostName {
    /// The name of the VM, shortened where the guest needs it.
    OfVm,
    Fixed(String),
    /// This text with a number behind it.
    Prefix(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NicAddress {
    Dhcp,
    Fixed { address: Ipv4Addr, subnet_mask: Ipv4Addr, gateways: Vec<Ipv4Addr> },
}

/// Why a customization does not fit a VM.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CustomizationError {
    #[error("addresses are given for {given} network cards, the VM has {cards}")]
    TooManyAddresses { given: usize, cards: usize },
}

impl Customization {
    /// A Linux guest that is called as its VM is and gets its addresses by DHCP.
    pub fn linux(domain: impl Into<String>) -> Self {
        Self {
            identity: GuestIdentity::Linux {
                host_name: HostName::OfVm,
                domain: domain.into(),
                time_zone: Some("UTC".into()),
                script: None,
            },
            dns_servers: Vec::new(),
            dns_suffixes: Vec::new(),
            nics: Vec::new(),
        }
    }

    pub fn cloud_init(metadata: impl Into<String>, userdata: Option<String>) -> Self {
        let identity =
            GuestIdentity::CloudInit { metadata: metadata.into(), userdata: userdata.map(Hidden) };
        Self { identity, dns_servers: Vec::new(), dns_suffixes: Vec::new(), nics: Vec::new() }
    }

    /// The request for a VM with so many network cards.
    pub fn spec(&self, cards: usize) -> Result<CustomizationSpec, CustomizationError> {
        if self.nics.len() > cards {
            return Err(CustomizationError::TooManyAddresses { given: self.nics.len(), cards });
        }
        let entries = match self.identity {
            GuestIdentity::Linux { .. } => cards,
            GuestIdentity::CloudInit { .. } => 0,
        };
        let addresses = self.nics.iter().chain(std::iter::repeat(&NicAddress::Dhcp)).take(entries);
        Ok(CustomizationSpec {
            options: None,
            identity: self.identity.to_wire(),
            global_ip_settings: CustomizationGlobalIPSettings {
                dns_suffix_list: self.dns_suffixes.clone(),
                dns_server_list: self.dns_servers.iter().map(ToString::to_string).collect(),
            },
            nic_setting_map: addresses.map(NicAddress::to_wire).collect(),
        })
    }
}

impl GuestIdentity {
    fn to_wire(&self) -> CustomizationIdentitySettings {
        match self {
            Self::Linux { host_name, domain, time_zone, script } => CustomizationIdentitySettings {
                host_name: Some(host_name.to_wire()),
                domain: Some(domain.clone()),
                time_zone: time_zone.clone(),
                hw_clock_utc: Some(true),
                script_text: script.as_ref().map(|script| script.0.clone()),
                ..CustomizationIdentitySettings::of("CustomizationLinuxPrep")
            },
            Self::CloudInit { metadata, userdata } => CustomizationIdentitySettings {
                metadata: Some(metadata.clone()),
                userdata: userdata.as_ref().map(|userdata| userdata.0.clone()),
                ..CustomizationIdentitySettings::of("CustomizationCloudinitPrep")
            },
        }
    }
}

impl HostName {
    fn to_wire(&self) -> CustomizationName {
        match self {
            Self::OfVm => CustomizationName::of("CustomizationVirtualMachineName"),
            Self::Fixed(name) => CustomizationName {
                name: Some(name.clone()),
                ..CustomizationName::of("CustomizationFixedName")
            },
            Self::Prefix(base) => CustomizationName {
                base: Some(base.clone()),
                ..CustomizationName::of("CustomizationPrefixName")
            },
        }
    }
}

impl NicAddress {
    fn to_wire(&self) -> CustomizationAdapterMapping {
        let adapter = match self {
            Self::Dhcp => CustomizationIPSettings {
                ip: CustomizationIpGenerator::of("CustomizationDhcpIpGenerator"),
                ..Default::default()
            },
            Self::Fixed { address, subnet_mask, gateways } => CustomizationIPSettings {
                ip: CustomizationIpGenerator {
                    ip_address: Some(address.to_string()),
                    ..CustomizationIpGenerator::of("CustomizationFixedIp")
                },
                subnet_mask: Some(subnet_mask.to_string()),
                gateway: gateways.iter().map(ToString::to_string).collect(),
                ..Default::default()
            },
        };
        CustomizationAdapterMapping { mac_address: None, adapter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{compact, written};

    #[test]
    fn each_card_has_one_entry_and_the_default_is_dhcp() {
        let spec = Customization::linux("local").spec(2).unwrap();
        assert_eq!(
            written("customization", &spec),
            compact(
                r#"<customization><identity xsi:type="CustomizationLinuxPrep"><hostName xsi:type="CustomizationVirtualMachineName"></hostName>
                <domain>local</domain><timeZone>UTC</timeZone><hwClockUTC>true</hwClockUTC></identity><globalIPSettings></globalIPSettings>
                <nicSettingMap><adapter><ip xsi:type="CustomizationDhcpIpGenerator"></ip></adapter></nicSettingMap>
                <nicSettingMap><adapter><ip xsi:type="CustomizationDhcpIpGenerator"></ip></adapter></nicSettingMap></customization>"#
            )
        );
    }

    #[test]
    fn more_addresses_than_cards_are_refused_before_the_server_has_to() {
        let nics = vec![NicAddress::Dhcp, NicAddress::Dhcp];
        let customization = Customization { nics, ..Customization::linux("local") };
        let error = customization.spec(1).unwrap_err();
        assert_eq!(error, CustomizationError::TooManyAddresses { given: 2, cards: 1 });
    }

    #[test]
    fn cloud_init_brings_its_own_network_and_prints_no_user_data() {
        let customization = Customization::cloud_init("{}", Some("password: hunter2".into()));
        assert_eq!(
            written("customization", &customization.spec(1).unwrap()),
            compact(
                r#"<customization><identity xsi:type="CustomizationCloudinitPrep"><metadata>{}</metadata>
                <userdata>password: hunter2</userdata></identity><globalIPSettings></globalIPSettings></customization>"#
            )
        );
        assert!(!format!("{customization:?}").contains("hunter2"));
    }

    #[test]
    fn host_names_come_in_three_kinds() {
        for (name, xml) in [
            (HostName::OfVm, r#"<hostName xsi:type="CustomizationVirtualMachineName"></hostName>"#),
            (
                HostName::Fixed("a".into()),
                r#"<hostName xsi:type="CustomizationFixedName"><name>a</name></hostName>"#,
            ),
            (
                HostName::Prefix("b".into()),
                r#"<hostName xsi:type="CustomizationPrefixName"><base>b</base></hostName>"#,
            ),
        ] {
            assert_eq!(written("hostName", &name.to_wire()), xml);
        }
    }
}
