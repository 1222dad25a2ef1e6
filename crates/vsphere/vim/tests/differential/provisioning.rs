//! Ways to a VM and its disks beside the client's own verbs: the raw calls of other clients.

use roost_vim::wire::methods::{
    AcquireCloneTicket, AddDvPortgroupTask, CheckCompatibilityTask, CheckVmConfigTask,
    CopyVirtualDiskTask, CreateContainerView, CreateCustomizationSpec, CreateDiskTask,
    CreateVirtualDiskTask, DeleteCustomizationSpec, DeleteVStorageObjectTask,
    DeleteVirtualDiskTask, DoesCustomizationSpecExist, ExtendVirtualDiskTask, FindByInventoryPath,
    GetCustomizationSpec, InstantCloneTask, ListVStorageObject, MoveVirtualDiskTask, Permission,
    PlaceVm, PowerOffVmTask, PromoteDisksTask, QueryVirtualDiskUuid, RegisterVmTask,
    RemoveEntityPermission, RenameCustomizationSpec, RetrieveEntityPermissions,
    SetEntityPermissions, UnregisterVm, UpgradeVmTask,
};
use roost_vim::wire::types::VirtualMachineInstantCloneSpec;
use roost_vim::wire::{Element, Method, MoRef};
use roost_vim::{CallClass, Client};

use crate::script::{Observations, Script};

pub(crate) async fn provisioning(client: &Client) -> Observations {
    let mut script = Script::start(client).await;
    script.disk_files().await;
    script.disk_objects().await;
    script.registration().await;
    script.specifications().await;
    script.copies().await;
    script.checks().await;
    script.port_groups().await;
    script.permissions().await;
    script.seen
}

fn text(value: &str) -> String {
    value.to_owned()
}

impl Script<'_> {
    async fn object(&self, path: &str) -> MoRef {
        let this = self.client.content().search_index.clone().unwrap();
        let call = FindByInventoryPath { this, inventory_path: path.into() };
        let found = self.client.change(CallClass::Read, &call).await.unwrap();
        found.unwrap_or_else(|| panic!("{path} is not there"))
    }

    /// Calls, and notes no more than whether it went through.
    async fn call<M: Method>(&mut self, step: &str, call: M) -> Option<M::Output> {
        let (mut output, result) = (None, self.client.change(CallClass::Submit, &call).await);
        self.note_result(step, result.map(|answer| output = Some(answer)));
        output
    }

    async fn disk_files(&mut self) {
        let this = self.client.content().virtual_disk_manager.clone().unwrap();
        let datacenter = Some(self.object("/DC0").await);
        let spec = Element::new("spec")
            .typed("FileBackedVirtualDiskSpec")
            .with_field("diskType", &text("thin"))
            .with_field("adapterType", &text("lsiLogic"))
            .with_field("capacityKb", &1_048_576_i64);
        let create = CreateVirtualDiskTask {
            this: this.clone(),
            name: "[LocalDS_0] one.vmdk".into(),
            datacenter: datacenter.clone(),
            spec,
        };
        self.task("a disk file", create.clone()).await;
        self.task("a disk file of that name", create).await;
        let uuid = |name: &str| QueryVirtualDiskUuid {
            this: this.clone(),
            name: name.into(),
            datacenter: datacenter.clone(),
        };
        self.call("its identity", uuid("[LocalDS_0] one.vmdk")).await;
        self.call("the identity of no disk", uuid("[LocalDS_0] none.vmdk")).await;
        let extend = ExtendVirtualDiskTask {
            this: this.clone(),
            name: "[LocalDS_0] one.vmdk".into(),
            datacenter: datacenter.clone(),
            new_capacity_kb: 2_097_152,
            eager_zero: None,
        };
        self.task("a larger disk file", extend).await;
        let copy = CopyVirtualDiskTask {
            this: this.clone(),
            source_name: "[LocalDS_0] one.vmdk".into(),
            source_datacenter: datacenter.clone(),
            dest_name: "[LocalDS_0] two.vmdk".into(),
            dest_datacenter: datacenter.clone(),
            ..Default::default()
        };
        self.task("a copy of the disk file", copy).await;
        let moved = MoveVirtualDiskTask {
            this: this.clone(),
            source_name: "[LocalDS_0] two.vmdk".into(),
            source_datacenter: datacenter.clone(),
            dest_name: "[LocalDS_0] three.vmdk".into(),
            dest_datacenter: datacenter.clone(),
            force: None,
        };
        self.task("the disk file moves", moved).await;
        for (step, name) in [
            ("delete the disk file", "[LocalDS_0] three.vmdk"),
            ("delete the disk file again", "[LocalDS_0] three.vmdk"),
            ("delete what it was copied from", "[LocalDS_0] one.vmdk"),
        ] {
            let delete = DeleteVirtualDiskTask {
                this: this.clone(),
                name: name.into(),
                datacenter: datacenter.clone(),
            };
            self.task(step, delete).await;
        }
    }

    async fn disk_objects(&mut self) {
        let this = self.client.content().vstorage_object_manager.clone().unwrap();
        let datastore = self.object("/DC0/datastore/LocalDS_0").await;
        let backing = Element::new("backingSpec")
            .typed("VslmCreateSpecDiskFileBackingSpec")
            .with_field("datastore", &datastore)
            .with_field("provisioningType", &text("thin"));
        let spec = Element::new("spec")
            .with_field("name", &text("data"))
            .with(backing)
            .with_field("capacityInMB", &10_i64);
        self.task("a disk object", CreateDiskTask { this: this.clone(), spec }).await;
        let list = || ListVStorageObject { this: this.clone(), datastore: datastore.clone() };
        let ids = self.call("disk objects", list()).await.unwrap_or_default();
        self.note("how many disk objects", ids.len());
        let Some(id) = ids.into_iter().next() else { return };
        for step in ["delete the disk object", "delete the disk object again"] {
            let (this, id, datastore) = (this.clone(), id.clone(), datastore.clone());
            self.task(step, DeleteVStorageObjectTask { this, id, datastore }).await;
        }
        let ids = self.call("disk objects after that", list()).await.unwrap_or_default();
        self.note("how many disk objects are left", ids.len());
    }

    async fn registration(&mut self) {
        let vm = self.object("/DC0/vm/DC0_H0_VM1").await;
        let pool = Some(self.object("/DC0/host/DC0_H0/Resources").await);
        let folder = self.object("/DC0/vm").await;
        self.task("off", PowerOffVmTask { this: vm.clone() }).await;
        self.call("unregister", UnregisterVm { this: vm.clone() }).await;
        self.call("unregister again", UnregisterVm { this: vm }).await;
        let register = |path: &str| RegisterVmTask {
            this: folder.clone(),
            path: path.into(),
            name: None,
            as_template: false,
            pool: pool.clone(),
            host: None,
        };
        self.task("register nothing", register("[LocalDS_0] none/none.vmx")).await;
        let path = "[LocalDS_0] DC0_H0_VM1/DC0_H0_VM1.vmx";
        self.task("register", register(path)).await;
        self.task("register again", register(path)).await;
        let found = self.object("/DC0/vm/DC0_H0_VM1").await;
        self.read("what was registered", &found, &["name", "runtime.powerState"]).await;
        for step in ["upgrade", "upgrade again"] {
            self.task(step, UpgradeVmTask { this: found.clone(), version: None }).await;
        }
        let older = UpgradeVmTask { this: found, version: Some("vmx-04".into()) };
        self.task("upgrade to what is older", older).await;
    }

    async fn specifications(&mut self) {
        let this = self.client.content().customization_spec_manager.clone().unwrap();
        let info = Element::new("info")
            .with_field("name", &text("linux"))
            .with_field("description", &String::new())
            .with_field("type", &text("Linux"));
        let identity = Element::new("identity").typed("CustomizationLinuxPrep");
        let spec = Element::new("spec").with(identity).with(Element::new("globalIPSettings"));
        let create = CreateCustomizationSpec {
            this: this.clone(),
            item: Element::new("item").with(info).with(spec),
        };
        let get = |name: &str| GetCustomizationSpec { this: this.clone(), name: name.into() };
        self.call("an unknown specification", get("linux")).await;
        self.call("a specification", create.clone()).await;
        self.call("a specification of that name", create).await;
        self.call("the specification", get("linux")).await;
        let rename = RenameCustomizationSpec {
            this: this.clone(),
            name: "linux".into(),
            new_name: "debian".into(),
        };
        self.call("it is renamed", rename.clone()).await;
        self.call("it is renamed again", rename).await;
        let exists = DoesCustomizationSpecExist { this: this.clone(), name: "debian".into() };
        let exists = self.call("whether it exists", exists).await;
        self.note("it exists", exists);
        for step in ["delete the specification", "delete the specification again"] {
            let delete = DeleteCustomizationSpec { this: this.clone(), name: "debian".into() };
            self.call(step, delete).await;
        }
    }

    async fn copies(&mut self) {
        let vm = self.object("/DC0/vm/DC0_H0_VM0").await;
        let promote = PromoteDisksTask { this: vm.clone(), unlink: true, disks: Vec::new() };
        self.task("promote the disks", promote).await;
        let mut spec = VirtualMachineInstantCloneSpec { name: "fork".into(), ..Default::default() };
        spec.location.pool = Some(self.object("/DC0/host/DC0_H0/Resources").await);
        self.task("an instant clone", InstantCloneTask { this: vm, spec }).await;
        let this = self.client.content().session_manager.clone().unwrap();
        let ticket = self.call("a ticket", AcquireCloneTicket { this }).await;
        self.note("it is long", ticket.is_some_and(|ticket| ticket.len() > 8));
        let view = CreateContainerView {
            this: self.client.content().view_manager.clone().unwrap(),
            container: self.client.content().root_folder.clone(),
            kind: vec!["Spaceship".into()],
            recursive: true,
        };
        self.call("a view of an unknown type", view).await;
    }

    async fn checks(&mut self) {
        let this = self.client.content().vm_compatibility_checker.clone().unwrap();
        let vm = self.object("/DC0/vm/DC0_H0_VM0").await;
        let pool = Some(self.object("/DC0/host/DC0_C0/Resources").await);
        let check = CheckCompatibilityTask {
            this: this.clone(),
            vm: vm.clone(),
            pool: pool.clone(),
            ..Default::default()
        };
        self.task("check compatibility", check).await;
        let check = CheckVmConfigTask { this, vm: Some(vm), pool, ..Default::default() };
        self.task("check a configuration", check).await;
        let cluster = self.object("/DC0/host/DC0_C0").await;
        let config = Element::new("configSpec")
            .with_field("name", &text("placed"))
            .with_field("numCPUs", &1)
            .with_field("memoryMB", &64_i64);
        let spec =
            Element::new("placementSpec").with_field("placementType", &text("create")).with(config);
        let placed = self.call("place a VM", PlaceVm { this: cluster, placement_spec: spec }).await;
        let rows = placed.iter().flat_map(|placed| placed.children_named("recommendations"));
        let actions: Vec<_> = rows.filter_map(|row| row.child("action")).collect();
        let names_host = actions.iter().all(|action| action.child("targetHost").is_some());
        self.note("it names a host", !actions.is_empty() && names_host);
    }

    async fn port_groups(&mut self) {
        let switch = self.object("/DC0/network/DVS0").await;
        let group = Element::new("spec")
            .typed("DVPortgroupConfigSpec")
            .with_field("name", &text("blue"))
            .with_field("type", &text("earlyBinding"))
            .with_field("numPorts", &8);
        let add = AddDvPortgroupTask { this: switch, spec: vec![group] };
        self.task("a port group", add.clone()).await;
        let found = self.object("/DC0/network/blue").await;
        self.read("the port group", &found, &["name", "config.name", "config.numPorts"]).await;
        self.task("a port group of that name", add).await;
    }

    async fn permissions(&mut self) {
        let this = self.client.content().authorization_manager.clone().unwrap();
        let entity = self.object("/DC0").await;
        let permission = Permission {
            principal: "ops".into(),
            role_id: -2,
            propagate: true,
            ..Permission::default()
        };
        let set = SetEntityPermissions {
            this: this.clone(),
            entity: entity.clone(),
            permission: vec![permission],
        };
        self.call("a permission", set).await;
        let read = |inherited| RetrieveEntityPermissions {
            this: this.clone(),
            entity: entity.clone(),
            inherited,
        };
        let own = self.call("permissions", read(false)).await.unwrap_or_default();
        let own: Vec<_> = own.into_iter().map(|one| (one.principal, one.role_id)).collect();
        self.note("who has which role", own);
        for step in ["remove the permission", "remove the permission again"] {
            let remove = RemoveEntityPermission {
                this: this.clone(),
                entity: entity.clone(),
                user: "ops".into(),
                is_group: false,
            };
            self.call(step, remove).await;
        }
    }
}
