use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn any_phase() -> impl Strategy<Value = (Phase, Reason)> {
    prop_oneof![
        Just((Phase::Provisioning, Reason::AgentNotDiscovered)),
        Just((Phase::Provisioning, Reason::VmCreatePending)),
        Just((Phase::Available, Reason::AgentAvailable)),
        Just((Phase::Bound, Reason::AgentBound)),
        Just((Phase::Released, Reason::AgentReleased)),
        Just((Phase::Released, Reason::MachineDeleting)),
        Just((Phase::Released, Reason::MachineDeleted)),
        Just((Phase::Orphaned, Reason::AgentMissing)),
    ]
}

/// VM number, phase, minutes in it, managed, Agent (none, free, bound), Machine (none, live, deleting).
fn any_vm() -> impl Strategy<Value = ((Phase, Reason), i64, bool, u8, u8)> {
    (any_phase(), 0_i64..60, any::<bool>(), 0_u8..3, 0_u8..3)
}

proptest! {
    #[test]
    fn no_plan_deletes_what_is_bound_or_not_ours(
        vms in vec(any_vm(), 0..8), wait in 0_usize..3, without in 0_usize..2, retain in any::<bool>()
    ) {
        let mut case = Case::new(waiting(wait), vec![], vec![]);
        case.demand.without_agent = case.demand.without_agent.max(without);
        if retain {
            case.pool = retaining();
        }
        for (index, ((phase, reason), minutes, managed, has_agent, has_machine)) in vms.iter().enumerate() {
            let name = format!("vm-{index}");
            let mut owned = vm(&name, *phase, *reason);
            owned.last_transition_time = Some(minutes_ago(*minutes));
            owned.mac_address = format!("mac-{index}");
            if *has_machine > 0 {
                case.machines.push(machine(&name, *has_machine == 2));
                owned = paired_with(owned, &name);
            }
            case.owned.push(Record { managed: *managed, ..record(owned) });
            let mac = format!("mac-{index}");
            match has_agent {
                1 => case.agents.push(identified(agent(&name), "", &[&mac])),
                2 => case.agents.push(identified(bound_agent(&name, &name), "", &[&mac])),
                _ => {}
            }
        }
        case.owned = case.refreshed_records();
        // A fresh orphan is an old one at the next look; nothing else changes.
        if !case.owned.iter().any(|record| record.vm.reason == Some(Reason::AgentMissing)) {
            prop_assert_eq!(&case.refreshed_records(), &case.owned);
        }
        let plan = case.plan();
        for deletion in &plan.deletions {
            let owned = case.owned.iter().find(|record| record.vm.name == deletion.vm).unwrap();
            prop_assert!(owned.managed && !retain);
            prop_assert!(owned.vm.phase != Some(Phase::Bound));
            let bound = case.agents.iter().find(|agent| agent.name == deletion.vm && agent.is_bound());
            let machine = case.machines.iter().any(|machine| machine.name == deletion.vm);
            prop_assert!(bound.is_none() || !machine, "a bound worker with a Machine");
            prop_assert!(deletion.agent.as_deref() != bound.map(|agent| agent.name.as_str()) || bound.is_none());
        }
        prop_assert!(plan.deficit <= case.demand.waiting.len());
    }
}
