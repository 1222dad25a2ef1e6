//! The environment that operators of vk-cocoon know, read once and checked whole.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;

use roost_microvm::Quantity;
use secrecy::SecretString;

use crate::node::ResourceOverrides;
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
    /// Where metrics are shown, without TLS.
    pub metrics_addr: SocketAddr,
    pub reserve_percent: u64,
    pub pods: u64,
    /// Given instead of detected.
    pub resources: ResourceOverrides,
    pub orphans: OrphanPolicy,
    pub cocoon: PathBuf,
    /// Whether it is called through `sudo`. `None`: unless this is root already.
    pub sudo: Option<bool>,
    pub root_dir: PathBuf,
    pub leases: PathBuf,
    pub net_control: PathBuf,
    /// Consoles and disks of VMs are below it.
    pub run_dir: PathBuf,
    /// `None`: VMs hibernate on this host.
    pub registry: Option<String>,
    pub registry_token: Option<SecretString>,
    /// Authorities that a registry's certificate may be signed by, in place of those of the system.
    pub registry_ca: Option<PathBuf>,
    pub tls_cert: PathBuf,
    pub tls_key: PathBuf,
    /// The cluster signs the certificate, and the files are ours.
    pub requests_certificate: bool,
    /// Authorities of clients. `None`: that of the API server.
    pub client_ca: Option<PathBuf>,
    pub deletes_hibernate_tag: bool,
    /// Snapshots and images that are fetched at once.
    pub pulls: u16,
    /// VMs that are made at once.
    pub clones: u16,
    /// Snapshots that are saved at once.
    pub saves: u16,
    /// Bytes that pulled snapshots may take. `None`: a part of the disk.
    pub snapshot_cache: Option<u64>,
    /// The control group of all VMs. `None`: VMs stay where their runtime puts them.
    pub cgroup_parent: Option<String>,
    /// Variables that are set and that nothing comes of.
    pub not_followed: Vec<&'static str>,
    /// VMs are QEMU's own. `None`: those of `cocoon`.
    pub qemu: Option<QemuVariables>,
}

/// Which QEMU and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QemuVariables {
    pub binary: String,
    pub disk_tool: String,
    pub root_dir: String,
    pub machine: String,
    pub cpu: String,
    /// Of two, the first unless it is slower.
    pub accelerators: Vec<String>,
}

impl QemuVariables {
    fn read(reader: &Reader<'_>) -> Self {
        let accelerators = reader.or("VK_QEMU_ACCEL", "kvm,tcg");
        Self {
            binary: reader.or("VK_QEMU_BIN", "qemu-system-x86_64"),
            disk_tool: reader.or("VK_QEMU_IMG_BIN", "qemu-img"),
            root_dir: reader.or("VK_QEMU_DIR", "/var/lib/roost/qemu"),
            machine: reader.or("VK_QEMU_MACHINE", "pc"),
            cpu: reader.or("VK_QEMU_CPU", "max"),
            accelerators: accelerators.split(',').map(|name| name.trim().to_owned()).collect(),
        }
    }
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
}

/// Of other releases of vk-cocoon. Whoever sets them is told that nothing comes of it.
const NOT_FOLLOWED: [&str; 10] = [
    "VK_SSH_PASSWORD",
    "VK_RESTORE_MODE",
    "VK_STAGING_DIR",
    "VK_PEER_ADDR",
    "VK_COCOON_SNAPSHOT_DIR",
    "SNAPSHOT_ZSTD_LEVEL",
    "SNAPSHOT_CHUNK_SIZE_MIB",
    "SNAPSHOT_TRANSFER_CONCURRENCY",
    "SNAPSHOT_MEMORY_BUDGET_MIB",
    "SNAPSHOT_PULL_BUDGET_MIB",
];

const COCOON_ROOT: &str = "/var/lib/cocoon";
const REGISTRY: &str = "http://epoch.cocoon-system.svc:8080";
const METRICS: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 9091);

/// The address that this machine reaches others from. Nothing is sent.
fn own_address() -> IpAddr {
    let reach = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        // An address of documentation, which only has to be outside of this machine.
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        socket.local_addr()
    };
    reach().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip())
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
        let size = |text: &str| {
            let size = text.parse::<Quantity>().map(Quantity::value);
            size.map(Some).map_err(|error| error.to_string())
        };
        let several = |text: &str| {
            let number = text.parse::<u16>().ok().filter(|number| *number > 0);
            number.ok_or(format!("{text:?} is not a whole number from 1 to 65535"))
        };
        let address = |text: &str| {
            text.parse::<IpAddr>().map_err(|_| format!("{text:?} is not an IP address"))
        };
        let flag = |text: &str| match text {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(format!("{text:?} is neither true nor false")),
        };
        // `:9091` is every address of this machine.
        let listen = |text: &str| {
            let whole = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
            whole.parse().map_err(|_| format!("{text:?} is no address with a port, such as :9091"))
        };
        let policy = |text: &str| match text.to_ascii_lowercase().as_str() {
            "alert" => Ok(OrphanPolicy::Alert),
            "destroy" => Ok(OrphanPolicy::Destroy),
            "keep" => Ok(OrphanPolicy::Keep),
            _ => Err(format!("{text:?} is none of alert, destroy, keep")),
        };
        let qemu = reader.parse("VK_RUNTIME", false, |text| match text {
            "cocoon" => Ok(false),
            "qemu" => Ok(true),
            _ => Err(format!("{text:?} is neither cocoon nor qemu")),
        });
        let qemu = qemu.then(|| QemuVariables::read(&reader));
        let usual_root = qemu.as_ref().map_or(COCOON_ROOT, |qemu| qemu.root_dir.as_str());
        let root_dir = PathBuf::from(reader.or("COCOON_ROOT_DIR", usual_root));
        let pods = reader.parse("VK_NODE_PODS", 256, count);
        let resources = ResourceOverrides {
            cpus: reader.parse("VK_NODE_CPU", None, size),
            memory: reader.parse("VK_NODE_MEM", None, size),
            storage: reader.parse("VK_NODE_STORAGE", None, size),
            huge_pages: reader.parse("VK_NODE_HUGEPAGES", None, size),
        };
        let settings = Self {
            node_name: reader.or("VK_NODE_NAME", "cocoon-pool"),
            node_ip: reader.parse("VK_NODE_IP", own_address(), address),
            pool: reader.or("VK_NODE_POOL", "default"),
            provider_id: reader.text("VK_PROVIDER_ID"),
            cpu_class: reader.text("VK_SNAPSHOT_CPU_CLASS"),
            port: reader.parse("VK_KUBELET_PORT", 10250, port),
            metrics_addr: reader.parse("VK_METRICS_ADDR", METRICS, listen),
            reserve_percent: reader.parse("VK_RESERVE_PERCENT", 20, percent),
            pods,
            resources,
            orphans: reader.parse("VK_ORPHAN_POLICY", OrphanPolicy::Alert, policy),
            cocoon: reader.or("VK_COCOON_BIN", "/usr/local/bin/cocoon").into(),
            sudo: reader.parse("VK_COCOON_SUDO", None, |text| flag(text).map(Some)),
            leases: reader.or("VK_LEASES_PATH", "/var/lib/cocoon/net/leases.json").into(),
            net_control: reader
                .or("VK_COCOON_NET_CONTROL_SOCKET", "/run/cocoon-net/control.sock")
                .into(),
            registry: reader
                .text("EPOCH_URL")
                .or_else(|| reader.text("OCI_REGISTRY"))
                .or_else(|| qemu.is_none().then(|| REGISTRY.to_owned())),
            registry_token: reader.text("EPOCH_TOKEN").map(SecretString::from),
            registry_ca: reader.text("EPOCH_CA_CERT").map(PathBuf::from),
            tls_cert: reader.or("VK_TLS_CERT", "/etc/cocoon/vk/tls/vk-kubelet.crt").into(),
            tls_key: reader.or("VK_TLS_KEY", "/etc/cocoon/vk/tls/vk-kubelet.key").into(),
            requests_certificate: reader.parse("VK_TLS_CSR", false, flag),
            client_ca: reader.text("VK_CLIENT_CA").map(PathBuf::from),
            deletes_hibernate_tag: reader.parse("VK_DELETE_HIBERNATE_TAG", false, flag),
            pulls: reader.parse("VK_MAX_PULLS", 2, several),
            clones: reader.parse("VK_MAX_CLONES", 4, several),
            saves: reader.parse("VK_MAX_SAVES", 2, several),
            snapshot_cache: reader.parse("VK_SNAPSHOT_CACHE", None, size),
            cgroup_parent: Some(reader.or("COCOON_CGROUP_PARENT", "cocoon.slice"))
                .filter(|parent| parent != "none"),
            run_dir: reader
                .text("COCOON_RUN_DIR")
                .map_or_else(|| root_dir.join("run"), PathBuf::from),
            root_dir,
            not_followed: {
                let is_set = |name: &&str| reader.text(name).is_some();
                NOT_FOLLOWED.into_iter().filter(is_set).collect()
            },
            qemu,
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
        assert_eq!(settings.registry.as_deref(), Some("http://epoch.cocoon-system.svc:8080"));
        assert!(settings.qemu.is_none());
        assert_eq!(settings.metrics_addr.to_string(), "[::]:9091");
        assert!(settings.registry_token.is_none() && settings.client_ca.is_none());
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let problems = read(&[
            ("VK_RESERVE_PERCENT", "120"),
            ("VK_ORPHAN_POLICY", "shoot"),
            ("VK_NODE_CPU", "many"),
            ("VK_NODE_IP", "here"),
            ("VK_METRICS_ADDR", "9091"),
            ("VK_DELETE_HIBERNATE_TAG", "perhaps"),
        ]);
        let told: Vec<&str> =
            problems.unwrap_err().iter().map(|problem| problem.variable).collect();
        assert_eq!(
            told,
            [
                "VK_NODE_CPU",
                "VK_NODE_IP",
                "VK_METRICS_ADDR",
                "VK_RESERVE_PERCENT",
                "VK_ORPHAN_POLICY",
                "VK_DELETE_HIBERNATE_TAG"
            ]
        );
    }

    #[test]
    fn the_token_is_not_in_what_is_printed() {
        let settings = read(&[("EPOCH_TOKEN", "hunter2"), ("EPOCH_CA_CERT", "/ca.pem")]).unwrap();
        assert!(!format!("{settings:?}").contains("hunter2"));
        assert_eq!(settings.registry_ca.as_deref(), Some(std::path::Path::new("/ca.pem")));
    }

    #[test]
    fn qemu_has_a_folder_of_its_own_and_needs_no_registry() {
        let settings = read(&[("VK_RUNTIME", "qemu"), ("VK_QEMU_ACCEL", "tcg")]).unwrap();
        let qemu = settings.qemu.unwrap();
        assert_eq!(settings.root_dir, PathBuf::from("/var/lib/roost/qemu"));
        assert_eq!((settings.registry, qemu.accelerators), (None, vec!["tcg".to_owned()]));
        let settings = read(&[("VK_RUNTIME", "qemu"), ("OCI_REGISTRY", "http://r")]).unwrap();
        assert_eq!(settings.registry.as_deref(), Some("http://r"));
        assert_eq!(read(&[("VK_RUNTIME", "xen")]).unwrap_err()[0].variable, "VK_RUNTIME");
    }

    #[test]
    fn every_variable_stands_in_the_file_of_the_unit() {
        let asked = std::cell::RefCell::new(Vec::new());
        let get = |name: &str| {
            asked.borrow_mut().push(name.to_owned());
            (name == "VK_RUNTIME").then(|| "qemu".to_owned())
        };
        Settings::read(&get).unwrap();
        let file = include_str!("../../../../deploy/systemd/roost-kubelet.env");
        let asked = asked.into_inner();
        for name in asked.iter().filter(|name| !NOT_FOLLOWED.contains(&name.as_str())) {
            assert!(file.contains(&format!("\n#{name}=")), "{name} is not in the file");
        }
    }

    #[test]
    fn what_is_not_followed_is_named() {
        let settings = read(&[("VK_PEER_ADDR", ":12501"), ("VK_NODE_NAME", "a")]).unwrap();
        assert_eq!(settings.not_followed, ["VK_PEER_ADDR"]);
    }

    #[test]
    fn sizes_are_quantities() {
        let settings =
            read(&[("VK_NODE_CPU", "16"), ("VK_NODE_MEM", "64Gi"), ("VK_NODE_STORAGE", "1Ti")])
                .unwrap();
        let resources = settings.resources;
        assert_eq!((resources.cpus, resources.memory), (Some(16), Some(64 << 30)));
        assert_eq!((resources.storage, resources.huge_pages), (Some(1 << 40), None));
    }
}
