//! Where VMs go and what they get when nobody says otherwise.

use std::time::Duration;

use crate::run::ImageSources;

/// A day: an image that is used daily stays, one of last week's release does not.
const IMAGE_CACHE_TTL: Duration = Duration::from_hours(24);
/// Longer than the phases of copying and creating together.
const IMAGE_CACHE_GRACE: Duration = Duration::from_mins(90);

/// One place for VMs: a resource pool, and what is usual there.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Zone {
    pub name: String,
    /// A name, a path, or a path below the datacenter.
    pub resource_pool: String,
    /// For VMs whose storage class names neither a policy nor a datastore.
    #[serde(default)]
    pub datastore: Option<String>,
}

/// How the provider works; everything that a person can set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    pub datacenter: String,
    /// The folder below which each namespace has one of its own.
    pub folder: String,
    /// At least one.
    pub zones: Vec<Zone>,
    /// Whether each namespace has a folder and a resource pool of its own.
    pub per_namespace: bool,
    /// For interfaces that name none.
    pub network: String,
    pub storage_class_required: bool,
    /// Who VMs are marked to be managed by.
    pub extension_key: String,
    /// Added to the `extraConfig` of every VM.
    pub extra_config: Vec<(String, String)>,
    pub max_creates: u64,
    /// `ASYNC_CREATE_ENABLED`: whether a worker is free again as soon as a create has begun. Otherwise it waits for the end.
    pub async_create: bool,
    pub images: ImageSources,
    /// How long files of the image cache are kept that no VM needs; `None` is for ever.
    pub image_cache_ttl: Option<Duration>,
    /// And how long after that, so that creates that are under way come to their end.
    pub image_cache_grace: Duration,
    pub features: Features,
}

/// What can be turned off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Features {
    pub fast_deploy: Option<FastDeployMode>,
    pub snapshots: bool,
    pub groups: bool,
    pub resize: bool,
    pub backup: bool,
    /// Also the Secrets of its bootstrap. Whoever may read the VM in vCenter can read them then.
    pub backup_secrets: bool,
    /// Also the list of its disks with their claims, and the version of the copy.
    pub backup_disks: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FastDeployMode {
    /// Disks are copied from the cache.
    Direct,
    /// Disks are children of those in the cache.
    Linked,
}

impl FastDeployMode {
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "direct" => Some(Self::Direct),
            "linked" => Some(Self::Linked),
            _ => None,
        }
    }
}

/// Registered with vCenter, so that people see who manages a VM.
pub const EXTENSION_KEY: &str = "dev.roost.vm-operator";

impl Default for ProviderSettings {
    fn default() -> Self {
        Self {
            datacenter: String::new(),
            folder: String::new(),
            zones: Vec::new(),
            per_namespace: true,
            network: "VM Network".to_owned(),
            storage_class_required: false,
            extension_key: EXTENSION_KEY.to_owned(),
            extra_config: Vec::new(),
            max_creates: 16,
            async_create: true,
            images: ImageSources::default(),
            image_cache_ttl: Some(IMAGE_CACHE_TTL),
            image_cache_grace: IMAGE_CACHE_GRACE,
            features: Features::default(),
        }
    }
}

impl Default for Features {
    fn default() -> Self {
        Self {
            fast_deploy: None,
            snapshots: true,
            groups: true,
            resize: true,
            backup: true,
            backup_secrets: false,
            backup_disks: false,
        }
    }
}

impl ProviderSettings {
    /// So many creates at once; never none.
    pub fn creates_of(workers: usize, percent: u64, threads: u64) -> u64 {
        let share = u64::try_from(workers).unwrap_or(u64::MAX).saturating_mul(percent) / 100;
        if threads > 0 { threads } else { share.max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_always_room_for_one_create() {
        for (workers, percent, threads, want) in
            [(20, 80, 0, 16), (1, 80, 0, 1), (4, 0, 0, 1), (20, 80, 3, 3)]
        {
            assert_eq!(ProviderSettings::creates_of(workers, percent, threads), want);
        }
    }
}
