//! The Node object, whole.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeSpec, NodeStatus,
    NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::resources::Resources;
use roost_microvm::Backend;

use crate::contract::key;
use crate::settings::Settings;

/// Disk or memory below this share of the whole is pressure.
const SCARCE_PERCENT: u64 = 5;

pub(super) const TAINT: &str = "virtual-kubelet.io/provider";

/// How the host is, as far as the node tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    /// What the node offers.
    pub(super) resources: Resources,
    /// What the machine has.
    pub(super) detected: Resources,
    pub(super) memory_free: u64,
    /// Why the runtime cannot be used.
    pub(super) trouble: Option<String>,
}

pub(super) fn labels(settings: &Settings) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> = [
        ("type", "virtual-kubelet"),
        ("kubernetes.io/role", "agent"),
        ("kubernetes.io/hostname", settings.node_name.as_str()),
        (key::POOL, settings.pool.as_str()),
        ("node-role.kubernetes.io/cocoon-vm", ""),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    if let Some(class) = &settings.cpu_class {
        labels.insert(key::CPU_CLASS.to_owned(), class.clone());
    }
    if settings.qemu.is_some() {
        // Snapshots of one runtime do not wake in another, so that pools must not mix them.
        labels.insert(key::RUNTIME.to_owned(), Backend::QEMU.to_owned());
    }
    labels
}

pub(super) fn taint() -> Taint {
    Taint {
        key: TAINT.to_owned(),
        value: Some("cocoon".to_owned()),
        effect: "NoSchedule".to_owned(),
        time_added: None,
    }
}

pub(super) fn node(settings: &Settings, condition: &Condition, now: Timestamp) -> Node {
    Node {
        metadata: ObjectMeta {
            name: Some(settings.node_name.clone()),
            labels: Some(labels(settings)),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: settings.provider_id.clone(),
            taints: Some(vec![taint()]),
            ..NodeSpec::default()
        }),
        status: Some(status(settings, condition, &[], now)),
    }
}

/// `before`: the conditions that the API server has; those of others stay.
pub(super) fn status(
    settings: &Settings,
    condition: &Condition,
    before: &[NodeCondition],
    now: Timestamp,
) -> NodeStatus {
    let address = |kind: &str, address: &str| NodeAddress {
        type_: kind.to_owned(),
        address: address.to_owned(),
    };
    NodeStatus {
        phase: Some("Pending".to_owned()),
        addresses: Some(vec![
            address("InternalIP", &settings.node_ip.to_string()),
            address("Hostname", &settings.node_name),
        ]),
        capacity: Some(condition.resources.capacity()),
        allocatable: Some(condition.resources.allocatable(settings.reserve_percent)),
        daemon_endpoints: Some(NodeDaemonEndpoints {
            kubelet_endpoint: Some(DaemonEndpoint { port: i32::from(settings.port) }),
        }),
        node_info: Some(NodeSystemInfo {
            kubelet_version: format!("roost-{}", env!("CARGO_PKG_VERSION")),
            operating_system: "linux".to_owned(),
            architecture: if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }.to_owned(),
            container_runtime_version: if settings.qemu.is_some() {
                "qemu://1"
            } else {
                "cocoon://1"
            }
            .to_owned(),
            ..NodeSystemInfo::default()
        }),
        conditions: Some(conditions(condition, before, now)),
        // The API server then passes WebSockets on as they are, and need not translate them to SPDY.
        declared_features: Some(vec!["ExtendWebSocketsToKubelet".to_owned()]),
        ..NodeStatus::default()
    }
}

fn conditions(
    condition: &Condition,
    before: &[NodeCondition],
    now: Timestamp,
) -> Vec<NodeCondition> {
    let machine = &condition.detected;
    let is_scarce = |free: u64, all: u64| free < all / 100 * SCARCE_PERCENT;
    let disk = is_scarce(machine.storage_free, machine.storage);
    let memory = is_scarce(condition.memory_free, machine.memory);
    let ready = condition.trouble.is_none();
    let trouble = condition.trouble.clone().unwrap_or_else(|| "the kubelet is ready".to_owned());
    let say = |is: bool, yes: &'static str, no: &'static str| (is, if is { yes } else { no });
    let ours = [
        ("Ready", say(ready, "KubeletReady", "RuntimeUnusable"), trouble),
        (
            "DiskPressure",
            say(disk, "KubeletHasDiskPressure", "KubeletHasNoDiskPressure"),
            words(disk, "disk"),
        ),
        (
            "MemoryPressure",
            say(memory, "KubeletHasInsufficientMemory", "KubeletHasSufficientMemory"),
            words(memory, "memory"),
        ),
        (
            "PIDPressure",
            (false, "KubeletHasSufficientPID"),
            "there are process ids left".to_owned(),
        ),
        (
            "NetworkUnavailable",
            (false, "RouteCreated"),
            "NodeController create implicit route".to_owned(),
        ),
    ];
    let mut all = before.to_vec();
    for (kind, (is, reason), message) in ours {
        let word = if is { "True" } else { "False" };
        let earlier = all.iter_mut().find(|it| it.type_ == kind);
        let since = earlier
            .as_ref()
            .filter(|it| it.status == word)
            .and_then(|it| it.last_transition_time.clone());
        let fresh = NodeCondition {
            type_: kind.to_owned(),
            status: word.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: since.or(Some(Time(now))),
        };
        match earlier {
            Some(it) => *it = fresh,
            None => all.push(fresh),
        }
    }
    all
}

fn words(is_scarce: bool, what: &str) -> String {
    if is_scarce {
        format!("less than {SCARCE_PERCENT} % of the {what} is free")
    } else {
        format!("there is {what} left")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(free: u64, trouble: Option<&str>) -> Condition {
        let resources = Resources {
            cpus: 4,
            memory: 1000,
            storage: 10_000,
            storage_free: free,
            huge_pages: 0,
            pods: 10,
        };
        let trouble = trouble.map(str::to_owned);
        Condition { resources, detected: resources, memory_free: 500, trouble }
    }

    fn find<'a>(all: &'a [NodeCondition], kind: &str) -> &'a NodeCondition {
        all.iter().find(|it| it.type_ == kind).unwrap()
    }

    #[test]
    fn conditions_tell_the_truth_and_keep_their_times() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let first = conditions(&host(5000, None), &[], at(1));
        assert_eq!(find(&first, "Ready").status, "True");
        assert_eq!(find(&first, "DiskPressure").status, "False");
        let second = conditions(&host(100, Some("cocoon: command not found")), &first, at(60));
        let ready = find(&second, "Ready");
        assert_eq!(
            (ready.status.as_str(), ready.reason.as_deref()),
            ("False", Some("RuntimeUnusable"))
        );
        assert!(ready.message.as_ref().unwrap().contains("command not found"));
        assert_eq!(find(&second, "DiskPressure").status, "True");
        assert_eq!(find(&second, "PIDPressure").last_transition_time, Some(Time(at(1))));
        assert_eq!(find(&second, "PIDPressure").last_heartbeat_time, Some(Time(at(60))));
    }

    #[test]
    fn pressure_is_that_of_the_machine_whatever_the_node_offers() {
        let mut full = host(100, None);
        (full.resources.storage, full.resources.storage_free) = (1 << 40, 1 << 40);
        full.resources.memory = 1 << 40;
        let told = conditions(&full, &[], Timestamp::UNIX_EPOCH);
        assert_eq!(find(&told, "DiskPressure").status, "True");
        assert_eq!(find(&told, "MemoryPressure").status, "False");
    }

    #[test]
    fn conditions_of_others_stay() {
        let foreign = NodeCondition {
            type_: "KernelDeadlock".into(),
            status: "False".into(),
            ..NodeCondition::default()
        };
        let all =
            conditions(&host(5000, None), std::slice::from_ref(&foreign), Timestamp::UNIX_EPOCH);
        assert!(all.contains(&foreign));
    }
}
