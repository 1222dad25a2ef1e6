use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use roost_controller::{Cause, Draft, Next, Pass, Reconciler};
use roost_fleet::Snapshot;

use super::plan::{Iso, Row, Seen, Sight, plan};
use super::work::VmEnded;
use crate::api::names::{AGENT_FINALIZER, AGENT_MACHINE_LABEL, CREATED_FOR, FOR_AGENT_MACHINE};
use crate::api::{OwnedVm, PoolDefaults, Reason, VsphereAgent, VsphereAgentPool};
use crate::control::conditions::READY;
use crate::control::error::ForgeError;
use crate::control::region::Region;
use crate::control::world::{World, lock};
use crate::identity::{self, matches_uuid, same_machine};
use crate::names::label_value;
use crate::outside::AgentMachineView;
use crate::plan::{PhaseInput, Record, refresh, whole_seconds};
use crate::vcenter::{FORGE, SiteState};

#[derive(Debug)]
pub(crate) struct VmReconciler {
    pub(crate) world: Arc<World>,
}

impl Reconciler for VmReconciler {
    type Object = VsphereAgent;
    type Error = ForgeError;

    async fn reconcile(&self, pass: &Pass<VsphereAgent>) -> Result<Next, ForgeError> {
        let world = &self.world;
        let Some(mut draft) = pass.draft() else {
            world.vm_jobs.forget(pass.key());
            lock(&world.chosen).remove(pass.key());
            return Ok(Next::AwaitChange);
        };
        draft.own_conditions(&[READY]);
        if !draft.is_being_deleted() && draft.add_finalizer(AGENT_FINALIZER) {
            // Before anything is made: what is made must not outlive its object unseen.
            world.writer.save_main(&mut draft).await?;
        }
        let pool = world.pool_of(&draft);
        self.take_ended(&mut draft, pass.started());
        if let Some(pool) = &pool {
            if draft.is_being_deleted() {
                self.follow_phase(&mut draft, pool, pass.started());
            } else {
                copy_phase(&mut draft, pool);
            }
        }
        let object: VsphereAgent = VsphereAgent::clone(&draft);
        let region = match &pool {
            Some(pool) => Some(self.region(&object, pool, pass.started()).await),
            None => None,
        };
        let (site, held) = match (&region, &pool) {
            (Some(region), Some(pool)) => {
                (Some(world.site_of(region).await), world.hold_of(pool).await)
            }
            _ => (None, None),
        };
        let open = match &site {
            Some(SiteState::Open(site)) => Some(site.clone()),
            _ => None,
        };
        let machine = pool.as_ref().and_then(|pool| self.machine_of(&object, pool));
        let seen = Seen {
            agent: &object,
            pool: pool.as_deref(),
            held,
            sight: self.sight(&object, region.as_ref(), site.as_ref()),
            iso: match &region {
                Some(region) => self.iso(&region.pool),
                None => Iso::NotYet { why: String::new() },
            },
            is_busy: world.vm_jobs.is_running(pass.key()),
            failure: world.vm_jobs.ended(pass.key()).and_then(|ended| ended.failure()),
            is_wanted: machine.as_ref().is_some_and(AgentMachineView::is_waiting),
            is_pointless: machine.as_ref().is_none_or(|machine| machine.is_deleting)
                && object.labels().get(CREATED_FOR).is_some_and(|value| value == FOR_AGENT_MACHINE)
                || object.is_spare() && pool.as_ref().is_some_and(|pool| pool.buffer() == 0),
            is_installed: self.is_installed(&object),
            is_shared: self.is_shared(&object),
            now: pass.started(),
        };
        let plan = plan(&seen);
        self.apply(plan, draft, region.as_ref(), open.as_ref()).await
    }

    fn priority(&self, object: Option<&VsphereAgent>, cause: Cause) -> i32 {
        let is_new = object.is_some_and(|agent| agent.recorded().is_none() || agent.is_deleting());
        if is_new { 100 } else { cause.usual_priority() }
    }
}

impl VmReconciler {
    /// Where its VM is, or is to be made.
    async fn region(
        &self,
        agent: &VsphereAgent,
        pool: &Arc<VsphereAgentPool>,
        now: Timestamp,
    ) -> Region {
        let is_whole = pool.spec.vsphere.failure_domains.is_empty();
        if is_whole || agent.is_deleting() || agent.is_adopted() {
            return Region::of_agent(pool, agent);
        }
        let world = &self.world;
        let chosen = |except: &str| {
            let name = world.choose_domain(pool, agent, except);
            Region::of(pool, &name).unwrap_or_else(|| Region::whole(pool))
        };
        let Some(record) = agent.recorded() else { return chosen("") };
        let before = Region::of_agent(pool, agent);
        let is_due = agent.status.next_attempt_at.as_ref().is_none_or(|at| at.0 <= now);
        // The VM that registered no Agent must be gone for certain before another one is made elsewhere.
        if record.reason == Some(Reason::VmReplacing) && record.bios_uuid.is_empty() && is_due {
            let site = world.site_of(&before).await;
            if self.sight(agent, Some(&before), Some(&site)) == Sight::Absent {
                return chosen(&before.domain);
            }
        }
        before
    }

    /// What work that ended has to say goes into the record.
    fn take_ended(&self, draft: &mut Draft<VsphereAgent>, now: Timestamp) {
        let key = draft.key();
        let Some(ended) = self.world.vm_jobs.ended(&key) else { return };
        match ended.as_ref() {
            VmEnded::Made(made) => {
                let name = draft.vm_name();
                let record = draft.status.vm.get_or_insert_with(|| OwnedVm::named(name));
                record.bios_uuid.clone_from(&made.bios_uuid);
                record.mac_address.clone_from(&made.mac_address);
                if record.reason == Some(Reason::VmReplacing) || record.phase.is_none() {
                    super::apply::set(record, Reason::CreateRequested, now);
                }
                draft.status.next_attempt_at = None;
                let (reason, note) = if made.recovered {
                    ("VMRecovered", "recovered")
                } else {
                    ("VMCreated", "created")
                };
                self.world.events.normal(
                    &VsphereAgent::clone(draft),
                    reason,
                    &format!("VM {} was {note}", draft.vm_name()),
                );
            }
            VmEnded::Ejected => {
                draft.status.iso_ejected = true;
                draft.status.iso_path.clear();
            }
            VmEnded::Quarantined { name } => {
                draft.status.quarantined_at = Some(Time(whole_seconds(now)));
                self.world.events.normal(
                    &VsphereAgent::clone(draft),
                    "VMQuarantined",
                    &format!("VM {} is powered off and called {name}", draft.vm_name()),
                );
            }
            VmEnded::Destroyed => {
                self.world.events.normal(
                    &VsphereAgent::clone(draft),
                    "VMDeleted",
                    &format!("VM {} was deleted", draft.vm_name()),
                );
            }
            // It stays until it is old enough for another try.
            VmEnded::Failed { .. } => return,
            VmEnded::PoweredOn | VmEnded::Marked => {}
        }
        self.world.vm_jobs.take_ended(&key);
    }

    /// The pool does not record what is being deleted, so the phase is found here: a worker in use keeps its object until its Machine is gone.
    fn follow_phase(
        &self,
        draft: &mut Draft<VsphereAgent>,
        pool: &VsphereAgentPool,
        now: Timestamp,
    ) {
        let Some(vm) = draft.recorded().filter(|vm| !vm.bios_uuid.is_empty()).cloned() else {
            return;
        };
        let world = &self.world;
        let mut agents = world.agents_in(&draft.namespace().unwrap_or_default());
        // Two vCenters may give the same address to two cards: another uuid is another VM.
        agents.retain(|it| it.identity.uuid.is_empty() || matches_uuid(&vm, &it.identity));
        let machines = world.machines_of(pool);
        let machine = vm.machine_ref.as_ref().and_then(|it| it.name.clone());
        let has_machine = machines.iter().any(|it| Some(&it.name) == machine.as_ref());
        let records = vec![Record { vm, managed: true, made: true, ..Record::default() }];
        let input = PhaseInput {
            pool,
            agents: &agents.iter().collect::<Vec<_>>(),
            machines: &machines,
            agent_machines: &world.agent_machines_of(pool),
            now,
        };
        // Ours is the first; Agents that it does not explain come after it.
        let found = refresh(records, &input).into_iter().next().map(|record| record.vm);
        let is_in_use = found.as_ref().is_some_and(OwnedVm::is_in_use);
        // An Agent that somebody deleted, or that registered anew, does not free its VM while its Machine lives.
        if is_in_use || !has_machine {
            draft.status.vm = found;
        }
    }

    fn machine_of(
        &self,
        agent: &VsphereAgent,
        pool: &VsphereAgentPool,
    ) -> Option<AgentMachineView> {
        let label = agent.labels().get(AGENT_MACHINE_LABEL);
        let machines = self.world.agent_machines_of(pool);
        machines.into_iter().find(|machine| match label {
            Some(label) => label_value(&machine.name) == *label,
            None => machine.name == agent.vm_name(),
        })
    }

    fn iso(&self, pool: &VsphereAgentPool) -> Iso {
        let url = match self.world.iso_url(pool) {
            Ok(url) => url,
            Err(why) => return Iso::NoInfraEnv { why },
        };
        let not_yet = |why: &str| Iso::NotYet { why: why.to_owned() };
        match &pool.status.iso {
            Some(iso)
                if iso.url == url && iso.path.starts_with(&format!("{}/", pool.iso_prefix())) =>
            {
                let token = pool.force_refresh_token();
                if !token.is_empty() && token != iso.force_refresh_token {
                    return not_yet("the ISO is being refreshed");
                }
                Iso::Ready(iso.path.clone())
            }
            _ => {
                let failed = pool
                    .status
                    .conditions
                    .iter()
                    .find(|it| it.type_ == "ISOReady" && it.status == "False");
                not_yet(
                    failed.map_or("the ISO is not on the datastore yet", |it| it.message.as_str()),
                )
            }
        }
    }

    fn sight(
        &self,
        agent: &VsphereAgent,
        region: Option<&Region>,
        site: Option<&SiteState>,
    ) -> Sight {
        let blind = |why: &str| Sight::Blind { why: why.to_owned() };
        let (Some(region), Some(site)) = (region, site) else { return blind("there is no pool") };
        let site = match site {
            SiteState::Open(site) => site,
            SiteState::Connecting => return blind("connecting to the vCenter"),
            SiteState::Failed { why } => return blind(why),
        };
        let snapshot = site.fleet.mirror().snapshot();
        if let Some(row) = find_row(agent, &snapshot) {
            return Sight::There(row);
        }
        if !self.world.shows(site, region) {
            return blind("the view of the vCenter is not complete");
        }
        // Where it was made is not looked at, so that nothing is known.
        let domain = agent.failure_domain();
        if region.domain.is_empty() && !domain.is_empty() {
            return blind(&format!(
                "its VM was made in failure domain {domain}, which spec.vsphere.failureDomains does not name any more"
            ));
        }
        Sight::Absent
    }

    fn is_installed(&self, agent: &VsphereAgent) -> bool {
        let name = agent.recorded().and_then(|vm| vm.agent_ref.as_ref()?.name.clone());
        let namespace = agent.namespace().unwrap_or_default();
        let agents = self.world.agents_in(&namespace);
        name.is_some_and(|name| agents.iter().any(|it| it.name == name && it.is_installed))
    }

    /// Whether a VsphereAgent that stays stands for the same VM, so that it must not be destroyed with this one.
    fn is_shared(&self, agent: &VsphereAgent) -> bool {
        let Some(own) = agent.recorded() else { return false };
        let namespace = agent.namespace().unwrap_or_default();
        let others = self.world.agents_of_namespace.objects(&namespace);
        others.iter().any(|other| {
            let is_other = other.uid() != agent.uid()
                && !other.is_deleting()
                && other.is_of_pool(&agent.spec.pool_ref.name);
            let Some(vm) = other.recorded().filter(|_| is_other) else { return false };
            let differs = agent.name_any() != own.name || agent.is_adopted() && !other.is_adopted();
            vm.name == own.name || same_machine(vm, own) && differs
        })
    }
}

/// By the marker in the VM; or, for one that was made before there were markers, by its recorded uuid.
fn find_row(agent: &VsphereAgent, snapshot: &Snapshot) -> Option<Row> {
    let uid = agent.uid().unwrap_or_default();
    let request = FORGE.request(uid);
    if let Some(vm) = snapshot.serving(&request).next() {
        return Some(Row { vm: vm.id.clone(), is_on: vm.is_on(), is_marked: true });
    }
    let record = agent.recorded()?;
    let is_it = |uuid: &str| {
        !record.bios_uuid.is_empty() && identity::uuid(uuid) == identity::uuid(&record.bios_uuid)
    };
    let mut named = snapshot.named(&record.name).filter(|vm| vm.claim.is_none());
    let found = named.find(|vm| vm.uuid.as_deref().is_some_and(is_it))?;
    Some(Row { vm: found.id.clone(), is_on: found.is_on(), is_marked: false })
}

/// The pool remembers phases; its VsphereAgents show them.
fn copy_phase(draft: &mut Draft<VsphereAgent>, pool: &VsphereAgentPool) {
    let Some(own) = draft.recorded().cloned() else { return };
    let Some(of_pool) = pool.status.owned_vms.iter().find(|vm| vm.name == own.name) else { return };
    let is_another =
        !own.bios_uuid.is_empty() && !of_pool.bios_uuid.is_empty() && !same_machine(&own, of_pool);
    let is_fresh = matches!(of_pool.reason, Some(Reason::VmReplacing | Reason::VmCreatePending));
    if own.reason == Some(Reason::VmReplacing) || is_another || is_fresh {
        return;
    }
    let keep =
        |own: &str, other: &str| if own.is_empty() { other.to_owned() } else { own.to_owned() };
    draft.status.vm = Some(OwnedVm {
        bios_uuid: keep(&own.bios_uuid, &of_pool.bios_uuid),
        mac_address: keep(&own.mac_address, &of_pool.mac_address),
        failure_domain: keep(&own.failure_domain, &of_pool.failure_domain),
        ..of_pool.clone()
    });
}
