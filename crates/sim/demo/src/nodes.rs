//! `roost demo agent-forge`: a NodePool grows and shrinks; its VMs come and go.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;
use prometheus_client::registry::Registry;
use roost_agent_forge::api::{VsphereAgentPool, crds};
use roost_agent_forge::iso::{Fetch, Fetched, IsoSource, SourceError};
use roost_agent_forge::vcenter::{Connect, Connecting, ForgeVms, Login};
use roost_agent_forge::{Forge, ForgeParts, WORDS, machine_version};
use roost_clock::{Clock, Random, SystemClock};
use roost_controller::crd::install_crds;
use roost_door::{FleetCore, FrontDoor};
use roost_fleet::{Fleet, FleetRules, FleetSettings, OpenError};
use roost_hypershift_sim::{Boot, Guests, Hypershift, Isos, SimSettings, neighbour_crds};
use roost_kube_sim::{KubeSim, Options as KubeOptions};
use roost_vcenter_sim::{Options, Power, Timings, Vcenter};
use roost_views::RequestState;
use roost_vim::wire::methods::CreateFolder;
use roost_vim::{Body, CallClass, Client, Credentials, SendFuture, Settings, Transport};
use serde_json::json;

use super::Demo;
use super::door_tricks::DoorTricks;
use super::objects::{Narrator, play};
use super::report::Check;

pub(super) const NAMESPACE: &str = "blue";
pub(super) const POOL: &str = "blue-gp";
const MOST: usize = 3;
const LEAST: usize = 1;

/// The vCenter of the demo, in this process.
#[derive(Debug, Clone)]
pub(super) struct InProcess(pub(super) Vcenter);

impl Transport for InProcess {
    fn send(&self, request: http::Request<Body>) -> SendFuture {
        let vcenter = self.0.clone();
        Box::pin(async move { vcenter.handle(request).await })
    }
}

impl Connect for InProcess {
    fn connect(&self, login: &Login) -> Connecting {
        let (login, transport) = (login.clone(), Arc::new(self.clone()));
        Box::pin(async move {
            let mut vcenter = login.settings().map_err(OpenError::unusable)?;
            // Deletions want a second look; somebody who watches should not wait a minute for it.
            vcenter.stream.max_wait = Duration::from_secs(1);
            Fleet::open(FleetSettings {
                vcenter,
                transport,
                clock: Arc::new(SystemClock),
                doors: vec![Arc::new(ForgeVms)],
                phases: None,
                rules: FleetRules::default(),
            })
            .await
        })
    }
}

impl Guests for InProcess {
    fn boots(&self) -> Vec<Boot> {
        let boots = self.0.guest_boots().into_iter();
        boots.map(|it| Boot { vm: it.vm, uuid: it.uuid, macs: it.macs, iso: it.iso }).collect()
    }

    fn is_running(&self, uuid: &str) -> bool {
        let names = self.0.vm_names().into_iter();
        let mut vms = names.filter_map(|name| self.0.vm(&name));
        vms.any(|vm| vm.uuid == uuid && vm.power == Power::On)
    }
}

/// What the assisted service offers, without a socket.
#[derive(Debug)]
pub(super) struct Shelf(pub(super) Isos);

impl IsoSource for Shelf {
    fn fetch<'a>(&'a self, url: &'a str, known: Option<&'a str>) -> Fetch<'a> {
        Box::pin(async move {
            let offered = self.0.read(url);
            let Some((content, mark)) = offered else {
                return Err(SourceError::Status { status: 503 });
            };
            if known == Some(mark.as_str()) {
                return Ok(Fetched::Unchanged);
            }
            let length = Some(content.len() as u64);
            let body = Full::new(content).map_err(|never| match never {}).boxed();
            Ok(Fetched::Content { length, mark: Some(mark), body })
        })
    }
}

pub(super) async fn run(args: &Demo) -> anyhow::Result<ExitCode> {
    let seed = args.seed.unwrap_or_default();
    let kube =
        KubeSim::start(KubeOptions { seed, ..KubeOptions::default() }, Arc::new(SystemClock));
    let options = Options { seed, timings: Timings::realistic(), ..Options::default() };
    let vcenter = InProcess(Vcenter::start(options, Arc::new(SystemClock)));
    let others = vcenter.0.vm_names();
    let client = kube.client();
    install_crds(&client, &crds()?, "demo").await.context("the definitions")?;
    install_crds(&client, &neighbour_crds(), "demo")
        .await
        .context("the neighbours' definitions")?;
    let isos = Isos::default();
    let url = isos.publish("http://assisted.demo", "blue-env", "a discovery ISO".into());
    let settings = SimSettings {
        registers_after: Duration::from_secs(5),
        installs_in: Duration::from_secs(3),
        deletes_in: Duration::from_secs(3),
        tick: Duration::from_millis(500),
        ..SimSettings::new(NAMESPACE, POOL)
    };
    let guests = Arc::new(vcenter.clone());
    let neighbours = Hypershift::new(client.clone(), settings, isos.clone(), guests);
    neighbours.set_up(&url).await.context("the neighbours")?;
    make_folder(&vcenter, Arc::new(SystemClock)).await?;
    furnish(&client).await?;
    let parts = ForgeParts {
        client: client.clone(),
        connect: Arc::new(vcenter.clone()),
        isos: Arc::new(Shelf(isos)),
        clock: Arc::new(SystemClock),
        random: Random::from_seed(seed),
        lease: None,
        machine_version: machine_version(&client).await?,
    };
    let forge = Forge::new(parts, &mut Registry::default());
    let (door, sites) = (Arc::new(forge.door()), forge.sites());
    let open = move || sites.open_ones().into_iter().map(|site| site.fleet).collect();
    let core = Arc::new(FleetCore::new(WORDS, open));
    let running = neighbours.clone();
    let around = tokio::spawn(async move { running.run().await });
    let working = tokio::spawn(forge.run(std::future::pending()));

    let seen = Arc::clone(&door);
    let tricks = DoorTricks { kube, vcenter: Some(vcenter.0.clone()), host: None };
    let story = async move |narrator: &mut Narrator| {
        let mut checks = tell(narrator, &*seen, &neighbours, &vcenter.0).await?;
        let left = vcenter.0.vm_names();
        checks.extend([
            Check::new("one login to the vCenter", vcenter.0.counters().calls_of("Login") == 1),
            Check::new(
                "the VMs of the machines that went are gone, and no other",
                left.len() == others.len() + LEAST && others.iter().all(|vm| left.contains(vm)),
            ),
        ]);
        Ok(checks)
    };
    let code = play(args, door, Some(core), tricks, story).await;
    working.abort();
    around.abort();
    code
}

/// A NodePool is scaled up, and down again.
pub(super) async fn tell(
    narrator: &mut Narrator,
    door: &dyn FrontDoor,
    neighbours: &Hypershift,
    vcenter: &Vcenter,
) -> anyhow::Result<Vec<Check>> {
    let nodes = || {
        let all = door.requests();
        all.iter().filter(|request| request.state == RequestState::Working).count()
    };
    let vms = || {
        let names = vcenter.vm_names();
        names.into_iter().filter(|name| name.starts_with(POOL)).count()
    };
    narrator.says(&format!("NodePool {POOL} is scaled to {MOST}"));
    neighbours.scale(MOST);
    narrator.until("the nodes", || nodes() == MOST).await?;
    let made = vms();
    narrator.says(&format!("NodePool {POOL} is scaled to {LEAST}"));
    neighbours.scale(LEAST);
    let is_small = || vms() == LEAST && door.vms().len() == LEAST;
    narrator.until("what is left over to go", is_small).await?;
    Ok(vec![Check::new(format!("one VM was made for each of {MOST} AgentMachines"), made == MOST)])
}

/// Where the VMs go: a folder of the hosted cluster's name.
pub(super) async fn make_folder(vcenter: &InProcess, clock: Arc<dyn Clock>) -> anyhow::Result<()> {
    let settings = Settings::new("vc.demo", Credentials::new("admin", "demo"))?;
    let door = Arc::new(vcenter.clone());
    let admin =
        Client::connect(settings, door, clock).await.context("signing in to the vCenter")?;
    let this = vcenter.0.find("/DC0/vm").context("the datacenter")?;
    let call = CreateFolder { this, name: NAMESPACE.to_owned() };
    admin.change(CallClass::Submit, &call).await.context("making a folder")?;
    admin.shutdown().await;
    vcenter.0.reset_counters();
    Ok(())
}

/// The login and the pool.
pub(super) async fn furnish(client: &kube::Client) -> anyhow::Result<()> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vc-login", "namespace": NAMESPACE},
        "stringData": {"server": "vc.demo", "username": "forge", "password": "demo"}});
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
    let pool = json!({
        "apiVersion": "agent-forge.containeroo.ch/v1alpha1", "kind": "VsphereAgentPool",
        "metadata": {"name": POOL, "namespace": NAMESPACE},
        "spec": {
            "hostedClusterRef": {"name": NAMESPACE}, "nodePoolRef": {"name": POOL}, "infraEnvRef": {"name": "blue-env"},
            "controlPlaneNamespace": "blue-blue",
            "vsphere": {"credentialsSecretRef": {"name": "vc-login"}, "datacenter": "DC0", "datastore": "LocalDS_0",
                "isoDatastore": "LocalDS_0", "resourcePool": "DC0_C0/Resources", "network": "VM Network"},
            "template": {"numCPUs": 4, "memoryMiB": 16384, "diskGiB": 120},
            "agent": {"labels": {"tenant": NAMESPACE}},
        },
    });
    let pools: Api<VsphereAgentPool> = Api::namespaced(client.clone(), NAMESPACE);
    pools.create(&PostParams::default(), &serde_json::from_value(pool)?).await?;
    Ok(())
}
