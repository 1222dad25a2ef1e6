//! What surrounds hatcheries: a vCenter with templates and strangers' VMs, a CDS API, guests, and one clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use roost_cds::v1::{Model, ModelPath, VirtualMachine};
use roost_cds::{Secret, v2};
use roost_cds_sim::CdsApi;
use roost_clock::{Clock, SimClock};
use roost_vcenter_sim::{
    Credentials, GuestProgram, Options, Power, TemplateOptions, Timings, Vcenter, VmGlance, VmView,
};
use roost_vim::wire::MoRef;
use roost_vim::{Client, CloneVm, DiskCopy, NicAddress, Settings};
use serde_json::json;

use super::doors::{Fuse, VcenterDoor};
use super::guests::Guests;
use super::setup::{GUEST_PASSWORD, token, token_v2};
use super::truth::Note;

/// V2 models by their paths.
pub(crate) const DEBIAN: &str = "PROJ/github/org/repo/debian12";
pub(crate) const UBUNTU: &str = "PROJ/github/org/repo/ubuntu24";

const HATCHERIES: [&str; 3] = ["hv1", "hv2", "hv3"];

#[derive(Debug, Clone)]
pub(crate) struct WorldOptions {
    pub(crate) seed: u64,
    /// VMs of strangers, powered on.
    pub(crate) strangers: usize,
    pub(crate) timings: Timings,
    pub(crate) cds: roost_cds_sim::Options,
    /// What else the vCenter is.
    pub(crate) datacenters: usize,
    pub(crate) host_cores: Option<i16>,
    pub(crate) host_memory_gb: Option<i64>,
    pub(crate) event_retention: usize,
}

impl WorldOptions {
    pub(crate) fn seed(seed: u64) -> Self {
        Self {
            seed,
            strangers: 3,
            timings: Timings::realistic(),
            cds: roost_cds_sim::Options::new(seed),
            datacenters: 1,
            host_cores: None,
            host_memory_gb: None,
            event_retention: 10_000,
        }
    }
}

impl Default for WorldOptions {
    fn default() -> Self {
        Self::seed(1)
    }
}

pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) clock: Arc<SimClock>,
    /// That of the machines that hatcheries run on.
    pub(crate) machine_clock: Arc<SettableClock>,
    pub(crate) vcenter: Vcenter,
    pub(crate) cds: CdsApi,
    pub(crate) guests: Guests,
    /// As they were at the start.
    pub(crate) strangers: Vec<VmView>,
}

/// A clock that somebody sets.
#[derive(Debug)]
pub(crate) struct SettableClock {
    clock: SimClock,
    ahead: AtomicI64,
}

impl SettableClock {
    pub(crate) fn set_ahead(&self, by: Duration) {
        self.ahead.fetch_add(i64::try_from(by.as_secs()).unwrap(), Ordering::SeqCst);
    }

    pub(crate) fn set_back(&self, by: Duration) {
        self.ahead.fetch_sub(i64::try_from(by.as_secs()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for SettableClock {
    fn now(&self) -> jiff::Timestamp {
        self.clock.now() + jiff::SignedDuration::from_secs(self.ahead.load(Ordering::SeqCst))
    }
}

/// A VM as CDS's own hatchery left it.
#[derive(Debug, Clone)]
pub(crate) struct GoVm<'a> {
    pub(crate) name: &'a str,
    pub(crate) annotation: String,
    pub(crate) power: Power,
    pub(crate) address: Option<std::net::Ipv4Addr>,
}

impl World {
    pub(crate) fn start(options: WorldOptions) -> Self {
        let clock = Arc::new(SimClock::new());
        let seed = options.seed;
        let vcenter = Vcenter::start(
            Options {
                datacenters: options.datacenters,
                clusters: 1,
                standalone_hosts: 0,
                vms: options.strangers,
                templates: vec![template("debian12", 2, 2048), template("ubuntu24", 2, 4096)],
                host_cores: options.host_cores,
                host_memory_gb: options.host_memory_gb,
                event_retention: options.event_retention,
                timings: options.timings,
                seed,
                ..Options::default()
            },
            clock.clone(),
        );
        let cds = HATCHERIES.iter().fold(options.cds, |options, name| {
            options.consumer(name, token(name)).hatchery(name, token_v2(name), "default")
        });
        let cds = CdsApi::start(cds, clock.clone()).unwrap();
        for (path, template) in [(DEBIAN, "debian12"), (UBUNTU, "ubuntu24")] {
            cds.add_v2_model(&v2::AsCodePath::parse(path).unwrap(), v2_model(template));
        }
        let guests = Guests::new(&cds, &clock);
        let script = guests.clone();
        vcenter.script_guests(move |program: &GuestProgram| script.run(program));
        let named = |vm: &VmGlance| vcenter.vm(&vm.name);
        let strangers =
            vcenter.glance().iter().filter(|vm| !vm.template).filter_map(named).collect();
        let machine_clock = Arc::new(SettableClock { clock: *clock, ahead: AtomicI64::new(0) });
        Self { seed, clock, machine_clock, vcenter, cds, guests, strangers }
    }

    /// The VMs of one hatchery, templates aside.
    pub(crate) fn vms_of(&self, hatchery: &str) -> Vec<VmGlance> {
        let is_own = |vm: &VmGlance| {
            !vm.template && Note::of(vm).is_some_and(|note| note.hatchery_name == hatchery)
        };
        self.vcenter.glance().into_iter().filter(is_own).collect()
    }

    pub(crate) fn vm_named(&self, name: &str) -> Option<VmGlance> {
        self.vcenter.glance().into_iter().find(|vm| *vm.name == *name)
    }

    /// Somebody else at the same vCenter, who may do as they like.
    pub(crate) async fn colleague(&self, user: &str) -> Client {
        let settings =
            Settings::new("vcenter.invalid", roost_vim::Credentials::new(user, "pass")).unwrap();
        let door = VcenterDoor { vcenter: self.vcenter.clone(), fuse: Fuse::new(None) };
        Client::connect(settings, Arc::new(door), self.clock.clone()).await.unwrap()
    }

    /// A VM that is not a hatchery's doing: a clone of `debian12` with this annotation, in this state.
    pub(crate) async fn make_vm(&self, client: &Client, vm: GoVm<'_>) -> MoRef {
        let find = |path: &str| self.vcenter.find(path).unwrap();
        let template = client.template_facts(&find("/DC0/vm/debian12")).await.unwrap();
        let mut customization = roost_vim::Customization::linux("");
        customization.nics.extend(vm.address.map(|address| NicAddress::Fixed {
            address,
            subnet_mask: std::net::Ipv4Addr::new(255, 255, 255, 0),
            gateways: Vec::new(),
        }));
        let request = CloneVm {
            annotation: Some(vm.annotation),
            disks: DiskCopy::ShareParents,
            power_on: vm.power == Power::On,
            customization: Some(customization),
            ..CloneVm::new(find("/DC0/vm"), vm.name, find("/DC0/host/DC0_C0/Resources"))
        };
        client.clone_vm(&template, &request).await.unwrap()
    }

    /// A V1 model on the base image `debian12`, which nobody has registered yet.
    pub(crate) fn v1_model(&self, name: &str) -> ModelPath {
        let machine = VirtualMachine {
            image: "debian12".into(),
            cmd: "worker".into(),
            post_cmd: "sudo shutdown -h now".into(),
            user: "cds".into(),
            password: "{{.secrets.vsphere_password}}".into(),
            ..VirtualMachine::default()
        };
        let model = Model {
            name: name.into(),
            model_type: "vsphere".into(),
            need_registration: true,
            model_virtual_machine: machine,
            ..Model::default()
        };
        self.cds.add_model(model, vec![("secrets.vsphere_password", Secret::from(GUEST_PASSWORD))])
    }

    /// How often the vCenter was asked for this.
    pub(crate) fn calls_of(&self, method: &str) -> u64 {
        self.vcenter.counters().calls_of(method)
    }
}

fn template(name: &str, cpus: i32, memory_mb: i64) -> TemplateOptions {
    let credentials = Credentials { user: "cds".into(), password: GUEST_PASSWORD.into() };
    TemplateOptions {
        cpus,
        memory_mb,
        guest_credentials: Some(credentials),
        ..TemplateOptions::new(name)
    }
}

fn v2_model(template: &str) -> v2::Model {
    v2::Model {
        name: template.into(),
        os_arch: "linux/amd64".into(),
        model_type: "vsphere".into(),
        spec: v2::ModelSpec(json!({"image": template})),
        ..v2::Model::default()
    }
}
