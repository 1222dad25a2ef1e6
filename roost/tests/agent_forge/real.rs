//! The program that ships, on a real API server with `kubectl` and the role that ships, and with `roost sim vcenter` in another process. It is
//! killed while it makes VMs, and away while Machines are deleted.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use roost_hypershift_sim::{Hypershift, Isos, SimSettings, Summary, neighbour_crds};
use roost_oracle::{Cluster, ClusterOptions, Kubectl};
use roost_vim::CallClass;
use roost_vim::wire::methods::{CreateFolder, MoveIntoFolderTask};
use serde_json::json;

use crate::neighbours::WireGuests;
use crate::wire::{Process, Site, VcenterSim, Vm, comes_true, roost, until, within};

/// The name of the Agent of the first node.
const BY_HOST: &str = r#"jsonpath={.items[?(@.spec.hostname=="blue-gp-0001")].metadata.name}"#;
const AGENTS: &str = "agents.agent-install.openshift.io";
const SYSTEM: &str = "agent-forge-operator-system";
const ACCOUNT: &str = "agent-forge-operator-controller-manager";
/// Two minutes of the guard, its looks and a lease that runs out, on a busy machine.
const PATIENCE: u64 = 480;
/// A look starts `kubectl` several times; the machine has more to do.
const LOOK: Duration = Duration::from_secs(1);

const SCRAPER: &str = r"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: scraper}
rules:
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: scraper}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: scraper}
subjects:
- {kind: ServiceAccount, name: scraper, namespace: agent-forge-operator-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: scraper, namespace: agent-forge-operator-system}
";

/// A kubeconfig of the service account, so that the role that ships is all that the door may do.
fn kubeconfig(cluster: &Cluster, site: &Site) -> String {
    let kubectl = cluster.kubectl();
    let token = kubectl.stdout(&["create", "token", ACCOUNT, "-n", SYSTEM, "--duration=2h"]);
    let ca = cluster.certificates().join("ca.crt");
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": cluster.url(), "certificate-authority": ca}}],
        "users": [{"name": "it", "user": {"token": token.trim()}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it", "namespace": SYSTEM}}],
    });
    let path = site.file("kubeconfig");
    std::fs::write(&path, text.to_string()).unwrap();
    path.display().to_string()
}

pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

struct Door {
    kubeconfig: String,
    metrics: u16,
    console: u16,
}

impl Door {
    fn start(&self, log: &Path) -> Process {
        let mut command =
            roost(&["agent-forge", "--leader-elect", "--health-probe-bind-address=0"]);
        command.arg(format!("--metrics-bind-address=127.0.0.1:{}", self.metrics));
        command.arg(format!("--console-bind-address=127.0.0.1:{}", self.console));
        command.env("KUBECONFIG", &self.kubeconfig);
        Process::start(command, log, "become VMs")
    }

    fn asked(&self, args: &[&str]) -> String {
        let url = format!("http://127.0.0.1:{}", self.console);
        let output = roost(args).args(["--url", &url]).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    }

    /// As a browser on the same machine gets it.
    async fn page(&self, path: &str) -> String {
        let answer = reqwest::get(format!("http://127.0.0.1:{}{path}", self.console)).await;
        let answer = answer.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.text().await.unwrap()
    }

    /// Whether all is well, and what is said of it.
    fn doctor(&self) -> (bool, String) {
        let mut command = roost(&["doctor", "agent-forge"]);
        let output = command.env("KUBECONFIG", &self.kubeconfig).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (output.status.success(), said + &String::from_utf8(output.stderr).unwrap())
    }

    /// What one sees of the metrics with this token.
    async fn metrics(&self, token: Option<&str>) -> (u16, String) {
        let tls = roost_tls::TlsTrust::Insecure.client_config().unwrap();
        let client = reqwest::Client::builder().tls_backend_preconfigured(tls).build().unwrap();
        let mut request = client.get(format!("https://127.0.0.1:{}/metrics", self.metrics));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }
}

/// A folder in a folder, and two datastores in the datastore cluster.
pub(crate) async fn furnish(vcenter: &VcenterSim) {
    let hand = vcenter.client().await;
    let finder = hand.finder("DC0").await.unwrap();
    let mut folder = finder.vm_folder("").await.unwrap().moref;
    for name in ["nodes", "blue"] {
        let call = CreateFolder { this: folder, name: name.into() };
        folder = hand.change(CallClass::Submit, &call).await.unwrap();
    }
    let pod = finder.datastore_cluster("DC0_POD0").await.unwrap();
    let mut list = Vec::new();
    for name in ["LocalDS_1", "LocalDS_2"] {
        list.push(finder.datastore(name).await.unwrap().moref);
    }
    let into = MoveIntoFolderTask { this: pod.moref, list };
    hand.submit(&into).await.unwrap().wait().await.unwrap();
    hand.shutdown().await;
}

pub(crate) fn pool() -> String {
    json!({
        "apiVersion": "agent-forge.containeroo.ch/v1alpha1", "kind": "VsphereAgentPool",
        "metadata": {"name": "blue-gp", "namespace": "blue"},
        "spec": {
            "hostedClusterRef": {"name": "blue"}, "nodePoolRef": {"name": "blue-gp"}, "infraEnvRef": {"name": "blue-env"},
            "controlPlaneNamespace": "blue-blue",
            "vsphere": {"credentialsSecretRef": {"name": "vc-login"}, "datacenter": "DC0", "datastoreCluster": "DC0_POD0",
                "isoDatastore": "LocalDS_0", "resourcePool": "DC0_C0/Resources", "folder": "nodes/blue", "network": "VM Network"},
            "template": {"numCPUs": 2, "memoryMiB": 2048, "diskGiB": 20},
            "agent": {"labels": {"tenant": "blue"}},
            "cleanup": {"absentGracePeriod": "5s"},
        },
    })
    .to_string()
}

fn apply(kubectl: &Kubectl, name: &str, text: &str) {
    kubectl.stdout(&["apply", "--server-side", "-f", &kubectl.file(name, text)]);
}

pub(crate) fn field(kubectl: &Kubectl, path: &str) -> String {
    kubectl.stdout(&["get", "vap", "blue-gp", "-n", "blue", "-o", &format!("jsonpath={{{path}}}")])
}

fn names(kubectl: &Kubectl, kind: &str, namespace: &str) -> String {
    kubectl.stdout(&["get", kind, "-n", namespace, "-o", "name"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_come_and_go_with_the_role_that_ships_however_often_it_is_killed() {
    let started = tokio::task::spawn_blocking(|| Cluster::start(&ClusterOptions::default())).await;
    let Some(cluster) = started.unwrap() else { return };
    let kubectl = cluster.kubectl();
    let site = Site::new("agent-forge-real");
    let args = ["--pods", "1", "--datastores", "3", "--vms", "2", "--pace", "quick"];
    let vcenter = VcenterSim::start(&site, &args);
    furnish(&vcenter).await;

    let definitions = roost(&["crds", "agent-forge"]).output().unwrap();
    apply(kubectl, "crds.yaml", str::from_utf8(&definitions.stdout).unwrap());
    let around = json!({"apiVersion": "v1", "kind": "List", "items": neighbour_crds()});
    apply(kubectl, "neighbours.json", &around.to_string());
    apply(kubectl, "namespace.yaml", include_str!("../../../deploy/agent-forge/namespace.yaml"));
    let roles = kubectl.file("rbac.yaml", include_str!("../../../deploy/agent-forge/rbac.yaml"));
    kubectl.stdout(&["apply", "-n", SYSTEM, "-f", &roles]);
    apply(kubectl, "people.yaml", include_str!("../../../deploy/agent-forge/people.yaml"));
    apply(kubectl, "scraper.yaml", SCRAPER);

    let isos = Isos::default();
    let (base, serving) = isos.serve().await.unwrap();
    let serving = tokio::spawn(serving);
    let url = isos.publish(&base, "blue-env", vec![1; 3 << 20].into());
    let settings = SimSettings {
        summary: Summary::IssuesReported,
        registers_after: Duration::from_secs(2),
        installs_in: Duration::from_secs(2),
        deletes_in: Duration::from_secs(5),
        tick: Duration::from_millis(500),
        ..SimSettings::new("blue", "blue-gp")
    };
    let guests = Arc::new(WireGuests::of(&vcenter).await);
    let neighbours = Hypershift::new(cluster.client().await, settings, isos.clone(), guests);
    neighbours.set_up(&url).await.unwrap();
    let running = neighbours.clone();
    let playing = tokio::spawn(async move { running.run().await });

    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vc-login", "namespace": "blue"}, "stringData":
        {"server": vcenter.endpoint(), "username": "forge", "password": "secret", "thumbprint": vcenter.thumbprint()}});
    apply(kubectl, "secret.json", &secret.to_string());
    apply(kubectl, "pool.json", &pool());
    let door = Door {
        kubeconfig: kubeconfig(&cluster, &site),
        metrics: free_port(),
        console: free_port(),
    };
    let calls_of = async |method: &str| {
        vcenter.control.get("counters").await["calls"][method].as_u64().unwrap_or_default()
    };

    // Nobody has to guess why an AgentMachine has no Agent.
    let paused = "agent-forge.containeroo.ch/paused";
    kubectl.stdout(&["annotate", "vap", "blue-gp", "-n", "blue", &format!("{paused}=true")]);
    let first = door.start(&site.file("log-1"));
    neighbours.scale(2);
    until("it is listed", within(PATIENCE), async || {
        door.page("/agentmachines").await.contains("blue-gp-0001")
    })
    .await;
    until("the step that blocks is named", within(PATIENCE), async || {
        let page = door.page("/agentmachines/blue-blue%2Fblue-gp-0001").await;
        let parts = ["blue/blue-gp is paused", "one pool serves its NodePool and may make VMs"];
        parts.iter().all(|part| page.contains(part))
    })
    .await;
    assert!(door.page("/").await.contains("blue/blue-gp is paused"), "the pool says so too");
    kubectl.stdout(&["annotate", "vap", "blue-gp", "-n", "blue", &format!("{paused}-")]);

    // It dies while it makes VMs.
    until("a VM is asked for", within(PATIENCE), async || calls_of("CreateVM_Task").await > 0)
        .await;
    first.kill();
    let second = door.start(&site.file("log-2"));
    let ready = async || {
        let machines = neighbours.agent_machines().await.unwrap_or_default();
        machines.iter().filter(|it| it.data["status"]["ready"] == json!(true)).count()
    };
    until("two nodes", within(PATIENCE), async || ready().await == 2).await;
    assert_eq!(calls_of("CreateVM_Task").await, 2, "one VM for each");
    let told = kubectl.stdout(&["get", "va", "-n", "blue"]);
    assert!(told.contains("POOL") && told.contains("blue-gp-0001"), "{told}");
    until("the phases", within(PATIENCE), async || {
        kubectl.stdout(&["get", "va", "-n", "blue"]).matches("Bound").count() == 2
    })
    .await;
    until("the counters", within(PATIENCE), async || field(kubectl, ".status.boundAgents") == "2")
        .await;
    let said = door.asked(&["explain", "agentmachine", "blue-blue/blue-gp-0001"]);
    for part in ["machine blue-gp-0001", "agent ", "vsphereagent ", "registered"] {
        assert!(said.contains(part), "{part:?} is missing in\n{said}");
    }
    let page = door.page("/agentmachines/blue-blue%2Fblue-gp-0001").await;
    let agent = kubectl.stdout(&["get", AGENTS, "-n", "blue", "-o", BY_HOST]);
    for part in ["registered", "bound", agent.trim(), "Node"] {
        assert!(page.contains(part), "{part:?} is missing in\n{page}");
    }
    let (overview, vms) = (door.page("/").await, door.page("/vms").await);
    let iso = field(kubectl, ".status.iso.path");
    for part in ["blue/blue-gp", "2 in use", "20 GiB disk", iso.as_str()] {
        assert!(overview.contains(part), "{part:?} is missing in\n{overview}");
    }
    assert!(Path::new(&iso).extension().is_some_and(|it| it == "iso"), "{iso}");
    for part in ["blue-gp-0001", "blue-gp-0002", ">Node<"] {
        assert!(vms.contains(part), "{part:?} is missing in\n{vms}");
    }

    // The doctor finds what the door finds.
    let (is_well, said) = door.doctor();
    assert!(is_well, "{said}");
    for part in ["datastore cluster", "/DC0/vm/nodes/blue", "ISO datastore", "can be downloaded"] {
        assert!(said.contains(part), "{part:?} is missing in\n{said}");
    }
    let wire = |network: &str| {
        let patch = json!({"spec": {"vsphere": {"network": network}}}).to_string();
        kubectl.stdout(&["patch", "vap", "blue-gp", "-n", "blue", "--type=merge", "-p", &patch]);
    };
    wire("no-such-network");
    let (is_well, said) = door.doctor();
    assert!(!is_well && said.contains("no-such-network"), "{said}");
    wire("VM Network");

    // The same through kubectl, which finds the plugin by its name.
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_roost"), site.file("kubectl-roost")).unwrap();
    let mut plugin = kubectl.command(&["roost", "forge", "explain", "blue-blue/blue-gp-0001"]);
    plugin.env("PATH", site.folder());
    plugin.env("ROOST_URL", format!("http://127.0.0.1:{}", door.console));
    let same = plugin.output().unwrap();
    let same = String::from_utf8(same.stdout).unwrap() + &String::from_utf8(same.stderr).unwrap();
    assert!(same.contains("machine blue-gp-0001"), "{same}");
    assert_eq!(door.metrics(None).await.0, 401);
    let token = kubectl.stdout(&["create", "token", "scraper", "-n", SYSTEM]);
    let (status, text) = door.metrics(Some(token.trim())).await;
    assert_eq!(status, 200, "{text}");
    let gauge =
        r#"agent_forge_pool_capacity{namespace="blue",pool="blue-gp",state="bound_agents"} 2"#;
    assert!(text.contains(gauge), "{text}");

    // Who may look may not change.
    kubectl.stdout(&[
        "create",
        "clusterrolebinding",
        "looks",
        "--clusterrole=agent-forge-operator-vsphereagentpool-viewer-role",
        "--user=jane",
    ]);
    kubectl.stdout(&["get", "vap,va", "-n", "blue", "--as=jane"]);
    let refused = kubectl.run(&["delete", "vap", "blue-gp", "-n", "blue", "--as=jane"]);
    assert!(refused.stderr.contains("orbidden"), "{}", refused.stderr);

    // Another image, and somebody who does not want to wait for it.
    let before = field(kubectl, ".status.iso.sha256");
    isos.publish(&base, "blue-env", vec![2; 3 << 20].into());
    let now = "agent-forge.containeroo.ch/force-iso-refresh=now";
    kubectl.stdout(&["annotate", "vap", "blue-gp", "-n", "blue", now]);
    until("the other image", within(PATIENCE), async || {
        let sha256 = field(kubectl, ".status.iso.sha256");
        sha256.len() == 64 && sha256 != before
    })
    .await;
    assert_eq!(field(kubectl, ".status.iso.forceRefreshToken"), "now");

    // It is away while Machines are deleted.
    second.kill();
    neighbours.scale(0);
    until("no Machine", within(PATIENCE), async || {
        names(kubectl, "machines.cluster.x-k8s.io", "blue-blue").is_empty()
    })
    .await;
    assert_eq!(names(kubectl, "va", "blue").lines().count(), 2, "nobody deletes anything");
    let third = door.start(&site.file("log-3"));
    let hand = vcenter.client().await;
    let nodes = async || {
        let vms = Vm::read_all(&hand).await.into_iter().map(|vm| vm.name);
        vms.filter(|name| name.starts_with("blue-gp-")).collect::<Vec<_>>()
    };
    let is_gone = comes_true(within(PATIENCE), async || {
        tokio::time::sleep(LOOK).await;
        names(kubectl, "va", "blue").is_empty()
            && names(kubectl, AGENTS, "blue").is_empty()
            && nodes().await.is_empty()
    });
    if !is_gone.await {
        let kinds = format!("vap,va,{AGENTS}");
        let objects = kubectl.stdout(&["get", &kinds, "-n", "blue", "-o", "yaml"]);
        let (destroyed, vms) = (calls_of("Destroy_Task").await, nodes().await);
        let log = std::fs::read_to_string(site.file("log-3")).unwrap();
        let from = log.len().saturating_sub(20_000);
        let tail = String::from_utf8_lossy(&log.as_bytes()[from..]);
        panic!("not in time: all is gone\n{objects}\n{vms:?}, Destroy_Task {destroyed}\n{tail}");
    }
    assert!(calls_of("Destroy_Task").await >= 2, "somebody else took them");
    kubectl.stdout(&["delete", "vap", "blue-gp", "-n", "blue", "--timeout=110s"]);
    let (code, _) = third.interrupt();
    assert_eq!(code, Some(0));
    let logged = std::fs::read_to_string(site.file("log-3")).unwrap();
    assert!(!logged.contains("orbidden"), "the role suffices:\n{logged}");
    playing.abort();
    serving.abort();
}
