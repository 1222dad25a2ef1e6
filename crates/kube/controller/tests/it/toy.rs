//! A toy door: each `Toy` has one machine in an outside world.
//!
//! It does what a real door does, in small: finalizer first, then the machine, a status with a condition, and at
//! the end the machine goes before the finalizer. The world complains at once about what must never happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, ResourceExt};
use roost_controller::{
    Cause, Next, Pass, Reconciler, Remedial, Remedy, Truth, WriteError, Writer, set_condition,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const FINALIZER: &str = "toys.example.com/machine";

#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "toys.example.com",
    version = "v1",
    kind = "Toy",
    namespaced,
    status = "ToyStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToySpec {
    pub(crate) size: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ToyStatus {
    #[serde(default)]
    pub(crate) size: i64,
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

pub(crate) fn toy(name: &str, size: i64) -> Toy {
    let mut toy = Toy::new(name, ToySpec { size, secret_name: None });
    toy.metadata.namespace = Some("default".to_owned());
    toy
}

/// The machines, by the uid of the toy that each belongs to.
#[derive(Debug, Clone, Default)]
pub(crate) struct World(Arc<Mutex<Inside>>);

#[derive(Debug, Default)]
pub(crate) struct Inside {
    pub(crate) machines: BTreeMap<String, i64>,
    /// Keys with a pass at this moment, of any replica.
    running: BTreeSet<String>,
    /// Passes so far, by key.
    pub(crate) passes: BTreeMap<String, u32>,
    /// In the order in which passes began.
    pub(crate) order: Vec<String>,
    /// Uids of toys whose deletion was asked for.
    pub(crate) may_delete: BTreeSet<String>,
    pub(crate) complaints: Vec<String>,
}

impl World {
    pub(crate) fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap()
    }

    pub(crate) fn passes(&self) -> u32 {
        self.inside().passes.values().sum()
    }

    fn begin(&self, key: String) -> Running {
        let mut inside = self.inside();
        *inside.passes.entry(key.clone()).or_default() += 1;
        inside.order.push(key.clone());
        if !inside.running.insert(key.clone()) {
            inside.complaints.push(format!("two passes of {key} at once"));
        }
        Running { world: self.clone(), key }
    }

    fn make(&self, uid: &str, size: i64) {
        self.inside().machines.insert(uid.to_owned(), size);
    }

    fn remove(&self, uid: &str) {
        let mut inside = self.inside();
        if !inside.may_delete.contains(uid) {
            inside.complaints.push(format!("machine of {uid} was deleted, nobody asked for it"));
        }
        inside.machines.remove(uid);
    }
}

/// A pass that runs; over when it is dropped.
struct Running {
    world: World,
    key: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.world.inside().running.remove(&self.key);
    }
}

/// What a pass of the toy reconciler does beyond its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mood {
    #[default]
    Good,
    Panics,
    Hangs,
    WantsHelp,
    Fails,
}

#[derive(Debug)]
pub(crate) struct Toys {
    pub(crate) world: World,
    pub(crate) writer: Writer,
    pub(crate) mood: Arc<Mutex<Mood>>,
    /// How long a step in the world takes.
    pub(crate) step: Duration,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ToyError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("the machine does not want to")]
    Machine,
    #[error("nobody said what to do")]
    Help,
}

impl Remedial for ToyError {
    fn remedy(&self) -> Remedy {
        match self {
            Self::Write(error) => error.remedy(),
            Self::Machine => Remedy::Backoff,
            Self::Help => Remedy::Person,
        }
    }
}

impl Reconciler for Toys {
    type Object = Toy;
    type Error = ToyError;

    async fn reconcile(&self, pass: &Pass<Toy>) -> Result<Next, ToyError> {
        let _running = self.world.begin(pass.key().to_string());
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::Good => {}
            Mood::Panics => panic!("a bug"),
            Mood::Hangs => std::future::pending().await,
            Mood::WantsHelp => return Err(ToyError::Help),
            Mood::Fails => return Err(ToyError::Machine),
        }
        let Some(mut toy) = pass.draft() else { return Ok(Next::AwaitChange) };
        let uid = toy.uid().unwrap();
        if toy.is_being_deleted() {
            if toy.has_finalizer(FINALIZER) {
                tokio::time::sleep(self.step).await;
                self.world.remove(&uid);
                toy.remove_finalizer(FINALIZER);
                self.writer.save(&mut toy).await?;
            }
            return Ok(Next::AwaitChange);
        }
        if toy.add_finalizer(FINALIZER) {
            self.writer.save_main(&mut toy).await?;
        }
        tokio::time::sleep(self.step).await;
        self.world.make(&uid, toy.spec.size);
        let (size, generation, now) = (toy.spec.size, toy.metadata.generation, pass.started());
        let status = toy.status.get_or_insert_default();
        status.size = size;
        set_condition(&mut status.conditions, "Ready", Truth::True, "Made", "", generation, now);
        self.writer.save(&mut toy).await?;
        Ok(Next::AwaitChange)
    }

    fn priority(&self, object: Option<&Toy>, cause: Cause) -> i32 {
        let is_urgent = object.is_some_and(|toy| toy.annotations().contains_key("urgent"));
        if is_urgent { 50 } else { cause.usual_priority() }
    }
}
