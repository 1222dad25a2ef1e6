//! The real thing: kube-apiserver, etcd, kubectl and what else a control plane has, built from their own sources.

mod certificates;
mod cluster;
mod daemon;
mod kubectl;

use std::time::Duration;

use crate::availability::Oracle;
use crate::go::{Binary, Program};

pub use cluster::{Cluster, ClusterOptions};
pub use kubectl::Kubectl;

/// The release of all Kubernetes programs here.
pub const KUBERNETES_VERSION: &str = "1.37.1";

/// The release of the metrics server.
pub const METRICS_SERVER_VERSION: &str = "0.9.0";

/// With an empty cache, two slow cores need a quarter of an hour for all of them; others may be at work as well.
const BUILD_LIMIT: Duration = Duration::from_mins(45);

fn program(name: &'static str, uses: &'static [&'static str]) -> Program {
    // Without these the programs say that they are version 0.0.0.
    let packages = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];
    let link: Vec<_> = packages
        .iter()
        .map(|package| {
            format!("-X {package}.gitVersion=v{KUBERNETES_VERSION} -X {package}.gitMajor=1 -X {package}.gitMinor=37")
        })
        .collect();
    Program {
        release: ("Kubernetes", KUBERNETES_VERSION),
        uses,
        link: link.join(" "),
        limit: BUILD_LIMIT,
        ..Program::new(name, "kube", name)
    }
}

/// Kubernetes' API server.
pub fn kube_apiserver() -> Option<Binary> {
    static ORACLE: Oracle<Binary> = Oracle::new("kube-apiserver");
    ORACLE.get(|| program("kube-apiserver", &["lifeline"]).build())
}

/// The store behind the API server.
pub fn etcd() -> Option<Binary> {
    static ORACLE: Oracle<Binary> = Oracle::new("etcd");
    ORACLE.get(|| program("etcd", &["lifeline"]).build())
}

/// Kubernetes' command line.
pub fn kubectl() -> Option<Binary> {
    static ORACLE: Oracle<Binary> = Oracle::new("kubectl");
    ORACLE.get(|| program("kubectl", &[]).build())
}

/// Kubernetes' controllers: garbage collection, namespaces, deployments, the lifecycle of nodes.
pub fn kube_controller_manager() -> Option<Binary> {
    static ORACLE: Oracle<Binary> = Oracle::new("kube-controller-manager");
    ORACLE.get(|| program("kube-controller-manager", &["lifeline"]).build())
}

/// Kubernetes' scheduler.
pub fn kube_scheduler() -> Option<Binary> {
    static ORACLE: Oracle<Binary> = Oracle::new("kube-scheduler");
    ORACLE.get(|| program("kube-scheduler", &["lifeline"]).build())
}

/// What `kubectl top` and autoscalers read; it asks kubelets.
pub fn metrics_server() -> Option<Binary> {
    static ORACLE: Oracle<Binary> = Oracle::new("metrics-server");
    let program = || Program {
        release: ("metrics-server", METRICS_SERVER_VERSION),
        limit: BUILD_LIMIT,
        ..Program::new("metrics-server", "kube-metrics-server", ".")
    };
    ORACLE.get(|| program().build())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target;

    #[test]
    fn the_modules_pin_the_releases() {
        for (module, pin) in [
            ("kube", format!("k8s.io/kubernetes v{KUBERNETES_VERSION}\n")),
            (
                "kube-metrics-server",
                format!("sigs.k8s.io/metrics-server v{METRICS_SERVER_VERSION}\n"),
            ),
        ] {
            let manifest =
                std::fs::read_to_string(target::crate_folder(module).join("go.mod")).unwrap();
            assert!(manifest.contains(&pin), "{module}");
        }
    }
}
