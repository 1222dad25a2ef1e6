//! One pass over a pod: plan, begin the step, write what is to be seen.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, ResourceExt};
use roost_controller::{
    Key, Next, Pass, Reconciler, Remedial, Remedy, WriteError, Writer, remedy_of,
};

use super::checks::Checks;
use super::ignored::ignored_fields;
use super::plan::{Step, Wanted, plan};
use super::status::status;
use super::table::Tracked;
use super::work::PodWork;
use crate::contract::{Intent, VmSpec, key, named_vm, observed_generation};

/// Pods that are watched but not touched at all.
#[derive(Debug)]
pub(crate) struct PodReconciler {
    pub(crate) work: PodWork,
    pub(crate) writer: Writer,
    pub(crate) host_ip: String,
    /// Snapshots of this node's processors run only on processors of the same class.
    pub(crate) cpu_class: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum PodError {
    #[error("writing the status of pod {pod}")]
    Write { pod: Key, source: WriteError },
    #[error("deleting pod {pod}")]
    Delete { pod: Key, source: kube::Error },
}

impl Remedial for PodError {
    fn remedy(&self) -> Remedy {
        match self {
            Self::Write { source, .. } => source.remedy(),
            Self::Delete { source, .. } => remedy_of(source),
        }
    }
}

impl Reconciler for PodReconciler {
    type Object = Pod;
    type Error = PodError;

    async fn reconcile(&self, pass: &Pass<Pod>) -> Result<Next, PodError> {
        let key = pass.key();
        let pod = pass.object();
        let spec = pod.map(|pod| VmSpec::of(pod));
        let wanted = match (pod, &spec) {
            (Some(pod), Some(spec)) => Some(Wanted { pod, spec: spec.as_ref() }),
            _ => None,
        };
        let asked = pod.is_some_and(|pod| self.note_asked(key, pod));
        if let (Some(pod), Some(Ok(spec))) = (pod, &spec) {
            self.work.table.follow(key, &pod.uid().unwrap_or_default(), spec);
        }
        let now = self.work.host.clock.now();
        let mut next = Next::AwaitChange;
        // A pod is tracked or forgotten, and then there is one more step at most.
        for _ in 0..3 {
            let seen = self.work.table.get(key);
            let step = plan(wanted, seen.as_ref(), now);
            tracing::debug!(pod = %key, ?step);
            match step {
                Step::Track => self.track(key, pod),
                Step::Forget => self.work.table.forget(key),
                Step::Finalize => {
                    if let Some(Ok(spec)) = &spec {
                        self.drop_hibernated(spec).await;
                    }
                    self.finalize(key, pod).await?;
                    if seen.is_none_or(|seen| !seen.is_removed) {
                        self.work.host.metrics.lifecycle("delete", "no_vm");
                    }
                    self.work.table.forget(key);
                    return Ok(Next::AwaitChange);
                }
                Step::WaitUntil(at) => {
                    next = Next::At(at);
                    break;
                }
                step => {
                    if asked && step == Step::Settled {
                        self.work.host.metrics.lifecycle("update", "noop");
                    }
                    let is_tried_again = matches!(step, Step::Evict | Step::BringUp);
                    let spec = spec.as_ref().and_then(|spec| spec.as_ref().ok());
                    self.begin(step, key, pod, spec, seen).await?;
                    // What has begun calls when it ends; what could not even begin has to be looked at again.
                    let seen = self.work.table.get(key).filter(|seen| seen.activity.is_none());
                    let failure = seen.and_then(|seen| seen.failure);
                    if let Some(failure) = failure.filter(|it| is_tried_again && it.retry > now) {
                        next = Next::At(failure.retry);
                    }
                    break;
                }
            }
        }
        self.count();
        self.show(pass, spec.as_ref(), now).await?;
        Ok(next)
    }
}

impl PodReconciler {
    /// Whether something else is asked of the pod than when it was last looked at.
    fn note_asked(&self, key: &Key, pod: &Pod) -> bool {
        let asked = asked_of(pod);
        let changed = self.work.table.change(key, |seen| {
            if seen.uid != pod.uid().unwrap_or_default() {
                return false;
            }
            seen.named = named_vm(pod);
            seen.asked.replace(asked).is_some_and(|before| before != asked)
        });
        changed.unwrap_or_default()
    }

    fn track(&self, key: &Key, pod: Option<&Arc<Pod>>) {
        let Some(pod) = pod else { return };
        let tracked = Tracked {
            uid: pod.uid().unwrap_or_default(),
            intent: Intent::read(pod),
            checks: Checks::of(pod),
            named: named_vm(pod),
            asked: Some(asked_of(pod)),
            ..Tracked::default()
        };
        let ignored = ignored_fields(pod);
        if !ignored.is_empty() {
            let text = format!("a microVM does not follow {}", ignored.join(", "));
            self.work.events.warning(pod.as_ref(), "FieldsIgnored", &text);
        }
        self.work.table.put(key.clone(), tracked);
    }

    async fn begin(
        &self,
        step: Step,
        key: &Key,
        pod: Option<&Arc<Pod>>,
        spec: Option<&VmSpec>,
        seen: Option<Tracked>,
    ) -> Result<(), PodError> {
        let Some(seen) = seen else { return Ok(()) };
        let vm = seen.vm.clone();
        match (step, pod, spec, vm) {
            (Step::BringUp, Some(pod), Some(_), _) if self.other_class(pod).is_some() => {
                let wanted = self.other_class(pod).unwrap_or_default();
                let own = self.cpu_class.as_deref().unwrap_or("none");
                let text = format!(
                    "create: the pod wants snapshot CPU class {wanted}, this node has {own}"
                );
                self.work.failed(pod, key, "CreateBringUpFailed", &text);
            }
            // Whoever holds new VMs back has every pod looked at when it is over.
            (Step::BringUp, Some(_), Some(spec), _)
                if spec.managed && self.work.steering.held().is_some() => {}
            (Step::BringUp, Some(pod), Some(spec), _) => match self.work.table.claim(key, spec) {
                Ok(()) => self.work.bring_up(Arc::clone(pod), key, spec.clone()),
                Err(other) => {
                    let text = format!("create: VM {} is that of pod {other}", spec.name);
                    self.work.failed(pod, key, "CreateBringUpFailed", &text);
                }
            },
            (Step::Hibernate, Some(pod), Some(spec), Some(vm)) => {
                self.work.hibernate(Arc::clone(pod), key, spec.clone(), vm);
            }
            (Step::ResumePostClone, Some(pod), Some(spec), Some(vm)) => {
                self.work.resume_post_clone(Arc::clone(pod), key, spec.clone(), vm);
            }
            (Step::Settled, Some(pod), Some(spec), _) => {
                let generation = observed_generation(pod);
                self.work.table.change(key, |seen| seen.settle(spec.hibernate, generation));
            }
            (Step::DropTag, Some(pod), _, Some(vm)) => {
                self.work.drop_tag(Arc::clone(pod), key, vm);
            }
            (Step::Restart, Some(pod), _, Some(vm)) => {
                self.work.restart(Arc::clone(pod), key, vm);
            }
            (Step::GiveUp { reason, message }, _, _, Some(vm)) => {
                self.work.give_up(key, vm, reason, message);
            }
            (Step::Delete, pod, _, _) => {
                let is_same =
                    pod.is_some_and(|pod| pod.uid().as_deref() == Some(seen.uid.as_str()));
                let grace = pod
                    .filter(|_| is_same)
                    .and_then(|pod| pod.metadata.deletion_grace_period_seconds)
                    .and_then(|seconds| u64::try_from(seconds).ok())
                    .unwrap_or_default();
                self.work.delete(pod.filter(|_| is_same).cloned(), key, &seen, grace);
            }
            (Step::Evict, Some(pod), _, _) => self.evict(key, pod).await,
            (Step::Refuse, Some(pod), _, _) => self.refuse(key, pod),
            _ => {}
        }
        Ok(())
    }

    /// The class that a pod asks for, if it is not this node's.
    fn other_class(&self, pod: &Pod) -> Option<String> {
        let wanted = pod.spec.as_ref()?.node_selector.as_ref()?.get(key::CPU_CLASS)?;
        (self.cpu_class.as_ref() != Some(wanted)).then(|| wanted.clone())
    }

    /// The annotations cannot be followed: said once, until somebody changes them.
    fn refuse(&self, key: &Key, pod: &Arc<Pod>) {
        let Err(error) = VmSpec::of(pod) else { return };
        let text = format!("create: {error}");
        let is_known = self
            .work
            .table
            .get(key)
            .and_then(|seen| seen.failure)
            .is_some_and(|it| it.message == text);
        if !is_known {
            self.work.host.metrics.lifecycle("create", "missing_vmname");
        }
        self.work.failed(pod, key, "CreateBringUpFailed", &text);
    }

    async fn evict(&self, key: &Key, pod: &Pod) {
        let api: Api<Pod> =
            Api::namespaced(self.writer.client().clone(), key.namespace().unwrap_or_default());
        let options =
            DeleteParams { preconditions: Some(precondition(pod)), ..DeleteParams::default() };
        match api.delete(key.name(), &options).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => {}
            Err(error) => {
                self.work.host.metrics.evict_failures.inc();
                let text = format!("the pod of a lost VM could not be deleted: {error}");
                self.work.failed(pod, key, "PodEvictFailed", &text);
                return;
            }
        }
        self.work.table.change(key, |seen| {
            if let Some(ending) = &mut seen.ending {
                ending.told = true;
            }
        });
    }

    /// A hibernated VM that only this host holds goes with its pod. In a registry it stays: whoever moves pods from host to host needs it.
    async fn drop_hibernated(&self, spec: &VmSpec) {
        let host = &self.work.host;
        if host.registry.is_none() && spec.managed && spec.hibernate && !spec.keep_snapshot {
            host.drop_hibernated(&spec.name).await;
        }
    }

    /// The VM is gone; now the object may go too. Another pod of the name is not touched.
    async fn finalize(&self, key: &Key, pod: Option<&Arc<Pod>>) -> Result<(), PodError> {
        let Some(pod) = pod else { return Ok(()) };
        let api: Api<Pod> =
            Api::namespaced(self.writer.client().clone(), key.namespace().unwrap_or_default());
        let options = DeleteParams {
            preconditions: Some(precondition(pod)),
            ..DeleteParams::default().grace_period(0)
        };
        match api.delete(key.name(), &options).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
            Err(source) => Err(PodError::Delete { pod: key.clone(), source }),
        }
    }

    fn count(&self) {
        let vms = self.work.table.vms();
        self.work.host.metrics.vms.set(i64::try_from(vms).unwrap_or(i64::MAX));
    }

    /// Writes annotations and status, each only if it differs.
    async fn show(
        &self,
        pass: &Pass<Pod>,
        spec: Option<&Result<VmSpec, crate::contract::SpecError>>,
        now: Timestamp,
    ) -> Result<(), PodError> {
        let (Some(mut draft), Some(pod)) = (pass.draft(), pass.object()) else { return Ok(()) };
        let Some(seen) = self.republished(pass.key(), pod) else { return Ok(()) };
        if seen.uid != pod.uid().unwrap_or_default() || pod.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if seen.vm.is_none()
            && seen.ending.is_none()
            && matches!(phase, Some("Failed" | "Succeeded"))
        {
            return Ok(());
        }
        let is_managed = spec.is_some_and(|spec| spec.as_ref().is_ok_and(|spec| spec.managed));
        annotate(draft.annotations_mut(), &seen, is_managed);
        let hibernate = spec.is_some_and(|spec| spec.as_ref().is_ok_and(|spec| spec.hibernate));
        let mut shown = status(pod, &seen, hibernate, &self.host_ip, now);
        if let (None, None, Some(held)) = (&seen.vm, seen.activity, self.work.steering.held()) {
            shown.message = shown.message.or(Some(held));
        }
        draft.status = Some(shown);
        draft.own_conditions(&["Ready", "ContainersReady", "Initialized", "PodScheduled"]);
        let written = self.writer.save(&mut draft).await;
        written.map(drop).map_err(|source| PodError::Write { pod: pass.key().clone(), source })
    }

    /// A new generation of the operator is answered with the state that holds, or it waits for ever.
    fn republished(&self, key: &Key, pod: &Pod) -> Option<Tracked> {
        let generation = observed_generation(pod);
        self.work.table.change(key, |seen| {
            if let Some(intent) = seen.intent.clone()
                && seen.activity.is_none()
                && seen.failure.is_none()
                && generation > intent.generation
            {
                seen.say(intent.state, generation, &intent.message);
            }
            seen.clone()
        })
    }
}

/// Labels, annotations and the version of the spec, without what is ours to write.
fn asked_of(pod: &Pod) -> u64 {
    let ours = [
        key::VM_ID,
        key::VM_IP,
        key::POST_CLONE_HINT,
        key::POST_CLONE_STATE,
        key::LIFECYCLE_STATE,
        key::LIFECYCLE_GENERATION,
        key::LIFECYCLE_MESSAGE,
        key::DRAINED,
    ];
    let mut hash = DefaultHasher::new();
    let annotations = pod.annotations().iter().filter(|(key, _)| !ours.contains(&key.as_str()));
    annotations.for_each(|pair| pair.hash(&mut hash));
    (pod.labels(), pod.metadata.generation).hash(&mut hash);
    hash.finish()
}

fn precondition(pod: &Pod) -> Preconditions {
    Preconditions { uid: pod.uid(), resource_version: None }
}

/// The annotations that are ours to write; all others stay.
fn annotate(annotations: &mut BTreeMap<String, String>, seen: &Tracked, is_managed: bool) {
    let mut put = |key: &str, value: Option<String>| match value {
        Some(value) => {
            annotations.insert(key.to_owned(), value);
        }
        None => {
            annotations.remove(key);
        }
    };
    if is_managed {
        let vm = seen.vm.as_ref().filter(|_| !seen.is_leaving);
        put(key::VM_ID, vm.map(|vm| vm.id.clone()));
        put(key::VM_IP, vm.and(seen.address).map(|address| address.to_string()));
        put(key::POST_CLONE_HINT, seen.hint.as_ref().map(|script| STANDARD.encode(script)));
        put(key::POST_CLONE_STATE, seen.post_clone.map(|state| state.as_str().to_owned()));
    }
    if let Some(intent) = &seen.intent {
        intent.apply(annotations);
    }
}
