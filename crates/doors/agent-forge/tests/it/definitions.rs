//! The kinds as API servers see them: the embedded one and a real one say the same of the same objects.

use std::sync::Arc;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use roost_agent_forge::api::{VsphereAgentPool, crds};
use roost_clock::SimClock;
use roost_controller::crd::install_crds;
use roost_kube_sim::{KubeSim, Options};
use roost_oracle::{Cluster, ClusterOptions};
use serde_json::{Value, json};

fn smallest() -> Value {
    json!({
        "apiVersion": "agent-forge.containeroo.ch/v1alpha1", "kind": "VsphereAgentPool",
        "metadata": {"name": "blue-gp", "namespace": "default"},
        "spec": {
            "hostedClusterRef": {"name": "blue"}, "nodePoolRef": {"name": "blue-gp"}, "infraEnvRef": {"name": "blue-env"},
            "controlPlaneNamespace": "blue-blue",
            "vsphere": {"credentialsSecretRef": {"name": "vc-login"}, "datastoreCluster": "pod", "isoDatastore": "iso",
                        "resourcePool": "c/Resources", "network": "VM Network"},
            "template": {}, "agent": {"labels": {"tenant": "blue"}}, "iso": {},
        },
    })
}

async fn pools(client: &Client) -> Api<VsphereAgentPool> {
    install_crds(client, &crds().unwrap(), "forge").await.unwrap();
    Api::namespaced(client.clone(), "default")
}

/// What is admitted, what is defaulted and what is refused.
async fn check(client: &Client) {
    let pools = pools(client).await;
    let raw: Api<kube::api::DynamicObject> = Api::namespaced_with(
        client.clone(),
        "default",
        &kube::api::ApiResource::erase::<VsphereAgentPool>(&()),
    );
    let create = async |object: Value| {
        raw.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await
    };
    create(smallest()).await.unwrap();
    let stored = pools.get("blue-gp").await.unwrap();
    let (spec, template) = (&stored.spec, &stored.spec.template);
    assert_eq!(spec.vsphere.datacenter.as_deref(), Some("dc1"));
    assert_eq!(
        (template.num_cpus, template.memory_mib, template.disk_gib),
        (Some(4), Some(16384), Some(100))
    );
    assert_eq!((spec.agent.role.as_deref(), spec.agent.approve), (Some("worker"), Some(true)));
    assert_eq!(spec.iso.as_ref().unwrap().retain_versions, Some(2));

    // What this program adds is kept.
    let more = json!({"spec": {"scaling": {"bufferAgents": 1, "scaleFromZeroHints": true}, "iso": {"caBundle": "pem"}, "cleanup": {"quarantine": "1h"},
        "vsphere": {"storagePolicy": "gold", "extraNetworks": [{"network": "n"}], "failureDomains": [{"name": "a", "weight": 0}]},
        "template": {"coresPerSocket": 2, "vTPM": true, "extraDisks": [{"sizeGiB": 5}], "extraConfig": {"a": "b"}}}});
    pools.patch("blue-gp", &PatchParams::default(), &Patch::Merge(&more)).await.unwrap();
    let spec = pools.get("blue-gp").await.unwrap().spec;
    assert_eq!(spec.cleanup.unwrap().quarantine.as_deref(), Some("1h"));
    assert_eq!(spec.scaling.unwrap().buffer_agents, Some(1));
    assert_eq!(spec.vsphere.failure_domains[0].weight, Some(0));
    assert_eq!((spec.template.vtpm, spec.template.extra_disks[0].size_gib), (Some(true), 5));

    // The status is a subresource, and what it does not know is pruned.
    let status = json!({"status": {"waitingAgentMachines": 2, "nonsense": 1,
        "ownedVMs": [{"name": "a", "phase": "Provisioning", "reason": "VMCreatePending", "failureDomain": "a"}],
        "outdatedVMs": ["a"], "iso": {"stale": ["x.iso"]}, "failureDomains": [{"name": "a", "ready": true, "vms": 1, "iso": {"path": "p"}}]}});
    pools.patch_status("blue-gp", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    let stored = raw.get("blue-gp").await.unwrap();
    assert_eq!(stored.data["status"]["waitingAgentMachines"], 2);
    assert!(stored.data["status"].get("nonsense").is_none());
    assert_eq!(stored.data["status"]["failureDomains"][0]["iso"]["path"], "p");
    assert_eq!(stored.data["status"]["ownedVMs"][0]["failureDomain"], "a");
    assert_eq!(stored.data["status"]["iso"]["stale"][0], "x.iso");
    pools.delete("blue-gp", &DeleteParams::default()).await.unwrap();

    let with = |path: &str, value: Value| {
        let mut object = smallest();
        *object.pointer_mut(path).unwrap() = value;
        object
    };
    let with_domains = |domains: Value| {
        let mut object = smallest();
        object["spec"]["vsphere"]["failureDomains"] = domains;
        object
    };
    for (case, object) in [
        ("no labels", with("/spec/agent/labels", json!({}))),
        ("a name that is none", with("/spec/nodePoolRef/name", json!("Not A Name"))),
        ("a namespace with a dot", with("/spec/controlPlaneNamespace", json!("a.b"))),
        ("a disk that is too small", with("/spec/template", json!({"diskGiB": 19}))),
        ("too many CPUs", with("/spec/template", json!({"numCPUs": 129}))),
        ("no version kept", with("/spec/iso", json!({"retainVersions": 0}))),
        ("an absolute prefix", with("/spec/iso", json!({"pathPrefix": "/iso"}))),
        ("a duration that is none", with("/spec/iso", json!({"checkInterval": 5}))),
        ("an extra disk without a size", with("/spec/template", json!({"extraDisks": [{}]}))),
        (
            "a domain with two places for disks",
            with_domains(json!([{"name": "a", "datastore": "d", "datastoreCluster": "c"}])),
        ),
        ("a domain without a name", with_domains(json!([{"weight": 1}]))),
        ("a domain twice", with_domains(json!([{"name": "a"}, {"name": "a"}]))),
        (
            "no place for disks",
            with(
                "/spec/vsphere",
                json!({"credentialsSecretRef": {"name": "vc-login"},
            "isoDatastore": "iso", "resourcePool": "c", "network": "n"}),
            ),
        ),
    ] {
        let refused = create(object).await.expect_err(case);
        let kube::Error::Api(status) = refused else { panic!("{case}: {refused}") };
        assert_eq!(status.code, 422, "{case}: {}", status.message);
    }

    // Without a spec it is admitted, and reading it does not fail.
    let bare = json!({"apiVersion": "agent-forge.containeroo.ch/v1alpha1", "kind": "VsphereAgentPool",
        "metadata": {"name": "bare", "namespace": "default"}});
    create(bare).await.unwrap();
    assert_eq!(pools.get("bare").await.unwrap().spec.control_plane_namespace, "");
    pools.delete("bare", &DeleteParams::default()).await.unwrap();
}

/// The pool that people begin with.
const SAMPLE: &str = include_str!("../../../../../deploy/agent-forge/sample-pool.yaml");

#[tokio::test(start_paused = true)]
async fn the_pool_of_the_documentation_is_admitted_as_it_stands() {
    let page = include_str!("../../../../../docs/agent-forge.md");
    assert!(page.contains(&format!("```yaml\n{SAMPLE}```\n")), "the page shows another pool");
    let sim = KubeSim::start(Options::default(), Arc::new(SimClock::new()));
    install_crds(&sim.client(), &crds().unwrap(), "forge").await.unwrap();
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(sim.client());
    let namespace = json!({"metadata": {"name": "blue"}});
    let namespace = serde_json::from_value(namespace).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let sample: Value = serde_saphyr::from_str(SAMPLE).unwrap();
    let api: Api<kube::api::DynamicObject> = Api::namespaced_with(
        sim.client(),
        "blue",
        &kube::api::ApiResource::erase::<VsphereAgentPool>(&()),
    );
    let object = serde_json::from_value(sample.clone()).unwrap();
    let stored = api.create(&PostParams::default(), &object).await.unwrap();
    for (key, value) in sample["spec"].as_object().unwrap() {
        let kept = &stored.data["spec"][key];
        match value.as_object() {
            // Defaults come beside what it says; nothing of that is pruned.
            Some(said) => assert!(said.iter().all(|(k, v)| kept[k] == *v), "{key}: {kept}"),
            None => assert_eq!(kept, value, "{key}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_kinds_keep_their_rules_on_the_embedded_api_server() {
    let sim = KubeSim::start(Options::default(), Arc::new(SimClock::new()));
    check(&sim.client()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kinds_keep_their_rules_on_a_real_api_server() {
    let started = tokio::task::spawn_blocking(|| Cluster::start(&ClusterOptions::default())).await;
    let Some(cluster) = started.unwrap() else { return };
    check(&cluster.client().await).await;
}
