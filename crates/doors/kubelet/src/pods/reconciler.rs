//! One pass over a pod: plan, begin the step, write what is to be seen.

use std::collections::BTreeMap;
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

use super::plan::{Step, Wanted, plan};
use super::status::status;
use super::table::Tracked;
use super::work::Shop;
use crate::contract::{Intent, VmSpec, key, observed_generation};

/// Pods that are watched but not touched at all.
#[derive(Debug)]
pub(crate) struct PodReconciler {
    pub(crate) shop: Shop,
    pub(crate) writer: Writer,
    pub(crate) host_ip: String,
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
        let now = self.shop.host.clock.now();
        let mut next = Next::AwaitChange;
        // A pod is tracked or forgotten, and then there is one more step at most.
        for _ in 0..3 {
            let seen = self.shop.table.get(key);
            let step = plan(wanted, seen.as_ref(), now);
            tracing::debug!(pod = %key, ?step);
            match step {
                Step::Track => self.track(key, pod),
                Step::Forget => self.shop.table.forget(key),
                Step::Finalize => {
                    self.finalize(key, pod).await?;
                    self.shop.table.forget(key);
                    return Ok(Next::AwaitChange);
                }
                Step::WaitUntil(at) => {
                    next = Next::At(at);
                    break;
                }
                step => {
                    self.begin(
                        step,
                        key,
                        pod,
                        spec.as_ref().and_then(|spec| spec.as_ref().ok()),
                        seen,
                    )
                    .await?;
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
    fn track(&self, key: &Key, pod: Option<&Arc<Pod>>) {
        let Some(pod) = pod else { return };
        let tracked = Tracked {
            uid: pod.uid().unwrap_or_default(),
            intent: Intent::read(pod),
            ..Tracked::default()
        };
        self.shop.table.put(key.clone(), tracked);
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
            (Step::BringUp, Some(pod), Some(spec), _) => {
                self.shop.bring_up(Arc::clone(pod), key, spec.clone());
            }
            (Step::Hibernate, Some(pod), Some(spec), Some(vm)) => {
                self.shop.hibernate(Arc::clone(pod), key, spec.clone(), vm);
            }
            (Step::Restart, Some(pod), _, Some(vm)) => {
                self.shop.restart(Arc::clone(pod), key, vm);
            }
            (Step::GiveUp { reason, message }, _, _, Some(vm)) => {
                self.shop.give_up(key, vm, reason, message);
            }
            (Step::Delete, pod, _, _) => {
                let is_same =
                    pod.is_some_and(|pod| pod.uid().as_deref() == Some(seen.uid.as_str()));
                let grace = pod
                    .filter(|_| is_same)
                    .and_then(|pod| pod.metadata.deletion_grace_period_seconds)
                    .and_then(|seconds| u64::try_from(seconds).ok())
                    .unwrap_or_default();
                self.shop.delete(pod.filter(|_| is_same).cloned(), key, &seen, grace);
            }
            (Step::Evict, Some(pod), _, _) => self.evict(key, pod).await,
            (Step::Refuse, Some(pod), _, _) => self.refuse(key, pod),
            _ => {}
        }
        Ok(())
    }

    /// The annotations cannot be followed: said once, until somebody changes them.
    fn refuse(&self, key: &Key, pod: &Arc<Pod>) {
        let Err(error) = VmSpec::of(pod) else { return };
        let text = format!("create: {error}");
        let is_known = self
            .shop
            .table
            .get(key)
            .and_then(|seen| seen.failure)
            .is_some_and(|it| it.message == text);
        if !is_known {
            self.shop.host.metrics.lifecycle("create", "missing_vmname");
        }
        self.shop.failed(pod, key, "CreateBringUpFailed", &text);
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
                self.shop.host.metrics.evict_failures.inc();
                let text = format!("the pod of a lost VM could not be deleted: {error}");
                self.shop.failed(pod, key, "PodEvictFailed", &text);
                return;
            }
        }
        self.shop.table.change(key, |seen| {
            if let Some(ending) = &mut seen.ending {
                ending.told = true;
            }
        });
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
        let vms = self.shop.table.all().iter().filter(|(_, pod)| pod.vm.is_some()).count();
        self.shop.host.metrics.vms.set(i64::try_from(vms).unwrap_or(i64::MAX));
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
        draft.status = Some(status(pod, &seen, hibernate, &self.host_ip, now));
        draft.own_conditions(&["Ready", "ContainersReady", "Initialized", "PodScheduled"]);
        let written = self.writer.save(&mut draft).await;
        written.map(drop).map_err(|source| PodError::Write { pod: pass.key().clone(), source })
    }

    /// A new generation of the operator is answered with the state that holds, or it waits for ever.
    fn republished(&self, key: &Key, pod: &Pod) -> Option<Tracked> {
        let generation = observed_generation(pod);
        self.shop.table.change(key, |seen| {
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
        let vm = seen.vm.as_ref();
        put(key::VM_ID, vm.map(|vm| vm.id.clone()));
        put(key::VM_IP, vm.and(seen.address).map(|address| address.to_string()));
        put(key::POST_CLONE_HINT, seen.hint.as_ref().map(|script| STANDARD.encode(script)));
        put(key::POST_CLONE_STATE, seen.post_clone.map(str::to_owned));
    }
    if let Some(intent) = &seen.intent {
        intent.apply(annotations);
    }
}
