use super::*;

const UUID: &str = "42324d21-274c-03a8-b6fe-f9e8edb55e33";

fn shown(vm: &OwnedVm) -> (Phase, Reason) {
    (vm.phase.unwrap(), vm.reason.unwrap())
}

#[test]
fn a_vm_that_is_not_discovered_in_time_is_an_orphan() {
    let mut owned = vm("a", Phase::Provisioning, Reason::AgentNotDiscovered);
    for (minutes, wanted) in [
        (29, (Phase::Provisioning, Reason::AgentNotDiscovered)),
        (30, (Phase::Orphaned, Reason::AgentDiscoveryExpired)),
    ] {
        owned.last_transition_time = Some(minutes_ago(minutes));
        let case = Case::new(waiting(1), vec![], vec![owned.clone()]);
        assert_eq!(shown(&case.refreshed()[0]), wanted, "{minutes}");
    }
    let mut case = Case::new(waiting(1), vec![], vec![owned]);
    case.pool.spec.discovery =
        Some(crate::api::DiscoverySpec { timeout: Some("1h".into()), max_attempts: None });
    assert_eq!(case.refreshed()[0].phase, Some(Phase::Provisioning));
}

/// Weakness 20: the clock ran before there was a VM.
#[test]
fn the_clock_of_a_discovery_starts_with_the_vm() {
    let mut pending = vm("a", Phase::Provisioning, Reason::VmCreatePending);
    pending.last_transition_time = Some(minutes_ago(90));
    let mut case = Case::new(waiting(1), vec![], vec![pending]);
    case.owned[0].made = false;
    assert_eq!(shown(&case.refreshed()[0]), (Phase::Provisioning, Reason::VmCreatePending));
    case.owned[0].made = true;
    let vms = case.refreshed();
    assert_eq!(shown(&vms[0]), (Phase::Provisioning, Reason::AgentNotDiscovered));
    assert_eq!(vms[0].last_transition_time, Some(Time(now())));
}

#[test]
fn a_vm_whose_agent_is_gone_is_an_orphan() {
    let owned = refers(vm("a", Phase::Available, Reason::AgentAvailable), "x");
    let mut case = Case::new(Demand::default(), vec![], vec![owned]);
    let vms = case.refreshed();
    assert_eq!(shown(&vms[0]), (Phase::Orphaned, Reason::AgentMissing));
    assert_eq!(vms[0].agent_ref, None);
    case.owned = vec![record(vms[0].clone())];
    assert_eq!(shown(&case.refreshed()[0]), (Phase::Orphaned, Reason::AgentDiscoveryExpired));
    // A late one is taken back.
    case.agents = vec![agent("a")];
    assert_eq!(shown(&case.refreshed()[0]), (Phase::Available, Reason::AgentAvailable));
}

/// Such a VM took the Agent for its own, missed it as soon as it had an identity, and was replaced for that, again and again.
#[test]
fn the_agent_that_an_earlier_vm_left_is_not_that_of_a_vm_which_is_being_made() {
    for reason in [Reason::VmReplacing, Reason::CreateRequested, Reason::VmCreatePending] {
        let mut owned = vm("a", Phase::Provisioning, reason);
        (owned.bios_uuid, owned.mac_address) = (String::new(), String::new());
        let mut case = Case::new(waiting(1), vec![agent("a")], vec![owned]);
        case.owned[0].made = false;
        let vms = case.refreshed();
        assert_eq!(shown(&vms[0]), (Phase::Provisioning, reason));
        assert!(vms[0].agent_ref.is_none() && vms[0].bios_uuid.is_empty(), "{:?}", vms[0]);
    }
}

#[test]
fn a_bound_agent_makes_a_bound_vm_with_its_machine() {
    let owned = vm("a", Phase::Available, Reason::AgentAvailable);
    let mut case = Case::new(Demand::default(), vec![bound_agent("a", "a")], vec![owned]);
    case.machines = vec![machine("a", false)];
    let vms = case.refreshed();
    assert_eq!(shown(&vms[0]), (Phase::Bound, Reason::AgentBound));
    let machine = vms[0].machine_ref.as_ref().unwrap();
    assert_eq!(machine.namespace.as_deref(), Some("blue-blue"));
    assert_eq!(machine.api_version.as_deref(), Some("cluster.x-k8s.io/v1beta1"));
}

#[test]
fn the_providers_label_is_an_agent_machines_name_or_uid() {
    let owner = AgentMachineView { machine: Some("m-1".into()), ..agent_machine("am-1") };
    for label in ["am-1", "uid-am-1"] {
        assert_eq!(
            machine_of(&bound_agent("a", label), std::slice::from_ref(&owner)),
            Some("m-1".into())
        );
    }
    assert_eq!(machine_of(&bound_agent("a", "other"), &[owner]), Some("other".into()));
    assert_eq!(machine_of(&agent("a"), &[]), None);
}

#[test]
fn an_agent_that_is_given_back_releases_its_vm_and_the_machine_is_remembered() {
    let owned = paired_with(refers(vm("a", Phase::Bound, Reason::AgentBound), "a"), "m");
    let mut case = Case::new(Demand::default(), vec![agent("a")], vec![owned]);
    case.machines = vec![machine("m", false)];
    let vms = case.refreshed();
    assert_eq!(shown(&vms[0]), (Phase::Released, Reason::AgentReleased));
    assert_eq!(vms[0].machine_ref.as_ref().unwrap().name.as_deref(), Some("m"));
}

#[test]
fn a_machine_must_be_seen_deleting_before_it_counts_as_deleted() {
    let owned = paired_with(refers(vm("a", Phase::Bound, Reason::AgentBound), "a"), "m");
    let mut case = Case::new(Demand::default(), vec![bound_agent("a", "m")], vec![owned]);
    assert_eq!(shown(&case.refreshed()[0]), (Phase::Bound, Reason::AgentBound), "absent, unseen");

    case.machines = vec![machine("m", true)];
    case.owned = case.refreshed_records();
    assert_eq!(shown(&case.owned[0].vm), (Phase::Released, Reason::MachineDeleting));
    // The provider takes its label off while the Machine is still there.
    case.agents = vec![agent("a")];
    case.owned = case.refreshed_records();
    assert_eq!(shown(&case.owned[0].vm), (Phase::Released, Reason::MachineDeleting));
    case.machines = vec![];
    case.owned = case.refreshed_records();
    assert_eq!(shown(&case.owned[0].vm), (Phase::Released, Reason::MachineDeleted));

    // Weakness 29: it was forgotten in the next pass if the deletion had not worked.
    for _ in 0..3 {
        case.owned = case.refreshed_records();
        assert_eq!(shown(&case.owned[0].vm), (Phase::Released, Reason::MachineDeleted));
    }
    case.agents = vec![];
    assert_eq!(
        shown(&case.refreshed()[0]),
        (Phase::Released, Reason::MachineDeleted),
        "Agent gone"
    );
}

#[test]
fn a_vm_that_lost_its_machine_while_it_was_deleted_goes_on() {
    let owned = refers(vm("a", Phase::Released, Reason::MachineDeleting), "a");
    let case = Case::new(Demand::default(), vec![agent("a")], vec![owned]);
    assert_eq!(shown(&case.refreshed()[0]), (Phase::Released, Reason::MachineDeleted));
}

#[test]
fn a_machine_that_came_back_takes_its_vm_back() {
    let owned = paired_with(refers(vm("a", Phase::Released, Reason::MachineDeleted), "a"), "m");
    let mut case = Case::new(Demand::default(), vec![bound_agent("a", "m")], vec![owned]);
    case.machines = vec![machine("m", false)];
    assert_eq!(shown(&case.refreshed()[0]), (Phase::Bound, Reason::AgentBound));
}

#[test]
fn the_machines_uuid_counts_more_than_the_host_name() {
    let mut owned = vm("a", Phase::Provisioning, Reason::AgentNotDiscovered);
    owned.bios_uuid = UUID.into();
    let by_name = identified(agent("a"), "", &[]);
    let by_uuid = identified(agent("x"), "214d3242-4c27-a803-b6fe-f9e8edb55e33", &[]);
    let case = Case::new(Demand::default(), vec![by_uuid, by_name], vec![owned]);
    assert_eq!(case.refreshed()[0].agent_ref.as_ref().unwrap().name.as_deref(), Some("x"));
}

#[test]
fn a_host_name_does_not_count_against_the_identity() {
    let mut owned = vm("a", Phase::Provisioning, Reason::AgentNotDiscovered);
    owned.bios_uuid = UUID.into();
    let impostor = identified(agent("a"), "00000000-274c-03a8-b6fe-f9e8edb55e33", &[]);
    let case = Case::new(Demand::default(), vec![impostor], vec![owned]);
    assert_eq!(shown(&case.refreshed()[0]), (Phase::Provisioning, Reason::AgentNotDiscovered));
}

#[test]
fn agents_that_no_vm_explains_are_shown_and_not_managed() {
    let inventory =
        AgentView { hostname: String::new(), inventory_hostname: "h".into(), ..agent("x") };
    let case = Case::new(
        Demand::default(),
        vec![bound_agent("b", "m"), inventory, AgentView { hostname: String::new(), ..agent("y") }],
        vec![],
    );
    let records = case.refreshed_records();
    let names: Vec<_> = records.iter().map(|it| (it.vm.name.as_str(), it.managed)).collect();
    assert_eq!(names, [("b", false), ("h", false)], "one without a name is only counted");
    assert_eq!(shown(&records[0].vm), (Phase::Bound, Reason::AgentBound));
}

#[test]
fn the_pools_memory_of_a_phase_wins_over_what_the_vsphere_agent_says() {
    let mut before = refers(vm("a", Phase::Provisioning, Reason::AgentNotDiscovered), "x");
    before.last_transition_time = Some(minutes_ago(31));
    before.mac_address = "m".into();
    let said =
        OwnedVm { bios_uuid: UUID.into(), ..vm("a", Phase::Provisioning, Reason::CreateRequested) };
    let merged = merge(
        std::slice::from_ref(&before),
        vec![record(said.clone()), record(OwnedVm::named("new"))],
    );
    assert_eq!(merged[0].vm, OwnedVm { bios_uuid: UUID.into(), ..before.clone() });
    assert_eq!(merged.len(), 2, "one that is only remembered is gone");
    assert!(merge(&[], vec![record(said.clone())])[0].vm == said);

    // A VM that was made anew starts its life from the beginning.
    before.bios_uuid = "00000000-274c-03a8-b6fe-f9e8edb55e33".into();
    before.mac_address = String::new();
    assert_eq!(merge(std::slice::from_ref(&before), vec![record(said.clone())])[0].vm, said);
    let replacing = vm("a", Phase::Provisioning, Reason::VmReplacing);
    assert_eq!(merge(&[before], vec![record(replacing.clone())])[0].vm, replacing);
}

#[test]
fn nothing_changes_when_nothing_happens() {
    let owned = vec![
        refers(vm("a", Phase::Available, Reason::AgentAvailable), "a"),
        paired_with(refers(vm("b", Phase::Bound, Reason::AgentBound), "b"), "b"),
        vm("c", Phase::Provisioning, Reason::AgentNotDiscovered),
    ];
    let mut case = Case::new(Demand::default(), vec![agent("a"), bound_agent("b", "b")], owned);
    case.machines = vec![machine("b", false)];
    let first = case.refreshed_records();
    case.owned.clone_from(&first);
    assert_eq!(case.refreshed_records(), first);
}
