//! What a runtime says about its VMs, snapshots and images: the JSON of `cocoon`, which every runtime speaks.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One VM, as `vm inspect` prints it. Unknown fields are passed over: newer releases have more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct VmRecord {
    pub id: String,
    pub hypervisor: Backend,
    pub state: VmState,
    pub config: VmConfig,
    /// 0 unless it runs. Some releases print 0 after a clone although it runs.
    pub pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_path: Option<String>,
    #[serde(deserialize_with = "null_is_default")]
    pub network_configs: Vec<Nic>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
}

impl VmRecord {
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The MAC address of the first card: what leases are looked up by.
    pub fn mac(&self) -> Option<&str> {
        self.network_configs.first().map(|nic| nic.mac.as_str()).filter(|mac| !mac.is_empty())
    }

    /// The static address of the first card, if the record has one.
    pub fn address(&self) -> Option<&str> {
        let address = self.network_configs.first()?.network.as_ref()?;
        Some(address.ip.as_str()).filter(|ip| !ip.is_empty())
    }

    pub fn has_static_address(&self) -> bool {
        self.network_configs.iter().any(|nic| nic.network.is_some())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct VmConfig {
    pub name: String,
    pub cpu: u32,
    /// Bytes.
    pub memory: u64,
    /// Bytes.
    pub storage: u64,
    pub image: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image_digest: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image_type: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub network: String,
    #[serde(skip_serializing_if = "is_false")]
    pub windows: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub no_direct_io: bool,
}

/// A network card. Without `network` its address comes from a DHCP server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Nic {
    pub tap: String,
    pub mac: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netns_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<StaticAddress>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StaticAddress {
    pub ip: String,
    pub gateway: String,
    pub prefix: u8,
}

/// The hypervisor that runs a VM or made a snapshot. Empty means that nobody said.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Backend(String);

impl Backend {
    pub const CLOUD_HYPERVISOR: &str = "cloud-hypervisor";
    pub const FIRECRACKER: &str = "firecracker";
    pub const QEMU: &str = "qemu";

    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_firecracker(&self) -> bool {
        self.0 == Self::FIRECRACKER
    }

    /// The folder of its VMs below the run folder.
    pub fn folder(&self) -> &str {
        match self.0.as_str() {
            Self::FIRECRACKER => "firecracker",
            Self::QEMU => "qemu",
            _ => "cloudhypervisor",
        }
    }

    /// Whether a snapshot of `self` can become a VM of `wanted`. Where one of them is not said, it can.
    pub fn serves(&self, wanted: &Self) -> bool {
        self.0.is_empty() || wanted.0.is_empty() || self == wanted
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum VmState {
    Creating,
    Created,
    Running,
    Stopped,
    /// The record says running and the process is dead.
    Stale,
    Error,
    #[default]
    Unknown,
    Other(String),
}

impl VmState {
    pub fn is_running(&self) -> bool {
        *self == Self::Running
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Creating => "creating",
            Self::Created => "created",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Stale => "stopped (stale)",
            Self::Error => "error",
            Self::Unknown => "",
            Self::Other(other) => other,
        }
    }
}

impl From<&str> for VmState {
    fn from(text: &str) -> Self {
        match text {
            "creating" => Self::Creating,
            "created" => Self::Created,
            "running" => Self::Running,
            "stopped" => Self::Stopped,
            "stopped (stale)" => Self::Stale,
            "error" => Self::Error,
            "" => Self::Unknown,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl Serialize for VmState {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for VmState {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::from(String::deserialize(from)?.as_str()))
    }
}

/// `snapshot inspect`: a flat object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SnapshotRecord {
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub cpu: u32,
    pub memory: u64,
    pub storage: u64,
    pub image: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image_digest: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image_type: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub network: String,
    #[serde(skip_serializing_if = "is_false")]
    pub windows: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub no_direct_io: bool,
    pub nics: u32,
    pub hypervisor: Backend,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub image_blob_ids: BTreeMap<String, serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
}

impl SnapshotRecord {
    /// It came from a registry, so that it can be had again.
    pub fn is_pulled(&self) -> bool {
        self.description.starts_with("pulled from ")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageRecord {
    pub id: String,
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
}

/// One line of `vm status --event --format json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmEvent {
    pub event: EventKind,
    pub vm: VmRecord,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Go writes an empty list or map as `null`.
fn null_is_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNNING: &str = r#"{"id":"K7QJ2M4XW5T3ABCDEFGHIJKLMN","hypervisor":"cloud-hypervisor","state":"running",
        "config":{"cpu":2,"memory":1073741824,"storage":10737418240,"image":"registry/repo:tag",
        "image_digest":"sha256:aa","image_type":"oci","network":"cocoon-dhcp","name":"vk-ns-demo-0"},
        "pid":4242,"socket_path":"/run/x/api.sock",
        "network_configs":[{"tap":"tapK7QJ2M4X-0","mac":"02:00:00:00:00:01","num_queues":4,"queue_size":512,
        "backend":"cni","netns_path":"/var/run/netns/cocoon-x","network":{"ip":"10.88.0.5","gateway":"10.88.0.1","prefix":24}}],
        "storage_configs":[{"path":"cow.raw","ro":false,"serial":"cocoon-cow","role":"cow"}],
        "first_booted":true,"snapshot_ids":{"s":{}},"created_at":"2026-04-24T08:00:00Z"}"#;

    #[test]
    fn a_record_of_cocoon_is_read() {
        let vm: VmRecord = serde_json::from_str(RUNNING).unwrap();
        assert_eq!(vm.name(), "vk-ns-demo-0");
        assert!(vm.state.is_running());
        assert_eq!(vm.mac(), Some("02:00:00:00:00:01"));
        assert_eq!(vm.address(), Some("10.88.0.5"));
        assert_eq!((vm.pid, vm.config.cpu, vm.config.memory), (4242, 2, 1 << 30));
    }

    #[test]
    fn a_card_without_network_has_no_static_address() {
        let vm: VmRecord =
            serde_json::from_str(r#"{"id":"x","network_configs":[{"mac":"02:00:00:00:00:02"}]}"#)
                .unwrap();
        assert_eq!(vm.address(), None);
        assert!(!vm.has_static_address());
        let bare: VmRecord = serde_json::from_str(r#"{"id":"x","network_configs":null}"#).unwrap();
        assert_eq!(bare.mac(), None);
    }

    #[test]
    fn states_keep_their_words() {
        for word in
            ["creating", "created", "running", "stopped", "stopped (stale)", "error", "paused", ""]
        {
            assert_eq!(VmState::from(word).as_str(), word);
        }
        assert!(!VmState::from("stopped (stale)").is_running());
    }

    #[test]
    fn a_snapshot_serves_its_own_hypervisor_and_whoever_does_not_say() {
        let of = Backend::new;
        for (snapshot, wanted, serves) in [
            ("cloud-hypervisor", "cloud-hypervisor", true),
            ("cloud-hypervisor", "firecracker", false),
            ("", "firecracker", true),
            ("firecracker", "", true),
        ] {
            assert_eq!(of(snapshot).serves(&of(wanted)), serves, "{snapshot} for {wanted}");
        }
    }
}
