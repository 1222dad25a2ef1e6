//! agent-forge as a section of `roost run`, on the embedded API server and vCenter.

use std::path::PathBuf;

use roost_hypershift_sim::neighbour_crds;
use roost_oracle::Kubectl;
use serde_json::json;

use crate::real::{field, free_port, furnish, pool};
use crate::wire::{Control, Process, Site, VcenterSim, roost, until, within};

const PATIENCE: u64 = 180;

/// The embedded API server describes no schema that kubectl could check before.
fn apply(kubectl: &Kubectl, name: &str, text: &str) {
    let file = kubectl.file(name, text);
    kubectl.stdout(&["apply", "--server-side", "--validate=false", "-f", &file]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_with_the_section_serves_its_pools_beside_all_else() {
    let site = Site::new("agent-forge-run");
    let mut kube = roost(&["sim", "kube", "--listen", "127.0.0.1:0", "--seed", "7"]);
    kube.current_dir(site.folder());
    let kube = Process::start(kube, &site.file("sim-kube.log"), "Ctrl-C");
    let kubeconfig = PathBuf::from(kube.line("export KUBECONFIG="));
    let Some(kubectl) = Kubectl::new(&kubeconfig) else { return };
    let args = ["--pods", "1", "--datastores", "3", "--vms", "2", "--pace", "quick"];
    let vcenter = VcenterSim::start(&site, &args);
    furnish(&vcenter).await;
    let definitions = roost(&["crds", "agent-forge"]).output().unwrap();
    apply(&kubectl, "crds.yaml", str::from_utf8(&definitions.stdout).unwrap());
    let around = json!({"apiVersion": "v1", "kind": "List", "items": neighbour_crds()});
    apply(&kubectl, "neighbours.json", &around.to_string());
    kubectl.stdout(&["create", "namespace", "blue"]);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vc-login", "namespace": "blue"}, "stringData":
        {"server": vcenter.endpoint(), "username": "forge", "password": "secret", "thumbprint": vcenter.thumbprint()}});
    apply(&kubectl, "secret.json", &secret.to_string());
    apply(&kubectl, "pool.json", &pool());

    let port = free_port();
    let file = site.file("roost.toml");
    let text = format!(
        "[agent-forge]\nkubeconfig = '{}'\nnamespace = 'default'\n\n[console]\naddr = '127.0.0.1'\nport = {port}\n",
        kubeconfig.display()
    );
    std::fs::write(&file, text).unwrap();
    let checked = roost(&["check", "-c"]).arg(&file).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let mut service = roost(&["run", "-c"]);
    service.arg(&file);
    let service = Process::start(service, &site.file("log"), "agent-forge: serves");

    // It has the lease, sees the pool, and has found all that it names in the vCenter.
    let path = r#".status.conditions[?(@.type=="VsphereReady")].status"#;
    until("the pool is ready", within(PATIENCE), async || field(&kubectl, path) == "True").await;
    let url = format!("http://127.0.0.1:{port}");
    let asked = |args: &[&str]| {
        let output = roost(args).args(["--url", &url]).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    let status = asked(&["status"]);
    assert!(status.contains("agent-forge"), "{status}");
    let pools = asked(&["pools"]);
    assert!(pools.contains("blue/blue-gp"), "{pools}");
    let overview = Control::new(&url).get("api/v1/overview").await;
    assert_eq!(overview["doors"][0]["path"], "agentmachines", "{overview}");
    let (code, _) = service.interrupt();
    assert_eq!(code, Some(0));
}
