use super::*;
use crate::api::{ActionKind, CleanupSpec};

fn kinds(plan: &CapacityPlan) -> Vec<ActionKind> {
    plan.actions().iter().map(|action| action.kind).collect()
}

fn deleted(plan: &CapacityPlan) -> Vec<(&str, Option<&str>)> {
    plan.deletions.iter().map(|it| (it.vm.as_str(), it.agent.as_deref())).collect()
}

#[test]
fn waiting_machines_without_agents_or_vms_are_a_deficit() {
    let bound = (0..3).map(|i| bound_agent(&format!("b-{i}"), "m")).collect();
    let mut case = Case::new(waiting(5), bound, vec![]);
    case.demand.total = 8;
    let plan = case.plan();
    assert_eq!((plan.deficit, plan.bound, plan.available), (5, 3, 0));
    assert_eq!(kinds(&plan), [ActionKind::DemandDeficit; 5]);
}

#[test]
fn vms_on_their_way_count_towards_the_demand() {
    let on_its_way = |name| vm(name, Phase::Provisioning, Reason::AgentNotDiscovered);
    let plan = Case::new(waiting(2), vec![], vec![on_its_way("a"), on_its_way("b")]).plan();
    assert_eq!((plan.deficit, plan.pending), (0, 2));
    assert_eq!(kinds(&plan), [ActionKind::Noop]);

    let bound = vm("c", Phase::Bound, Reason::AgentBound);
    let plan = Case::new(waiting(4), vec![], vec![on_its_way("a"), on_its_way("b"), bound]).plan();
    assert_eq!((plan.deficit, plan.pending), (2, 2));
}

#[test]
fn more_than_enough_is_no_deficit() {
    let plan = Case::new(waiting(1), vec![agent("a"), agent("b")], vec![]).plan();
    assert_eq!((plan.deficit, kinds(&plan)), (0, vec![ActionKind::Noop]));
}

/// Weakness 21: such an Agent cannot be chosen, so it must not hide the deficit.
#[test]
fn an_agent_that_is_pinned_elsewhere_does_not_serve_the_demand() {
    let mut elsewhere = agent("a");
    elsewhere.labels.insert(AGENT_MACHINE_LABEL.into(), "another".into());
    let mut here = agent("b");
    here.labels.insert(AGENT_MACHINE_LABEL.into(), "w-0".into());
    let released = refers(vm("c", Phase::Released, Reason::AgentReleased), "c");
    let plan = Case::new(waiting(2), vec![elsewhere, here, agent("c")], vec![released]).plan();
    assert_eq!((plan.available, plan.deficit), (3, 1));
}

#[test]
fn agents_without_a_vm_of_ours_are_not_prepared() {
    for demand in [Demand::default(), waiting(1)] {
        let plan = Case::new(demand, vec![fresh_agent("a")], vec![]).plan();
        assert_eq!(plan.patches, Vec::<String>::new());
    }
}

#[test]
fn the_agent_of_a_vm_is_prepared_also_without_demand() {
    let mac = "00:50:56:aa:bb:cc";
    let mut owned = vm("a", Phase::Provisioning, Reason::AgentNotDiscovered);
    owned.mac_address = identity::mac(mac);
    let fresh = identified(fresh_agent("x"), "", &[mac]);
    let plan = Case::new(Demand::default(), vec![fresh.clone()], vec![owned.clone()]).plan();
    assert_eq!(plan.patches, ["x"]);

    // A bound one is never touched.
    let bound = AgentView { cluster: "blue".into(), ..fresh };
    assert!(Case::new(Demand::default(), vec![bound], vec![owned]).plan().patches.is_empty());
}

#[test]
fn a_prepared_agent_is_selected_anew_only_while_somebody_waits() {
    let owned = refers(vm("a", Phase::Available, Reason::AgentAvailable), "a");
    for (demand, wanted) in [(waiting(1), 1), (Demand::default(), 0)] {
        let mut case = Case::new(demand, vec![agent("a")], vec![owned.clone()]);
        case.demand.without_agent = 1;
        assert_eq!(case.plan().patches.len(), wanted);
    }
    let released = refers(vm("a", Phase::Released, Reason::AgentReleased), "a");
    assert!(Case::new(waiting(1), vec![agent("a")], vec![released]).plan().patches.is_empty());
}

#[test]
fn an_unapproved_agent_is_settled_where_the_pool_does_not_approve() {
    let owned = refers(vm("a", Phase::Available, Reason::AgentAvailable), "a");
    let unapproved = AgentView { approved: false, ..agent("a") };
    let mut case = Case::new(Demand::default(), vec![unapproved], vec![owned]);
    case.demand.without_agent = 1;
    assert_eq!(case.plan().patches, ["a"]);
    case.pool.spec.agent.approve = Some(false);
    assert!(case.plan().patches.is_empty());
}

#[test]
fn orphans_go_when_nobody_wants_an_agent() {
    let orphan = |name| vm(name, Phase::Orphaned, Reason::AgentDiscoveryExpired);
    let plan = Case::new(Demand::default(), vec![], vec![orphan("a"), orphan("b")]).plan();
    assert_eq!(deleted(&plan), [("a", None), ("b", None)]);
    assert_eq!(plan.pending, 0);
}

#[test]
fn vms_on_their_way_are_never_deleted_as_surplus() {
    let on_its_way = vm("a", Phase::Provisioning, Reason::AgentNotDiscovered);
    assert!(Case::new(Demand::default(), vec![], vec![on_its_way]).plan().deletions.is_empty());
}

#[test]
fn surplus_goes_with_its_agent_and_not_while_anybody_lacks_one() {
    let owned = refers(vm("a", Phase::Available, Reason::AgentAvailable), "x");
    let mut case = Case::new(Demand::default(), vec![agent("x")], vec![owned]);
    let plan = case.plan();
    assert_eq!(deleted(&plan), [("a", Some("x"))]);
    assert_eq!(kinds(&plan), [ActionKind::DeleteVm, ActionKind::DeleteAgent]);
    case.demand.without_agent = 1;
    assert!(case.plan().deletions.is_empty());
}

#[test]
fn nothing_goes_during_a_scale_up() {
    let case = Case::new(
        waiting(1),
        vec![agent("x"), agent("y")],
        vec![
            refers(vm("a", Phase::Available, Reason::AgentAvailable), "x"),
            vm("b", Phase::Orphaned, Reason::AgentDiscoveryExpired),
            refers(vm("c", Phase::Released, Reason::AgentReleased), "y"),
        ],
    );
    assert!(case.plan().deletions.is_empty());
}

#[test]
fn the_vm_of_a_deleted_machine_goes_with_its_agent_also_during_a_scale_up() {
    let gone = |name, agent| refers(vm(name, Phase::Released, Reason::MachineDeleted), agent);
    let case =
        Case::new(waiting(1), vec![agent("x"), agent("y")], vec![gone("a", "x"), gone("b", "y")]);
    let plan = case.plan();
    assert_eq!(deleted(&plan), [("a", Some("x")), ("b", Some("y"))]);
    assert_eq!(plan.actions().iter().filter(|a| a.kind != ActionKind::PatchAgent).count(), 5);
}

#[test]
fn retain_keeps_everything() {
    let mut case = Case::new(
        Demand::default(),
        vec![agent("x")],
        vec![
            refers(vm("a", Phase::Available, Reason::AgentAvailable), "x"),
            vm("b", Phase::Orphaned, Reason::AgentDiscoveryExpired),
            vm("c", Phase::Released, Reason::MachineDeleted),
        ],
    );
    case.pool = retaining();
    assert_eq!(kinds(&case.plan()), [ActionKind::Noop]);
}

/// Weakness 4: a host of somebody else that is in the InfraEnv was adopted, and deleted as surplus later.
#[test]
fn what_no_object_of_ours_stands_for_is_never_deleted() {
    let owned = refers(vm("a", Phase::Available, Reason::AgentAvailable), "x");
    let mut case = Case::new(Demand::default(), vec![agent("x")], vec![owned]);
    case.owned[0].managed = false;
    assert!(case.plan().deletions.is_empty());
    (case.owned[0].managed, case.owned[0].protected) = (true, true);
    assert!(case.plan().deletions.is_empty(), "protected");
}

#[test]
fn an_agent_whose_identity_is_another_does_not_go_with_a_vm() {
    let mut owned = refers(vm("a", Phase::Released, Reason::MachineDeleted), "x");
    owned.bios_uuid = "42324d21-274c-03a8-b6fe-f9e8edb55e33".into();
    let other = identified(agent("x"), "00000000-274c-03a8-b6fe-f9e8edb55e33", &[]);
    let plan = Case::new(Demand::default(), vec![other], vec![owned]).plan();
    assert_eq!(deleted(&plan), [("a", None)]);
}

/// Weakness 2: Roost was away while the Machine was deleted.
#[test]
fn a_released_vm_whose_machine_is_gone_goes_after_a_grace() {
    let mut owned = paired_with(refers(vm("a", Phase::Released, Reason::AgentReleased), "x"), "m");
    owned.last_transition_time = Some(minutes_ago(9));
    let mut case = Case::new(waiting(1), vec![agent("x")], vec![owned]);
    assert!(case.plan().deletions.is_empty(), "too early");
    case.owned[0].vm.last_transition_time = Some(minutes_ago(10));
    assert_eq!(case.plan().deletions[0].why, DeleteWhy::MachineAbsent);
    case.machines = vec![machine("m", false)];
    assert!(case.plan().deletions.is_empty(), "the Machine is there");
    (case.machines, case.agent_machines) = (vec![], vec![agent_machine("a")]);
    assert!(case.plan().deletions.is_empty(), "its AgentMachine is there");
}

#[test]
fn what_is_not_needed_stays_for_its_grace_period() {
    let mut case = Case::new(
        Demand::default(),
        vec![agent("x"), agent("y")],
        vec![
            refers(vm("a", Phase::Available, Reason::AgentAvailable), "x"),
            refers(vm("b", Phase::Available, Reason::AgentAvailable), "y"),
            vm("c", Phase::Orphaned, Reason::AgentMissing),
        ],
    );
    let cleanup = |surplus: &str, orphan: &str, spares| CleanupSpec {
        surplus_grace_period: Some(surplus.into()),
        orphan_grace_period: Some(orphan.into()),
        keep_spares: Some(spares),
        ..CleanupSpec::default()
    };
    for (spec, wanted) in [
        (cleanup("2m", "2m", 0), vec![]),
        (cleanup("1m", "2m", 0), vec!["a", "b"]),
        (cleanup("2m", "30s", 0), vec!["c"]),
        (cleanup("0s", "2m", 1), vec!["b"]),
    ] {
        case.pool.spec.cleanup = Some(spec.clone());
        let plan = case.plan();
        let vms: Vec<&str> = plan.deletions.iter().map(|it| it.vm.as_str()).collect();
        assert_eq!(vms, wanted, "{spec:?}");
    }
}

#[test]
fn the_next_look_is_when_the_grace_of_an_agent_given_back_ends() {
    let mut case = Case::new(
        Demand::default(),
        vec![],
        vec![
            vm("a", Phase::Released, Reason::AgentReleased),
            vm("b", Phase::Bound, Reason::AgentBound),
        ],
    );
    for (grace, left) in [("1h", Some(59 * 60)), ("90s", Some(30)), ("1m", None), ("0s", None)] {
        let absent_grace_period = Some(grace.into());
        case.pool.spec.cleanup =
            Some(CleanupSpec { absent_grace_period, ..CleanupSpec::default() });
        let told = grace_left(&case.pool, &case.owned, now());
        assert_eq!(told.map(|left| left.as_secs()), left, "{grace}");
    }
}

#[test]
fn demand_is_counted_over_machines_that_stay() {
    let ready = AgentMachineView { is_ready: true, has_agent: true, ..agent_machine("a") };
    let installing = AgentMachineView { has_agent: true, ..agent_machine("b") };
    let lacks = AgentMachineView { lacks_agent: true, ..agent_machine("c") };
    let silent = agent_machine("d");
    let going = AgentMachineView { is_deleting: true, lacks_agent: true, ..agent_machine("e") };
    let demand = count_demand([&ready, &installing, &lacks, &silent, &going]);
    assert_eq!((demand.total, demand.unready, demand.without_agent), (4, 3, 2));
    assert_eq!(demand.waiting.into_iter().collect::<Vec<_>>(), ["c"]);
}
