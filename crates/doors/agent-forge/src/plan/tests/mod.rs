//! The upstream inventory of behaviours, and where ours is safer.

mod capacity;
mod matching;
mod phases;
mod properties;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::api::names::{
    AGENT_MACHINE_LABEL, AGENT_MACHINE_REF, INFRA_ENV_LABEL, NODEPOOL_LABEL, NODEPOOL_ROLE,
};
use crate::api::{AgentSpec, NameRef, OwnedVm, Phase, PoolSpec, Reason, VsphereAgentPool};
use crate::identity::{self, Identity};
use crate::outside::{AgentMachineView, AgentView, MachineView};

fn now() -> Timestamp {
    "2026-07-01T12:00:00Z".parse().unwrap()
}

fn minutes_ago(minutes: i64) -> Time {
    Time(now() - SignedDuration::from_mins(minutes))
}

fn pool() -> VsphereAgentPool {
    let spec = PoolSpec {
        hosted_cluster_ref: NameRef::new("blue"),
        node_pool_ref: NameRef::new("blue-gp"),
        infra_env_ref: NameRef::new("blue-env"),
        control_plane_namespace: "blue-blue".into(),
        agent: AgentSpec {
            labels: [("tenant".to_owned(), "blue".to_owned())].into(),
            ..AgentSpec::default()
        },
        ..PoolSpec::default()
    };
    VsphereAgentPool::new("blue", "blue-gp", spec)
}

fn retaining() -> VsphereAgentPool {
    let mut pool = pool();
    pool.spec.cleanup_policy = Some(crate::api::CleanupPolicy::Retain);
    pool
}

fn with_discriminator(value: &str) -> VsphereAgentPool {
    let mut pool = pool();
    pool.spec.agent.labels.insert(NODEPOOL_LABEL.into(), value.into());
    pool
}

/// One that was prepared and is free.
fn agent(name: &str) -> AgentView {
    AgentView {
        namespace: "blue".into(),
        name: name.into(),
        labels: [("tenant", "blue"), (NODEPOOL_ROLE, "worker"), (INFRA_ENV_LABEL, "blue-env")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        infra_envs: vec!["blue-env".into()],
        approved: true,
        role: "worker".into(),
        hostname: name.into(),
        ..AgentView::default()
    }
}

/// As it registers itself.
fn fresh_agent(name: &str) -> AgentView {
    let mut agent = agent(name);
    agent.labels.remove(NODEPOOL_ROLE);
    AgentView { approved: false, role: String::new(), hostname: String::new(), ..agent }
}

fn bound_agent(name: &str, machine: &str) -> AgentView {
    let mut agent = agent(name);
    agent.labels.insert(AGENT_MACHINE_REF.into(), machine.into());
    agent.labels.insert(AGENT_MACHINE_LABEL.into(), machine.into());
    AgentView { cluster: "blue".into(), ..agent }
}

fn identified(agent: AgentView, uuid: &str, macs: &[&str]) -> AgentView {
    let macs = macs.iter().map(|mac| identity::mac(mac)).collect();
    AgentView {
        identity: Identity { uuid: identity::uuid(uuid), macs, is_settled: false },
        ..agent
    }
}

fn vm(name: &str, phase: Phase, reason: Reason) -> OwnedVm {
    OwnedVm {
        phase: Some(phase),
        reason: Some(reason),
        last_transition_time: Some(minutes_ago(1)),
        ..OwnedVm::named(name)
    }
}

fn record(vm: OwnedVm) -> Record {
    Record { vm, managed: true, made: true, ..Record::default() }
}

fn refers(mut vm: OwnedVm, agent: &str) -> OwnedVm {
    vm.agent_ref = Some(ObjectReference { name: Some(agent.into()), ..ObjectReference::default() });
    vm
}

fn paired_with(mut vm: OwnedVm, machine: &str) -> OwnedVm {
    vm.machine_ref =
        Some(ObjectReference { name: Some(machine.into()), ..ObjectReference::default() });
    vm
}

fn machine(name: &str, is_deleting: bool) -> MachineView {
    MachineView {
        namespace: "blue-blue".into(),
        name: name.into(),
        node_pool: "blue/blue-gp".into(),
        is_deleting,
    }
}

fn agent_machine(name: &str) -> AgentMachineView {
    AgentMachineView {
        namespace: "blue-blue".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
        node_pool: "blue/blue-gp".into(),
        ..AgentMachineView::default()
    }
}

fn waiting(count: usize) -> Demand {
    let waiting: std::collections::BTreeSet<String> =
        (0..count).map(|i| format!("w-{i}")).collect();
    Demand { total: count, unready: count, without_agent: count, waiting }
}

/// A world to plan in.
struct Case {
    pool: VsphereAgentPool,
    demand: Demand,
    agents: Vec<AgentView>,
    owned: Vec<Record>,
    machines: Vec<MachineView>,
    agent_machines: Vec<AgentMachineView>,
}

impl Case {
    fn new(demand: Demand, agents: Vec<AgentView>, owned: Vec<OwnedVm>) -> Self {
        let owned = owned.into_iter().map(record).collect();
        Self { pool: pool(), demand, agents, owned, machines: vec![], agent_machines: vec![] }
    }

    fn plan(&self) -> CapacityPlan {
        let agents: Vec<&AgentView> = self.agents.iter().collect();
        build_plan(&PlanInput {
            pool: &self.pool,
            demand: &self.demand,
            agents: &agents,
            owned: &self.owned,
            machines: &self.machines,
            agent_machines: &self.agent_machines,
            now: now(),
        })
    }

    fn refreshed(&self) -> Vec<OwnedVm> {
        self.refreshed_records().into_iter().map(|record| record.vm).collect()
    }

    fn refreshed_records(&self) -> Vec<Record> {
        let agents: Vec<&AgentView> = self.agents.iter().collect();
        let input = PhaseInput {
            pool: &self.pool,
            agents: &agents,
            machines: &self.machines,
            agent_machines: &self.agent_machines,
            now: now(),
        };
        refresh(self.owned.clone(), &input)
    }
}
