//! What beside VMs a vCenter has: the inventory of the flags, libraries, tags, policies, hosts, clusters, switches, roles.

use std::collections::BTreeSet;

use roost_vim::wire::methods::{
    AddAuthorizationRole, CreateClusterEx, CreateDatacenter, CreateDvsTask, CreateStoragePod,
    DestroyTask, DisconnectHostTask, EnterMaintenanceModeTask, ExitMaintenanceModeTask,
    MoveIntoFolderTask, ReconnectHostTask, RemoveAuthorizationRole,
};
use roost_vim::wire::{Element, Method, MoRef, MoType};
use roost_vim::{CallClass, Change, Client, Kind, NewLibrary, WatchSpec};

use crate::script::{Observations, Script};

/// The names of everything that the flags of both servers ask for.
pub(crate) async fn inventory(client: &Client) -> Observations {
    let mut script = Script::start(client).await;
    for kind in [
        MoType::Datacenter,
        MoType::Folder,
        MoType::StoragePod,
        MoType::ClusterComputeResource,
        MoType::HostSystem,
        MoType::ResourcePool,
        MoType::VirtualApp,
        MoType::VirtualMachine,
        MoType::Datastore,
        MoType::Network,
    ] {
        let step = format!("every {kind}");
        let names = names(client, kind).await;
        script.note(&step, names);
    }
    for (vm, paths) in [
        ("DC0_C0_APP0_VM0", &["parentVApp", "resourcePool", "parent", "runtime.powerState"][..]),
        ("DC0_C0_RP1_VM0", &["parentVApp", "resourcePool", "parent"]),
    ] {
        let found = script.finder.vm(vm).await.unwrap().moref;
        script.read(vm, &found, paths).await;
    }
    script.seen
}

async fn names(client: &Client, kind: MoType) -> BTreeSet<String> {
    let root = client.content().root_folder.clone();
    let mut stream = client.watch(WatchSpec::below(root, kind, &["name"])).await.unwrap();
    let mut names = BTreeSet::new();
    loop {
        let batch = stream.next().await.unwrap();
        for update in batch.updates {
            if let Change::Enter(row) = update.change {
                // An uplink group is named after a number of its server.
                let name = row.str("name").unwrap_or_default();
                names.insert(name.split("DVUplinks").next().unwrap_or_default().to_owned());
            }
        }
        if batch.synced {
            return names;
        }
    }
}

pub(crate) async fn areas(client: &Client) -> Observations {
    let mut script = Script::start(client).await;
    script.libraries().await;
    script.tags().await;
    script.policies().await;
    script.hosts().await;
    script.places().await;
    script.roles().await;
    script.seen
}

impl Script<'_> {
    /// Starts a task and notes how it ended.
    pub(crate) async fn task<M: Method<Output = MoRef>>(&mut self, step: &str, call: M) {
        match self.client.submit(&call).await {
            Ok(task) => {
                let outcome = task.wait().await;
                self.note_result(step, outcome.map(drop));
            }
            Err(error) => {
                self.note_result::<(), _>(step, Err(error));
            }
        }
    }

    async fn libraries(&mut self) {
        let client = self.client;
        let datastore = self.finder.datastore("LocalDS_0").await.unwrap().moref;
        let new = NewLibrary { name: "images".into(), description: "ours".into(), datastore };
        let library = client.create_library(&new).await.unwrap();
        let known = client.libraries().await.unwrap();
        self.note("libraries", known.iter().map(|library| &library.name).collect::<Vec<_>>());
        let item = client.create_library_item(&library, "tiny", "ovf").await.unwrap();
        let read = client.library_item(&item).await;
        self.note("item", read.map(|read| (read.name, read.kind)).ok());
        let deleted = client.delete_library_item(&item).await;
        self.note("item deleted", deleted.is_ok());
        let left = client.library_item_ids(&library).await;
        self.note("items left", left.map(|left| left.len()).ok());
    }

    async fn tags(&mut self) {
        let client = self.client;
        let category = client.ensure_tag_category("tier", &["Datastore"]).await.unwrap();
        let again = client.ensure_tag_category("tier", &["Datastore"]).await.unwrap();
        self.note("one category", category == again);
        let tag = client.ensure_tag(&category, "gold").await.unwrap();
        let again = client.ensure_tag(&category, "gold").await.unwrap();
        self.note("one tag", tag == again);
        let datastore = self.finder.datastore("LocalDS_0").await.unwrap().moref;
        for step in ["attached", "attached twice"] {
            let done = client.attach_tag(&tag, &datastore).await;
            self.note(step, done.is_ok());
        }
        let carried = client.attached_tags(std::slice::from_ref(&datastore)).await;
        let wanted = [(datastore.clone(), vec![tag.clone()])];
        self.note("carried", carried.map(|carried| carried == wanted).ok());
        let read = client.tag(&tag).await;
        self.note("tag", read.map(|tag| tag.name).ok());
        let tags = client.tags_of_category(&category).await;
        let names = tags.map(|tags| tags.into_iter().map(|tag| tag.name).collect::<Vec<_>>());
        self.note("tags", names.ok());
        let done = client.detach_tag(&tag, &datastore).await;
        self.note("detached", done.is_ok());
    }

    async fn policies(&mut self) {
        let policies = self.client.storage_policies().await;
        let names = policies.map(|all| all.into_iter().map(|policy| policy.name).collect());
        self.note("policies", names.unwrap_or_else(|_| BTreeSet::new()));
        let vm = self.finder.vm("DC0_H0_VM0").await.unwrap().moref;
        let own = self.client.policies_of_vm(&vm).await;
        self.note("policies of a VM", own.is_ok());
    }

    async fn hosts(&mut self) {
        let host = self.finder.find(Kind::Host, "DC0_H0").await.unwrap().moref;
        let vm = self.finder.vm("DC0_H0_VM0").await.unwrap().moref;
        let state = ["runtime.connectionState", "runtime.inMaintenanceMode"];
        self.read("a host", &host, &state).await;
        self.task("disconnect", DisconnectHostTask { this: host.clone() }).await;
        self.read("a host that is cut off", &host, &state).await;
        self.read("its VM", &vm, &["runtime.connectionState"]).await;
        self.task("disconnect again", DisconnectHostTask { this: host.clone() }).await;
        self.task("reconnect", ReconnectHostTask { this: host.clone() }).await;
        self.read("a host that is back", &host, &state).await;
        let enter = EnterMaintenanceModeTask { this: host.clone(), ..Default::default() };
        self.task("maintenance", enter).await;
        self.read("a host in maintenance", &host, &state).await;
        let exit = ExitMaintenanceModeTask { this: host.clone(), timeout: 0 };
        self.task("end of maintenance", exit).await;
        self.read("a host at work", &host, &state).await;
    }

    async fn places(&mut self) {
        let client = self.client;
        let root = client.content().root_folder.clone();
        let made = CreateDatacenter { this: root.clone(), name: "DC9".into() };
        let made = client.change(CallClass::Submit, &made).await.unwrap();
        let again = CreateDatacenter { this: root, name: "DC9".into() };
        let again = client.change(CallClass::Submit, &again).await;
        self.note_result("a datacenter of that name", again.map(drop));
        let folders = ["vmFolder", "hostFolder", "datastoreFolder", "networkFolder"];
        self.read("a datacenter", &made, &folders).await;
        let read = client.properties(&made, &folders).await.unwrap();
        let folder = |name: &str| read.get(name).and_then(|value| value.as_ref()).unwrap().clone();
        let spec = Element::new("spec").typed("ClusterConfigSpecEx");
        let new = CreateClusterEx { this: folder("hostFolder"), name: "edge".into(), spec };
        let cluster = client.change(CallClass::Submit, &new).await.unwrap();
        self.read("a cluster", &cluster, &["name", "resourcePool", "parent"]).await;
        let again = client.change(CallClass::Submit, &new).await;
        self.note_result("a cluster of that name", again.map(drop));
        let pod = CreateStoragePod { this: folder("datastoreFolder"), name: "pod".into() };
        let pod = client.change(CallClass::Submit, &pod).await.unwrap();
        self.read("a datastore cluster", &pod, &["name", "parent"]).await;
        let config = Element::new("configSpec")
            .typed("VMwareDVSConfigSpec")
            .with_field("name", &"DVS9".to_owned());
        let spec = Element::new("spec").typed("DVSCreateSpec").with(config);
        self.task("a switch", CreateDvsTask { this: folder("networkFolder"), spec }).await;
        let vm = self.finder.vm("DC0_H0_VM0").await.unwrap().moref;
        let list = vec![vm];
        self.task(
            "a VM into a host folder",
            MoveIntoFolderTask { this: folder("hostFolder"), list },
        )
        .await;
        self.task("destroy the datacenter", DestroyTask { this: made.clone() }).await;
        self.read("what is left of it", &made, &["name"]).await;
    }

    async fn roles(&mut self) {
        let manager = self.client.content().authorization_manager.clone().unwrap();
        let new = AddAuthorizationRole {
            this: manager.clone(),
            name: "watcher".into(),
            priv_ids: vec!["System.Read".into()],
        };
        let role = self.client.change(CallClass::Submit, &new).await.unwrap();
        let again = self.client.change(CallClass::Submit, &new).await;
        self.note_result("a role of that name", again.map(drop));
        for step in ["remove the role", "remove the role again"] {
            let gone = RemoveAuthorizationRole {
                this: manager.clone(),
                role_id: role,
                fail_if_used: false,
            };
            let gone = self.client.change(CallClass::Submit, &gone).await;
            self.note_result(step, gone);
        }
    }
}
