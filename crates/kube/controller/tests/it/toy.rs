//! A toy door: each `Toy` has one machine in an outside world.
//!
//! It does what a real door does, in small: finalizer first, then the machine, a status with a condition, and at
//! the end the machine goes before the finalizer. The world complains at once about what must never happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Api, CustomResource, KubeSchema, ResourceExt};
use roost_controller::{
    Cause, Draft, Events, Key, Next, Pass, Reconciler, Remedial, Remedy, Truth, WriteError, Writer,
    set_condition,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const FINALIZER: &str = "toys.example.com/machine";

#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "toys.example.com",
    version = "v1",
    kind = "Toy",
    namespaced,
    status = "ToyStatus",
    derive = "PartialEq",
    printcolumn(json_path = ".spec.size", name = "Size", type_ = "integer")
)]
#[x_kube(validation = Rule::new("self.colour != 'green' || self.size < 5000").message("green toys are small"))]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToySpec {
    #[x_kube(validation = Rule::new("self >= 0").message("a size is not negative"))]
    pub(crate) size: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret_name: Option<String>,
    #[serde(default)]
    pub(crate) colour: Colour,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[a-z]+$"))]
    pub(crate) owner: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Colour {
    #[default]
    Red,
    Green,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ToyStatus {
    #[serde(default)]
    pub(crate) size: i64,
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

pub(crate) fn toy(name: &str, size: i64) -> Toy {
    let mut toy = Toy::new(name, ToySpec { size, ..ToySpec::default() });
    toy.metadata.namespace = Some("default".to_owned());
    toy
}

/// The machines, by the uid of the toy that each belongs to.
#[derive(Debug, Clone, Default)]
pub(crate) struct World(Arc<Mutex<Inside>>);

#[derive(Debug, Default)]
pub(crate) struct Inside {
    pub(crate) machines: BTreeMap<String, i64>,
    /// For which key each was made last, and for which version of its toy.
    made_for: BTreeMap<String, (Key, u64)>,
    /// Keys with a pass at this moment, of any replica.
    running: BTreeSet<String>,
    /// Passes so far, by key.
    pub(crate) passes: BTreeMap<String, u32>,
    /// In the order in which passes began.
    pub(crate) order: Vec<String>,
    /// By key, why it was queued.
    pub(crate) causes: Vec<(String, Cause)>,
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

    fn make(&self, key: &Key, toy: &Toy) {
        let mut inside = self.inside();
        let uid = toy.uid().unwrap();
        inside.machines.insert(uid.clone(), toy.spec.size);
        inside.made_for.insert(uid, (key.clone(), version(toy)));
    }

    /// The keys of all toys that there are machines for.
    pub(crate) fn keys(&self) -> BTreeSet<Key> {
        self.inside().made_for.values().map(|(key, _)| key.clone()).collect()
    }

    /// The uids of the toys of this key that machines were made for, and the versions.
    fn made_for(&self, key: &Key) -> Vec<(String, u64)> {
        let inside = self.inside();
        let made = inside.made_for.iter().filter(|(_, (of, _))| of == key);
        made.map(|(uid, (_, version))| (uid.clone(), *version)).collect()
    }

    fn remove(&self, uid: &str) {
        let mut inside = self.inside();
        if !inside.may_delete.contains(uid) {
            inside.complaints.push(format!("machine of {uid} was deleted, nobody asked for it"));
        }
        inside.machines.remove(uid);
        inside.made_for.remove(uid);
    }
}

fn version(toy: &Toy) -> u64 {
    toy.resource_version().unwrap().parse().unwrap()
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

/// A mistake on purpose, to see that a campaign finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// An error ends the pass as if all were well.
    ForgetsErrors,
    /// Both replicas work, whoever holds the lease.
    NeedsNoLease,
    /// A write that fails is taken for an object that is gone.
    DeletesOnError,
}

/// The toys of the namespace that all are in.
pub(crate) struct ToyApi(pub(crate) Api<Toy>);

impl std::fmt::Debug for ToyApi {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ToyApi")
    }
}

#[derive(Debug)]
pub(crate) struct Toys {
    pub(crate) world: World,
    pub(crate) writer: Writer,
    pub(crate) events: Events,
    pub(crate) api: ToyApi,
    pub(crate) mood: Arc<Mutex<Mood>>,
    /// How long a step in the world takes.
    pub(crate) step: Duration,
    pub(crate) bug: Option<Bug>,
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
        let Some(mut toy) = pass.draft() else {
            self.remove_leftovers(pass).await?;
            return Ok(Next::AwaitChange);
        };
        let uid = toy.uid().unwrap();
        match (self.keep_machine(pass, &mut toy, &uid).await, self.bug) {
            (Err(_), Some(Bug::ForgetsErrors)) => Ok(Next::AwaitChange),
            (Err(error), Some(Bug::DeletesOnError)) => {
                self.world.remove(&uid);
                Err(error)
            }
            (outcome, _) => outcome,
        }
    }

    fn priority(&self, object: Option<&Toy>, cause: Cause) -> i32 {
        let name = object.map(ResourceExt::name_any).unwrap_or_default();
        self.world.inside().causes.push((name, cause));
        let is_urgent = object.is_some_and(|toy| toy.annotations().contains_key("urgent"));
        if is_urgent { 50 } else { cause.usual_priority() }
    }
}

impl Toys {
    /// A view that lags can show a toy that is gone already, as after a change of the leader; then its machine is made anew, and this is
    /// what finds it. Nothing is deleted on the word of that view alone.
    async fn remove_leftovers(&self, pass: &Pass<Toy>) -> Result<(), ToyError> {
        let left = self.world.made_for(pass.key());
        if left.is_empty() {
            return Ok(());
        }
        let found = self.api.0.get_opt(pass.key().name()).await.map_err(|_| ToyError::Machine)?;
        let uid = found.and_then(|toy| toy.uid());
        for (made, _) in left.iter().filter(|(made, _)| Some(made) != uid.as_ref()) {
            self.world.remove(made);
        }
        Ok(())
    }

    /// Finalizer, machine, status; or the machine and then the finalizer gone.
    async fn keep_machine(
        &self,
        pass: &Pass<Toy>,
        toy: &mut Draft<Toy>,
        uid: &str,
    ) -> Result<Next, ToyError> {
        if toy.is_being_deleted() {
            if toy.has_finalizer(FINALIZER) {
                tokio::time::sleep(self.step).await;
                self.world.remove(uid);
                toy.remove_finalizer(FINALIZER);
                self.writer.save(toy).await?;
            }
            return Ok(Next::AwaitChange);
        }
        for (made, at) in self.world.made_for(pass.key()) {
            if made != uid && at < version(toy) {
                self.world.remove(&made);
            }
        }
        if toy.add_finalizer(FINALIZER) {
            self.writer.save_main(toy).await?;
        }
        tokio::time::sleep(self.step).await;
        self.world.make(pass.key(), toy);
        let (size, generation, now) = (toy.spec.size, toy.metadata.generation, pass.started());
        let status = toy.status.get_or_insert_default();
        status.size = size;
        set_condition(&mut status.conditions, "Ready", Truth::True, "Made", "", generation, now);
        if self.writer.save(toy).await?.status {
            self.events.normal(&**toy, "Made", "the machine is as it should be");
        }
        Ok(Next::AwaitChange)
    }
}
