//! `roost vm-operator` as somebody meets it who follows docs/vm-operator.md: on a real API server, with `kubectl` and `roost sim vcenter`.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod wire;

use std::process::Command;
use std::time::Duration;

use roost_oracle::{Cluster, ClusterOptions, Kubectl};
use roost_vm_operator::access;
use roost_vm_operator::webhook::configurations;
use serde_json::json;
use wire::{Process, Site, roost};

/// The manifests of the page, in their order.
fn documented(number: usize) -> String {
    let page = include_str!("../../docs/vm-operator.md");
    page.split("```yaml\n").nth(number).unwrap().split("```").next().unwrap().to_owned()
}

fn operator(kubeconfig: &str) -> Command {
    let mut command =
        roost(&["vm-operator", "--health-probe-bind-address=0", "--metrics-bind-address=0"]);
    command.env("KUBECONFIG", kubeconfig).env("POD_NAMESPACE", "vmop-system");
    command
}

fn field(kubectl: &Kubectl, path: &str) -> String {
    kubectl.stdout(&["get", "vm", "web-0", "-n", "team-a", "-o", &format!("jsonpath={{{path}}}")])
}

fn wait_for(kubectl: &Kubectl, path: &str, value: &str) {
    let wanted = format!("--for=jsonpath={{{path}}}={value}");
    kubectl.stdout(&["wait", "vm/web-0", "-n", "team-a", &wanted, "--timeout=120s"]);
}

fn change(kubectl: &Kubectl, patch: &str) {
    kubectl.stdout(&["patch", "vm", "web-0", "-n", "team-a", "--type=merge", "-p", patch]);
}

#[test]
fn the_page_leads_from_an_empty_cluster_to_a_vm_that_survives_its_controller() {
    let Some(cluster) = Cluster::start(&ClusterOptions::default()) else { return };
    let kubectl = cluster.kubectl();
    let kubeconfig = cluster.kubeconfig().to_str().unwrap().to_owned();
    let site = Site::new("vm-operator");
    let sim = roost(&["sim", "vcenter", "--listen", "127.0.0.1:0", "--seed", "7"]);
    let sim = Process::start(sim, &site.file("sim-log"), "Ctrl-C");
    let vcenter = sim.word("http://127").strip_suffix("/sdk").unwrap().to_owned();

    let definitions = roost(&["crds", "vm-operator"]).output().unwrap();
    let definitions = kubectl.file("crds.yaml", str::from_utf8(&definitions.stdout).unwrap());
    kubectl.stdout(&["apply", "--server-side", "-f", &definitions]);
    let provider = documented(1).replace("http://127.0.0.1:8989", &vcenter);
    kubectl.stdout(&["apply", "-f", &kubectl.file("provider.yaml", &provider)]);
    let words = "become VMs";
    let first = Process::start(operator(&kubeconfig), &site.file("log"), words);
    kubectl.stdout(&["apply", "-f", &kubectl.file("vm.yaml", &documented(2))]);
    wait_for(kubectl, ".status.powerState", "PoweredOn");
    let unique_id = field(kubectl, ".status.uniqueID");

    // It dies, and somebody changes their mind meanwhile.
    first.kill();
    change(kubectl, r#"{"spec": {"powerState": "PoweredOff", "powerOffMode": "Hard"}}"#);
    let second = Process::start(operator(&kubeconfig), &site.file("log-2"), words);
    wait_for(kubectl, ".status.powerState", "PoweredOff");
    assert_eq!(field(kubectl, ".status.uniqueID"), unique_id, "the same VM");
    change(kubectl, r#"{"spec": {"powerState": "PoweredOn"}}"#);
    wait_for(kubectl, ".status.powerState", "PoweredOn");
    kubectl.stdout(&["delete", "vm", "web-0", "-n", "team-a", "--timeout=120s"]);
    let (code, _) = second.interrupt();
    assert_eq!(code, Some(0));
    let (_, said) = sim.interrupt();
    assert!(said.contains("CreateVM_Task") || said.contains("CloneVM_Task"), "{said}");
    assert!(said.contains("Destroy_Task"), "nothing is left: {said}");
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The configurations that are shipped, with an address in place of the Service: here is no cluster network.
fn configurations_at(port: u16) -> String {
    let mut all = configurations(access::NAME, access::NAMESPACE, access::WEBHOOK);
    for hook in all.iter_mut().flat_map(|of| of["webhooks"].as_array_mut().unwrap()) {
        let path = hook["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
        hook["clientConfig"] = json!({"url": format!("https://127.0.0.1:{port}{path}")});
    }
    json!({"apiVersion": "v1", "kind": "List", "items": all}).to_string()
}

/// What one sees of the metrics with this token.
#[tokio::main(flavor = "current_thread")]
async fn metrics(port: u16, token: Option<&str>) -> (u16, String) {
    let tls = roost_tls::TlsTrust::Insecure.client_config().unwrap();
    let client = reqwest::Client::builder().tls_backend_preconfigured(tls).build().unwrap();
    let mut request = client.get(format!("https://127.0.0.1:{port}/metrics"));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

const PEOPLE: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: people}
rules:
- {apiGroups: [vmoperator.vmware.com], resources: ["*"], verbs: ["*"]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: people}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: people}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}
- {kind: ServiceAccount, name: scraper, namespace: vmop-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: scraper, namespace: vmop-system}
"#;

#[test]
fn a_replica_that_stands_by_answers_webhooks_and_takes_over() {
    let Some(cluster) = Cluster::start(&ClusterOptions::default()) else { return };
    let kubectl = cluster.kubectl();
    let kubeconfig = cluster.kubeconfig().to_str().unwrap().to_owned();
    let site = Site::new("vm-operator-webhooks");
    let sim = roost(&["sim", "vcenter", "--listen", "127.0.0.1:0", "--seed", "7"]);
    let sim = Process::start(sim, &site.file("sim-log"), "Ctrl-C");
    let vcenter = sim.word("http://127").strip_suffix("/sdk").unwrap().to_owned();
    let definitions = include_str!("../../deploy/vm-operator/crds.yaml");
    kubectl.stdout(&["apply", "--server-side", "-f", &kubectl.file("crds.yaml", definitions)]);
    let provider = documented(1).replace("http://127.0.0.1:8989", &vcenter);
    kubectl.stdout(&["apply", "-f", &kubectl.file("provider.yaml", &provider)]);
    kubectl.stdout(&["apply", "-f", &kubectl.file("people.yaml", PEOPLE)]);
    let documents = documented(2);
    let (furniture, vm) = documents.rsplit_once("---\n").unwrap();
    kubectl.stdout(&["apply", "-f", &kubectl.file("furniture.yaml", furniture)]);
    let words = "become VMs";
    let (port, metrics_port) = (free_port(), free_port());
    let first = Process::start(operator(&kubeconfig), &site.file("log"), words);
    let lease = ["wait", "lease/vmoperator-controller-manager-runtime", "-n", "vmop-system"];
    let taken = ["--for=jsonpath={.spec.holderIdentity}", "--timeout=120s"];
    // `wait` for a field of what is not there yet is an error.
    kubectl.stdout(&[&lease[..], &["--for=create", "--timeout=120s"]].concat());
    kubectl.stdout(&[&lease[..], &taken[..]].concat());
    let mut second = roost(&["vm-operator", "--health-probe-bind-address=0"]);
    second.arg(format!("--metrics-bind-address=127.0.0.1:{metrics_port}"));
    second.arg(format!("--webhook-service-container-port={port}"));
    second.env("KUBECONFIG", &kubeconfig).env("POD_NAMESPACE", "vmop-system");
    second.env("PRIVILEGED_USERS", "alice");
    let second = Process::start(second, &site.file("log-2"), words);
    let hooks = kubectl.file("webhooks.json", &configurations_at(port));
    kubectl.stdout(&["apply", "-f", &hooks]);

    // The image is named as it is shown, which only the webhook understands before the object is stored.
    let vm = kubectl.file("vm.yaml", vm);
    let create = ["create", "-f", &vm, "--as=jane"];
    let mut tries = 0..900;
    while !kubectl.run(&[&create[..], &["--dry-run=server"]].concat()).status.success() {
        assert!(tries.next().is_some(), "the webhooks do not answer");
        std::thread::sleep(Duration::from_millis(200));
    }
    kubectl.stdout(&create);
    assert!(field(kubectl, ".spec.image.name").starts_with("vmi-"));
    assert_eq!(field(kubectl, ".spec.instanceUUID").len(), 36);
    let mark = "vmoperator.vmware.com.protected/reconcile-priority=500";
    let annotate = ["annotate", "vm", "web-0", "-n", "team-a", mark];
    let refused = kubectl.run(&[&annotate[..], &["--as=jane"]].concat());
    let said = refused.stderr;
    assert!(said.contains("reconcile-priority") && said.contains("not allowed"), "{said}");
    kubectl.stdout(&[&annotate[..], &["--as=alice"]].concat());

    let token = kubectl.stdout(&["create", "token", "scraper", "-n", "vmop-system"]);
    assert_eq!(metrics(metrics_port, None).0, 401);
    assert_eq!(metrics(metrics_port, Some("nobody")).0, 401);
    let (status, text) = metrics(metrics_port, Some(token.trim()));
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("workqueue_depth"), "{text}");

    let (code, _) = first.interrupt();
    assert_eq!(code, Some(0));
    wait_for(kubectl, ".status.powerState", "PoweredOn");
    kubectl.stdout(&["delete", "vm", "web-0", "-n", "team-a", "--timeout=120s"]);
    let (code, _) = second.interrupt();
    assert_eq!(code, Some(0));
}

/// A configuration with which one is the account of the shipped role, and nobody else.
fn as_shipped_account(kubectl: &Kubectl, kubeconfig: &str) -> String {
    let account = ["create", "token", access::NAME, "-n", access::NAMESPACE, "--duration=1h"];
    let token = kubectl.stdout(&account);
    let text = std::fs::read_to_string(kubeconfig).unwrap();
    let own = kubectl.file("account.kubeconfig", &text);
    let at = format!("--kubeconfig={own}");
    let token = format!("--token={}", token.trim());
    kubectl.stdout(&["config", &at, "delete-user", "u"]);
    kubectl.stdout(&["config", &at, "set-credentials", "u", &token]);
    own
}

const MORE: &str = "
apiVersion: vmoperator.vmware.com/v1alpha6
kind: VirtualMachineClass
metadata: {name: large, namespace: team-a}
spec: {hardware: {cpus: 4, memory: 8Gi}}
---
apiVersion: vmoperator.vmware.com/v1alpha6
kind: VirtualMachineSnapshot
metadata: {name: before, namespace: team-a}
spec: {vmName: web-0}
";

/// Two replicas with what `deploy/vm-operator` allows them, and no more.
#[test]
fn a_vm_is_resized_reverted_and_switched_while_its_controller_is_killed() {
    let Some(cluster) = Cluster::start(&ClusterOptions::default()) else { return };
    let kubectl = cluster.kubectl();
    let kubeconfig = cluster.kubeconfig().to_str().unwrap().to_owned();
    let site = Site::new("vm-operator-life");
    let sim = roost(&["sim", "vcenter", "--listen", "127.0.0.1:0", "--seed", "7"]);
    let sim = Process::start(sim, &site.file("sim-log"), "Ctrl-C");
    let vcenter = sim.word("http://127").strip_suffix("/sdk").unwrap().to_owned();
    for (name, text) in [
        ("namespace.yaml", include_str!("../../deploy/vm-operator/namespace.yaml")),
        ("crds.yaml", include_str!("../../deploy/vm-operator/crds.yaml")),
        ("rbac.yaml", include_str!("../../deploy/vm-operator/rbac.yaml")),
    ] {
        kubectl.stdout(&["apply", "--server-side", "-f", &kubectl.file(name, text)]);
    }
    let provider = documented(1).replace("http://127.0.0.1:8989", &vcenter);
    kubectl.stdout(&["apply", "-f", &kubectl.file("provider.yaml", &provider)]);
    let account = as_shipped_account(kubectl, &kubeconfig);
    let words = "become VMs";
    let logs = [site.file("log"), site.file("log-2")];
    let leader = Process::start(operator(&account), &logs[0], words);
    let lease = ["wait", "lease/vmoperator-controller-manager-runtime", "-n", "vmop-system"];
    kubectl.stdout(&[&lease[..], &["--for=create", "--timeout=120s"]].concat());
    let taken = ["--for=jsonpath={.spec.holderIdentity}", "--timeout=120s"];
    kubectl.stdout(&[&lease[..], &taken[..]].concat());
    let second = Process::start(operator(&account), &logs[1], words);

    kubectl.stdout(&["apply", "-f", &kubectl.file("vm.yaml", &documented(2))]);
    wait_for(kubectl, ".status.powerState", "PoweredOn");
    let unique_id = field(kubectl, ".status.uniqueID");
    kubectl.stdout(&["apply", "-f", &kubectl.file("more.yaml", MORE)]);
    let ready = ["wait", "vmsnapshot/before", "-n", "team-a", "--timeout=120s"];
    let condition = "--for=condition=VirtualMachineSnapshotReady";
    kubectl.stdout(&[&ready[..], &[condition]].concat());

    let larger =
        r#"{"spec": {"className": "large", "powerState": "PoweredOff", "powerOffMode": "Hard"}}"#;
    change(kubectl, larger);
    leader.kill();
    wait_for(kubectl, ".status.class.name", "large");
    wait_for(kubectl, ".status.hardware.cpu.total", "4");
    change(kubectl, r#"{"spec": {"powerState": "PoweredOn"}}"#);
    wait_for(kubectl, ".status.powerState", "PoweredOn");

    change(kubectl, r#"{"spec": {"currentSnapshotName": "before"}}"#);
    wait_for(kubectl, ".spec.className", "small");
    wait_for(kubectl, ".status.hardware.cpu.total", "2");
    assert_eq!(field(kubectl, ".spec.currentSnapshotName"), "", "it has gone back");
    // Without its memory, it has gone back to a VM that is off.
    change(kubectl, r#"{"spec": {"powerState": "PoweredOn"}}"#);
    wait_for(kubectl, ".status.powerState", "PoweredOn");
    change(kubectl, r#"{"spec": {"powerState": "PoweredOff"}}"#);
    wait_for(kubectl, ".status.powerState", "PoweredOff");
    assert_eq!(field(kubectl, ".status.uniqueID"), unique_id, "the same VM all the time");

    kubectl.stdout(&["delete", "vmsnapshot", "before", "-n", "team-a", "--timeout=120s"]);
    kubectl.stdout(&["delete", "vm", "web-0", "-n", "team-a", "--timeout=120s"]);
    let (code, _) = second.interrupt();
    assert_eq!(code, Some(0));
    let (_, said) = sim.interrupt();
    assert!(said.contains("Destroy_Task"), "nothing is left: {said}");
    for log in logs {
        let said = std::fs::read_to_string(log).unwrap();
        assert!(!said.contains("forbidden"), "the role is not enough: {said}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let site = Site::new("vm-operator-missing");
    let mut sim = roost(&["sim", "kube", "--listen", "127.0.0.1:0", "--seed", "7"]);
    sim.current_dir(site.folder());
    let sim = Process::start(sim, &site.file("sim-log"), "Ctrl-C");
    let kubeconfig = sim.line("export KUBECONFIG=").to_owned();
    let refused = |command: &mut Command| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused(&mut operator(&kubeconfig));
    let place = "vmop-system/vsphere.provider.config.vmoperator.vmware.com";
    assert!(said.contains(&format!("there is no ConfigMap {place}")), "{said}");
    let said =
        refused(operator(&kubeconfig).env("SYNC_PERIOD", "often").env("JSON_EXTRA_CONFIG", "x"));
    assert!(said.contains("SYNC_PERIOD: often") && said.contains("JSON_EXTRA_CONFIG"), "{said}");
    let Some(kubectl) = Kubectl::new(kubeconfig.as_ref()) else { return };
    let provider =
        documented(1).replace("password: pass", "password: geheim-7").replace("username", "user");
    kubectl.stdout(&["apply", "-f", &kubectl.file("provider.yaml", &provider)]);
    let said = refused(&mut operator(&kubeconfig));
    assert!(said.contains("Secret vmop-system/wcp-vmop-sa-vc-auth lacks username"), "{said}");
    assert!(!said.contains("geheim-7"), "{said}");
}

/// An API server and a vCenter of this program, with the definitions and the provider of the page.
struct Embedded {
    kubectl: Kubectl,
    kubeconfig: String,
    _kube: Process,
    _vcenter: Process,
}

impl Embedded {
    fn start(site: &Site) -> Option<Self> {
        let mut kube = roost(&["sim", "kube", "--listen", "127.0.0.1:0", "--seed", "7"]);
        kube.current_dir(site.folder());
        let kube = Process::start(kube, &site.file("kube-log"), "Ctrl-C");
        let kubeconfig = kube.line("export KUBECONFIG=").to_owned();
        let kubectl = Kubectl::new(kubeconfig.as_ref())?;
        let vcenter = roost(&["sim", "vcenter", "--listen", "127.0.0.1:0", "--seed", "7"]);
        let vcenter = Process::start(vcenter, &site.file("vcenter-log"), "Ctrl-C");
        let url = vcenter.word("http://127").strip_suffix("/sdk").unwrap().to_owned();
        let definitions = roost(&["crds", "vm-operator"]).output().unwrap();
        let definitions = kubectl.file("crds.yaml", str::from_utf8(&definitions.stdout).unwrap());
        kubectl.stdout(&["apply", "--server-side", "-f", &definitions]);
        let provider = documented(1).replace("http://127.0.0.1:8989", &url);
        kubectl.stdout(&["apply", "-f", &kubectl.file("provider.yaml", &provider)]);
        Some(Self { kubectl, kubeconfig, _kube: kube, _vcenter: vcenter })
    }

    /// Findings of `roost doctor vm-operator`: verdict, check, what was found.
    fn doctor(&self) -> (Option<i32>, Vec<(String, String, String)>) {
        let mut doctor = roost(&["doctor", "vm-operator", "--json"]);
        doctor.env("KUBECONFIG", &self.kubeconfig).env("POD_NAMESPACE", "vmop-system");
        let output = doctor.output().unwrap();
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let sections = said["sections"].as_array().unwrap().iter();
        let findings = sections.flat_map(|section| section["findings"].as_array().unwrap());
        let text = |of: &serde_json::Value| of.as_str().unwrap_or_default().to_owned();
        let all =
            findings.map(|one| (text(&one["verdict"]), text(&one["check"]), text(&one["found"])));
        (output.status.code(), all.collect())
    }
}

#[test]
fn the_doctor_of_vm_operator_finds_what_is_there_and_names_what_is_not() {
    let site = Site::new("vm-operator-doctor");
    let Some(here) = Embedded::start(&site) else { return };
    let (code, findings) = here.doctor();
    assert_eq!(code, Some(0), "{findings:#?}");
    let of = |check: &str| findings.iter().find(|(_, own, _)| own == check);
    for check in [
        "API server",
        "definitions",
        "rights",
        "provider",
        "login",
        "datacenter",
        "folder",
        "resource pool",
        "datastore",
        "network",
        "privileges",
        "extension",
    ] {
        let (verdict, _, found) = of(check).unwrap_or_else(|| panic!("{check}: {findings:#?}"));
        assert_eq!(verdict, "pass", "{check}: {found}");
    }
    assert!(of("extension").unwrap().2.contains("dev.roost.vm-operator"));
    let (map, space) = ("vsphere.provider.config.vmoperator.vmware.com", "vmop-system");
    let pool = r#"{"data": {"ResourcePool": "/DC0/host/nowhere/Resources"}}"#;
    here.kubectl.stdout(&["patch", "configmap", map, "-n", space, "--type=merge", "-p", pool]);
    let (code, findings) = here.doctor();
    assert_ne!(code, Some(0));
    let is_named = |(verdict, check, found): &(String, String, String)| {
        verdict == "fail" && check == "resource pool" && found.contains("nowhere")
    };
    assert!(findings.iter().any(is_named), "{findings:#?}");
}

#[test]
fn a_vm_is_waited_for_by_its_probe_and_another_config_map_ends_the_program_with_a_line() {
    let site = Site::new("vm-operator-probe");
    let Some(here) = Embedded::start(&site) else { return };
    let kubectl = &here.kubectl;
    let log = site.file("log");
    let mut process = Process::start(operator(&here.kubeconfig), &log, "become VMs");
    let probed = documented(2).replace(
        "storageClass: gold}",
        "storageClass: gold, readinessProbe: {guestHeartbeat: {}}}",
    );
    kubectl.stdout(&["apply", "-f", &kubectl.file("vm.yaml", &probed)]);
    let ready = "--for=condition=Ready";
    kubectl.stdout(&["wait", "vm/web-0", "-n", "team-a", ready, "--timeout=120s"]);
    assert_eq!(field(kubectl, ".status.powerState"), "PoweredOn");
    let (map, space) = ("vsphere.provider.config.vmoperator.vmware.com", "vmop-system");
    let change = |patch: &str| {
        kubectl.stdout(&["patch", "configmap", map, "-n", space, "--type=merge", "-p", patch]);
    };
    change(r#"{"metadata": {"labels": {"a": "b"}}}"#);
    change(r#"{"data": {"VcPort": "none"}}"#);
    let until_logged = |words: &str| {
        for _ in 0..600 {
            if std::fs::read_to_string(&log).unwrap().contains(words) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{words} is not in {}", std::fs::read_to_string(&log).unwrap());
    };
    until_logged("VcPort: none is no port");
    assert!(!process.said().contains("has changed"));
    change(r#"{"data": {"VcPort": "443", "NamespaceFolders": "false"}}"#);
    until_logged("has changed; the next start uses it");
    let (code, _) = process.interrupt();
    assert_eq!(code, Some(1), "so that whoever runs it starts it again");
}
