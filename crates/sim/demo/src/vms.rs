//! `roost demo vm-operator`: VirtualMachine objects are applied, changed and deleted; their VMs follow.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use prometheus_client::registry::Registry;
use roost_clock::{Random, SystemClock};
use roost_controller::crd::install_crds;
use roost_door::{FleetCore, FrontDoor};
use roost_fleet::{Fleet, FleetRules, FleetSettings};
use roost_kube_sim::{KubeSim, Options as KubeOptions};
use roost_vcenter_sim::{Options, Power, TemplateOptions, Timings, Vcenter};
use roost_views::RequestState;
use roost_vim::{Credentials, Settings};
use roost_vm_operator::api::{VirtualMachine, VirtualMachineClass, definitions};
use roost_vm_operator::{
    ImageSources, OwnVms, ProviderSettings, VmOperator, VmOperatorSettings, WORDS, Zone,
};
use serde_json::json;
use tokio::time::sleep;

use super::door_tricks::DoorTricks;
use super::nodes::InProcess;
use super::objects::{Narrator, play};
use super::report::Check;
use crate::args::Demo;

pub(super) const NAMESPACE: &str = "team-a";
pub(super) const NAMES: [&str; 3] = ["web-0", "web-1", "db-0"];
/// Long enough that a controller which polls would be caught.
const AT_REST: Duration = Duration::from_secs(5);

pub(super) async fn run(args: &Demo) -> anyhow::Result<ExitCode> {
    let seed = args.seed.unwrap_or_default();
    let kube =
        KubeSim::start(KubeOptions { seed, ..KubeOptions::default() }, Arc::new(SystemClock));
    let templates = vec![TemplateOptions::new("debian12")];
    let options = Options { seed, templates, timings: Timings::realistic(), ..Options::default() };
    let vcenter = InProcess(Vcenter::start(options, Arc::new(SystemClock)));
    let others = vcenter.0.vm_names();
    let client = kube.client();
    furnish(&client).await?;
    let mut login = Settings::new("vc.demo", Credentials::new("vm-operator", "demo"))?;
    login.stream.max_wait = Duration::from_secs(1);
    let fleet = Fleet::open(FleetSettings {
        vcenter: login,
        transport: Arc::new(vcenter.clone()),
        clock: Arc::new(SystemClock),
        doors: vec![Arc::new(OwnVms)],
        phases: None,
        rules: FleetRules::default(),
    })
    .await?;
    fleet.cover(&vcenter.0.find("/DC0").context("the datacenter")?);
    let random = Random::from_seed(seed);
    let operator =
        VmOperator::new(&client, fleet.clone(), settings(), random, &mut Registry::default());
    let door = Arc::new(operator.door());
    let shown = fleet.clone();
    let core = Arc::new(FleetCore::new(WORDS, move || vec![shown.clone()]));
    let working = tokio::spawn(operator.run(std::future::pending()));

    let (seen, vms) = (Arc::clone(&door), Api::<VirtualMachine>::namespaced(client, NAMESPACE));
    let tricks = DoorTricks { kube, vcenter: Some(vcenter.0.clone()), host: None };
    let story = async move |narrator: &mut Narrator| {
        let mut checks = tell(narrator, &*seen, &vms, &vcenter.0).await?;
        sleep(AT_REST).await;
        let before = calls(&vcenter.0);
        sleep(AT_REST).await;
        let at_rest = calls(&vcenter.0) - before;
        let left = vcenter.0.vm_names();
        checks.extend([
            Check::new("one login to the vCenter", vcenter.0.counters().calls_of("Login") == 1),
            Check::new(
                "the VM of the deleted object is gone, and no other",
                left.len() == others.len() + 2 && others.iter().all(|vm| left.contains(vm)),
            ),
            Check::new(
                format!("{AT_REST:?} at rest cost {at_rest} calls beside the shared long poll"),
                at_rest == 0,
            ),
        ]);
        Ok(checks)
    };
    let code = play(args, door, Some(core), tricks, story).await;
    working.abort();
    code
}

/// Three objects are applied; one VM is powered off, one is deleted.
pub(super) async fn tell(
    narrator: &mut Narrator,
    door: &dyn FrontDoor,
    vms: &Api<VirtualMachine>,
    vcenter: &Vcenter,
) -> anyhow::Result<Vec<Check>> {
    let running = || {
        let all = door.requests();
        all.iter().filter(|request| request.state == RequestState::Working).count()
    };
    narrator.says(&format!("kubectl apply: {}", NAMES.join(", ")));
    for name in NAMES {
        vms.create(&PostParams::default(), &manifest(name)?).await.context("applying")?;
    }
    narrator.until("the VMs and their addresses", || running() == NAMES.len()).await?;
    let on = |name: &str| vcenter.vm(name).is_some_and(|vm| vm.power == Power::On);
    let all_on = NAMES.iter().all(|name| on(name));
    narrator.says(&format!("kubectl patch vm {}: powerState PoweredOff", NAMES[1]));
    let off = json!({"spec": {"powerState": "PoweredOff"}});
    vms.patch(NAMES[1], &PatchParams::default(), &Patch::Merge(off)).await?;
    narrator.until("the power-off", || !on(NAMES[1])).await?;
    narrator.says(&format!("kubectl delete vm {}", NAMES[2]));
    vms.delete(NAMES[2], &DeleteParams::default()).await?;
    narrator.until("the deletion", || vcenter.vm(NAMES[2]).is_none()).await?;
    narrator.until("the object to go", || door.requests().len() == NAMES.len() - 1).await?;
    let kept = NAMES[..2].iter().all(|name| vcenter.vm(name).is_some());
    Ok(vec![
        Check::new(format!("{} objects became VMs with an address", NAMES.len()), all_on),
        Check::new("the VM of the deleted object went, those of the others stay", kept),
    ])
}

fn calls(vcenter: &Vcenter) -> u64 {
    let counters = vcenter.counters();
    counters.total_calls() - counters.calls_of("WaitForUpdatesEx")
}

pub(super) fn settings() -> VmOperatorSettings {
    let provider = ProviderSettings {
        datacenter: "DC0".into(),
        folder: "/DC0/vm".into(),
        zones: vec![Zone {
            name: "zone-1".into(),
            resource_pool: "/DC0/host/DC0_C0/Resources".into(),
            datastore: Some("LocalDS_0".into()),
        }],
        network: "DC0_DVPG0".into(),
        images: ImageSources { libraries: Vec::new(), inventory: true, namespaces: Vec::new() },
        ..ProviderSettings::default()
    };
    VmOperatorSettings { provider, ..VmOperatorSettings::default() }
}

/// A namespace with a class and a storage class. Images are found by themselves: the templates of the inventory.
pub(super) async fn furnish(client: &kube::Client) -> anyhow::Result<()> {
    install_crds(client, &definitions()?, "demo").await.context("the definitions")?;
    let create = PostParams::default();
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
    Api::all(client.clone()).create(&create, &namespace).await?;
    let gold: StorageClass = serde_json::from_value(json!({
        "metadata": {"name": "gold"}, "provisioner": "csi.vsphere.vmware.com",
        "parameters": {"datastore": "LocalDS_0"}
    }))?;
    Api::all(client.clone()).create(&create, &gold).await?;
    let class: VirtualMachineClass = serde_json::from_value(json!({
        "apiVersion": "vmoperator.vmware.com/v1alpha6", "kind": "VirtualMachineClass",
        "metadata": {"name": "small", "namespace": NAMESPACE},
        "spec": {"hardware": {"cpus": 2, "memory": "4Gi"}}
    }))?;
    Api::namespaced(client.clone(), NAMESPACE).create(&create, &class).await?;
    Ok(())
}

pub(super) fn manifest(name: &str) -> anyhow::Result<VirtualMachine> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "vmoperator.vmware.com/v1alpha6", "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"className": "small", "imageName": "debian12", "storageClass": "gold", "powerState": "PoweredOn"}
    }))?)
}
