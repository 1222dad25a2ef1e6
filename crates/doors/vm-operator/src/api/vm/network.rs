use serde::{Deserialize, Serialize};

use crate::api::Rest;

data! {
    pub struct Network {
        pub host_name: String,
        pub domain_name: String,
        pub disabled: bool,
        pub nameservers: Vec<String>,
        pub search_domains: Vec<String>,
        pub interfaces: Vec<Interface>,
        pub vlans: Vec<Vlan>,
    }

    pub struct Interface {
        pub name: String,
        pub network: Option<InterfaceNetwork>,
        pub guest_device_name: String,
        pub mac_addr: String,
        /// With their prefix lengths.
        pub addresses: Vec<String>,
        pub dhcp4: Option<bool>,
        pub dhcp6: Option<bool>,
        /// An address, or `None` to have none.
        pub gateway4: String,
        pub gateway6: String,
        pub mtu: Option<i64>,
        pub nameservers: Vec<String>,
        pub search_domains: Vec<String>,
        pub routes: Vec<Route>,
        #[serde(rename = "type")]
        pub type_: Option<String>,
        #[serde(flatten)]
        pub rest: Rest,
    }

    pub struct InterfaceNetwork {
        pub api_version: String,
        pub kind: String,
        /// With named networks: the name of a vSphere network.
        pub name: String,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    pub to: String,
    pub via: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<i32>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Vlan {
    pub name: String,
    pub id: i64,
    pub link: String,
}

impl Interface {
    /// The gateway that is wanted; `Some(None)`-like forms do not exist: the literal `None` means that there is none.
    pub fn gateway4(&self) -> Option<&str> {
        gateway(&self.gateway4)
    }

    pub fn gateway6(&self) -> Option<&str> {
        gateway(&self.gateway6)
    }

    /// The name that the card has in the guest.
    pub fn device_name(&self) -> &str {
        if self.guest_device_name.is_empty() { &self.name } else { &self.guest_device_name }
    }
}

fn gateway(text: &str) -> Option<&str> {
    (!text.is_empty() && text != "None").then_some(text)
}
