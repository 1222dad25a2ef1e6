//! An object of the size that a VM has in a cluster, and a reconciler that keeps its status.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use roost_controller::{Next, Pass, Reconciler, Truth, WriteError, Writer, set_condition};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bench.example.com",
    version = "v1",
    kind = "Machine",
    namespaced,
    status = "MachineStatus",
    derive = "PartialEq"
)]
pub(crate) struct MachineSpec {
    pub(crate) class: String,
    pub(crate) disks: Vec<Disk>,
    pub(crate) user_data: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Disk {
    pub(crate) name: String,
    pub(crate) claim: String,
    pub(crate) gib: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct MachineStatus {
    #[serde(default)]
    pub(crate) address: String,
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

pub(crate) const CONDITIONS: [&str; 8] =
    ["Created", "Class", "Image", "Storage", "Network", "Bootstrap", "Tools", "Ready"];

pub(crate) fn machine(number: usize) -> Machine {
    let disk = |disk: usize| Disk {
        name: format!("disk-{disk}"),
        claim: format!("machine-{number:05}-disk-{disk}"),
        gib: 40,
    };
    let spec = MachineSpec {
        class: "best-effort-small".to_owned(),
        disks: (0..6).map(disk).collect(),
        user_data: "#cloud-config\nusers: [default]\n".repeat(40),
    };
    let mut machine = Machine::new(&format!("machine-{number:05}"), spec);
    machine.metadata.namespace = Some("default".to_owned());
    machine
}

/// As JSON, before the server adds its part.
pub(crate) fn size() -> usize {
    serde_json::to_vec(&machine(0)).map_or(0, |text| text.len())
}

#[derive(Debug)]
pub(crate) struct Machines {
    pub(crate) writer: Writer,
    pub(crate) passes: Arc<AtomicUsize>,
}

impl Reconciler for Machines {
    type Object = Machine;
    type Error = WriteError;

    async fn reconcile(&self, pass: &Pass<Machine>) -> Result<Next, WriteError> {
        let Some(mut machine) = pass.draft() else { return Ok(Next::AwaitChange) };
        let (generation, now) = (machine.metadata.generation, pass.started());
        let status = machine.status.get_or_insert_default();
        "10.0.0.1".clone_into(&mut status.address);
        for condition in CONDITIONS {
            let conditions = &mut status.conditions;
            set_condition(
                conditions,
                condition,
                Truth::True,
                "Done",
                "as it should be",
                generation,
                now,
            );
        }
        self.writer.save(&mut machine).await?;
        self.passes.fetch_add(1, Ordering::Relaxed);
        Ok(Next::AwaitChange)
    }
}
