//! `VirtualMachineReplicaSet` objects: a number of equal VMs. Names come from the set's identity and a number, so a pass on an old view makes no VM twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt as _};
use roost_controller::{Draft, Index, Next, Pass, Reconciler};

use super::owner::{self, owned_by};
use crate::api::condition::{ConditionType, is_true};
use crate::api::names::{finalizer, label};
use crate::api::{VirtualMachine, VirtualMachineReplicaSet};
use crate::flow::{Context, PassError};
use crate::images::short_hash;

pub(crate) struct ReplicaSets {
    pub(crate) cx: Arc<Context>,
    /// VMs by the uid of their owner.
    pub(crate) by_owner: Index<VirtualMachine>,
}

/// What a set lacks or has too much of.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    make: Vec<String>,
    delete: Vec<String>,
}

/// Of those that are too many, VMs that are not ready go first, then the last ones by name: any order is allowed, the same one is quieter.
fn plan(set: &VirtualMachineReplicaSet, own: &[Arc<VirtualMachine>]) -> Plan {
    let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or_default();
    let mut live: Vec<&Arc<VirtualMachine>> =
        own.iter().filter(|vm| !vm.is_being_deleted()).collect();
    if live.len() > wanted {
        live.sort_by_key(|vm| (is_ready(vm), std::cmp::Reverse(vm.name_any())));
        let surplus = live.len() - wanted;
        let delete = live.into_iter().take(surplus).map(|vm| vm.name_any()).collect();
        return Plan { delete, ..Plan::default() };
    }
    // A VM that is going has its name until it is gone.
    let is_taken = |name: &String| own.iter().any(|vm| vm.name_any() == *name);
    let names = (0_usize..).map(|number| member_name(set, number)).filter(|name| !is_taken(name));
    Plan { make: names.take(wanted - live.len()).collect(), ..Plan::default() }
}

fn member_name(set: &VirtualMachineReplicaSet, number: usize) -> String {
    let hash = short_hash(&format!("{}/{number}", set.uid().unwrap_or_default()));
    format!("{}-{}", set.name_any(), &hash[..5])
}

fn is_ready(vm: &VirtualMachine) -> bool {
    let is_ready = is_true(vm.conditions(), ConditionType::Ready);
    vm.is_created() && (is_ready || vm.spec.readiness_probe.is_none())
}

fn member(set: &VirtualMachineReplicaSet, name: &str) -> VirtualMachine {
    let template = &set.spec.template;
    let mut vm = VirtualMachine::new(name, template.spec.clone());
    vm.metadata.namespace = set.namespace();
    let mut labels: BTreeMap<String, String> = template.metadata.labels.clone();
    labels.insert(label::REPLICA_SET_NAME.to_owned(), set.name_any());
    vm.metadata.labels = Some(labels);
    let annotations = template.metadata.annotations.clone();
    vm.metadata.annotations = Some(annotations).filter(|all| !all.is_empty());
    vm.metadata.owner_references = Some(vec![owner::of(set)]);
    vm
}

impl Reconciler for ReplicaSets {
    type Object = VirtualMachineReplicaSet;
    type Error = PassError;

    async fn reconcile(&self, pass: &Pass<VirtualMachineReplicaSet>) -> Result<Next, PassError> {
        let Some(mut set) = pass.draft() else { return Ok(Next::AwaitChange) };
        let own = owned_by(&self.by_owner, &*set);
        if set.is_being_deleted() {
            return self.end(&mut set, &own).await;
        }
        set.add_finalizer(finalizer::REPLICA_SET);
        self.cx.writer.save_main(&mut set).await?;
        let plan = plan(&set, &own);
        for name in &plan.make {
            self.make(&member(&set, name)).await?;
        }
        self.delete(&set, plan.delete.iter()).await?;
        count(&mut set, &own);
        self.cx.writer.save(&mut set).await?;
        Ok(Next::AwaitChange)
    }
}

fn count(set: &mut VirtualMachineReplicaSet, own: &[Arc<VirtualMachine>]) {
    let number = |of: usize| i32::try_from(of).unwrap_or(i32::MAX);
    let live: Vec<_> = own.iter().filter(|vm| !vm.is_being_deleted()).collect();
    let wanted = &set.spec.template.metadata.labels;
    let is_labelled = |vm: &&&Arc<VirtualMachine>| {
        wanted.iter().all(|(key, value)| vm.labels().get(key) == Some(value))
    };
    let (all, ready) = (live.len(), live.iter().filter(|vm| is_ready(vm)).count());
    let labelled = live.iter().filter(is_labelled).count();
    let generation = set.metadata.generation.unwrap_or_default();
    let status = set.status_mut();
    status.replicas = number(all);
    status.ready_replicas = number(ready);
    status.fully_labeled_replicas = number(labelled);
    status.observed_generation = generation;
}

impl ReplicaSets {
    fn api(&self, set: &VirtualMachineReplicaSet) -> Api<VirtualMachine> {
        let client = self.cx.writer.client().clone();
        Api::namespaced(client, &set.namespace().unwrap_or_default())
    }

    async fn make(&self, vm: &VirtualMachine) -> Result<(), PassError> {
        let client = self.cx.writer.client().clone();
        let api: Api<VirtualMachine> = Api::namespaced(client, &vm.namespace().unwrap_or_default());
        match api.create(&PostParams::default(), vm).await {
            // Made a moment ago, or somebody else's: the watch will tell.
            Err(kube::Error::Api(said)) if said.is_already_exists() => Ok(()),
            other => other.map(drop).map_err(PassError::api(format!("make VM {}", vm.name_any()))),
        }
    }

    async fn delete(
        &self,
        set: &VirtualMachineReplicaSet,
        names: impl Iterator<Item = &String>,
    ) -> Result<(), PassError> {
        for name in names {
            match self.api(set).delete(name, &DeleteParams::default()).await {
                Err(kube::Error::Api(said)) if said.is_not_found() => {}
                other => other.map(drop).map_err(PassError::api(format!("delete VM {name}")))?,
            }
        }
        Ok(())
    }

    /// The set goes after its VMs.
    async fn end(
        &self,
        set: &mut Draft<VirtualMachineReplicaSet>,
        own: &[Arc<VirtualMachine>],
    ) -> Result<Next, PassError> {
        let live = own.iter().filter(|vm| !vm.is_being_deleted());
        let names: Vec<String> = live.map(|vm| vm.name_any()).collect();
        self.delete(set, names.iter()).await?;
        if own.is_empty() {
            set.remove_finalizer(finalizer::REPLICA_SET);
            self.cx.writer.save(set).await?;
        }
        Ok(Next::AwaitChange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::VirtualMachineReplicaSetSpec;
    use crate::api::condition::mark_true;

    fn vm(name: &str, is_ready: bool) -> Arc<VirtualMachine> {
        let mut vm = VirtualMachine::new(name, crate::api::VirtualMachineSpec::default());
        if is_ready {
            let conditions = &mut vm.status_mut().conditions;
            mark_true(conditions, ConditionType::Created, jiff::Timestamp::UNIX_EPOCH);
        }
        Arc::new(vm)
    }

    #[test]
    fn a_set_makes_what_it_lacks_and_deletes_what_is_too_much() {
        let mut set = VirtualMachineReplicaSet::new("web", VirtualMachineReplicaSetSpec::default());
        set.metadata.uid = Some("u".into());
        set.spec.replicas = Some(2);
        let (first, second) = (member_name(&set, 0), member_name(&set, 1));
        let made = plan(&set, &[]);
        assert_eq!(made.make, [first.clone(), second.clone()]);
        assert_eq!(plan(&set, &[vm(&first, true)]).make, std::slice::from_ref(&second));
        let mut going = VirtualMachine::clone(&vm(&first, true));
        going.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
        let third = member_name(&set, 2);
        let own = [Arc::new(going), vm(&second, true)];
        assert_eq!(plan(&set, &own).make, [third], "a name is free when its VM is gone");
        set.spec.replicas = Some(1);
        let own = [vm(&first, true), vm(&second, false)];
        assert_eq!(plan(&set, &own).delete, [second], "who is not ready goes first");
        set.spec.replicas = None;
        assert_eq!(plan(&set, &[]).make.len(), 1);
    }
}
