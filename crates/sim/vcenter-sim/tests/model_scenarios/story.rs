//! Words that the stories share.

use std::time::Duration;

use roost_vcenter_sim::{GuestProgram, Options, Power, TemplateOptions, Timings, VmView};
use roost_vim_wire::methods::{
    CloneVmTask, CreateVmTask, DestroyTask, PowerOffVmTask, PowerOnVmTask, ReconfigVmTask,
};
use roost_vim_wire::types::{
    CustomizationAdapterMapping, CustomizationGlobalIPSettings, CustomizationIPSettings,
    CustomizationIdentitySettings, CustomizationIpGenerator, CustomizationName, CustomizationSpec,
    GuestProgramSpec, Hidden, NamePasswordAuthentication, Password, VirtualMachineCloneSpec,
    VirtualMachineConfigSpec, VirtualMachineFileInfo, VirtualMachineRelocateSpec,
};
use roost_vim_wire::{Fault, MoRef, Value, methods};

use crate::lab::{Client, Lab};

/// A datacenter with two templates and no other VMs.
pub(crate) fn options() -> Options {
    Options {
        vms: 0,
        templates: vec![
            TemplateOptions::new("debian12"),
            TemplateOptions { snapshot: false, ..TemplateOptions::new("flat") },
        ],
        // Stories may have long silences.
        session_idle_limit: Duration::from_hours(1000),
        ..Options::default()
    }
}

pub(crate) fn instant() -> Options {
    Options { timings: Timings::instant(), ..options() }
}

pub(crate) struct Story {
    pub(crate) lab: Lab,
    pub(crate) client: Client,
}

pub(crate) const POOL: &str = "/DC0/host/DC0_C0/Resources";
pub(crate) const FOLDER: &str = "/DC0/vm";

impl Story {
    pub(crate) async fn start(options: Options) -> Self {
        let lab = Lab::start(options).await;
        let client = lab.login().await;
        Self { lab, client }
    }

    pub(crate) async fn find(&self, path: &str) -> MoRef {
        self.client.find(path).await
    }

    pub(crate) async fn vm_ref(&self, name: &str) -> MoRef {
        self.find(&format!("{FOLDER}/{name}")).await
    }

    pub(crate) fn vm(&self, name: &str) -> VmView {
        self.lab.vcenter.vm(name).unwrap_or_else(|| panic!("there is no VM {name}"))
    }

    pub(crate) fn has_vm(&self, name: &str) -> bool {
        self.lab.vcenter.vm(name).is_some()
    }

    pub(crate) async fn clone_task(
        &self,
        from: &str,
        to: &str,
        spec: VirtualMachineCloneSpec,
    ) -> Result<MoRef, Fault> {
        let (this, folder) = (self.vm_ref(from).await, self.find(FOLDER).await);
        self.client.call(CloneVmTask { this, folder, name: to.into(), spec }).await
    }

    pub(crate) async fn clone_vm(
        &self,
        from: &str,
        to: &str,
        spec: VirtualMachineCloneSpec,
    ) -> Result<MoRef, Fault> {
        let task = self.clone_task(from, to, spec).await?;
        let result = self.client.finish(&task).await?;
        Ok(result.and_then(|value| value.as_ref().cloned()).unwrap())
    }

    /// A linked clone of the Debian template that is powered on.
    pub(crate) async fn worker(&self, name: &str) -> MoRef {
        let spec = VirtualMachineCloneSpec { power_on: true, ..self.linked().await };
        self.clone_vm("debian12", name, spec).await.unwrap()
    }

    pub(crate) async fn linked(&self) -> VirtualMachineCloneSpec {
        VirtualMachineCloneSpec {
            location: self.location("moveChildMostDiskBacking").await,
            ..Default::default()
        }
    }

    pub(crate) async fn location(&self, move_type: &str) -> VirtualMachineRelocateSpec {
        VirtualMachineRelocateSpec {
            disk_move_type: Some(move_type.into()),
            pool: Some(self.find(POOL).await),
            ..Default::default()
        }
    }

    pub(crate) async fn reconfigure(
        &self,
        vm: &MoRef,
        spec: VirtualMachineConfigSpec,
    ) -> Result<(), Fault> {
        let task = self.client.call(ReconfigVmTask { this: vm.clone(), spec }).await?;
        self.client.finish(&task).await.map(|_| ())
    }

    pub(crate) async fn create(&self, spec: VirtualMachineConfigSpec) -> Result<MoRef, Fault> {
        let (this, pool) = (self.find(FOLDER).await, self.find(POOL).await);
        let task = self.client.call(CreateVmTask { this, config: spec, pool, host: None }).await?;
        Ok(self.client.finish(&task).await?.and_then(|value| value.as_ref().cloned()).unwrap())
    }

    pub(crate) async fn power_on(&self, vm: &MoRef) -> Result<(), Fault> {
        let task = self.client.call(PowerOnVmTask { this: vm.clone(), host: None }).await?;
        self.client.finish(&task).await.map(|_| ())
    }

    pub(crate) async fn power_off(&self, vm: &MoRef) -> Result<(), Fault> {
        let task = self.client.call(PowerOffVmTask { this: vm.clone() }).await?;
        self.client.finish(&task).await.map(|_| ())
    }

    pub(crate) async fn destroy(&self, vm: &MoRef) -> Result<(), Fault> {
        let task = self.client.call(DestroyTask { this: vm.clone() }).await?;
        self.client.finish(&task).await.map(|_| ())
    }

    /// Lets time pass until something holds, and fails if it does not within an hour.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..36_000 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("an hour passed without: {what}");
    }

    pub(crate) async fn until_ready(&self, vm: &str) {
        self.until("guest operations and an address", |story| {
            let vm = story.vm(vm);
            vm.guest_operations_ready && vm.ip.is_some()
        })
        .await;
    }

    /// The classes of all events, oldest first.
    pub(crate) fn event_classes(&self) -> Vec<String> {
        self.lab.vcenter.events().into_iter().map(|event| event.class).collect()
    }

    /// The classes of the events about one VM, without tasks.
    pub(crate) fn events_of(&self, vm: &MoRef) -> Vec<String> {
        let events = self.lab.vcenter.events().into_iter();
        let about = events
            .filter(|event| event.vm.as_ref().is_some_and(|found| found.vm.as_ref() == Some(vm)));
        about.map(|event| event.class).filter(|class| class != "TaskEvent").collect()
    }

    pub(crate) async fn start_program(
        &self,
        vm: &MoRef,
        path: &str,
        arguments: &str,
        env: &[&str],
    ) -> Result<i64, Fault> {
        self.client
            .call(methods::StartProgramInGuest {
                this: roost_vim_wire::MoRef::new(
                    "GuestProcessManager".into(),
                    "guestOperationsProcessManager",
                ),
                vm: vm.clone(),
                auth: auth("root", "secret"),
                spec: GuestProgramSpec {
                    program_path: path.into(),
                    arguments: arguments.into(),
                    working_directory: None,
                    env_variables: env.iter().map(|pair| Hidden((*pair).into())).collect(),
                },
            })
            .await
    }

    pub(crate) fn programs(&self) -> Vec<GuestProgram> {
        self.lab.vcenter.guest_programs()
    }

    pub(crate) async fn property(&self, obj: &MoRef, path: &str) -> Option<Value> {
        self.client.property(obj, path).await
    }
}

pub(crate) fn auth(user: &str, password: &str) -> NamePasswordAuthentication {
    NamePasswordAuthentication {
        interactive_session: false,
        username: user.into(),
        password: Password(password.into()),
    }
}

/// Linux, named after the VM, with one card that has this address or asks for one.
pub(crate) fn customization(address: Option<&str>) -> CustomizationSpec {
    let ip = match address {
        Some(address) => CustomizationIpGenerator {
            ip_address: Some(address.into()),
            ..CustomizationIpGenerator::of("CustomizationFixedIp")
        },
        None => CustomizationIpGenerator::of("CustomizationDhcpIpGenerator"),
    };
    CustomizationSpec {
        options: None,
        identity: CustomizationIdentitySettings {
            host_name: Some(CustomizationName::of("CustomizationVirtualMachineName")),
            domain: Some("local".into()),
            ..CustomizationIdentitySettings::of("CustomizationLinuxPrep")
        },
        global_ip_settings: CustomizationGlobalIPSettings::default(),
        nic_setting_map: vec![CustomizationAdapterMapping {
            mac_address: None,
            adapter: CustomizationIPSettings {
                ip,
                subnet_mask: Some("255.255.0.0".into()),
                gateway: vec!["10.0.0.1".into()],
                ..Default::default()
            },
        }],
    }
}

pub(crate) fn named(name: &str) -> VirtualMachineConfigSpec {
    VirtualMachineConfigSpec {
        name: Some(name.into()),
        files: Some(VirtualMachineFileInfo {
            vm_path_name: Some("[LocalDS_0]".into()),
            ..Default::default()
        }),
        num_cpus: Some(1),
        memory_mb: Some(512),
        ..Default::default()
    }
}

pub(crate) fn is_on(vm: &VmView) -> bool {
    vm.power == Power::On
}
