//! Admission: what is filled in, and what is refused.
//!
//! The rules are functions without I/O; [`webhooks`] wraps them for the API server. The controller calls the same defaulting where no webhook runs.

mod configuration;
mod default;
mod problems;
mod validate;

use std::sync::{Arc, Mutex, PoisonError};

use kube::ResourceExt;
use roost_clock::{Clock, Random};
use roost_controller::webhook::{Denial, Operation, Review, User, Verdict, Webhooks};

pub use configuration::configurations;
pub use default::{Defaults, Identity, default_on_create, default_on_update};
pub use problems::Problems;
pub use validate::{
    protected, validate_class, validate_snapshot, validate_vm, validate_web_console_request,
    warnings,
};

use crate::api::names::annotation::SKIP_VALIDATION;
use crate::api::{
    ClusterVirtualMachineImage, VirtualMachine, VirtualMachineClass, VirtualMachineClassInstance,
    VirtualMachineGroup, VirtualMachineImage, VirtualMachineImageCache, VirtualMachineReplicaSet,
    VirtualMachineService, VirtualMachineSetResourcePolicy, VirtualMachineSnapshot,
    VirtualMachineWebConsoleRequest,
};
use crate::images::NamedImage;

/// Where the API server finds the webhooks.
pub mod path {
    pub const MUTATE_VM: &str = "/default-mutate-vmoperator-vmware-com-v1alpha6-virtualmachine";
    pub const VALIDATE_VM: &str = "/default-validate-vmoperator-vmware-com-v1alpha6-virtualmachine";
    pub const VALIDATE_CLASS: &str =
        "/default-validate-vmoperator-vmware-com-v1alpha6-virtualmachineclass";
    pub const VALIDATE_SNAPSHOT: &str =
        "/default-validate-vmoperator-vmware-com-v1alpha6-virtualmachinesnapshot";
    pub const VALIDATE_WEB_CONSOLE_REQUEST: &str =
        "/default-validate-vmoperator-vmware-com-v1alpha6-virtualmachinewebconsolerequest";
}

/// How strict admission is, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionSettings {
    /// This program's own account, such as `system:serviceaccount:roost:roost`.
    pub operator_account: String,
    /// More users who may do everything.
    pub privileged_users: Vec<String>,
    /// The network of interfaces that name none.
    pub default_network: String,
    /// May a VM be given another class?
    pub resize: bool,
    /// May interfaces come, go and change their networks?
    pub mutable_networks: bool,
    /// What the version annotations are given.
    pub build_version: String,
}

impl Default for AdmissionSettings {
    fn default() -> Self {
        Self {
            operator_account: String::new(),
            privileged_users: Vec::new(),
            default_network: "VM Network".to_owned(),
            resize: true,
            mutable_networks: false,
            build_version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// May this user do what others may not?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    Ordinary,
    Privileged,
}

impl AdmissionSettings {
    pub fn rights(&self, user: &User) -> Rights {
        let is_known = user.is_in("system:masters")
            || user.name == "kubernetes-admin"
            || (!self.operator_account.is_empty() && user.name == self.operator_account)
            || self.privileged_users.contains(&user.name);
        if is_known { Rights::Privileged } else { Rights::Ordinary }
    }
}

/// What admission looks up in the cluster.
pub trait Lookup: Send + Sync + 'static {
    /// The images of a namespace, and those of the cluster.
    fn images(&self, namespace: &str) -> (Vec<NamedImage>, Vec<NamedImage>);

    fn vm(&self, namespace: &str, name: &str) -> Option<Arc<VirtualMachine>>;
}

/// The path of the webhook that guards protected marks on objects of a kind without other rules.
pub fn guard_path(kind: &str) -> String {
    format!("/default-validate-vmoperator-vmware-com-v1alpha6-{}", kind.to_lowercase())
}

/// Kinds that have no rules but the one on protected marks, with their plurals.
pub const GUARDED: [(&str, &str); 8] = [
    (VirtualMachineClassInstance::KIND, VirtualMachineClassInstance::PLURAL),
    (VirtualMachineImage::KIND, VirtualMachineImage::PLURAL),
    (ClusterVirtualMachineImage::KIND, ClusterVirtualMachineImage::PLURAL),
    (VirtualMachineImageCache::KIND, VirtualMachineImageCache::PLURAL),
    (VirtualMachineGroup::KIND, VirtualMachineGroup::PLURAL),
    (VirtualMachineSetResourcePolicy::KIND, VirtualMachineSetResourcePolicy::PLURAL),
    (VirtualMachineService::KIND, VirtualMachineService::PLURAL),
    (VirtualMachineReplicaSet::KIND, VirtualMachineReplicaSet::PLURAL),
];

fn guard<K>(hooks: Webhooks, settings: &Arc<AdmissionSettings>) -> Webhooks
where
    K: kube::Resource<DynamicType = ()> + serde::de::DeserializeOwned + Send + Sync + 'static,
{
    let settings = Arc::clone(settings);
    hooks.validate(&guard_path(&K::kind(&())), move |review: Review<K>| {
        let rights = settings.rights(&review.user);
        async move { admit(&review, rights, |new, old| protected(new, old, rights)) }
    })
}

/// All webhooks of this door.
pub fn webhooks(
    settings: AdmissionSettings,
    lookup: Arc<dyn Lookup>,
    clock: Arc<dyn Clock>,
    random: Random,
) -> Webhooks {
    let settings = Arc::new(settings);
    let random = Arc::new(Mutex::new(random));
    let (mutating, looked_up) = (Arc::clone(&settings), Arc::clone(&lookup));
    let (validating, of_class, of_snapshot, of_console) = (
        Arc::clone(&settings),
        Arc::clone(&settings),
        Arc::clone(&settings),
        Arc::clone(&settings),
    );
    let mut hooks = Webhooks::default();
    hooks = guard::<VirtualMachineClassInstance>(hooks, &settings);
    hooks = guard::<VirtualMachineImage>(hooks, &settings);
    hooks = guard::<ClusterVirtualMachineImage>(hooks, &settings);
    hooks = guard::<VirtualMachineImageCache>(hooks, &settings);
    hooks = guard::<VirtualMachineGroup>(hooks, &settings);
    hooks = guard::<VirtualMachineSetResourcePolicy>(hooks, &settings);
    hooks = guard::<VirtualMachineService>(hooks, &settings);
    hooks = guard::<VirtualMachineReplicaSet>(hooks, &settings);
    hooks
        .mutate(path::MUTATE_VM, move |review: Review<VirtualMachine>| {
            let (settings, lookup) = (Arc::clone(&mutating), Arc::clone(&looked_up));
            let (clock, random) = (Arc::clone(&clock), Arc::clone(&random));
            async move {
                let uuid = |_| random.lock().unwrap_or_else(PoisonError::into_inner).uuid();
                mutate(review, &settings, lookup.as_ref(), clock.now(), &uuid)
            }
        })
        .validate(path::VALIDATE_VM, move |review: Review<VirtualMachine>| {
            let settings = Arc::clone(&validating);
            async move {
                let rights = settings.rights(&review.user);
                admit(&review, rights, |new, old| validate_vm(new, old, rights, &settings)).map(
                    |verdict| review.object.iter().flat_map(warnings).fold(verdict, Verdict::warn),
                )
            }
        })
        .validate(path::VALIDATE_CLASS, move |review: Review<VirtualMachineClass>| {
            let settings = Arc::clone(&of_class);
            async move {
                let rights = settings.rights(&review.user);
                admit(&review, rights, |new, old| validate_class(new, old, rights))
            }
        })
        .validate(path::VALIDATE_SNAPSHOT, move |review: Review<VirtualMachineSnapshot>| {
            let (settings, lookup) = (Arc::clone(&of_snapshot), Arc::clone(&lookup));
            async move {
                let rights = settings.rights(&review.user);
                admit(&review, rights, |new, old| {
                    let vm = lookup.vm(&new.namespace().unwrap_or_default(), &new.spec.vm_name);
                    validate_snapshot(new, old, vm.as_deref(), rights)
                })
            }
        })
        .validate(
            path::VALIDATE_WEB_CONSOLE_REQUEST,
            move |review: Review<VirtualMachineWebConsoleRequest>| {
                let rights = of_console.rights(&review.user);
                async move {
                    admit(&review, rights, |new, old| {
                        validate_web_console_request(new, old, rights)
                    })
                }
            },
        )
}

/// Objects that are being deleted pass. Of those that a privileged user has exempted, only the marks that nobody else may touch are looked at.
fn admit<K: kube::Resource>(
    review: &Review<K>,
    rights: Rights,
    check: impl FnOnce(&K, Option<&K>) -> Vec<String>,
) -> Result<Verdict, Denial> {
    let Some(new) = &review.object else { return Ok(Verdict::allow()) };
    if new.meta().deletion_timestamp.is_some() {
        return Ok(Verdict::allow());
    }
    let old = review.old.as_ref();
    let is_exempt = new.annotations().contains_key(SKIP_VALIDATION);
    Denial::unless_empty(if is_exempt { protected(new, old, rights) } else { check(new, old) })
}

fn mutate(
    review: Review<VirtualMachine>,
    settings: &AdmissionSettings,
    lookup: &dyn Lookup,
    now: jiff::Timestamp,
    uuid: &dyn Fn(Identity) -> String,
) -> Result<(VirtualMachine, Verdict), Denial> {
    let Some(mut vm) = review.object else {
        return Err(Denial::because("the review holds no object"));
    };
    if vm.metadata.deletion_timestamp.is_some() || review.subresource.is_some() {
        return Ok((vm, Verdict::allow()));
    }
    let namespace = review.key.namespace().unwrap_or_default().to_owned();
    let rights = settings.rights(&review.user);
    let problems = match (review.operation, &review.old) {
        (Operation::Create, _) => {
            let (own, cluster) = lookup.images(&namespace);
            let defaults = Defaults { settings, own_images: &own, cluster_images: &cluster, uuid };
            default_on_create(&mut vm, &defaults, rights)
        }
        (Operation::Update, Some(old)) => default_on_update(&mut vm, old, now, rights),
        _ => Vec::new(),
    };
    if problems.is_empty() { Ok((vm, Verdict::allow())) } else { Err(Denial { reasons: problems }) }
}

#[cfg(test)]
mod tests;
