//! `roost sim kube` as a newcomer meets it: start it, point kubectl at it, apply a definition and objects, watch them, break it.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod wire;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use roost_oracle::{Cluster, ClusterOptions, Kubectl};
use wire::{Process, Site, roost};

/// The definition and the object of docs/embedded-kubernetes.md.
fn documented(number: usize) -> String {
    let page = include_str!("../../docs/embedded-kubernetes.md");
    page.split("```yaml\n").nth(number).unwrap().split("```").next().unwrap().to_owned()
}

struct Sim {
    process: Process,
    site: Site,
}

impl Sim {
    fn start(name: &str, args: &[&str]) -> Self {
        let site = Site::new(name);
        let process = Self::serve(&site, args);
        Self { process, site }
    }

    fn serve(site: &Site, args: &[&str]) -> Process {
        let mut command = roost(&["sim", "kube", "--listen", "127.0.0.1:0", "--seed", "7"]);
        command.args(args).current_dir(site.folder());
        Process::start(command, &site.file("log"), "Ctrl-C")
    }

    fn kubeconfig(&self) -> PathBuf {
        PathBuf::from(self.process.line("export KUBECONFIG="))
    }

    fn kubectl(&self) -> Option<Kubectl> {
        Kubectl::new(&self.kubeconfig())
    }
}

#[test]
fn it_says_where_it_is_and_ctrl_c_ends_it() {
    let sim = Sim::start("kube-says", &[]);
    assert!(sim.process.word("https://127.0.0.1:").len() > 18);
    let kubeconfig = sim.kubeconfig();
    assert_eq!(kubeconfig, sim.site.file("kube-sim.kubeconfig"));
    let mode = kubeconfig.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "it holds a token: nobody else may read it");
    let (code, said) = sim.process.interrupt();
    assert_eq!(code, Some(0));
    assert!(said.contains("(seed 7)") && said.ends_with("\nStopped.\n"), "{said}");
}

#[test]
fn a_newcomer_applies_a_kind_and_an_object_and_watches_it_change() {
    let sim = Sim::start("kube-newcomer", &[]);
    let Some(kubectl) = sim.kubectl() else { return };
    let definition = kubectl.file("widgets.yaml", &documented(1));
    let first = kubectl.file("first.yaml", &documented(2));
    kubectl.stdout(&["apply", "-f", &definition]);
    let mut watching = kubectl.command(&["get", "widgets", "--watch"]);
    watching.stdin(Stdio::null());
    let mut watching = Process::start(watching, &sim.site.file("watch-log"), "");
    kubectl.stdout(&["apply", "-f", &first]);
    watching.until_it_says("first   3");
    kubectl.stdout(&["patch", "widget", "first", "--type=merge", "-p", "{\"spec\":{\"size\":4}}"]);
    watching.until_it_says("first   4");
    let refused = kubectl.run(&[
        "patch",
        "widget",
        "first",
        "--type=merge",
        "-p",
        "{\"spec\":{\"size\":50}}",
    ]);
    assert!(!refused.is_success(), "{}", refused.stdout);
    let why = "spec.size in body should be less than or equal to 10";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    let slow = "{\"spec\":{\"mode\":\"slow\",\"size\":9}}";
    let refused = kubectl.run(&["patch", "widget", "first", "--type=merge", "-p", slow]);
    assert!(refused.stderr.contains("slow widgets are small"), "{}", refused.stderr);
    let explained = kubectl.stdout(&["explain", "widget.spec.mode"]);
    assert!(explained.contains("FIELD: mode <string>"), "{explained}");
    assert!(kubectl.stdout(&["describe", "widget", "first"]).contains("Mode:  fast"));
    kubectl.stdout(&["delete", "-f", &first]);
    kubectl.stdout(&["wait", "--for=delete", "widget/first", "--timeout=30s"]);
}

#[test]
fn manifests_that_are_given_are_there_from_the_start() {
    let site = Site::new("kube-manifests");
    std::fs::write(site.file("widgets.yaml"), documented(1)).unwrap();
    std::fs::write(site.file("first.yaml"), documented(2)).unwrap();
    let process = Sim::serve(&site, &["--apply", "widgets.yaml", "--apply", "first.yaml"]);
    let sim = Sim { process, site };
    let Some(kubectl) = sim.kubectl() else { return };
    let mode = ["get", "widget", "first", "-o", "jsonpath={.spec.mode}"];
    assert_eq!(kubectl.stdout(&mode), "fast");
}

#[test]
fn rules_come_and_go_through_the_control_endpoint_and_only_where_it_is_wanted() {
    let sim = Sim::start("kube-control", &["--control"]);
    let Some(kubectl) = sim.kubectl() else { return };
    let rule =
        r#"{"verb": "create", "resource": "configmaps", "action": {"status": {"code": 507}}}"#;
    let rule = kubectl.file("rule.json", rule);
    assert_eq!(
        kubectl.stdout(&["create", "--raw", "/roost/control/rules", "-f", &rule]).trim(),
        r#"{"id":1}"#
    );
    assert!(!kubectl.run(&["create", "configmap", "c"]).is_success());
    let rules = kubectl.stdout(&["get", "--raw", "/roost/control/rules"]);
    assert!(rules.contains(r#""code":507"#), "{rules}");
    kubectl.stdout(&["delete", "--raw", "/roost/control/rules/1"]);
    kubectl.stdout(&["create", "configmap", "c"]);
    let state = kubectl.stdout(&["get", "--raw", "/roost/control/state"]);
    assert!(state.contains(r#""configmaps":1"#) && state.contains(r#""seed":7"#), "{state}");

    let plain = Sim::start("kube-no-control", &[]);
    let Some(kubectl) = plain.kubectl() else { return };
    assert!(!kubectl.run(&["get", "--raw", "/roost/control/rules"]).is_success());
}

fn definitions(doors: &[&str]) -> String {
    let output = roost(&["crds"]).args(doors).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Applies the definitions of all doors and an object of one of them.
fn all_doors_are_defined(kubectl: &Kubectl) {
    let all = kubectl.file("all.yaml", &definitions(&[]));
    kubectl.stdout(&["apply", "--server-side", "-f", &all]);
    kubectl.stdout(&["wait", "--for=condition=Established", "-f", &all, "--timeout=60s"]);
    let object = "apiVersion: agent-forge.containeroo.ch/v1alpha1\nkind: VsphereAgent\nmetadata: {name: a}\nspec: {poolRef: {name: pool}}\n";
    let object = kubectl.file("agent.yaml", object);
    kubectl.stdout(&["apply", "-f", &object]);
    assert!(kubectl.stdout(&["get", "va"]).contains("pool"));
    assert!(kubectl.stdout(&["explain", "virtualmachine.spec.powerState"]).contains("powerState"));
}

#[test]
fn the_definitions_of_all_doors_are_printed_and_taken_by_both_servers() {
    let kinds = |text: &str| text.matches("kind: CustomResourceDefinition\n").count();
    let (all, forge) = (definitions(&[]), definitions(&["agent-forge"]));
    assert_eq!((kinds(&forge), kinds(&all)), (2, 2 + kinds(&definitions(&["vm-operator"]))));
    assert!(kinds(&all) > 10, "{all}");
    let refused = roost(&["crds", "hatchery"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("vm-operator, agent-forge"), "{said}");

    let sim = Sim::start("kube-doors", &[]);
    let Some(kubectl) = sim.kubectl() else { return };
    all_doors_are_defined(&kubectl);
    let Some(cluster) = Cluster::start(&ClusterOptions::default()) else { return };
    all_doors_are_defined(cluster.kubectl());
}

#[test]
fn what_cannot_be_done_is_one_clear_line() {
    let site = Site::new("kube-refused");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    std::fs::write(site.file("broken.yaml"), "kind: [\n").unwrap();
    std::fs::write(site.file("unknown.yaml"), "apiVersion: example.com/v1\nkind: Dog\n").unwrap();
    for (args, part) in [
        (&["--listen", &address][..], address.as_str()),
        (&["--listen", "127.0.0.1:0", "--apply", "no-such.yaml"], "no-such.yaml"),
        (&["--listen", "127.0.0.1:0", "--apply", "broken.yaml"], "broken.yaml"),
        (&["--listen", "127.0.0.1:0", "--apply", "unknown.yaml"], "Dog"),
        (&["--listen", "127.0.0.1:0", "--kubeconfig", "no/such/place"], "no/such/place"),
    ] {
        let mut command = roost(&["sim", "kube"]);
        let output = command.args(args).current_dir(site.folder()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{args:?}");
        assert!(said.starts_with("roost: ") && said.contains(part), "{args:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{args:?}: {said}");
    }
}
