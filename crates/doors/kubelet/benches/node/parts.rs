//! A kubelet with nothing around it.

use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use prometheus_client::registry::Registry as MetricRegistry;
use roost_clock::{Random, SystemClock};
use roost_kubelet::{Kubelet, KubeletParts, NoPinger, Settings, key};
use roost_microvm::Runtime;
use serde_json::json;

pub(crate) fn scratch(what: &str) -> std::path::PathBuf {
    let name = format!("roost-kubelet-bench-{what}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// An address for every card that the simulated host will ever make.
fn leases(folder: &Path) -> String {
    let row = |n: u32| {
        let (high, low) = (n / 256, n % 256);
        json!({
            "mac": format!("02:00:00:{high:02x}:{low:02x}:00"),
            "ip": format!("10.0.{high}.{low}"),
            "expiry": "2099-01-01T00:00:00Z",
        })
    };
    let path = folder.join("leases.json");
    let rows: Vec<_> = (1..2_000).map(row).collect();
    std::fs::write(&path, json!(rows).to_string()).expect("a file of leases");
    path.display().to_string()
}

pub(crate) async fn kubelet(
    client: Client,
    runtime: Arc<dyn Runtime>,
    folder: &Path,
    port: u16,
    metrics: &mut MetricRegistry,
) -> (Kubelet, Settings) {
    let leases = leases(folder);
    let get = |name: &str| match name {
        "VK_NODE_NAME" => Some("vnode".to_owned()),
        "VK_NODE_IP" => Some("127.0.0.1".to_owned()),
        "VK_KUBELET_PORT" => Some(port.to_string()),
        "COCOON_ROOT_DIR" => Some("/".to_owned()),
        "VK_LEASES_PATH" => Some(leases.clone()),
        _ => None,
    };
    let settings = Settings::read(&get).expect("settings");
    let parts = KubeletParts {
        settings: settings.clone(),
        client,
        runtime,
        registry: None,
        pinger: Arc::new(NoPinger),
        pings_are_faked: true,
        clock: Arc::new(SystemClock),
        random: Random::from_seed(1),
    };
    (Kubelet::start(parts, metrics).await.expect("a kubelet"), settings)
}

/// A pod that is bound already.
pub(crate) fn pod(name: &str) -> Pod {
    let pod = json!({
        "metadata": {"name": name, "annotations": {
            key::VM_NAME: format!("vk-default-{name}"), key::MANAGED: "true", key::MODE: "run",
            key::IMAGE: "img", key::SNAPSHOT_POLICY: "never",
        }},
        "spec": {
            "nodeName": "vnode",
            "automountServiceAccountToken": false,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "agent", "image": "pause"}],
        },
    });
    serde_json::from_value(pod).expect("a pod")
}
