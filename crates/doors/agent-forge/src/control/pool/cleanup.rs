use std::sync::Arc;
use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use roost_controller::{Draft, Key, Next};
use roost_fleet::{Basis, Candidate, Draft as Decision, Evidence, Outcome, Vm};
use serde_json::json;

use super::isos::Left;
use super::reconcile::{PlaceView, PoolReconciler, RESYNC, Round};
use crate::api::names::{AGENT_MACHINE_LABEL, DELETE_AGENT, POOL_FINALIZER};
use crate::api::{Phase, PoolDefaults, VsphereAgent, VsphereAgentPool};
use crate::control::conditions::{BLOCKED, Wanted};
use crate::control::error::ForgeError;
use crate::control::region::Region;
use crate::control::world::lock;
use crate::outside::AgentView;
use crate::plan::{DeleteWhy, Deletion};
use crate::vcenter::FORGE;

/// Children that go are looked at again after this time.
const CHILDREN: Duration = Duration::from_secs(10);

/// A deletion, its VM, and the object that stands for it.
type Wish<'a> = (&'a Deletion, Option<Arc<Vm>>, Arc<VsphereAgent>);

fn basis(why: DeleteWhy) -> Basis {
    match why {
        // Seen to come to its end, on views that are whole.
        DeleteWhy::MachineDeleted | DeleteWhy::Surplus => Basis::Finished,
        // Rests on what is not there.
        DeleteWhy::MachineAbsent => Basis::Absent,
        // Rests on a clock.
        DeleteWhy::Orphaned => Basis::Expired,
    }
}

impl PoolReconciler {
    /// Gives up the VMs that are not needed: through the guard, and only by deleting their VsphereAgents.
    pub(super) async fn clean_up(&self, round: &Round, failures: &mut Vec<String>) {
        let mut wanted: Vec<(&Deletion, Arc<VsphereAgent>)> = Vec::new();
        for deletion in &round.plan.deletions {
            for agent in self.standing_for(&round.pool, &deletion.vm) {
                wanted.push((deletion, agent));
            }
        }
        for place in &round.places {
            let is_here = |agent: &VsphereAgent| {
                Region::of_agent(&round.pool, agent).domain == place.region.domain
            };
            let here = wanted.iter().filter(|(_, agent)| is_here(agent)).cloned().collect();
            self.clean_up_place(round, place, here, failures).await;
        }
    }

    async fn clean_up_place(
        &self,
        round: &Round,
        place: &PlaceView,
        wanted: Vec<(&Deletion, Arc<VsphereAgent>)>,
        failures: &mut Vec<String>,
    ) {
        let owner = Key::of(round.pool.as_ref()).to_string();
        let Some(site) = place.open() else { return };
        let snapshot = site.fleet.mirror().snapshot();
        let (inventory, demand) = self.evidence(round, place);
        let now = self.world.now();
        let row_of = |agent: &VsphereAgent| {
            let uid = agent.uid().unwrap_or_default();
            snapshot.serving(&FORGE.request(uid)).next().cloned()
        };
        let is_unmarked = |agent: &VsphereAgent| {
            let Some(record) = agent.recorded().filter(|vm| !vm.bios_uuid.is_empty()) else {
                return false;
            };
            let own = crate::identity::uuid(&record.bios_uuid);
            let is_it = |uuid: &str| crate::identity::uuid(uuid) == own;
            snapshot.named(&record.name).any(|vm| vm.uuid.as_deref().is_some_and(is_it))
        };
        let wanted: Vec<Wish<'_>> =
            wanted.into_iter().map(|(it, agent)| (it, row_of(&agent), agent)).collect();
        let candidates: Vec<Candidate> = wanted
            .iter()
            .filter_map(|(deletion, row, _)| {
                let row = row.as_ref()?;
                Some(Candidate {
                    vm: row.id.clone(),
                    name: Arc::clone(&row.name),
                    owner: row.owner().cloned(),
                    basis: basis(deletion.why),
                    why: deletion.why.words().into(),
                })
            })
            .collect();
        let own_vms = snapshot.owned_by(FORGE, &owner).count();
        let evidence = Evidence { inventory: &inventory, demand: &demand, own_vms };
        let verdicts = {
            let mut guards = lock(&self.world.guards);
            let guard = guards.entry((owner.clone(), place.region.domain.clone()));
            let guard = guard.or_insert_with(|| site.fleet.guard(&owner));
            guard.consider(&candidates, evidence, now)
        };
        for verdict in &verdicts {
            site.fleet.journal().record(Decision::from(verdict), now);
        }
        for (deletion, row, agent) in wanted {
            let may_go = match &row {
                Some(row) => {
                    verdicts.iter().any(|it| it.vm == row.id && it.outcome == Outcome::Delete)
                }
                // There is no VM to lose, if the view is one to believe. One of the operator's must get its marker first, or the guard would not see it.
                None => inventory.complete && !is_unmarked(&agent),
            };
            if !may_go {
                continue;
            }
            if let Err(error) = self.give_up(round, deletion, &agent).await {
                failures.push(Self::failure(
                    &format!("deleting VsphereAgent {}", agent.name_any()),
                    &error,
                ));
            }
        }
    }

    /// The VsphereAgents of a VM.
    fn standing_for(&self, pool: &VsphereAgentPool, vm: &str) -> Vec<Arc<VsphereAgent>> {
        let mut all = self.world.vsphere_agents_of(pool);
        all.retain(|agent| {
            let recorded = agent.recorded().is_some_and(|record| record.name == vm);
            !agent.is_deleting() && (recorded || agent.vm_name() == vm || agent.name_any() == vm)
        });
        all
    }

    /// Confirms with live reads that the worker is not in use, then deletes the VsphereAgent. The VM goes with it, and after the VM its Agent.
    async fn give_up(
        &self,
        round: &Round,
        deletion: &Deletion,
        agent: &VsphereAgent,
    ) -> Result<(), ForgeError> {
        let world = &self.world;
        let namespace = round.pool.namespace().unwrap_or_default();
        if let Some(name) = &deletion.agent {
            let api: Api<DynamicObject> =
                Api::namespaced_with(world.client.clone(), &namespace, &world.agent_kind);
            let failed = ForgeError::kube(format!("reading Agent {namespace}/{name}"));
            let found = api.get_opt(name).await.map_err(failed)?;
            if found.is_some_and(|found| AgentView::of(&found).is_bound()) {
                let note = format!("Agent {name} is bound; VM {} stays", deletion.vm);
                world.events.normal(round.pool.as_ref(), "AgentDeleteDeferred", &note);
                return Ok(());
            }
        }
        if deletion.why == DeleteWhy::MachineAbsent && self.is_there(round, deletion).await? {
            return Ok(());
        }
        let api: Api<VsphereAgent> = Api::namespaced(world.client.clone(), &namespace);
        let name = agent.name_any();
        let failed =
            |what: &str| ForgeError::kube(format!("{what} VsphereAgent {namespace}/{name}"));
        if let Some(of) = &deletion.agent
            && agent.annotations().get(DELETE_AGENT) != Some(of)
        {
            let patch = json!({"metadata": {"annotations": {DELETE_AGENT: of}}});
            match api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
                Err(error) => return Err(failed("annotating")(error)),
            }
        }
        tracing::info!(vm = deletion.vm, "VM {} goes: {}", deletion.vm, deletion.why.words());
        let params = DeleteParams {
            preconditions: Some(Preconditions { uid: agent.uid(), resource_version: None }),
            ..DeleteParams::default()
        };
        match api.delete(&name, &params).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {
                Ok(())
            }
            Err(error) => Err(failed("deleting")(error)),
        }
    }

    /// Whether Machine or AgentMachine are there after all, by live reads.
    async fn is_there(&self, round: &Round, deletion: &Deletion) -> Result<bool, ForgeError> {
        let world = &self.world;
        let namespace = &round.pool.spec.control_plane_namespace;
        let record = round.records.iter().find(|record| record.vm.name == deletion.vm);
        let paired = record.and_then(|it| it.vm.machine_ref.as_ref()?.name.clone());
        for name in [paired.as_deref().unwrap_or(&deletion.vm), &deletion.vm] {
            for kind in [&world.machine_kind, &world.agent_machine_kind] {
                let api: Api<DynamicObject> =
                    Api::namespaced_with(world.client.clone(), namespace, kind);
                let failed = ForgeError::kube(format!("reading {} {namespace}/{name}", kind.kind));
                if api.get_opt(name).await.map_err(failed)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The pool is deleted: its VsphereAgents first. Bound workers keep it, unless it is forced.
    pub(super) async fn finalize(
        &self,
        mut draft: Draft<VsphereAgentPool>,
    ) -> Result<Next, ForgeError> {
        let world = &self.world;
        let (now, generation) = (world.now(), draft.metadata.generation);
        let namespace = draft.namespace().unwrap_or_default();
        let children = world.vsphere_agents_of(&draft);
        let api: Api<VsphereAgent> = Api::namespaced(world.client.clone(), &namespace);
        let is_bound = |agent: &VsphereAgent| {
            agent.recorded().is_some_and(|vm| vm.phase == Some(Phase::Bound))
        };
        let keeps_bound = !draft.retains() && !draft.is_forced();
        let mut bound = Vec::new();
        for child in &children {
            if keeps_bound && is_bound(child) && !child.is_forced() {
                bound.push(child.name_any());
                continue;
            }
            if child.is_deleting() {
                continue;
            }
            match api.delete(&child.name_any(), &DeleteParams::default()).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                Err(error) => {
                    return Err(ForgeError::kube("deleting a VsphereAgent of the pool")(error));
                }
            }
        }
        let wanted = if bound.is_empty() {
            Wanted::no(BLOCKED, "NotBlocked", "no bound worker keeps the pool")
        } else {
            bound.sort();
            let why = format!(
                "{} are bound workers; scale the NodePool down, or set agent-forge.containeroo.ch/force-delete=true to destroy them",
                bound.join(", ")
            );
            Wanted::yes(BLOCKED, "BoundWorkers", why)
        };
        if !children.is_empty() {
            wanted.set(&mut draft.status.conditions, generation, now);
            world.writer.save_status(&mut draft).await?;
            return Ok(Next::After(if bound.is_empty() { CHILDREN } else { RESYNC }));
        }
        self.unpin(&draft).await?;
        let pool = Arc::new(VsphereAgentPool::clone(&draft));
        if let Left::Later = self.remove_isos(&pool).await {
            return Ok(Next::After(CHILDREN));
        }
        let key = draft.key();
        world.metrics.forget(&namespace, &draft.name_any());
        lock(&world.places).retain(|(pool, _), _| *pool != key);
        lock(&world.guards).retain(|(pool, _), _| *pool != key.to_string());
        draft.remove_finalizer(POOL_FINALIZER);
        world.writer.save_main(&mut draft).await?;
        Ok(Next::AwaitChange)
    }

    /// AgentMachines that still wait may take any Agent again.
    async fn unpin(&self, pool: &VsphereAgentPool) -> Result<(), ForgeError> {
        let world = &self.world;
        let namespace = &pool.spec.control_plane_namespace;
        let api: Api<DynamicObject> =
            Api::namespaced_with(world.client.clone(), namespace, &world.agent_machine_kind);
        for machine in world.agent_machines_of(pool) {
            if !machine.is_pinned() || machine.has_agent || machine.is_deleting {
                continue;
            }
            let labels = json!({AGENT_MACHINE_LABEL: null});
            let patch = json!({"spec": {"agentLabelSelector": {"matchLabels": labels}}});
            match api.patch(&machine.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                Err(error) => return Err(ForgeError::kube("unpinning an AgentMachine")(error)),
            }
        }
        Ok(())
    }
}
