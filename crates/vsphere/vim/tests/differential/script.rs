//! The script. An observation is text that does not depend on ids, times or sizes of the server.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use roost_vim::wire::methods::{
    CloneVmTask, CurrentTime, ListProcessesInGuest, MarkAsTemplate, TerminateSession,
};
use roost_vim::wire::types::UserSession;
use roost_vim::wire::{MoRef, MoType};
use roost_vim::{
    CallClass, Change, Client, CloneVm, CreateVm, DiskCopy, EventQuery, Faulted, Finder,
    NewSnapshot, Properties, Reconfigure, Subscription, VmError, WatchSpec,
};
use tokio::time::timeout;

pub(crate) type Observations = Vec<(String, String)>;

/// Longer than anything here takes on a slow machine.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Script<'a> {
    pub(crate) client: &'a Client,
    pub(crate) finder: Finder,
    pub(crate) seen: Observations,
}

impl<'a> Script<'a> {
    pub(crate) async fn start(client: &'a Client) -> Self {
        let finder = client.finder("").await.unwrap();
        Self { client, finder, seen: Vec::new() }
    }

    pub(crate) fn note(&mut self, step: &str, observed: impl Debug) {
        self.seen.push((step.to_owned(), format!("{observed:?}")));
    }

    /// A result, or the class of the fault that came instead.
    pub(crate) fn note_result<T: Debug, E: Faulted + std::error::Error>(
        &mut self,
        step: &str,
        result: Result<T, E>,
    ) -> Option<T> {
        match result {
            Ok(value) => {
                self.note(step, &value);
                Some(value)
            }
            Err(error) => {
                match error.fault() {
                    Some(fault) => self.note(step, format!("fault {}", fault.class)),
                    None => self.note(step, format!("error {error}")),
                }
                None
            }
        }
    }

    pub(crate) async fn read(&mut self, step: &str, object: &MoRef, paths: &[&str]) {
        let read = self.client.properties(object, paths).await;
        let values =
            read.map(|read| paths.iter().map(|path| shown(&read, path)).collect::<Vec<_>>());
        self.note_result(step, values);
    }
}

/// References are shown by kind only; their ids are the server's own.
fn shown(read: &Properties, path: &str) -> String {
    match read.get(path) {
        None => format!("{path} unset"),
        Some(value) => match (value.as_str(), value.as_bool(), value.as_i64(), value.as_ref()) {
            (Some(text), ..) => format!("{path}={text}"),
            (_, Some(truth), ..) => format!("{path}={truth}"),
            (_, _, Some(number), _) => format!("{path}={number}"),
            (.., Some(moref)) => format!("{path}={}", moref.kind),
            _ => format!("{path}: {}", value.type_name()),
        },
    }
}

pub(crate) async fn vcenter(client: &Client) -> Observations {
    let mut script = Script::start(client).await;
    script.about().await;
    script.finding().await;
    let mut stream = script.watch().await;
    let template = script.template().await;
    let vm = script.cloning(&mut stream, &template).await;
    script.reconfiguring(&vm).await;
    script.renaming(&mut stream, &vm).await;
    script.power(&mut stream, &vm).await;
    script.snapshots(&vm).await;
    script.files().await;
    script.guests(&vm).await;
    script.events(&vm).await;
    script.losing_the_session(&mut stream, &vm).await;
    script.destroying(&mut stream, &vm).await;
    script.seen
}

pub(crate) async fn host(client: &Client) -> Observations {
    let mut script = Script::start(client).await;
    script.about().await;
    let mut stream = script.watch().await;
    let vm = script.creating(&mut stream).await;
    script.reconfiguring(&vm).await;
    script.power(&mut stream, &vm).await;
    script.snapshots(&vm).await;
    script.files().await;
    script.losing_the_session(&mut stream, &vm).await;
    script.destroying(&mut stream, &vm).await;
    script.seen
}

impl Script<'_> {
    async fn about(&mut self) {
        let content = self.client.content();
        self.note("api type", &content.about.api_type);
        self.note("product line", &content.about.product_line_id);
        let now = self.client.read(&CurrentTime { this: MoRef::service_instance() }).await;
        self.note(
            "the time is of this century",
            now.is_ok_and(|now| now.as_second() > 946_684_800),
        );
    }

    async fn finding(&mut self) {
        let datacenter = self.finder.datacenter().path.clone();
        self.note("datacenter", datacenter);
        for (what, wanted) in
            [("VM", "DC0_C0_RP0_VM0"), ("VM by path", "/DC0/vm/DC0_C0_RP0_VM1"), ("glob", "*VM0")]
        {
            let found = self.finder.vm(wanted).await.unwrap();
            self.note(what, found.path);
        }
        let found = [
            self.finder.vm_folder("").await,
            self.finder.resource_pool("").await,
            self.finder.datastore("").await,
            self.finder.network("DC0_DVPG0").await,
            self.finder.network("VM Network").await,
            self.finder.compute_resource("DC0_C0").await,
            self.finder.host("DC0_C0_H1").await,
        ];
        for found in found {
            let found = found.unwrap();
            self.note("found", (found.path, found.moref.kind));
        }
        let absent = self.finder.vm("DC0_C0_RP0_VM9").await.unwrap_err();
        self.note("absent", absent.to_string());
        let ambiguous = self.finder.vm("*").await.unwrap_err();
        self.note("ambiguous", ambiguous.to_string());
        self.read("an object that is not there", &MoRef::vm("vm-no-such"), &["name"]).await;
    }

    async fn watch(&mut self) -> Seen {
        let container = self.client.content().root_folder.clone();
        let spec =
            WatchSpec::below(container, MoType::VirtualMachine, &["name", "runtime.powerState"]);
        let stream = self.client.watch(spec).await.unwrap();
        let mut seen = Seen { stream, rows: HashMap::new() };
        while !seen.advance().await {}
        let shown = |row: &Properties| {
            (row.str("name").map(str::to_owned), row.str("runtime.powerState").map(str::to_owned))
        };
        self.note("first load", seen.rows.values().map(shown).collect::<BTreeSet<_>>());
        seen
    }

    /// Neither server has templates at the start: one is made of a VM.
    async fn template(&mut self) -> MoRef {
        let vm = self.finder.vm("DC0_C0_RP0_VM1").await.unwrap().moref;
        let early =
            self.client.change(CallClass::Submit, &MarkAsTemplate { this: vm.clone() }).await;
        self.note_result("a running VM as a template", early);
        let off = self.client.power_off(&vm).await;
        self.note_result("power off", off);
        let marked = self.client.mark_as_template(&vm).await;
        self.note_result("mark as template", marked);
        self.read("a template", &vm, &["config.template", "resourcePool", "runtime.powerState"])
            .await;
        let on = self.client.power_on(&vm, None).await;
        self.note_result("power on of a template", on);
        vm
    }

    async fn cloning(&mut self, stream: &mut Seen, template: &MoRef) -> MoRef {
        let facts = self.client.template_facts(template).await.unwrap();
        self.note(
            "template facts",
            (facts.is_template, facts.nics.len(), facts.disks.len(), facts.has_parent_disk()),
        );
        let network = self.finder.network("DC0_DVPG0").await.unwrap();
        let request = CloneVm {
            annotation: Some("{\"hatchery_name\":\"h1\"}".into()),
            cpus: Some(2),
            memory_mb: Some(512),
            network: Some(self.client.network_backing(&network.moref).await.unwrap()),
            disks: DiskCopy::ShareParents,
            power_on: true,
            ..self.clone_request("worker-1").await
        };
        let vm = self.client.clone_vm(&facts, &request).await.unwrap();
        stream.until(&vm, "worker-1", "poweredOn").await;
        self.note("the clone is seen", true);
        let paths = [
            "name",
            "summary.config.numCpu",
            "summary.config.memorySizeMB",
            "config.template",
            "resourcePool",
            "parent",
        ];
        self.read("the clone", &vm, &paths).await;
        let annotated = self.client.ensure_annotation(&vm, "{\"hatchery_name\":\"h1\"}").await;
        self.note_result("annotation after the clone", annotated);
        self.read("annotation", &vm, &["config.annotation"]).await;
        let again = self.client.clone_vm(&facts, &request).await;
        self.note_result("a second clone of that name", again.map(drop));
        let call = CloneVmTask {
            this: template.clone(),
            folder: request.folder,
            name: "no-pool".into(),
            ..Default::default()
        };
        let task = self.client.submit(&call).await;
        match task {
            Ok(task) => {
                let outcome = task.wait().await;
                self.note_result("a clone of a template without a pool", outcome.map(drop));
            }
            Err(error) => {
                self.note_result::<(), _>("a clone of a template without a pool", Err(error));
            }
        }
        vm
    }

    async fn clone_request(&self, name: &str) -> CloneVm {
        let folder = self.finder.vm_folder("").await.unwrap().moref;
        CloneVm::new(folder, name, self.finder.resource_pool("").await.unwrap().moref)
    }

    async fn creating(&mut self, stream: &mut Seen) -> MoRef {
        let folder = self.finder.vm_folder("").await.unwrap().moref;
        let pool = self.finder.resource_pool("").await.unwrap().moref;
        let datastore = self.finder.datastore("").await.unwrap().name;
        let request = CreateVm {
            annotation: Some("made".into()),
            ..CreateVm::new(folder, "worker-1", pool, datastore)
        };
        let vm = self.client.create_vm(&request).await.unwrap();
        stream.until(&vm, "worker-1", "poweredOff").await;
        self.read(
            "the new VM",
            &vm,
            &["name", "config.annotation", "config.template", "runtime.powerState"],
        )
        .await;
        let on = self.client.power_on(&vm, None).await;
        self.note_result("first power on", on);
        vm
    }

    async fn reconfiguring(&mut self, vm: &MoRef) {
        let change = Reconfigure::annotation("changed & <escaped>");
        let done = self.client.reconfigure(vm, &change).await;
        self.note_result("reconfigure the annotation", done);
        self.read("the new annotation", vm, &["config.annotation", "summary.config.annotation"])
            .await;
        let extra = vec![("guestinfo.roost".into(), roost_vim::wire::types::Hidden("7".into()))];
        let done = self
            .client
            .reconfigure(vm, &Reconfigure { extra_config: extra, ..Reconfigure::default() })
            .await;
        self.note_result("reconfigure extraConfig", done);
    }

    async fn renaming(&mut self, stream: &mut Seen, vm: &MoRef) {
        let renamed = self.client.rename(vm, "worker-2").await;
        self.note_result("rename", renamed);
        stream.until(vm, "worker-2", "poweredOn").await;
        self.note("the new name is seen", true);
        match self.client.rename(vm, "DC0_C0_RP0_VM0").await {
            Err(VmError::NameTaken { .. }) => self.note("rename to a name that is taken", "taken"),
            other => {
                self.note_result("rename to a name that is taken", other);
            }
        }
    }

    async fn power(&mut self, stream: &mut Seen, vm: &MoRef) {
        let name =
            self.client.properties(vm, &["name"]).await.unwrap().str("name").unwrap().to_owned();
        for (step, on) in [
            ("power off", false),
            ("power off again", false),
            ("power on", true),
            ("power on again", true),
        ] {
            let changed = if on {
                self.client.power_on(vm, None).await
            } else {
                self.client.power_off(vm).await
            };
            self.note_result(step, changed);
        }
        stream.until(vm, &name, "poweredOn").await;
        let suspended = self.client.suspend(vm).await;
        self.note_result("suspend", suspended);
        let on = self.client.power_on(vm, None).await;
        self.note_result("power on after suspend", on);
        stream.until(vm, &name, "poweredOn").await;
    }

    async fn snapshots(&mut self, vm: &MoRef) {
        let first = self.client.create_snapshot(vm, &NewSnapshot::new("first")).await.unwrap();
        let second = self.client.create_snapshot(vm, &NewSnapshot::new("second")).await.unwrap();
        let tree = self.client.snapshots(vm).await.unwrap();
        self.note("snapshots", (tree.named("first").count(), tree.named("second").count()));
        let reverted = self.client.revert_to_snapshot(&first, true).await;
        self.note_result("revert", reverted);
        let removed = self.client.remove_snapshot(&second, false).await;
        self.note_result("remove one", removed);
        let removed = self.client.remove_all_snapshots(vm).await;
        self.note_result("remove all", removed);
        self.read("no snapshots", vm, &["snapshot"]).await;
        let on = self.client.power_on(vm, None).await;
        self.note("on after all that", on.is_ok());
    }

    async fn files(&mut self) {
        let datastore = self.finder.datastore("").await.unwrap();
        let files = self.client.datastore(self.finder.datacenter(), &datastore).await.unwrap();
        let path = files.path("iso/a b/50%.iso");
        let made = files.make_directory(&path.parent()).await;
        self.note_result("make directory", made);
        let uploaded = files.upload(&Bytes::from_static(b"content"), &path).await;
        self.note_result("upload", uploaded.map(drop));
        let found = files.stat(&path).await.unwrap().unwrap();
        self.note("stat", (found.kind, found.bytes));
        let listed = files.list(&path.parent(), None).await.unwrap().map(|files| files.len());
        self.note("list", listed);
        let content = files.download(&path).await.unwrap().bytes(100).await.unwrap();
        self.note("download", content);
        let moved = files.move_to(&path, &path.with_file_name("other.iso")).await;
        self.note_result("move", moved);
        let there = (
            files.exists(&path).await.unwrap(),
            files.exists(&path.with_file_name("other.iso")).await.unwrap(),
        );
        self.note("after the move", there);
        let deleted = files.delete(&path.with_file_name("other.iso")).await;
        self.note_result("delete", deleted);
        let missing =
            files.list(&files.path("nowhere"), None).await.unwrap().map(|files| files.len());
        self.note("a directory that is not there", missing);
    }

    /// As far as vcsim has them, which is not far: starting a program there would end its guest manager.
    async fn guests(&mut self, vm: &MoRef) {
        let managers = self.client.guest_operations().await.unwrap();
        let call = ListProcessesInGuest {
            this: managers.process_manager.clone(),
            vm: vm.clone(),
            ..Default::default()
        };
        let listed = self.client.read_as(CallClass::Guest, &call).await;
        self.note_result("processes without a login", listed.map(|processes| processes.len()));
    }

    async fn events(&mut self, vm: &MoRef) {
        for class in [
            "VmPoweredOffEvent",
            "VmStartingEvent",
            "VmReconfiguredEvent",
            "VmSuspendedEvent",
            "VmRenamedEvent",
        ] {
            let events = self.client.events(&EventQuery::of(vm.clone()).types(&[class])).await;
            let some = events.map(|events| {
                !events.is_empty() && events.iter().all(|event| event.class == class)
            });
            self.note_result(&format!("events of class {class}"), some);
        }
        let made = self
            .client
            .events(&EventQuery::of(vm.clone()).types(&["VmClonedEvent", "VmDeployedEvent"]))
            .await
            .unwrap();
        self.note(
            "how the clone was told",
            made.iter().map(|event| event.class.as_str()).collect::<Vec<_>>(),
        );
    }

    /// Another session ends ours while the stream waits; nothing may be missed.
    async fn losing_the_session(&mut self, stream: &mut Seen, vm: &MoRef) {
        let manager = self.client.content().session_manager.clone().unwrap();
        let read = self.client.properties(&manager, &["currentSession"]).await.unwrap();
        let key = read.data::<UserSession>("currentSession").unwrap().key.clone();
        let ended = self
            .client
            .change(CallClass::Read, &TerminateSession { this: manager, session_id: vec![key] })
            .await;
        // Some servers refuse to end the caller's own session; then this step is a plain rename.
        self.note("the session ended", ended.is_ok());
        let renamed = self.client.rename(vm, "worker-3").await;
        self.note_result("rename without a session", renamed);
        stream.until(vm, "worker-3", "poweredOn").await;
        self.note("the stream goes on", true);
    }

    async fn destroying(&mut self, stream: &mut Seen, vm: &MoRef) {
        let task =
            self.client.submit(&roost_vim::wire::methods::DestroyTask { this: vm.clone() }).await;
        match task {
            Ok(task) => {
                let outcome = task.wait().await;
                self.note_result("destroy of a running VM", outcome.map(drop));
            }
            Err(error) => {
                self.note_result::<(), _>("destroy of a running VM", Err(error));
            }
        }
        let destroyed = self.client.destroy(vm).await;
        self.note_result("destroy", destroyed);
        while stream.rows.contains_key(vm) {
            stream.advance().await;
        }
        self.note("it is seen to leave", true);
        let again = self.client.destroy(vm).await;
        self.note_result("destroy again", again);
        self.read("what is left of it", vm, &["name"]).await;
        let state = self.client.task(MoRef::new(MoType::Task, "task-no-such")).wait().await;
        self.note("a task that never was", state.is_err());
    }
}

/// What the stream has shown so far.
struct Seen {
    stream: Subscription,
    rows: HashMap<MoRef, Properties>,
}

impl Seen {
    /// Takes in the next batch; returns whether the first load is complete.
    async fn advance(&mut self) -> bool {
        let batch = timeout(PATIENCE, self.stream.next())
            .await
            .expect("news in time")
            .expect("the stream goes on");
        for update in batch.updates {
            match update.change {
                Change::Enter(row) => {
                    self.rows.insert(update.obj, row);
                }
                Change::Modify(changes) => {
                    let row = self.rows.get_mut(&update.obj).expect("a VM that has entered");
                    for change in changes {
                        row.apply(change);
                    }
                }
                Change::Leave => {
                    self.rows.remove(&update.obj);
                }
            }
        }
        batch.synced
    }

    /// Until the stream shows the VM with this name and power state.
    async fn until(&mut self, vm: &MoRef, name: &str, power: &str) {
        let is_so = |row: &Properties| {
            row.str("name") == Some(name) && row.str("runtime.powerState") == Some(power)
        };
        while !self.rows.get(vm).is_some_and(is_so) {
            self.advance().await;
        }
    }
}
