use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Serialize};

use super::OwnedVm;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NameRef {
    #[serde(default)]
    pub name: String,
}

impl NameRef {
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    #[serde(default)]
    pub name: String,
    /// The pool's own namespace if empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolSpec {
    pub hosted_cluster_ref: NameRef,
    pub node_pool_ref: NameRef,
    pub infra_env_ref: NameRef,
    pub control_plane_namespace: String,
    pub vsphere: VsphereSpec,
    pub template: TemplateSpec,
    pub agent: AgentSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iso: Option<IsoSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup_policy: Option<CleanupPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<ScalingSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discovery: Option<DiscoverySpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<CleanupSpec>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CleanupPolicy {
    Retain,
    /// And every word that is not known.
    #[serde(other)]
    Delete,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VsphereSpec {
    pub credentials_secret_ref: SecretRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datacenter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datastore_cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datastore: Option<String>,
    pub iso_datastore: String,
    pub resource_pool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    pub network: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vm_tags: Vec<String>,
    #[serde(rename = "guestID", skip_serializing_if = "Option::is_none")]
    pub guest_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scsi_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware: Option<FirmwareName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_adapter_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_eagerly_scrub: Option<bool>,
    /// By name or id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_policy: Option<String>,
    /// Cards after the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra_networks: Vec<ExtraNetwork>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failure_domains: Vec<FailureDomain>,
}

/// One of several places for VMs. What it does not say is as the pool says it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailureDomain {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<SecretRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datacenter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datastore_cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datastore: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iso_datastore: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_pool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_policy: Option<String>,
    /// Its share of the VMs; 0 makes none there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtraNetwork {
    pub network: String,
    /// As the first card if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapter_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtraDisk {
    #[serde(rename = "sizeGiB")]
    pub size_gib: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eagerly_scrub: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FirmwareName {
    Efi,
    Bios,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TemplateSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_prefix: Option<String>,
    #[serde(rename = "numCPUs", skip_serializing_if = "Option::is_none")]
    pub num_cpus: Option<i32>,
    #[serde(rename = "memoryMiB", skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<i32>,
    #[serde(rename = "diskGiB", skip_serializing_if = "Option::is_none")]
    pub disk_gib: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores_per_socket: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_hot_add: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_hot_add: Option<bool>,
    #[serde(rename = "cpuReservationMHz", skip_serializing_if = "Option::is_none")]
    pub cpu_reservation_mhz: Option<i64>,
    #[serde(rename = "memoryReservationMiB", skip_serializing_if = "Option::is_none")]
    pub memory_reservation_mib: Option<i64>,
    /// The number of `vmx-19`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_version: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure_boot: Option<bool>,
    #[serde(rename = "vTPM", skip_serializing_if = "Option::is_none")]
    pub vtpm: Option<bool>,
    /// Disks after the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra_disks: Vec<ExtraDisk>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_config: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IsoSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_interval: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retain_versions: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eject_after_install: Option<bool>,
    /// Authorities of the server of the ISO, as PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScalingSpec {
    #[serde(rename = "maxVMs", skip_serializing_if = "Option::is_none")]
    pub max_vms: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_provisioning: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_agents: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_from_zero_hints: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DiscoverySpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CleanupSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surplus_grace_period: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphan_grace_period: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent_grace_period: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_spares: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<String>,
}

/// Counters that are zero are left out, so a reader takes an absent one for zero.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "is_zero")]
    pub desired_replicas: i32,
    #[serde(skip_serializing_if = "is_zero")]
    pub agent_machines: i32,
    #[serde(skip_serializing_if = "is_zero")]
    pub waiting_agent_machines: i32,
    #[serde(skip_serializing_if = "is_zero")]
    pub unready_agent_machines: i32,
    #[serde(skip_serializing_if = "is_zero")]
    pub agent_machines_without_agent: i32,
    #[serde(skip_serializing_if = "is_zero")]
    pub matching_agents: i32,
    #[serde(skip_serializing_if = "is_zero")]
    pub bound_agents: i32,
    #[serde(skip_serializing_if = "is_zero")]
    pub available_agents: i32,
    #[serde(skip_serializing_if = "is_zero")]
    pub demand_deficit: i32,
    /// VMs that are on their way to be spares, or are.
    #[serde(skip_serializing_if = "is_zero")]
    pub spare_agents: i32,
    /// Names of VMs that were made with other hardware than a new one would have.
    #[serde(rename = "outdatedVMs", skip_serializing_if = "Vec::is_empty")]
    pub outdated_vms: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failure_domains: Vec<DomainStatus>,
    #[serde(rename = "ownedVMs", skip_serializing_if = "Vec::is_empty")]
    pub owned_vms: Vec<OwnedVm>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub planned_actions: Vec<PlannedAction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iso: Option<IsoStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// How things are in one failure domain.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DomainStatus {
    pub name: String,
    #[serde(rename = "vms", skip_serializing_if = "is_zero")]
    pub vms: i32,
    /// VMs can be made there.
    pub ready: bool,
    /// Why not: `Pending` passes by itself, `Error` does not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iso: Option<IsoStatus>,
}

impl DomainStatus {
    pub const PENDING: &'static str = "Pending";
    pub const ERROR: &'static str = "Error";
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &i32) -> bool {
    *count == 0
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ActionKind {
    DemandDeficit,
    #[serde(rename = "DeleteVM")]
    DeleteVm,
    DeleteAgent,
    PatchAgent,
    Noop,
    #[serde(other)]
    Unknown,
}

impl ActionKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DemandDeficit => "DemandDeficit",
            Self::DeleteVm => "DeleteVM",
            Self::DeleteAgent => "DeleteAgent",
            Self::PatchAgent => "PatchAgent",
            Self::Noop => "Noop",
            Self::Unknown => "Unknown",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedAction {
    #[serde(rename = "type")]
    pub kind: ActionKind,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default)]
    pub reason: String,
}

/// The ISO that new VMs boot, and those before it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IsoStatus {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uploaded_at: Option<Time>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub force_refresh_token: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<IsoVersion>,
    /// Files that are not needed any more and could not be deleted yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IsoVersion {
    pub path: String,
    pub sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uploaded_at: Option<Time>,
}
