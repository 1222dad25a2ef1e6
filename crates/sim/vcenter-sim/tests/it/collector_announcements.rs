//! Every change of every property of every object is announced: after any operation, a client that only listens holds what a
//! fresh read answers.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::lab::watch::Watch;
use crate::lab::{Client, Lab};
use roost_clock::Random;
use roost_vcenter_sim::{Options, TemplateOptions};
use roost_vim_wire::methods::{
    CloneVmTask, CreateResourcePool, CreateSnapshotTask, DestroyTask, MarkAsTemplate,
    MarkAsVirtualMachine, MoveIntoFolderTask, PowerOffVmTask, PowerOnVmTask, ReconfigVmTask,
    RelocateVmTask, RemoveAllSnapshotsTask, RenameTask, RevertToCurrentSnapshotTask, ShutdownGuest,
    SuspendVmTask,
};
use roost_vim_wire::types::{
    ObjectUpdateKind, OptionValue, PropertyFilterSpec, PropertySpec, ResourceConfigSpec,
    VirtualMachineCloneSpec, VirtualMachineConfigSpec, VirtualMachineRelocateSpec,
};
use roost_vim_wire::{Fault, Method, MoRef, MoType, Value};

type State = BTreeMap<MoRef, BTreeMap<String, Value>>;

struct Mirror {
    watch: Watch,
    spec: PropertyFilterSpec,
    state: State,
}

impl Mirror {
    async fn catch_up(&mut self) {
        for update in self.watch.updates().await {
            if update.kind == ObjectUpdateKind::Leave {
                self.state.remove(&update.obj);
                continue;
            }
            let known = self.state.entry(update.obj).or_default();
            for change in update.change_set {
                match change.val {
                    Some(value) => known.insert(change.name, value),
                    None => known.remove(&change.name),
                };
            }
        }
    }

    async fn check(&self, client: &Client, step: &str) {
        let fresh = client.read_all(self.spec.clone()).await.unwrap();
        let mut wrong = Vec::new();
        assert_eq!(self.state.len(), fresh.len(), "{step}");
        for object in fresh {
            let known = &self.state[&object.obj];
            let actual: BTreeMap<_, _> =
                object.prop_set.into_iter().map(|property| (property.name, property.val)).collect();
            let paths =
                known.keys().chain(actual.keys()).collect::<std::collections::BTreeSet<_>>();
            for path in paths {
                if known.get(path) != actual.get(path) {
                    wrong.push(format!(
                        "{} {path}: {:?} is {:?}",
                        object.obj,
                        known.get(path),
                        actual.get(path)
                    ));
                }
            }
        }
        assert!(wrong.is_empty(), "{step}: {} not announced\n{}", wrong.len(), wrong.join("\n"));
    }
}

async fn carry_out<M: Method<Output = MoRef>>(client: &Client, call: M) -> Result<(), Fault> {
    let task = client.call(call).await?;
    client.finish(&task).await.map(drop)
}

/// One thing that people do to VMs. What is refused changes nothing, and that is announced as well.
async fn random_step(client: &Client, random: &mut Random, step: u64) -> String {
    let view = client.view("VirtualMachine").await;
    let vms: Vec<MoRef> = client.property(&view, "view").await.unwrap().refs().cloned().collect();
    client.call(roost_vim_wire::methods::DestroyView { this: view }).await.unwrap();
    let this = random.pick(&vms).unwrap().clone();
    let root = client.find("/DC0/vm").await;
    let pool = client.find("/DC0/host/DC0_C0/Resources").await;
    let host = client.find("/DC0/host/DC0_C0/DC0_C0_H1").await;
    let name = format!("vm-of-{step}");
    let config = |change: fn(&mut VirtualMachineConfigSpec, u64)| {
        let mut spec = VirtualMachineConfigSpec::default();
        change(&mut spec, step);
        ReconfigVmTask { this: this.clone(), spec }
    };
    let what = random.below(16);
    let done = match what {
        0 => carry_out(client, PowerOnVmTask { this: this.clone(), host: None }).await,
        1 => carry_out(client, PowerOffVmTask { this: this.clone() }).await,
        2 => carry_out(client, SuspendVmTask { this: this.clone() }).await,
        3 => client.call(ShutdownGuest { this: this.clone() }).await,
        4 => carry_out(client, RenameTask { this: this.clone(), new_name: name }).await,
        5 => {
            carry_out(client, config(|spec, step| spec.annotation = Some(format!("note {step}"))))
                .await
        }
        6 => {
            let sized = |spec: &mut VirtualMachineConfigSpec, step: u64| {
                (spec.num_cpus, spec.memory_mb) =
                    (Some(1 + (step % 4) as i32), Some(64 * (1 + (step % 3).cast_signed())));
            };
            carry_out(client, config(sized)).await
        }
        7 => {
            let keyed = |spec: &mut VirtualMachineConfigSpec, step: u64| {
                let value = if step.is_multiple_of(3) { String::new() } else { step.to_string() };
                spec.extra_config =
                    vec![OptionValue::text(format!("guestinfo.{}", step % 4), value)];
            };
            carry_out(client, config(keyed)).await
        }
        8 => {
            let snapshot =
                CreateSnapshotTask { this: this.clone(), name, ..CreateSnapshotTask::default() };
            carry_out(client, snapshot).await
        }
        9 => {
            carry_out(client, RemoveAllSnapshotsTask { this: this.clone(), consolidate: None })
                .await
        }
        10 => {
            let revert = RevertToCurrentSnapshotTask {
                this: this.clone(),
                host: None,
                suppress_power_on: None,
            };
            carry_out(client, revert).await
        }
        11 => {
            let mut spec = VirtualMachineCloneSpec {
                power_on: random.chance(0.5),
                ..VirtualMachineCloneSpec::default()
            };
            spec.location.pool = Some(pool);
            carry_out(client, CloneVmTask { this: this.clone(), folder: root, name, spec }).await
        }
        12 => carry_out(client, DestroyTask { this: this.clone() }).await,
        13 if random.chance(0.5) => client.call(MarkAsTemplate { this: this.clone() }).await,
        13 => client.call(MarkAsVirtualMachine { this: this.clone(), pool, host: None }).await,
        14 => {
            let spec = VirtualMachineRelocateSpec {
                pool: Some(pool),
                host: Some(host),
                ..VirtualMachineRelocateSpec::default()
            };
            carry_out(client, RelocateVmTask { this: this.clone(), spec, priority: None }).await
        }
        _ if random.chance(0.5) => {
            let folder = client.create_folder(&root, &name).await;
            carry_out(client, MoveIntoFolderTask { this: folder, list: vec![this.clone()] }).await
        }
        _ => {
            let made = CreateResourcePool { this: pool, name, spec: ResourceConfigSpec::default() };
            client.call(made).await.map(drop)
        }
    };
    // Guests boot, tools come up, addresses arrive.
    tokio::time::sleep(Duration::from_secs(random.below(120))).await;
    format!("step {step}: {what} on {this}: {:?}", done.map_err(|fault| fault.class))
}

#[tokio::test(start_paused = true)]
async fn whoever_only_listens_knows_everything() {
    for seed in 0..4 {
        let mut random = Random::from_seed(seed);
        let templates = vec![TemplateOptions::new("debian12")];
        let lab =
            Lab::start(Options { seed, templates, page_limit: 1000, ..Options::default() }).await;
        let client = lab.login().await;
        let view = client.view("ManagedEntity").await;
        let everything =
            PropertySpec { all: Some(true), ..PropertySpec::new("ManagedEntity", &[]) };
        let mut spec = PropertyFilterSpec::of_view(&view, vec![everything]);
        let root = client.content.root_folder.clone();
        spec.object_set.push(roost_vim_wire::types::ObjectSpec { obj: root, ..Default::default() });
        let watch = Watch::on(&client, spec.clone()).await;
        let mut mirror = Mirror { watch, spec, state: State::new() };
        for step in 0..40 {
            let what = random_step(&client, &mut random, step).await;
            mirror.catch_up().await;
            mirror.check(&client, &format!("seed {seed}, {what}")).await;
        }
        assert!(mirror.state.keys().any(|obj| obj.kind == MoType::VirtualMachine));
        assert_eq!(lab.vcenter.counters().panics, 0);
    }
}
