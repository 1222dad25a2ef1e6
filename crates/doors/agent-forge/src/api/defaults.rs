//! What a pool means where it says nothing. The definition has most of these too; objects that were stored before it had them
//! behave the same.

use std::time::Duration;

use kube::ResourceExt;

use super::names::{FORCE_DELETE, FORCE_ISO_REFRESH, NODEPOOL_LABEL, PAUSED};
use super::{
    CleanupPolicy, FirmwareName, IsoStatus, TemplateSpec, VsphereAgentPool, parse_duration,
};

/// How long a VM may take from power on until its Agent registers. A discovery image boots within minutes.
const DISCOVERY: Duration = Duration::from_mins(30);
/// A VM that registers no Agent five times in a row will not do so the sixth time: a person must look.
pub const MAX_ATTEMPTS: i32 = 5;
const CHECK_INTERVAL: Duration = Duration::from_mins(10);
const RETAIN_VERSIONS: usize = 2;
/// A Machine that vanished unseen is believed gone after this time: a restore or a move brings it back sooner.
const ABSENT_GRACE: Duration = Duration::from_mins(10);

/// Reads a pool with its defaults.
pub trait PoolDefaults {
    fn pool(&self) -> &VsphereAgentPool;

    fn datacenter(&self) -> &str {
        self.pool().spec.vsphere.datacenter.as_deref().unwrap_or("dc1")
    }

    /// Below the datacenter's VM folder, without slashes at its ends.
    fn folder(&self) -> &str {
        let spec = &self.pool().spec;
        let folder = spec.vsphere.folder.as_deref().unwrap_or_default().trim_matches('/');
        if folder.is_empty() { &spec.hosted_cluster_ref.name } else { folder }
    }

    fn guest_id(&self) -> &str {
        self.pool().spec.vsphere.guest_id.as_deref().unwrap_or("rhel9_64Guest")
    }

    fn scsi_type(&self) -> &str {
        self.pool().spec.vsphere.scsi_type.as_deref().unwrap_or("pvscsi")
    }

    fn adapter_type(&self) -> &str {
        self.pool().spec.vsphere.network_adapter_type.as_deref().unwrap_or("vmxnet3")
    }

    fn firmware(&self) -> FirmwareName {
        self.pool().spec.vsphere.firmware.unwrap_or(FirmwareName::Efi)
    }

    fn cpus(&self) -> i32 {
        self.pool().spec.template.num_cpus.unwrap_or(4)
    }

    fn memory_mib(&self) -> i32 {
        self.pool().spec.template.memory_mib.unwrap_or(16384)
    }

    fn disk_gib(&self) -> i32 {
        self.pool().spec.template.disk_gib.unwrap_or(100)
    }

    fn role(&self) -> &str {
        self.pool().spec.agent.role.as_deref().unwrap_or("worker")
    }

    fn approves(&self) -> bool {
        self.pool().spec.agent.approve.unwrap_or(true)
    }

    /// The label that tells this pool's Agents from another's, if it has one.
    fn discriminator(&self) -> Option<&str> {
        let label = self.pool().spec.agent.labels.get(NODEPOOL_LABEL);
        label.map(String::as_str).filter(|value| !value.is_empty())
    }

    fn retains(&self) -> bool {
        self.pool().spec.cleanup_policy == Some(CleanupPolicy::Retain)
    }

    fn check_interval(&self) -> Duration {
        let given = self.pool().spec.iso.as_ref().and_then(|iso| iso.check_interval.as_deref());
        let given = given.and_then(parse_duration).filter(|interval| !interval.is_zero());
        given.unwrap_or(CHECK_INTERVAL)
    }

    fn retain_versions(&self) -> usize {
        let given = self.pool().spec.iso.as_ref().and_then(|iso| iso.retain_versions);
        given.and_then(|count| count.try_into().ok()).filter(|n| *n > 0).unwrap_or(RETAIN_VERSIONS)
    }

    /// The directory of the ISO cache on its datastore.
    fn iso_prefix(&self) -> String {
        let pool = self.pool();
        let given = pool.spec.iso.as_ref().and_then(|iso| iso.path_prefix.as_deref());
        let given = given.unwrap_or_default().trim().trim_matches('/');
        if given.is_empty() {
            let namespace = pool.namespace().unwrap_or_default();
            return format!("agent-forge/{namespace}/{}", pool.name_any());
        }
        given.to_owned()
    }

    fn force_refresh_token(&self) -> &str {
        self.pool().annotations().get(FORCE_ISO_REFRESH).map(String::as_str).unwrap_or_default()
    }

    fn ejects(&self) -> bool {
        let given = self.pool().spec.iso.as_ref().and_then(|iso| iso.eject_after_install);
        given.unwrap_or(false)
    }

    fn discovery_timeout(&self) -> Duration {
        let given = self.pool().spec.discovery.as_ref().and_then(|it| it.timeout.as_deref());
        given.and_then(parse_duration).filter(|time| !time.is_zero()).unwrap_or(DISCOVERY)
    }

    fn max_attempts(&self) -> i32 {
        let given = self.pool().spec.discovery.as_ref().and_then(|it| it.max_attempts);
        given.unwrap_or(MAX_ATTEMPTS)
    }

    fn surplus_grace(&self) -> Duration {
        let given = self.pool().spec.cleanup.as_ref();
        let given = given.and_then(|it| it.surplus_grace_period.as_deref());
        given.and_then(parse_duration).unwrap_or_default()
    }

    fn orphan_grace(&self) -> Duration {
        let given = self.pool().spec.cleanup.as_ref();
        given
            .and_then(|it| it.orphan_grace_period.as_deref())
            .and_then(parse_duration)
            .unwrap_or_default()
    }

    fn absent_grace(&self) -> Duration {
        let given = self.pool().spec.cleanup.as_ref();
        let given = given.and_then(|it| it.absent_grace_period.as_deref());
        given.and_then(parse_duration).unwrap_or(ABSENT_GRACE)
    }

    /// For so long a VM that goes stays, off and under another name.
    fn quarantine(&self) -> Option<Duration> {
        let given = self.pool().spec.cleanup.as_ref().and_then(|it| it.quarantine.as_deref());
        given.and_then(parse_duration).filter(|time| !time.is_zero())
    }

    fn keep_spares(&self) -> usize {
        let given = self.pool().spec.cleanup.as_ref().and_then(|it| it.keep_spares);
        given.and_then(|count| count.try_into().ok()).unwrap_or_default()
    }

    /// So many Agents are kept ready ahead of demand.
    fn buffer(&self) -> usize {
        let given = self.pool().spec.scaling.and_then(|it| it.buffer_agents);
        given.and_then(|count| count.try_into().ok()).unwrap_or_default()
    }

    /// Whether an AgentMachine that waits may get a VM that was not made for it.
    fn shares_spares(&self) -> bool {
        self.buffer() > 0 || self.keep_spares() > 0
    }

    fn hints_autoscaler(&self) -> bool {
        self.pool().spec.scaling.and_then(|it| it.scale_from_zero_hints).unwrap_or(false)
    }

    /// Changes whenever a new VM would get other hardware. Where VMs go is no part of it.
    fn template_hash(&self) -> String {
        let (vsphere, template) = (&self.pool().spec.vsphere, &self.pool().spec.template);
        let template = TemplateSpec {
            name_prefix: None,
            num_cpus: Some(self.cpus()),
            memory_mib: Some(self.memory_mib()),
            disk_gib: Some(self.disk_gib()),
            ..template.clone()
        };
        let cards: Vec<_> =
            vsphere.extra_networks.iter().map(|extra| extra.adapter_type.as_deref()).collect();
        let all = serde_json::json!({
            "template": template, "guest": self.guest_id(), "disk": self.scsi_type(),
            "eager": vsphere.disk_eagerly_scrub.unwrap_or(false),
            "card": self.adapter_type(), "cards": cards, "firmware": self.firmware(),
        });
        crate::names::hex_digest(all.to_string().as_bytes())[..16].to_owned()
    }

    /// The ISO that is shown for the pool: its own, or that of a failure domain.
    fn shown_iso(&self) -> Option<&IsoStatus> {
        let status = &self.pool().status;
        let of_domains = status.failure_domains.iter().filter_map(|domain| domain.iso.as_ref());
        status.iso.iter().chain(of_domains).find(|iso| !iso.path.is_empty())
    }

    fn is_dry_run(&self) -> bool {
        self.pool().spec.dry_run.unwrap_or(false)
    }

    fn is_paused(&self) -> bool {
        self.pool().annotations().get(PAUSED).is_some_and(|value| value != "false")
    }

    fn is_deleting(&self) -> bool {
        self.pool().metadata.deletion_timestamp.is_some()
    }

    fn is_forced(&self) -> bool {
        self.pool().annotations().get(FORCE_DELETE).is_some_and(|value| value == "true")
    }
}

impl PoolDefaults for VsphereAgentPool {
    fn pool(&self) -> &VsphereAgentPool {
        self
    }
}
