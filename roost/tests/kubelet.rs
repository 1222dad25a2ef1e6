//! `roost kubelet` as an operator of vk-cocoon meets it: variables in, a node out.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod wire;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use roost_oracle::Kubectl;
use wire::{Process, Site, roost, within};

/// A host without VMs, until one is run.
const COCOON: &str = r#"#!/bin/sh
cd "$(dirname "$0")"
record() { printf '{"id":"K7QJ2M4XW5T3ABCDEFGHIJKLMN","hypervisor":"cloud-hypervisor","state":"running","config":{"cpu":1,"memory":1073741824,"storage":0,"image":"img","image_type":"oci","name":"vk-default-demo"},"pid":0,"network_configs":[{"tap":"tap0","mac":"02:00:00:00:01:00","network":{"ip":"127.0.0.1","gateway":"127.0.0.1","prefix":24}}],"storage_configs":[]}'; }
case "$1 $2" in
"vm list") if [ -e made ]; then echo "[$(record)]"; else echo "No VMs found."; fi ;;
"vm run") touch made; record ;;
"vm inspect") record ;;
"image pull") ;;
"vm status") exec sleep 600 ;;
*) echo "Error: not here" >&2; exit 1 ;;
esac
"#;

/// A registry that has nothing and takes nothing.
fn registry() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn kubelet(site: &Site) -> Command {
    on_host(site, roost(&["kubelet"]))
}

/// With a host, and what vk-cocoon would be told of it.
fn on_host(site: &Site, mut command: Command) -> Command {
    let cocoon = site.file("cocoon");
    fs::write(&cocoon, COCOON).unwrap();
    fs::set_permissions(&cocoon, fs::Permissions::from_mode(0o755)).unwrap();
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

/// A pod that is bound to the node.
#[tokio::main(flavor = "current_thread")]
async fn apply(kubeconfig: &str) {
    let pod = serde_json::json!({
        "metadata": {"name": "demo", "annotations": {
            "vm.cocoonstack.io/name": "vk-default-demo", "cocoonset.cocoonstack.io/managed": "true",
            "cocoonset.cocoonstack.io/mode": "run", "cocoonset.cocoonstack.io/image": "img",
            "cocoonset.cocoonstack.io/snapshot-policy": "never",
        }},
        "spec": {"nodeName": "pool-1", "containers": [{"name": "agent", "image": "pause"}]},
    });
    let read = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(read, &options).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let pods: kube::Api<k8s_openapi::api::core::v1::Pod> = kube::Api::namespaced(client, "default");
    let pod = serde_json::from_value(pod).unwrap();
    pods.create(&kube::api::PostParams::default(), &pod).await.unwrap();
}

/// What a person is told who types this, once it is told.
fn told(url: &str, token: &std::path::Path, line: &str, words: &str) -> String {
    let deadline = within(60);
    loop {
        let mut command = roost(&line.split(' ').collect::<Vec<_>>());
        command.args(["--url", url, "--token-file"]).arg(token).env_remove("ROOST_TOKEN");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        if output.status.success() && said.contains(words) {
            return said;
        }
        assert!(tokio::time::Instant::now() < deadline, "{line} does not say {words:?}:\n{said}");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

/// A pod comes up, and people ask for it, drain the node and end the drain.
fn people_ask_and_steer(url: &str, token: &std::path::Path) {
    let why = told(url, token, "explain pod default/demo", "VM id");
    assert!(why.contains("vk-default-demo") && why.contains("K7QJ2M4XW5T3"), "{why}");
    told(url, token, "drain --reason upgrade", "put to sleep");
    told(
        url,
        token,
        "status",
        "1 VMs are put to sleep; by whoever has the token, from 127.0.0.1 (upgrade)",
    );
    told(url, token, "resume", "");
    told(url, token, "status", "1 VMs wake that a drain put to sleep");
}

#[test]
fn a_section_of_roost_run_is_a_node_that_people_ask_and_steer() {
    let site = Site::new("kubelet-section");
    let mut sim = roost(&["sim", "kube", "--listen", "127.0.0.1:0", "--seed", "7"]);
    sim.current_dir(site.folder());
    let sim = Process::start(sim, &site.file("sim-log"), "Ctrl-C");
    let kubeconfig = sim.line("export KUBECONFIG=");
    let kubeconfig = site.folder().join(kubeconfig).display().to_string();
    fs::write(site.file("token"), "s3cret\n").unwrap();
    let config = format!(
        "[kubelet]\nkubeconfig = \"{kubeconfig}\"\n\n[kubelet.environment]\nEPOCH_URL = \"{}\"\n\
         VK_KUBELET_PORT = {}\nVK_METRICS_ADDR = \"127.0.0.1:{}\"\n\n\
         [console]\naddr = \"127.0.0.1\"\nport = 0\ntokenFile = \"token\"\n",
        registry(),
        free_port(),
        free_port()
    );
    fs::write(site.file("roost.toml"), config).unwrap();
    let command = on_host(&site, roost(&["run", "-c", "roost.toml"]));
    let mut service = Process::start(command, &site.file("log"), "kubelet: starts, http://");
    service.until_it_says("node pool-1 serves");
    let url = service.word("http://").trim_end_matches(',').to_owned();
    apply(&kubeconfig);
    people_ask_and_steer(&url, &site.file("token"));
    let (code, _) = service.interrupt();
    assert_eq!(code, Some(0));
}

#[test]
fn the_drop_in_serves_the_page_if_it_is_asked_to() {
    let site = Site::new("kubelet-page");
    let mut sim = roost(&["sim", "kube", "--listen", "127.0.0.1:0", "--seed", "7"]);
    sim.current_dir(site.folder());
    let sim = Process::start(sim, &site.file("sim-log"), "Ctrl-C");
    let kubeconfig = site.folder().join(sim.line("export KUBECONFIG=")).display().to_string();
    fs::write(site.file("token"), "s3cret\n").unwrap();
    let page = format!("127.0.0.1:{}", free_port());
    let mut command = kubelet(&site);
    command.args(["--console-bind-address", &page, "--console-token-file", "token"]);
    command.env("KUBECONFIG", &kubeconfig).env("VK_KUBELET_PORT", free_port().to_string());
    command.env("VK_METRICS_ADDR", format!("127.0.0.1:{}", free_port()));
    command.env("EPOCH_URL", registry());
    let node = Process::start(command, &site.file("log"), "node pool-1 serves");
    apply(&kubeconfig);
    people_ask_and_steer(&format!("http://{page}"), &site.file("token"));
    let (code, _) = node.interrupt();
    assert_eq!(code, Some(0));
}

#[test]
fn the_doctor_tells_a_good_host_from_a_broken_one() {
    let site = Site::new("kubelet-doctor");
    let mut sim = roost(&["sim", "kube", "--listen", "127.0.0.1:0", "--seed", "7"]);
    sim.current_dir(site.folder());
    let sim = Process::start(sim, &site.file("sim-log"), "Ctrl-C");
    let kubeconfig = sim.line("export KUBECONFIG=");
    for name in ["leases.json", "tls.crt", "tls.key"] {
        fs::write(site.file(name), "[]").unwrap();
    }
    let doctor = |change: &dyn Fn(&mut Command)| {
        let mut command = on_host(&site, roost(&["doctor", "kubelet"]));
        command.env("KUBECONFIG", kubeconfig).env("EPOCH_URL", registry());
        command.env("VK_TLS_CERT", site.file("tls.crt")).env("VK_TLS_KEY", site.file("tls.key"));
        change(&mut command);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let line = |said: &str, check: &str| {
        let found = said.lines().find(|line| line.split_whitespace().any(|word| word == check));
        found.unwrap_or_else(|| panic!("no {check} in\n{said}")).trim().to_owned()
    };
    let (_, good) = doctor(&|_| {});
    for check in ["certificate", "runtime", "registry", "leases"] {
        assert!(line(&good, check).starts_with("pass"), "{check}:\n{good}");
    }
    let (code, broken) = doctor(&|command| {
        command.env("VK_COCOON_BIN", "/nonexistent/cocoon").env("EPOCH_URL", "http://127.0.0.1:1");
        command.env("VK_LEASES_PATH", "/nonexistent").env("VK_TLS_KEY", "/nonexistent");
    });
    assert_eq!(code, Some(1), "{broken}");
    for check in ["certificate", "runtime", "registry"] {
        assert!(line(&broken, check).starts_with("fail"), "{check}:\n{broken}");
    }
    assert!(line(&broken, "leases").starts_with("warn"), "{broken}");
    assert!(broken.contains("VK_COCOON_BIN names the program"), "{broken}");
}
