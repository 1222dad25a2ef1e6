use super::*;
use crate::api::{VsphereAgent, VsphereAgentSpec};

fn matched(pool: &VsphereAgentPool, agents: &[AgentView], owned: &[Record]) -> Vec<String> {
    let found = matching_agents(pool, agents, owned, &Claims::default());
    found.into_iter().map(|agent| agent.name.clone()).collect()
}

fn owned_with_mac(name: &str, mac: &str) -> Record {
    let mut vm = vm(name, Phase::Provisioning, Reason::AgentNotDiscovered);
    vm.mac_address = identity::mac(mac);
    record(vm)
}

#[test]
fn agents_of_another_cluster_are_not_ours() {
    let other = AgentView { cluster: "green".into(), ..agent("a") };
    let own = AgentView { cluster: "blue".into(), ..agent("b") };
    assert_eq!(matched(&pool(), &[other, own], &[]), ["b"]);
}

#[test]
fn agents_need_the_labels_of_the_pool_unless_they_are_a_vm_of_ours() {
    let mut bare = identified(agent("a"), "", &["m"]);
    bare.labels.remove("tenant");
    assert!(matched(&pool(), std::slice::from_ref(&bare), &[]).is_empty());
    assert_eq!(matched(&pool(), &[bare.clone()], &[owned_with_mac("vm", "m")]), ["a"]);
    let elsewhere = AgentView { infra_envs: vec!["other".into()], ..agent("c") };
    assert!(matched(&pool(), &[elsewhere], &[]).is_empty(), "of another InfraEnv");
    let going = AgentView { is_deleting: true, ..agent("d") };
    assert!(matched(&pool(), &[going], &[]).is_empty());
}

#[test]
fn pools_that_share_an_infra_env_are_told_apart() {
    let labelled = |name: &str, value: &str| {
        let mut agent = agent(name);
        agent.labels.insert(NODEPOOL_LABEL.into(), value.into());
        agent
    };
    let agents =
        [labelled("a", "gp"), labelled("b", "gpu"), identified(agent("c"), "", &["m"]), agent("d")];
    assert_eq!(matched(&pool(), &agents, &[]), ["c", "d"], "a pool without the label");
    let gp = with_discriminator("gp");
    assert_eq!(matched(&gp, &agents, &[]), ["a"]);
    assert_eq!(matched(&gp, &agents, &[owned_with_mac("vm", "m")]), ["a", "c"], "not labelled yet");
    let bound = AgentView { cluster: "blue".into(), ..agents[2].clone() };
    assert!(matched(&gp, &[bound], &[owned_with_mac("vm", "m")]).is_empty());
}

#[test]
fn what_another_pool_has_is_not_ours() {
    let mut other =
        VsphereAgent::new("blue", "x", VsphereAgentSpec { pool_ref: NameRef::new("green") });
    let found = |other: &VsphereAgent, agent: AgentView| {
        let agents = [agent];
        matching_agents(&pool(), &agents, &[], &Claims::of("blue-gp", [other])).len()
    };
    assert_eq!(found(&other, agent("x")), 0, "by its name");
    assert_eq!(found(&other, agent("y")), 1);
    other.status.vm = Some(OwnedVm { mac_address: "m".into(), ..refers(OwnedVm::named("z"), "q") });
    assert_eq!(found(&other, agent("q")), 0, "by its Agent");
    assert_eq!(found(&other, identified(agent("y"), "", &["m"])), 0, "by its card");
    assert_eq!(found(&other, identified(agent("z"), "", &["n"])), 1, "the name alone does not do");
    other.spec.pool_ref = NameRef::new("blue-gp");
    assert_eq!(found(&other, agent("q")), 1, "our own");
}

/// Two vCenters gave two cards the same address: the uuid tells the VMs apart.
#[test]
fn an_address_that_two_vms_share_counts_only_where_the_uuid_does_not_tell() {
    let (one, other) =
        ("42324d21-274c-03a8-b6fe-f9e8edb55e33", "52324d21-274c-03a8-b6fe-f9e8edb55e33");
    let with_uuid = |name: &str, uuid: &str| {
        let mut record = owned_with_mac(name, "00-50-56-80-00-05");
        record.vm.bios_uuid = uuid.into();
        record
    };
    let owned = [with_uuid("a", one), with_uuid("b", other)];
    let mut agents = [
        identified(fresh_agent("x"), other, &["00-50-56-80-00-05"]),
        identified(fresh_agent("y"), "", &["00-50-56-80-00-05"]),
    ];
    settle_identities(&mut agents, &owned);
    let all: Vec<&AgentView> = agents.iter().collect();
    assert_eq!(assign_hostnames(&all[..1], &owned)["x"], "b");
    assert_eq!(agents[1].identity.macs.len(), 1, "there the address is all that is known");
}

#[test]
fn host_names_go_to_the_surest_match() {
    let with = |name: &str, mac: &str| owned_with_mac(name, mac);
    let names = |agents: &[AgentView], owned: &[Record]| {
        let agents: Vec<&AgentView> = agents.iter().collect();
        assign_hostnames(&agents, owned).into_iter().collect::<Vec<_>>()
    };
    let pair = |agent: &str, vm: &str| (agent.to_owned(), vm.to_owned());
    let fresh = |name: &str, mac: &str| identified(fresh_agent(name), "", &[mac]);
    assert_eq!(
        names(&[fresh("x", "2")], &[with("a", "1"), with("b", "2")]),
        [pair("x", "b")],
        "identity before any free VM"
    );
    let named = AgentView { hostname: "b".into(), ..fresh_agent("x") };
    let free = |name: &str| record(vm(name, Phase::Provisioning, Reason::AgentNotDiscovered));
    assert_eq!(names(&[named], &[free("a"), free("b")]), [pair("x", "b")]);
    let referred = record(refers(vm("b", Phase::Available, Reason::AgentAvailable), "x"));
    assert_eq!(names(&[fresh_agent("x")], &[free("a"), referred]), [pair("x", "b")]);
    let reported = AgentView { inventory_hostname: "b".into(), ..fresh_agent("x") };
    assert_eq!(names(&[reported], &[free("a"), free("b")]), [pair("x", "b")]);
    assert!(names(&[fresh_agent("x")], &[free("a"), free("b")]).is_empty(), "no guess");
    let twins = [fresh("x", "1"), fresh("y", "1")];
    assert_eq!(names(&twins, &[with("a", "1")]), [pair("x", "a")], "one VM is one Agent");
    let bound = record(vm("b", Phase::Bound, Reason::AgentBound));
    let reported = AgentView { inventory_hostname: "b".into(), ..fresh_agent("x") };
    assert!(names(&[reported], &[bound]).is_empty());
}
