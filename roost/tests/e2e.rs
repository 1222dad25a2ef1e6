//! Roost end to end: `roost run` between `roost sim vcenter` and `roost sim cds`, over the wire.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod stress;
mod wire;

use std::collections::BTreeSet;
use std::net::IpAddr;

use roost_hatchery::annotation::Annotation;
use roost_vim::{Client, CloneVm, Reconfigure};
use serde_json::{Value, json};
use wire::{CdsSim, Service, Site, VcenterSim, Vm, account, comes_true, within};

/// Signed in with the name that `roost sim cds` lets in.
const HATCHERY: &str = "roost";
const MAX_WORKERS: usize = 5;
const SPARES: usize = 2;

/// Somebody else's VM that is changed all the time.
const NEIGHBOUR: &str = "busy-bohr";

/// Everything that is waited for without need is short; everything that guards against doubles is as it ships.
const VSPHERE: &str = r#"
dns = "10.77.0.1"
finishedWorkerGracePeriod = 1
killAwolServersInterval = 2
workerProvisioningInterval = 5
workerProvisioningPoolSize = 2

[[hatchery.vsphere.networks]]
iprange = "10.77.0.0/27"
gateway = "10.77.0.1"
subnetMask = "255.255.255.224"

[[hatchery.vsphere.flavors]]
name = "small"
cpus = 1
memoryMB = 1024

[[hatchery.vsphere.flavors]]
name = "large"
cpus = 4
memoryMB = 4096

[[hatchery.vsphere.workerProvisioning]]
modelVMWare = "debian12"
number = 2
"#;

/// Those of the range, without network, broadcast and gateway.
fn may_have(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(v4) if matches!(v4.octets(), [10, 77, 0, 2..=30]))
}

/// Both simulators with VMs that are none of ours, and the service between them.
struct Scene {
    site: Site,
    vcenter: VcenterSim,
    cds: CdsSim,
    client: Client,
    foreign: Vec<Vm>,
    service: Option<Service>,
}

impl Scene {
    async fn set(name: &str) -> Self {
        let site = Site::new(name);
        let vcenter = VcenterSim::start(&site, &["--vms", "3", "--pace", "quick"]);
        // A job that was taken in the last moment of a process has no VM, and waits for one again after this long.
        let cds = CdsSim::start(&site, &["--scheduling-timeout", "30", "--booking", "20"]);
        let workers =
            format!("maxWorker = {MAX_WORKERS}\nmaxConcurrentProvisioning = {MAX_WORKERS}");
        site.write_config(&vcenter, &cds, VSPHERE, &workers);
        let client = vcenter.client().await;
        add_foreign_vms(&client).await;
        let mut foreign = Vm::read_all(&client).await;
        foreign.retain(|vm| vm.name != NEIGHBOUR);
        Self { site, vcenter, cds, client, foreign, service: None }
    }

    fn start(&mut self) {
        self.service = Some(Service::start(&self.site));
    }

    fn kill(&mut self) {
        self.service.take().unwrap().process.kill();
    }

    /// Queues jobs, each with a protocol and a flavor or none. Returns their ids.
    async fn queue(&self, takes_ms: u64, jobs: &[(&str, &str)]) -> Vec<String> {
        let mut ids = Vec::new();
        for (protocol, flavor) in jobs {
            let mut demand = json!({ "takes_ms": takes_ms });
            if !flavor.is_empty() {
                demand["flavor"] = json!(flavor);
            }
            ids.push(self.cds.add_job(protocol, &demand).await);
        }
        ids
    }

    /// How many of these jobs are as `status` says.
    async fn count(&self, jobs: &[String], status: &str) -> usize {
        let mut count = 0;
        for job in jobs {
            count += usize::from(self.cds.status(job).await == status);
        }
        count
    }

    async fn counts(&self) -> Value {
        self.cds.control.get("summary").await
    }

    /// How often a method of the vCenter was called.
    async fn calls(&self, method: &str) -> u64 {
        self.vcenter.control.get("counters").await["calls"][method].as_u64().unwrap_or(0)
    }

    /// Waits until something holds. What must hold at every moment is looked at on the way.
    async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let came = comes_true(within(300), async || {
            if let Err(wrong) = self.look().await {
                panic!("{wrong}, while waiting: {what}{}", self.account().await);
            }
            holds().await
        });
        assert!(came.await, "not in time: {what}{}", self.account().await);
    }

    async fn account(&self) -> String {
        account(&self.site, &self.cds, &self.client, self.service.as_ref()).await
    }

    /// VMs of ours, each with what it says of itself.
    async fn own(&self) -> Vec<(Vm, Annotation)> {
        let vms = Vm::read_all(&self.client).await.into_iter();
        vms.filter_map(|vm| vm.of_hatchery(HATCHERY).map(|annotation| (vm, annotation))).collect()
    }

    async fn look(&self) -> Result<(), String> {
        let counts = self.counts().await;
        for never in ["failed", "vanished", "double_workers"] {
            if counts[never] != 0 {
                return Err(format!("{never}: {}", counts[never]));
            }
        }
        let own = self.own().await;
        let (mut addresses, mut jobs) = (BTreeSet::new(), BTreeSet::new());
        for (vm, annotation) in &own {
            let name = &vm.name;
            match annotation.address() {
                Some(address) if !may_have(address) => {
                    return Err(format!("{name} has {address}, which is not in the range"));
                }
                Some(address) if !addresses.insert(address) => {
                    return Err(format!("{address} is there twice"));
                }
                Some(_) => {}
                None => return Err(format!("{name} has no address")),
            }
            let is_given_up = annotation.doomed.is_some();
            if !annotation.job_id.is_empty() && !is_given_up && !jobs.insert(&annotation.job_id) {
                return Err(format!("job {} has two VMs", annotation.job_id));
            }
        }
        let workers = own.iter().filter(|(vm, annotation)| vm.is_on && !annotation.provisioning);
        match workers.count() {
            0..=MAX_WORKERS => Ok(()),
            more => Err(format!("{more} workers")),
        }
    }

    /// Others work in the datacenter as well. In one where nothing happens, each side confirms its view only once in a minute, and what has
    /// to be seen twice waits for that.
    async fn change_neighbour(&self) {
        let finder = self.client.finder("DC0").await.unwrap();
        let vm = finder.vm(NEIGHBOUR).await.unwrap().moref;
        let change = Reconfigure::annotation("made by hand");
        self.client.reconfigure(&vm, &change).await.unwrap();
    }

    /// Whether there is nothing in the vCenter but what was there before and the spares.
    async fn is_at_rest(&self) -> bool {
        let mut vms = Vm::read_all(&self.client).await;
        let count = vms.len();
        vms.retain(|vm| vm.name != NEIGHBOUR);
        assert_eq!(vms.len() + 1, count, "there is one {NEIGHBOUR}");
        let (foreign, ours): (Vec<_>, Vec<_>) =
            vms.into_iter().partition(|vm| vm.of_hatchery(HATCHERY).is_none());
        let is_spare = |vm: &Vm| {
            let annotation = vm.of_hatchery(HATCHERY).unwrap();
            annotation.provisioning && annotation.doomed.is_none() && !vm.is_on
        };
        foreign == self.foreign && ours.len() == SPARES && ours.iter().all(is_spare)
    }
}

/// VMs that a careless hatchery could take for its own.
async fn add_foreign_vms(client: &Client) {
    let finder = client.finder("DC0").await.unwrap();
    let template = finder.template("debian12").await.unwrap().moref;
    let template = client.template_facts(&template).await.unwrap();
    let folder = finder.vm_folder("").await.unwrap().moref;
    let pool = finder.resource_pool("").await.unwrap().moref;
    let doomed = r#"{"hatchery_name":"other","worker_name":"calm-noether","to_delete":true}"#;
    let spare = r#"{"hatchery_name":"other","provisioning":true,"vmware_model_path":"debian12","ip_address":"10.77.0.9"}"#;
    for (name, annotation) in [
        ("calm-noether", doomed),
        ("provision-v2-ip-10-77-0-9-of-another", spare),
        (NEIGHBOUR, "made by hand"),
    ] {
        let mut request = CloneVm::new(folder.clone(), name, pool.clone());
        request.annotation = Some(annotation.to_owned());
        client.clone_vm(&template, &request).await.unwrap();
    }
}

#[tokio::test]
async fn every_job_is_done_once_although_the_service_is_killed_twice() {
    let mut scene = Scene::set("e2e-killed-twice").await;
    let slow = json!({"method": "CloneVM_Task", "action": {"delayTaskMs": 3000}});
    scene.vcenter.control.post("rules", &slow).await;
    let before = scene.calls("CloneVM_Task").await;
    let jobs = [("v2", ""), ("v1", ""), ("v2", "small"), ("v1", "large"), ("v2", "")];
    let first = scene.queue(500, &jobs).await;
    scene.start();
    let are_cloned = async || scene.calls("CloneVM_Task").await >= before + 4;
    scene.until("workers and spares are being cloned", are_cloned).await;
    scene.kill();

    scene.vcenter.control.delete("rules").await;
    let long = scene.queue(4000, &[("v2", "small"), ("v1", ""), ("v2", ""), ("v2", "")]).await;
    scene.start();
    let work = async || scene.count(&long, "Building").await >= 2;
    scene.until("workers are at work on long jobs", work).await;
    scene.kill();

    let last = scene.queue(500, &[("v2", ""), ("v1", "small"), ("v2", "large")]).await;
    let has_ended = async || scene.count(&long, "Success").await >= 1;
    scene.until("a worker ends while nobody looks", has_ended).await;
    scene.start();
    let jobs = [first, long, last].concat();
    let are_done = async || scene.count(&jobs, "Success").await == jobs.len();
    scene.until("every job is done", are_done).await;
    for job in scene.cds.control.get("jobs").await.as_array().unwrap() {
        assert_eq!(job["executions"].as_array().unwrap().len(), 1, "{job}");
    }
    let is_at_rest = async || {
        scene.change_neighbour().await;
        scene.is_at_rest().await
    };
    scene.until("nothing is left but the spares", is_at_rest).await;

    let service = scene.service.take().unwrap();
    assert_eq!(service.process.interrupt().0, Some(0));
    assert!(scene.is_at_rest().await, "after its end{}", scene.account().await);
    scene.client.shutdown().await;
}
