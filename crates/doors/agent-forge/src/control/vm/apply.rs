use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use roost_controller::{Draft, Next};
use roost_fleet::{Basis, Candidate, Draft as Decision, Outcome, VmId};
use serde_json::json;

use super::plan::{AGAIN, Plan, Step};
use super::reconcile::VmReconciler;
use super::work::Bench;
use crate::api::names::{AGENT_FINALIZER, DELETE_AGENT};
use crate::api::{OwnedVm, Phase, PoolDefaults, Reason, VsphereAgent};
use crate::control::error::ForgeError;
use crate::control::region::Region;
use crate::control::world::lock;
use crate::identity::matches_uuid;
use crate::outside::AgentView;
use crate::plan::whole_seconds;
use crate::planted::{self, Bug};
use crate::vcenter::{MakeVm, Site};

/// The first wait before a VM is made anew; it doubles.
const BACKOFF: Duration = Duration::from_mins(1);
const LONGEST: Duration = Duration::from_hours(1);
/// An Agent that was bound or changed meanwhile is seen by then.
const SOON: Duration = Duration::from_secs(1);

/// Reasons of which an event tells, beside the condition.
const TOLD: [&str; 6] = [
    "VMCreateFailed",
    "VMNameConflict",
    "VMDeleteFailed",
    "VMMissing",
    "VMPoweredOff",
    "DiscoveryFailed",
];

/// A VM on its way, for this reason.
pub(super) fn set(record: &mut OwnedVm, reason: Reason, now: Timestamp) {
    record.phase = Some(Phase::Provisioning);
    record.reason = Some(reason);
    record.last_transition_time = Some(Time(whole_seconds(now)));
}

/// A VM that is to be made anew. Where the one before it was is known until the next one is made.
fn again(agent: &VsphereAgent, name: String, now: Timestamp) -> OwnedVm {
    let failure_domain = agent.failure_domain().to_owned();
    let mut record = OwnedVm { failure_domain, ..OwnedVm::named(name) };
    set(&mut record, Reason::VmReplacing, now);
    record
}

/// What a VM is called in quarantine: the name that it had is free for another one. A VM's name has 80 letters at most.
fn quarantine_name(name: &str, uid: &str) -> String {
    let end = format!("-quarantined-{}", uid.get(..8).unwrap_or(uid));
    let kept: String = name.chars().take(80 - end.len()).collect();
    kept + &end
}

impl VmReconciler {
    pub(super) async fn apply(
        &self,
        plan: Plan,
        mut draft: Draft<VsphereAgent>,
        region: Option<&Region>,
        site: Option<&Site>,
    ) -> Result<Next, ForgeError> {
        let world = &self.world;
        let now = world.now();
        let name = draft.vm_name();
        let mut next = plan.look_again.map_or(Next::AwaitChange, Next::After);
        if let Some(wanted) = &plan.ready {
            let generation = draft.metadata.generation;
            let is_news = wanted.set(&mut draft.status.conditions, generation, now);
            if is_news && TOLD.contains(&wanted.reason) {
                let object = VsphereAgent::clone(&draft);
                world.events.warning(&object, wanted.reason, &wanted.message);
            }
        }
        draft.status.observed_generation = draft.metadata.generation;
        let bench = region.zip(site).map(|(region, site)| Bench::new(world, site, region, &draft));
        let held = |vm: &VmId| {
            let bench = bench.clone()?;
            let hold = bench.hold(vm)?;
            Some((bench, hold))
        };
        let mut start: Option<Box<dyn FnOnce() + Send>> = None;
        match plan.step {
            Step::Nothing => {}
            Step::Adopt => {
                let mut record = OwnedVm::named(name);
                set(&mut record, Reason::VmAdopted, now);
                draft.status.vm = Some(record);
            }
            Step::Make { iso_path } => {
                let known = region.and_then(|region| world.place_of(region));
                if let Some((bench, known)) = bench.clone().zip(known) {
                    // The intent first: after a crash it says that there may be a VM.
                    let record =
                        draft.status.vm.get_or_insert_with(|| OwnedVm::named(name.as_str()));
                    if record.reason != Some(Reason::CreateRequested) {
                        set(record, Reason::CreateRequested, now);
                    }
                    record.failure_domain.clone_from(&bench.region.domain);
                    draft.status.next_attempt_at = None;
                    draft.status.iso_ejected = false;
                    draft.status.iso_path.clone_from(&iso_path);
                    let (marker, pool) = (bench.marker.clone(), Arc::clone(&bench.region.pool));
                    draft.status.template_hash = pool.template_hash();
                    let wanted = MakeVm { pool, place: known.place, marker, name, iso_path };
                    start = Some(Box::new(move || bench.make(wanted)));
                } else {
                    next = Next::After(AGAIN);
                }
            }
            Step::Finish(vm) => match held(&vm) {
                Some((bench, hold)) => {
                    let record = draft.status.vm.get_or_insert_with(|| OwnedVm::named(name));
                    if record.phase.is_none() {
                        set(record, Reason::CreateRequested, now);
                    }
                    start = Some(Box::new(move || bench.finish(hold)));
                }
                None => next = Next::After(AGAIN),
            },
            Step::PowerOn(vm) => match held(&vm) {
                Some((bench, hold)) => start = Some(Box::new(move || bench.power_on(hold))),
                None => next = Next::After(AGAIN),
            },
            Step::Mark(vm) => match held(&vm) {
                Some((bench, hold)) => start = Some(Box::new(move || bench.mark(hold))),
                None => next = Next::After(AGAIN),
            },
            Step::Eject(vm) => match held(&vm) {
                Some((bench, hold)) => start = Some(Box::new(move || bench.eject(hold))),
                None => next = Next::After(AGAIN),
            },
            Step::Replace(vm) => {
                let attempts = draft.status.attempts.saturating_add(1);
                let factor =
                    1_u32 << attempts.clamp(1, 16).unsigned_abs().saturating_sub(1).min(16);
                let wait = BACKOFF.saturating_mul(factor).min(LONGEST);
                draft.status.attempts = attempts;
                let at = now + SignedDuration::try_from(wait).unwrap_or_default();
                draft.status.next_attempt_at = Some(Time(whole_seconds(at)));
                draft.status.vm = Some(again(&draft, name, now));
                world.events.warning(
                    &VsphereAgent::clone(&draft),
                    "VMReplaced",
                    &format!("VM {vm} registered no Agent and is replaced, attempt {attempts}"),
                );
                next = Next::Now;
            }
            Step::Renew => {
                draft.status.vm = Some(again(&draft, name, now));
                next = Next::Now;
            }
            Step::Withdraw => return self.withdraw(&draft).await,
            Step::Quarantine(vm) if !self.withhold_agent(&vm, &draft, bench.as_ref()).await? => {
                next = Next::After(SOON);
            }
            Step::Quarantine(vm) => match held(&vm) {
                Some((bench, hold)) => {
                    let name = quarantine_name(&name, &draft.uid().unwrap_or_default());
                    start = Some(Box::new(move || bench.quarantine(hold, name)));
                }
                None => next = Next::After(AGAIN),
            },
            Step::Destroy(vm) if !self.withhold_agent(&vm, &draft, bench.as_ref()).await? => {
                next = Next::After(SOON);
            }
            Step::Destroy(vm) => {
                next = self.destroy(
                    &vm,
                    &draft,
                    bench.clone(),
                    plan.look_again.unwrap_or(AGAIN),
                    &mut start,
                );
            }
            Step::Release { is_pool_missing } => {
                return self.release(draft, is_pool_missing).await;
            }
        }
        world.writer.save_status(&mut draft).await?;
        if let Some(start) = start {
            start();
        }
        Ok(next)
    }

    /// Nobody wants it, and nothing was made for it.
    async fn withdraw(&self, draft: &Draft<VsphereAgent>) -> Result<Next, ForgeError> {
        let namespace = draft.namespace().unwrap_or_default();
        let api: Api<VsphereAgent> = Api::namespaced(self.world.client.clone(), &namespace);
        let params = DeleteParams {
            preconditions: Some(Preconditions { uid: draft.uid(), resource_version: None }),
            ..DeleteParams::default()
        };
        match api.delete(&draft.name_any(), &params).await {
            Ok(_) => Ok(Next::AwaitChange),
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {
                Ok(Next::AwaitChange)
            }
            Err(error) => Err(ForgeError::kube("withdrawing a VsphereAgent")(error)),
        }
    }

    /// Before its VM is destroyed, an Agent is made one that nobody can be given. `false` if it was given to somebody meanwhile, or cannot be changed yet.
    async fn withhold_agent(
        &self,
        vm: &VmId,
        draft: &Draft<VsphereAgent>,
        bench: Option<&Bench>,
    ) -> Result<bool, ForgeError> {
        let is_forced = draft.is_forced()
            || bench.is_some_and(|it| it.region.pool.is_forced())
            || planted::is(Bug::DestroysBound);
        let Some(mut record) = draft.recorded().cloned().filter(|_| !is_forced) else {
            return Ok(true);
        };
        let row = bench.and_then(|bench| bench.site.fleet.mirror().vm(vm));
        if let Some(uuid) = row.as_ref().and_then(|row| row.uuid.as_deref()) {
            uuid.clone_into(&mut record.bios_uuid);
        }
        let world = &self.world;
        let namespace = draft.namespace().unwrap_or_default();
        let known = world.agents_in(&namespace);
        let Some(known) = known.iter().find(|it| matches_uuid(&record, &it.identity)) else {
            return Ok(true);
        };
        let name = &known.name;
        let api: Api<DynamicObject> =
            Api::namespaced_with(world.client.clone(), &namespace, &world.agent_kind);
        let failed = |what: &str| ForgeError::kube(format!("{what} Agent {namespace}/{name}"));
        let Some(found) = api.get_opt(name).await.map_err(failed("reading"))? else {
            return Ok(true);
        };
        let seen = AgentView::of(&found);
        if seen.is_bound() || !seen.approved {
            return Ok(!seen.is_bound());
        }
        // Whoever has bound it meanwhile has changed it.
        let patch = json!({"metadata": {"resourceVersion": found.resource_version()}, "spec": {"approved": false}});
        match api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(true),
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(false),
            Err(error) => Err(failed("withholding")(error)),
        }
    }

    /// A person or the pool deleted the object: no second look, but it must be ours, and within the budget.
    fn destroy(
        &self,
        vm: &VmId,
        agent: &VsphereAgent,
        bench: Option<Bench>,
        again: Duration,
        start: &mut Option<Box<dyn FnOnce() + Send>>,
    ) -> Next {
        let Some(bench) = bench else { return Next::After(again) };
        let Some(hold) = bench.hold(vm) else { return Next::After(again) };
        let (now, owner) = (self.world.now(), bench.marker.owner());
        let row = bench.site.fleet.mirror().vm(vm);
        let candidate = Candidate {
            vm: vm.clone(),
            name: row.as_ref().map_or_else(|| agent.vm_name().into(), |row| Arc::clone(&row.name)),
            // By its marker; or, where it has none, by the uuid that is recorded.
            owner: match row.as_ref().and_then(|row| row.claim.as_ref()) {
                Some(claim) => Some(Arc::clone(&claim.owner)),
                None => Some(owner.as_str().into()),
            },
            basis: Basis::Asked,
            why: "its VsphereAgent was deleted".into(),
        };
        let verdict = {
            let mut guards = lock(&self.world.guards);
            let guard = guards.entry((owner.clone(), bench.region.domain.clone()));
            let guard = guard.or_insert_with(|| bench.site.fleet.guard(&owner));
            guard.asked(&candidate, now)
        };
        bench.site.fleet.journal().record(Decision::from(&verdict), now);
        match verdict.outcome {
            Outcome::Delete => {
                *start = Some(Box::new(move || bench.destroy(hold)));
                Next::AwaitChange
            }
            Outcome::Wait { until: Some(until) } => Next::At(until),
            Outcome::Wait { until: None } | Outcome::Refused | Outcome::Frozen => {
                Next::After(again)
            }
        }
    }

    /// The VM is gone, or is not ours to delete. Its Agent goes now, if the pool said so, then the finalizer.
    async fn release(
        &self,
        mut draft: Draft<VsphereAgent>,
        is_pool_missing: bool,
    ) -> Result<Next, ForgeError> {
        let world = &self.world;
        if is_pool_missing && draft.recorded().is_some() {
            let note = "the pool is gone; the VM is kept";
            world.events.warning(&VsphereAgent::clone(&draft), "PoolNotFound", note);
        }
        if let Some(agent) = draft.annotations().get(DELETE_AGENT).cloned() {
            self.delete_agent(&draft, &agent).await?;
        }
        draft.remove_finalizer(AGENT_FINALIZER);
        world.writer.save_main(&mut draft).await?;
        Ok(Next::AwaitChange)
    }

    async fn delete_agent(&self, of: &VsphereAgent, name: &str) -> Result<(), ForgeError> {
        let world = &self.world;
        let namespace = of.namespace().unwrap_or_default();
        let api: Api<DynamicObject> =
            Api::namespaced_with(world.client.clone(), &namespace, &world.agent_kind);
        let failed = |what: &str| ForgeError::kube(format!("{what} Agent {namespace}/{name}"));
        let Some(found) = api.get_opt(name).await.map_err(failed("reading"))? else {
            return Ok(());
        };
        if AgentView::of(&found).is_bound() {
            world.events.normal(
                of,
                "AgentDeleteDeferred",
                &format!("Agent {name} is bound and stays"),
            );
            return Ok(());
        }
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: found.uid(),
                resource_version: found.resource_version(),
            }),
            ..DeleteParams::default()
        };
        match api.delete(name, &params).await {
            Ok(_) => {
                world.events.normal(
                    of,
                    "AgentDeleted",
                    &format!("Agent {name} was deleted after its VM"),
                );
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(failed("deleting")(error)),
        }
    }
}
