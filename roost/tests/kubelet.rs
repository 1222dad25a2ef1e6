//! `roost kubelet` as an operator of vk-cocoon meets it: variables in, a node out.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod wire;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use roost_oracle::Kubectl;
use wire::{Process, Site, roost};

/// A host without VMs.
const COCOON: &str = r#"#!/bin/sh
case "$1 $2" in
"vm list") echo "No VMs found." ;;
"vm status") exec sleep 600 ;;
*) echo "Error: not here" >&2; exit 1 ;;
esac
"#;

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn kubelet(site: &Site) -> Command {
    let cocoon = site.file("cocoon");
    fs::write(&cocoon, COCOON).unwrap();
    fs::set_permissions(&cocoon, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = roost(&["kubelet"]);
    command.current_dir(site.folder()).env("VK_COCOON_BIN", cocoon).env("VK_COCOON_SUDO", "false");
    command.env("COCOON_ROOT_DIR", site.folder()).env("VK_NODE_NAME", "pool-1");
    command.env("VK_NODE_IP", "127.0.0.1").env("VK_LEASES_PATH", site.file("leases.json"));
    command
}

fn get(port: u16, path: &str) -> String {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(connection, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn variables_become_a_node_that_kubectl_shows_and_ctrl_c_ends_it() {
    let site = Site::new("kubelet-node");
    let mut sim = roost(&["sim", "kube", "--listen", "127.0.0.1:0", "--seed", "7"]);
    sim.current_dir(site.folder());
    let sim = Process::start(sim, &site.file("sim-log"), "Ctrl-C");
    let kubeconfig = sim.line("export KUBECONFIG=");
    let (port, metrics) = (free_port(), free_port());
    let mut command = kubelet(&site);
    command.env("KUBECONFIG", kubeconfig).env("VK_KUBELET_PORT", port.to_string());
    command.env("VK_METRICS_ADDR", format!("127.0.0.1:{metrics}"));
    let node = Process::start(command, &site.file("log"), "node pool-1 serves");
    let shown = get(metrics, "/metrics");
    assert!(shown.contains("\nvk_cocoon_vm_table_size 0\n"), "{shown}");
    assert!(shown.contains("\nvk_cocoon_node_memory_used_bytes "), "{shown}");
    if let Some(kubectl) = Kubectl::new(kubeconfig.as_ref()) {
        let wait = ["wait", "--for=condition=Ready", "node/pool-1", "--timeout=60s"];
        kubectl.stdout(&wait);
        let path = "jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port} {.spec.taints[0].key}";
        let said = kubectl.stdout(&["get", "node", "pool-1", "-o", path]);
        assert_eq!(said, format!("{port} virtual-kubelet.io/provider"));
    }
    let (code, said) = node.interrupt();
    assert_eq!(code, Some(0));
    assert!(said.contains("VMs go on running"), "{said}");
}

#[test]
fn all_mistakes_in_the_variables_are_told_at_once_and_nothing_is_begun() {
    let site = Site::new("kubelet-mistakes");
    let mut command = kubelet(&site);
    command.env("VK_RESERVE_PERCENT", "120").env("VK_ORPHAN_POLICY", "shoot");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    for line in [
        "VK_RESERVE_PERCENT: \"120\" is not a whole number from 0 to 100",
        "VK_ORPHAN_POLICY: \"shoot\" is none of alert, destroy, keep",
    ] {
        assert!(said.contains(line), "{said}");
    }
}
