//! Settings by upstream's names: the environment of the manager, and its provider ConfigMap.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::api::GoDuration;
use crate::provider::{FastDeployMode, ProviderSettings, Zone};

use super::{ImageSources, VmOperatorSettings};

/// How often the API server is asked at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// `RATE_LIMIT_QPS`.
    pub per_second: u32,
    /// `RATE_LIMIT_BURST`: so many at once after a time of rest.
    pub burst: u32,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { per_second: 500, burst: 1_000 }
    }
}

/// The name of the ConfigMap with the keys of [`ProviderConfig`].
pub const PROVIDER_CONFIG_MAP: &str = "vsphere.provider.config.vmoperator.vmware.com";
/// The Secret with `username` and `password`, unless `VC_CREDS_SECRET_NAME` names another.
pub const CREDENTIALS_SECRET: &str = "wcp-vmop-sa-vc-auth";

/// How the vCenter is reached, and where VMs go in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfig {
    pub host: String,
    pub port: u16,
    pub ca_file: Option<String>,
    pub insecure: bool,
    pub provider: ProviderSettings,
}

/// Collects every problem, so that a person sees all of them at once.
struct Reading<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<String>,
}

impl Reading<'_> {
    fn text(&self, key: &str) -> Option<String> {
        (self.get)(key).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn parse<T>(&mut self, key: &str, wants: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.text(key)?;
        let parsed = parse(&text);
        if parsed.is_none() {
            self.problems.push(format!("{key}: {text} is no {wants}"));
        }
        parsed
    }

    fn duration(&mut self, key: &str, usual: Duration) -> Duration {
        let parsed =
            self.parse(key, "duration such as 10s", |text| GoDuration::new(text).parse().ok());
        parsed.unwrap_or(usual)
    }

    fn switch(&mut self, key: &str, usual: bool) -> bool {
        let parsed =
            self.parse(key, "true or false", |text| match text.to_ascii_lowercase().as_str() {
                "true" | "1" => Some(true),
                "false" | "0" => Some(false),
                _ => None,
            });
        parsed.unwrap_or(usual)
    }

    fn limit(&mut self, key: &str, usual: u32) -> u32 {
        let parsed = self.parse(key, "number from 1 on", |text| text.parse().ok());
        parsed.filter(|limit| *limit > 0).unwrap_or(usual)
    }

    fn number(&mut self, key: &str, usual: u64) -> u64 {
        self.parse(key, "number", |text| text.parse().ok()).unwrap_or(usual)
    }
}

impl ProviderConfig {
    /// The keys of the ConfigMap: `VcPNID`, `VcPort`, `Datacenter`, `Datastore`, `Network`, `StorageClassRequired`, `CAFilePath`,
    /// `InsecureSkipTLSVerify`, `UseInventoryAsContentSource`, and ours: `Folder`, `ResourcePool`, or `Zones` as a YAML list, `NamespaceFolders`,
    /// `ContentLibraries`, `ImageNamespaces`, `ExtensionKey`.
    pub fn of_config_map(data: &BTreeMap<String, String>) -> Result<Self, Vec<String>> {
        let get = |key: &str| data.get(key).cloned();
        let mut at = Reading { get: &get, problems: Vec::new() };
        let host = at.text("VcPNID").unwrap_or_default();
        if host.is_empty() {
            at.problems.push("VcPNID: the vCenter's name is missing".to_owned());
        }
        let port = at.parse("VcPort", "port", |text| text.parse().ok()).unwrap_or(443);
        let datastore = at.text("Datastore");
        let listed = at.parse("Zones", "YAML list of name, resourcePool and datastore", |text| {
            serde_saphyr::from_str::<Vec<Zone>>(text).ok()
        });
        let zones = listed.unwrap_or_else(|| {
            let resource_pool = at.text("ResourcePool").unwrap_or_default();
            vec![Zone { name: "default".to_owned(), resource_pool, datastore: datastore.clone() }]
        });
        if zones.iter().any(|zone| zone.resource_pool.is_empty()) {
            at.problems
                .push("ResourcePool or Zones: name the resource pool that VMs go into".to_owned());
        }
        let usual = ProviderSettings::default();
        let names = |text: String| -> Vec<String> {
            let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        };
        let images = ImageSources {
            libraries: at.text("ContentLibraries").map_or(usual.images.libraries.clone(), names),
            inventory: at.switch("UseInventoryAsContentSource", usual.images.inventory),
            namespaces: at.text("ImageNamespaces").map(names).unwrap_or_default(),
        };
        let provider = ProviderSettings {
            datacenter: at.text("Datacenter").unwrap_or_default(),
            folder: at.text("Folder").unwrap_or_default(),
            zones,
            network: at.text("Network").unwrap_or_else(|| usual.network.clone()),
            storage_class_required: at.switch("StorageClassRequired", false),
            per_namespace: at.switch("NamespaceFolders", true),
            extension_key: at.text("ExtensionKey").unwrap_or(usual.extension_key),
            images,
            ..usual
        };
        let config = Self {
            host,
            port,
            ca_file: at.text("CAFilePath"),
            insecure: at.switch("InsecureSkipTLSVerify", false),
            provider,
        };
        if at.problems.is_empty() { Ok(config) } else { Err(at.problems) }
    }
}

impl VmOperatorSettings {
    /// What the environment says, over these settings.
    pub fn with_environment(
        mut self,
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Vec<String>> {
        let mut at = Reading { get, problems: Vec::new() };
        let workers = at.number("MAX_CONCURRENT_RECONCILES", 20);
        self.workers = usize::try_from(workers).unwrap_or(usize::MAX).max(1);
        let percent = at.number("MAX_CREATE_VMS_ON_PROVIDER", 80);
        let threads = at.number("MAX_DEPLOY_THREADS_ON_PROVIDER", 0);
        self.provider.max_creates = ProviderSettings::creates_of(self.workers, percent, threads);
        self.flow.create_requeue = at.duration("CREATE_VM_REQUEUE_DELAY", self.flow.create_requeue);
        self.flow.address_requeue =
            at.duration("POWERED_ON_VM_HAS_IP_REQUEUE_DELAY", self.flow.address_requeue);
        self.flow.image_retry = at.duration("SYNC_IMAGE_REQUEUE_DELAY", self.flow.image_retry);
        self.resync = at.duration("SYNC_PERIOD", self.resync);
        self.flow.async_signal = at.switch("ASYNC_SIGNAL_ENABLED", true);
        self.provider.async_create = at.switch("ASYNC_CREATE_ENABLED", true);
        let features = &mut self.provider.features;
        features.backup_secrets = at.switch("BACKUP_SECRETS", false);
        features.backup_disks = at.switch("BACKUP_DISKS", false);
        features.snapshots = at.switch("SNAPSHOTS_ENABLED", features.snapshots);
        features.groups = at.switch("GROUPS_ENABLED", features.groups);
        features.resize = at.switch("RESIZE_CPU_MEMORY_ENABLED", features.resize);
        features.backup = at.switch("BACKUP_ENABLED", features.backup);
        self.admission.mutable_networks = at.switch("MUTABLE_NETWORKS_ENABLED", false);
        if at.switch("LOG_SENSITIVE_DATA", false) {
            tracing::warn!("LOG_SENSITIVE_DATA is set: secrets are never in the log all the same");
        }
        self.namespace = at.text("WATCH_NAMESPACE").or(self.namespace);
        if let Some(namespace) = at.text("POD_NAMESPACE") {
            self.flow.pod_namespace = namespace;
        }
        self.rate_limit.per_second = at.limit("RATE_LIMIT_QPS", self.rate_limit.per_second);
        self.rate_limit.burst = at.limit("RATE_LIMIT_BURST", self.rate_limit.burst);
        let users = at.text("PRIVILEGED_USERS").unwrap_or_default();
        let users = users.split(',').map(str::trim).filter(|user| !user.is_empty());
        self.admission.privileged_users.extend(users.map(str::to_owned));
        if let Some(mode) = at.text("FAST_DEPLOY_MODE") {
            self.provider.features.fast_deploy = FastDeployMode::parse(&mode);
        }
        // Upstream's switch of the feature, which has a mode of its own.
        let usual = self.provider.features.fast_deploy.is_some();
        if !at.switch("FSS_WCP_VMSERVICE_FAST_DEPLOY", usual) {
            self.provider.features.fast_deploy = None;
        } else if !usual {
            self.provider.features.fast_deploy = Some(FastDeployMode::Linked);
        }
        let kept = self.provider.image_cache_ttl.unwrap_or_default();
        let kept = at.duration("IMAGE_CACHE_TTL", kept);
        self.provider.image_cache_ttl = Some(kept).filter(|kept| !kept.is_zero());
        let extra = at.parse("JSON_EXTRA_CONFIG", "JSON object of texts", |text| {
            serde_json::from_str::<BTreeMap<String, String>>(text).ok()
        });
        self.provider.extra_config.extend(extra.into_iter().flatten());
        let network = at.text("NETWORK_PROVIDER");
        if network.is_some_and(|network| !network.eq_ignore_ascii_case("named")) {
            at.problems.push("NETWORK_PROVIDER: only NAMED is served here".to_owned());
        }
        if at.problems.is_empty() { Ok(self) } else { Err(at.problems) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Features;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_environment_of_upstreams_manager_is_understood() {
        let all = map(&[
            ("MAX_CONCURRENT_RECONCILES", "10"),
            ("CREATE_VM_REQUEUE_DELAY", "3s"),
            ("SYNC_PERIOD", "5m"),
            ("WATCH_NAMESPACE", "team-a"),
            ("JSON_EXTRA_CONFIG", r#"{"a": "b"}"#),
            ("ASYNC_SIGNAL_ENABLED", "false"),
            ("ASYNC_CREATE_ENABLED", "false"),
            ("BACKUP_SECRETS", "true"),
            ("BACKUP_DISKS", "true"),
            ("SNAPSHOTS_ENABLED", "false"),
            ("GROUPS_ENABLED", "false"),
            ("RESIZE_CPU_MEMORY_ENABLED", "false"),
            ("BACKUP_ENABLED", "false"),
            ("MUTABLE_NETWORKS_ENABLED", "true"),
            ("LOG_SENSITIVE_DATA", "true"),
            ("RATE_LIMIT_QPS", "50"),
            ("FAST_DEPLOY_MODE", "Direct"),
            ("IMAGE_CACHE_TTL", "90m"),
            ("PRIVILEGED_USERS", "alice, system:serviceaccount:ops:backup"),
        ]);
        let get = |key: &str| all.get(key).cloned();
        let settings = VmOperatorSettings::default().with_environment(&get).unwrap();
        assert_eq!((settings.workers, settings.provider.max_creates), (10, 8));
        assert_eq!(settings.flow.create_requeue, Duration::from_secs(3));
        assert_eq!(settings.resync, Duration::from_mins(5));
        assert_eq!(settings.namespace.as_deref(), Some("team-a"));
        assert_eq!(settings.provider.extra_config, [("a".to_owned(), "b".to_owned())]);
        assert_eq!(settings.provider.features.fast_deploy, Some(FastDeployMode::Direct));
        assert_eq!(settings.provider.image_cache_ttl, Some(Duration::from_mins(90)));
        assert!(!settings.flow.async_signal && !settings.provider.async_create);
        let features = Features {
            snapshots: false,
            groups: false,
            resize: false,
            backup: false,
            backup_secrets: true,
            backup_disks: true,
            ..settings.provider.features
        };
        assert_eq!(settings.provider.features, features);
        assert!(settings.admission.mutable_networks);
        assert_eq!(settings.rate_limit, RateLimit { per_second: 50, burst: 1_000 });
        let privileged = ["alice", "system:serviceaccount:ops:backup"];
        assert_eq!(settings.admission.privileged_users, privileged);
    }

    #[test]
    fn fast_deploy_is_off_unless_its_switch_or_its_mode_says_so() {
        for (switch, mode, want) in [
            (None, None, None),
            (None, Some("linked"), Some(FastDeployMode::Linked)),
            (None, Some("none"), None),
            (Some("true"), None, Some(FastDeployMode::Linked)),
            (Some("true"), Some("direct"), Some(FastDeployMode::Direct)),
            (Some("false"), Some("direct"), None),
        ] {
            let get = |key: &str| match key {
                "FSS_WCP_VMSERVICE_FAST_DEPLOY" => switch.map(str::to_owned),
                "FAST_DEPLOY_MODE" => mode.map(str::to_owned),
                _ => None,
            };
            let settings = VmOperatorSettings::default().with_environment(&get).unwrap();
            assert_eq!(settings.provider.features.fast_deploy, want, "{switch:?} {mode:?}");
        }
    }

    #[test]
    fn every_problem_is_named_at_once() {
        let all = map(&[
            ("SYNC_PERIOD", "often"),
            ("MAX_CONCURRENT_RECONCILES", "many"),
            ("NETWORK_PROVIDER", "NSX_VPC"),
        ]);
        let get = |key: &str| all.get(key).cloned();
        let problems = VmOperatorSettings::default().with_environment(&get).unwrap_err();
        assert_eq!(
            problems,
            [
                "MAX_CONCURRENT_RECONCILES: many is no number",
                "SYNC_PERIOD: often is no duration such as 10s",
                "NETWORK_PROVIDER: only NAMED is served here",
            ]
        );
    }

    #[test]
    fn a_provider_config_map_says_where_vms_go() {
        let config = ProviderConfig::of_config_map(&map(&[
            ("VcPNID", "vc.example"),
            ("Datacenter", "DC0"),
            ("Zones", "- {name: a, resourcePool: /DC0/host/A/Resources, datastore: ds}\n- {name: b, resourcePool: B}"),
            ("InsecureSkipTLSVerify", "true"),
            ("ContentLibraries", "golden, silver"),
            ("UseInventoryAsContentSource", "true"),
            ("NamespaceFolders", "false"),
            ("ExtensionKey", "com.example"),
        ]))
        .unwrap();
        assert!(!config.provider.per_namespace);
        assert_eq!(config.provider.extension_key, "com.example");
        assert_eq!(config.provider.images.libraries, ["golden", "silver"]);
        assert!(config.provider.images.inventory && config.provider.images.namespaces.is_empty());
        assert_eq!((config.host.as_str(), config.port, config.insecure), ("vc.example", 443, true));
        assert_eq!(config.provider.zones.len(), 2);
        assert_eq!(config.provider.zones[0].datastore.as_deref(), Some("ds"));
        let problems = ProviderConfig::of_config_map(&map(&[("VcPort", "x")])).unwrap_err();
        assert_eq!(problems.len(), 3, "{problems:?}");
    }
}
