//! `roost run` against govmomi's `vcsim`, a vCenter that we did not write, as far as that one goes: it clones, customizes and powers on. It
//! has no guests to start programs in, so that every start ends in the failure path.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod wire;

use std::net::IpAddr;
use std::sync::Arc;

use roost_clock::SystemClock;
use roost_hatchery::annotation::Annotation;
use roost_oracle::{Vcsim, VcsimOptions};
use roost_vim::wire::methods::ReconfigVmTask;
use roost_vim::wire::types::{OptionValue, VirtualMachineConfigSpec};
use roost_vim::wire::{MoRef, Value as WireValue};
use roost_vim::{Client, Credentials, HttpTransport, Reconfigure, Settings, TlsTrust};
use serde_json::{Value, json};
use tokio::time::Instant;
use wire::{CdsSim, Service, Site, Vm, account, comes_true, within};

const HATCHERY: &str = "roost";
/// Not the one that vcsim's own VMs are in.
const NETWORK: &str = "VM Network";

const VSPHERE: &str = r#"
finishedWorkerGracePeriod = 1
killAwolServersInterval = 2

[[hatchery.vsphere.networks]]
iprange = "10.78.0.0/28"
gateway = "10.78.0.1"
subnetMask = "255.255.255.240"

[[hatchery.vsphere.flavors]]
name = "large"
cpus = 4
memoryMB = 512
"#;

/// One attempt, so that the first failure is the last word.
const PROVISION: &str = "maxAttemptsNumberBeforeFailure = 1";

/// vcsim with a template, the CDS simulator, and the service between them.
struct Scene {
    site: Site,
    cds: CdsSim,
    client: Client,
    network: MoRef,
    /// Somebody else's VM that is changed while the test runs.
    neighbour: MoRef,
    foreign: Vec<Vm>,
    service: Service,
    _vcsim: Heard,
}

/// vcsim answers no more. It locks its own objects in different orders when it adds a VM to a view and when it looks for what has changed
/// there; once in a while the two wait for each other for ever.
#[derive(Debug)]
struct Stuck(anyhow::Error);

impl<E: Into<anyhow::Error>> From<E> for Stuck {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// vcsim, whose complaints are shown when the test fails: a request can make it panic, and then it ends.
struct Heard(Vcsim);

impl Drop for Heard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("-- vcsim\n{}", self.0.stderr());
        }
    }
}

impl Scene {
    async fn set(name: &str) -> Option<Self> {
        let options =
            VcsimOptions { vms: 3, standalone_hosts: 0, tls: true, ..VcsimOptions::default() };
        let vcsim = tokio::task::spawn_blocking(|| Vcsim::start(options)).await.unwrap()?;
        let client = connect(&vcsim).await;
        make_template(&client).await;
        let finder = client.finder("DC0").await.unwrap();
        let network = finder.network(NETWORK).await.unwrap().moref;
        let neighbour = finder.vm("DC0_C0_RP0_VM2").await.unwrap().moref;
        let mut foreign = Vm::read_all(&client).await;
        foreign.retain(|vm| vm.moref != neighbour);
        let site = Site::new(name);
        let cds = CdsSim::start(&site, &[]);
        let vcenter = format!(
            "user = \"{}\"\npassword = \"{}\"\nendpoint = \"{}\"\ninsecure = true\n\
             datacenterString = \"DC0\"\nnetworkString = \"{NETWORK}\"\n",
            vcsim.username(),
            vcsim.password(),
            vcsim.endpoint(),
        );
        site.write_config_for(&vcenter, &cds, VSPHERE, PROVISION);
        let service = Service::start(&site);
        let vcsim = Heard(vcsim);
        Some(Self { site, cds, client, network, neighbour, foreign, service, _vcsim: vcsim })
    }

    async fn until(
        &self,
        what: &str,
        mut holds: impl AsyncFnMut() -> Result<bool, Stuck>,
    ) -> Result<(), Stuck> {
        let mut stuck = None;
        let came = comes_true(within(300), async || match holds().await {
            Ok(holds) => holds,
            Err(error) => {
                stuck = Some(error);
                true
            }
        });
        if !came.await {
            let told = account(&self.site, &self.cds, &self.client, Some(&self.service)).await;
            panic!("not in time: {what}{told}");
        }
        stuck.map_or(Ok(()), Err)
    }

    /// All but the neighbour.
    async fn vms(&self) -> Result<Vec<Vm>, Stuck> {
        let mut vms = match Vm::try_read_all(&self.client).await {
            Ok(vms) => vms,
            // A VM that goes in the meantime may fail the whole read.
            Err(_) => Vm::try_read_all(&self.client).await?,
        };
        vms.retain(|vm| vm.moref != self.neighbour);
        Ok(vms)
    }

    async fn change_neighbour(&self) -> Result<(), Stuck> {
        let change = Reconfigure::annotation("made by hand");
        Ok(self.client.reconfigure(&self.neighbour, &change).await?)
    }

    /// The VM of a job, with what it says of itself.
    async fn vm_of(&self, job: &str) -> Result<Option<(Vm, Annotation)>, Stuck> {
        let vms = self.vms().await?.into_iter();
        let mut own =
            vms.filter_map(|vm| vm.of_hatchery(HATCHERY).map(|annotation| (vm, annotation)));
        Ok(own.find(|(_, annotation)| annotation.job_id == job))
    }

    /// The VM of a job, running and customized.
    async fn running_vm_of(&self, job: &str) -> Result<(Vm, Annotation), Stuck> {
        let has_vm = async || {
            let vm = self.vm_of(job).await?;
            Ok(vm.is_some_and(|(vm, _)| vm.is_on && vm.address.is_some()))
        };
        self.until("the job has a VM with an address", has_vm).await?;
        Ok(self.vm_of(job).await?.unwrap())
    }

    /// What the service has decided last about a VM.
    async fn last_decision_about(&self, vm: &Vm) -> Value {
        let decisions = self.service.http.get("api/v1/decisions").await;
        let is_about = |decision: &&Value| decision["subject"] == *vm.moref.id;
        decisions.as_array().unwrap().iter().rev().find(is_about).cloned().unwrap_or_default()
    }
}

async fn connect(vcsim: &Vcsim) -> Client {
    let credentials = Credentials::new(vcsim.username(), vcsim.password());
    let settings = Settings::new(&vcsim.endpoint(), credentials).unwrap();
    let transport = Arc::new(HttpTransport::new(&TlsTrust::Insecure).unwrap());
    Client::connect(settings, transport, Arc::new(SystemClock)).await.unwrap()
}

/// vcsim has none at the start.
async fn make_template(client: &Client) {
    let finder = client.finder("DC0").await.unwrap();
    let vm = finder.vm("DC0_C0_RP0_VM0").await.unwrap().moref;
    client.power_off(&vm).await.unwrap();
    client.rename(&vm, "debian12").await.unwrap();
    client.mark_as_template(&vm).await.unwrap();
}

/// vcsim takes values of properties from `SET.` keys: its guests never say by themselves that programs can be started in them.
async fn pretend_ready(client: &Client, vm: &MoRef) -> Result<(), Stuck> {
    let ready = OptionValue {
        key: "SET.guest.guestOperationsReady".into(),
        value: Some(WireValue::Bool(true)),
    };
    let extra_config = vec![ready];
    let spec = VirtualMachineConfigSpec { extra_config, ..VirtualMachineConfigSpec::default() };
    client.submit(&ReconfigVmTask { this: vm.clone(), spec }).await?.wait().await?;
    Ok(())
}

/// Has an address of the range, without network, broadcast and gateway.
fn is_in_range(vm: &Vm) -> bool {
    matches!(vm.address, Some(IpAddr::V4(v4)) if matches!(v4.octets(), [10, 78, 0, 2..=14]))
}

/// How often vcsim may get stuck.
const ATTEMPTS: usize = 4;

#[tokio::test]
async fn vms_are_made_as_wished_and_where_guests_are_missing_everything_is_given_back() {
    for _ in 0..ATTEMPTS {
        let Some(scene) = Scene::set("vcsim-spawn").await else { return };
        match start_two_workers(&scene).await {
            Ok(()) => {
                assert_eq!(scene.service.process.interrupt().0, Some(0));
                return scene.client.shutdown().await;
            }
            Err(Stuck(why)) => {
                eprintln!("vcsim is stuck, and started anew: {why:#}");
                scene.service.process.kill();
            }
        }
    }
    panic!("vcsim got stuck {ATTEMPTS} times");
}

async fn start_two_workers(scene: &Scene) -> Result<(), Stuck> {
    let large = scene.cds.add_job("v2", &json!({"flavor": "large"})).await;
    let (large_vm, said) = scene.running_vm_of(&large).await?;
    assert_eq!(large_vm.name, said.worker_name);
    assert_eq!((large_vm.cpus, large_vm.memory_mb), (Some(4), Some(512)));
    assert_eq!(large_vm.networks, std::slice::from_ref(&scene.network));
    assert_eq!(large_vm.address, said.address(), "its customization");
    assert_eq!(scene.cds.status(&large).await, "Scheduling");

    let plain = scene.cds.add_job("v1", &json!({})).await;
    let (plain_vm, said) = scene.running_vm_of(&plain).await?;
    assert_eq!(plain_vm.address, said.address(), "its customization");
    assert_ne!(plain_vm.address, large_vm.address);
    assert!(is_in_range(&large_vm) && is_in_range(&plain_vm), "{large_vm:?} {plain_vm:?}");
    assert_eq!(scene.cds.job(&plain).await["hatchery"], HATCHERY);

    // One guest is said to be ready and takes no program; the other never is, and somebody powers it off.
    pretend_ready(&scene.client, &large_vm.moref).await?;
    scene.client.power_off(&plain_vm.moref).await?;
    let given_back = json!([HATCHERY]);
    let is_given_back = async || Ok(scene.cds.job(&large).await["releases"] == given_back);
    scene.until("the V2 job is given back", is_given_back).await?;
    assert_eq!(scene.cds.status(&large).await, "Waiting");
    let has_failed = async || Ok(scene.cds.status(&plain).await == "Fail");
    scene.until("the V1 job has failed for good", has_failed).await?;
    assert_eq!(scene.cds.job(&plain).await["releases"], given_back);

    let mut next_change = Instant::now();
    let is_clean = async || {
        // In a datacenter where nothing happens, what has to be seen twice waits for a minute.
        if Instant::now() >= next_change {
            scene.change_neighbour().await?;
            next_change = within(5);
        }
        Ok(scene.vms().await? == scene.foreign)
    };
    scene.until("only what was there before is there", is_clean).await?;
    for (vm, step) in [(&large_vm, "probing"), (&plain_vm, "booting")] {
        let is_recorded = async || Ok(scene.last_decision_about(vm).await["verdict"] == "deleted");
        scene.until("the deletion is recorded", is_recorded).await?;
        let decision = scene.last_decision_about(vm).await;
        let reason = decision["reason"].as_str().unwrap();
        assert!(reason.contains("marked for deletion") && reason.contains(step), "{decision}");
    }
    for job in [&large, &plain] {
        let job = scene.cds.job(job).await;
        assert_eq!((&job["workers"], &job["executions"]), (&json!([]), &json!([])), "{job}");
    }
    Ok(())
}
