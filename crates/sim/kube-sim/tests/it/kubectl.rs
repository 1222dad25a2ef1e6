//! `kubectl`, the real one, on our server.

use std::sync::Arc;

use roost_clock::SystemClock;
use roost_kube_sim::{KubeSim, Options, Server};
use roost_oracle::Kubectl;

use crate::world::widget_definition;

const WIDGET: &str = "apiVersion: example.com/v1
kind: Widget
metadata: {name: w, labels: {app: demo}}
spec: {size: 3}
";

const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: c, image: 'nginx:1'}]
";

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_that_people_use_work() {
    let sim = KubeSim::start(Options::default(), Arc::new(SystemClock));
    let server = Server::bind(sim.clone(), "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let config = server.kubeconfig();
    let serving = tokio::spawn(server.run_until(std::future::pending::<()>()));
    tokio::task::spawn_blocking(move || commands(&config)).await.unwrap();
    serving.abort();
}

fn commands(kubeconfig: &str) {
    let folder = std::env::temp_dir().join(format!("kube-sim-kubectl-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("kubeconfig");
    std::fs::write(&path, kubeconfig).unwrap();
    let Some(kubectl) = Kubectl::new(&path) else { return };
    let say = |arguments: &[&str]| kubectl.stdout(arguments);

    assert!(say(&["get", "namespaces"]).contains("kube-system"));
    let definition = kubectl.file("crd.json", &widget_definition().to_string());
    assert_eq!(
        say(&["apply", "-f", &definition]),
        "customresourcedefinition.apiextensions.k8s.io/widgets.example.com created\n"
    );
    assert_eq!(
        say(&["wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=10s"]),
        "customresourcedefinition.apiextensions.k8s.io/widgets.example.com condition met\n"
    );
    let widget = kubectl.file("widget.yaml", WIDGET);
    assert_eq!(say(&["apply", "-f", &widget]), "widget.example.com/w created\n");
    assert_eq!(say(&["apply", "-f", &widget]), "widget.example.com/w unchanged\n");
    let larger = kubectl.file("larger.yaml", &WIDGET.replace("size: 3", "size: 4"));
    assert_eq!(say(&["apply", "-f", &larger]), "widget.example.com/w configured\n");
    let table = say(&["get", "wd"]);
    let mut lines = table.lines();
    assert_eq!(
        lines.next().map(|line| line.split_whitespace().collect::<Vec<_>>()),
        Some(vec!["NAME", "SIZE", "READY", "AGE"])
    );
    assert!(lines.next().unwrap().starts_with("w      4"), "{table}");
    assert_eq!(say(&["get", "widget", "w", "-o", "jsonpath={.spec.mode}"]), "fast");
    assert_eq!(say(&["get", "widgets", "-l", "app=demo", "-o", "name"]), "widget.example.com/w\n");
    assert_eq!(
        say(&["patch", "widget", "w", "--type=merge", "-p", "{\"spec\":{\"size\":5}}"]),
        "widget.example.com/w patched\n"
    );
    let status = "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}";
    assert_eq!(
        say(&["patch", "widget", "w", "--subresource=status", "--type=merge", "-p", status]),
        "widget.example.com/w patched\n"
    );
    assert_eq!(
        say(&["wait", "--for=condition=Ready", "widget/w", "--timeout=10s"]),
        "widget.example.com/w condition met\n"
    );
    assert_eq!(
        say(&["wait", "--for=jsonpath={.spec.size}=5", "widget/w", "--timeout=10s"]),
        "widget.example.com/w condition met\n"
    );
    let json = "[{\"op\": \"add\", \"path\": \"/spec/tags\", \"value\": [\"a\"]}]";
    assert_eq!(
        say(&["patch", "widget", "w", "--type=json", "-p", json]),
        "widget.example.com/w patched\n"
    );
    assert_eq!(say(&["scale", "widget", "w", "--replicas=3"]), "widget.example.com/w scaled\n");
    let described = say(&["describe", "widget", "w"]);
    let words: Vec<_> = described.split_whitespace().collect::<Vec<_>>();
    let words = words.join(" ");
    for part in [
        "Name: w Namespace: default Labels: app=demo",
        "API Version: example.com/v1 Kind: Widget",
        "Limits: Cpu: 2 Mode: fast Replicas: 3 Size: 5 Tags: a",
        "Conditions: Status: True Type: Ready",
        "Events: <none>",
    ] {
        assert!(words.contains(part), "{part} in\n{described}");
    }
    let explained = say(&["explain", "widget.spec.mode"]);
    for line in
        ["GROUP:      example.com", "KIND:       Widget", "VERSION:    v1", "FIELD: mode <string>"]
    {
        assert!(explained.lines().any(|known| known == line), "{line} in\n{explained}");
    }
    assert!(say(&["explain", "widget.spec"]).contains("  size\t<integer> -required-"));
    assert!(say(&["explain", "pod.spec.containers.image"]).contains("FIELD: image <string>"));
    let refused =
        kubectl.run(&["patch", "widget", "w", "--type=merge", "-p", "{\"spec\":{\"size\":50}}"]);
    assert!(
        !refused.is_success() && refused.stderr.contains("should be less than or equal to 10"),
        "{}",
        refused.stderr
    );
    let unknown = kubectl.file("unknown.yaml", &WIDGET.replace("size: 3", "size: 3, colour: red"));
    let refused = kubectl.run(&["apply", "-f", &unknown]);
    assert!(
        !refused.is_success() && refused.stderr.contains("unknown field \"spec.colour\""),
        "{}",
        refused.stderr
    );
    assert_eq!(
        say(&["apply", "--server-side", "--force-conflicts", "-f", &widget]),
        "widget.example.com/w serverside-applied\n"
    );
    let second = kubectl.file("second.yaml", &WIDGET.replace("name: w", "name: x"));
    say(&["apply", "-f", &second]);
    assert_eq!(
        say(&["get", "widgets", "--sort-by=.metadata.name", "-o", "name", "--chunk-size=1"]),
        "widget.example.com/w\nwidget.example.com/x\n"
    );
    assert_eq!(
        say(&["delete", "widgets", "--field-selector=metadata.name=x"]),
        "widget.example.com \"x\" deleted from default namespace\n"
    );
    assert_eq!(say(&["wait", "--for=delete", "widget/x", "--timeout=10s"]), "");
    assert_eq!(
        say(&["delete", "widget", "w"]),
        "widget.example.com \"w\" deleted from default namespace\n"
    );

    let pod = kubectl.file("pod.yaml", POD);
    assert_eq!(say(&["apply", "-f", &pod]), "pod/web created\n");
    let newer = kubectl.file("newer.yaml", &POD.replace("nginx:1", "nginx:2"));
    assert_eq!(say(&["apply", "-f", &newer]), "pod/web configured\n");
    assert_eq!(
        say(&["get", "pod", "web", "-o", "jsonpath={.spec.containers[0].image}"]),
        "nginx:2"
    );
    assert!(say(&["get", "pods"]).lines().nth(1).unwrap().contains("Pending"));
    assert!(say(&["describe", "pod", "web"]).contains("Image:"));
    for command in [&["logs", "web"][..], &["exec", "web", "--", "true"]] {
        let refused = kubectl.run(command);
        assert!(
            !refused.is_success() && refused.stderr.contains("nothing runs in its pods"),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(say(&["label", "pod", "web", "tier=front"]), "pod/web labeled\n");
    assert_eq!(say(&["delete", "pod", "web"]), "pod \"web\" deleted from default namespace\n");
    assert!(say(&["api-resources"]).contains("widgets"));
    assert_eq!(say(&["auth", "can-i", "create", "pods"]), "yes\n");
    assert_eq!(say(&["create", "configmap", "c", "--from-literal=a=b"]), "configmap/c created\n");
    assert_eq!(say(&["create", "namespace", "n"]), "namespace/n created\n");
    assert_eq!(say(&["delete", "namespace", "n"]), "namespace \"n\" deleted\n");
    let _ = std::fs::remove_dir_all(&folder);
}
