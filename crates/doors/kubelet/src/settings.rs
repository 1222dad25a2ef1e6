//! The environment that operators of vk-cocoon know, read once and checked whole.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use roost_microvm::Quantity;

use crate::node::Resources;
use crate::pods::OrphanPolicy;

/// What a kubelet needs to know, each with its rule kept.
#[derive(Debug, Clone)]
pub struct Settings {
    pub node_name: String,
    pub node_ip: IpAddr,
    pub pool: String,
    pub provider_id: Option<String>,
    pub cpu_class: Option<String>,
    pub port: u16,
    pub metrics_addr: String,
    pub reserve_percent: u64,
    pub pods: u64,
    /// Given instead of detected.
    pub resources: Option<Resources>,
    pub orphans: OrphanPolicy,
    pub cocoon: PathBuf,
    pub root_dir: PathBuf,
    pub leases: PathBuf,
    pub net_control: PathBuf,
    pub registry: String,
    pub tls_cert: PathBuf,
    pub tls_key: PathBuf,
    pub deletes_hibernate_tag: bool,
}

/// One variable that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub variable: &'static str,
    pub why: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.variable, self.why)
    }
}

struct Reader<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (self.get)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn or(&self, name: &str, default: &str) -> String {
        self.text(name).unwrap_or_else(|| default.to_owned())
    }

    fn parse<T>(
        &mut self,
        name: &'static str,
        default: T,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> T {
        match self.text(name).map(|text| parse(&text)) {
            None => default,
            Some(Ok(value)) => value,
            Some(Err(why)) => {
                self.problems.push(Problem { variable: name, why });
                default
            }
        }
    }

    fn amount(&mut self, name: &'static str, detected: u64) -> u64 {
        self.parse(name, detected, |text| {
            text.parse::<Quantity>().map(Quantity::value).map_err(|e| e.to_string())
        })
    }
}

impl Settings {
    /// From variables. All that is wrong is told at once.
    pub fn read(get: &dyn Fn(&str) -> Option<String>) -> Result<Self, Vec<Problem>> {
        let mut reader = Reader { get, problems: Vec::new() };
        let percent = |text: &str| match text.parse::<u64>() {
            Ok(percent @ 0..=100) => Ok(percent),
            _ => Err(format!("{text:?} is not a whole number from 0 to 100")),
        };
        let count =
            |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is not a number"));
        let port = |text: &str| {
            text.parse::<u16>().ok().filter(|p| *p > 0).ok_or(format!("{text:?} is not a port"))
        };
        let address = |text: &str| {
            text.parse::<IpAddr>().map_err(|_| format!("{text:?} is not an IP address"))
        };
        let policy = |text: &str| match text.to_ascii_lowercase().as_str() {
            "alert" => Ok(OrphanPolicy::Alert),
            "destroy" => Ok(OrphanPolicy::Destroy),
            "keep" => Ok(OrphanPolicy::Keep),
            _ => Err(format!("{text:?} is none of alert, destroy, keep")),
        };
        let root_dir = PathBuf::from(reader.or("COCOON_ROOT_DIR", "/var/lib/cocoon"));
        let pods = reader.parse("VK_NODE_PODS", 256, count);
        let overrides = ["VK_NODE_CPU", "VK_NODE_MEM", "VK_NODE_STORAGE", "VK_NODE_HUGEPAGES"];
        let resources = if overrides.iter().any(|name| reader.text(name).is_some()) {
            let detected = Resources::detect(&root_dir, pods).unwrap_or(Resources {
                cpus: 1,
                memory: 0,
                storage: 0,
                storage_free: 0,
                huge_pages: 0,
                pods,
            });
            let storage = reader.amount("VK_NODE_STORAGE", detected.storage);
            let is_given = reader.text("VK_NODE_STORAGE").is_some();
            Some(Resources {
                cpus: reader.amount("VK_NODE_CPU", detected.cpus),
                memory: reader.amount("VK_NODE_MEM", detected.memory),
                storage,
                storage_free: if is_given { storage } else { detected.storage_free },
                huge_pages: reader.amount("VK_NODE_HUGEPAGES", detected.huge_pages),
                pods,
            })
        } else {
            None
        };
        let settings = Self {
            node_name: reader.or("VK_NODE_NAME", "cocoon-pool"),
            node_ip: reader.parse("VK_NODE_IP", IpAddr::V4(Ipv4Addr::LOCALHOST), address),
            pool: reader.or("VK_NODE_POOL", "default"),
            provider_id: reader.text("VK_PROVIDER_ID"),
            cpu_class: reader.text("VK_SNAPSHOT_CPU_CLASS"),
            port: reader.parse("VK_KUBELET_PORT", 10250, port),
            metrics_addr: reader.or("VK_METRICS_ADDR", ":9091"),
            reserve_percent: reader.parse("VK_RESERVE_PERCENT", 20, percent),
            pods,
            resources,
            orphans: reader.parse("VK_ORPHAN_POLICY", OrphanPolicy::Alert, policy),
            cocoon: reader.or("VK_COCOON_BIN", "/usr/local/bin/cocoon").into(),
            leases: reader.or("VK_LEASES_PATH", "/var/lib/cocoon/net/leases.json").into(),
            net_control: reader
                .or("VK_COCOON_NET_CONTROL_SOCKET", "/run/cocoon-net/control.sock")
                .into(),
            registry: reader
                .text("EPOCH_URL")
                .or_else(|| reader.text("OCI_REGISTRY"))
                .unwrap_or_else(|| "http://epoch.cocoon-system.svc:8080".to_owned()),
            tls_cert: reader.or("VK_TLS_CERT", "/etc/cocoon/vk/tls/vk-kubelet.crt").into(),
            tls_key: reader.or("VK_TLS_KEY", "/etc/cocoon/vk/tls/vk-kubelet.key").into(),
            deletes_hibernate_tag: false,
            root_dir,
        };
        if reader.problems.is_empty() { Ok(settings) } else { Err(reader.problems) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, Vec<Problem>> {
        let get = |name: &str| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        Settings::read(&get)
    }

    #[test]
    fn what_is_not_set_has_the_documented_default() {
        let settings = read(&[]).unwrap();
        assert_eq!(
            (settings.node_name.as_str(), settings.pool.as_str()),
            ("cocoon-pool", "default")
        );
        assert_eq!((settings.port, settings.reserve_percent, settings.pods), (10250, 20, 256));
        assert_eq!(settings.orphans, OrphanPolicy::Alert);
        assert_eq!(settings.registry, "http://epoch.cocoon-system.svc:8080");
        assert_eq!(settings.metrics_addr, ":9091");
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let problems = read(&[
            ("VK_RESERVE_PERCENT", "120"),
            ("VK_ORPHAN_POLICY", "shoot"),
            ("VK_NODE_CPU", "many"),
            ("VK_NODE_IP", "here"),
        ]);
        let told: Vec<&str> =
            problems.unwrap_err().iter().map(|problem| problem.variable).collect();
        assert_eq!(told, ["VK_NODE_CPU", "VK_NODE_IP", "VK_RESERVE_PERCENT", "VK_ORPHAN_POLICY"]);
    }

    #[test]
    fn sizes_are_quantities() {
        let settings =
            read(&[("VK_NODE_CPU", "16"), ("VK_NODE_MEM", "64Gi"), ("VK_NODE_STORAGE", "1Ti")])
                .unwrap();
        let resources = settings.resources.unwrap();
        assert_eq!((resources.cpus, resources.memory), (16, 64 << 30));
        assert_eq!((resources.storage, resources.storage_free), (1 << 40, 1 << 40));
    }
}
