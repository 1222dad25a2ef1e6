use super::matching::refers_to;
use super::phases::machine_of;
use crate::api::{OwnedVm, Phase};
use crate::identity::{conflict, matches_uuid};
use crate::outside::{AgentMachineView, AgentView};

/// The AgentMachine that has the Agent of this VM. It need not be the one that the VM was made for: an AgentMachine that is not pinned yet may
/// be given any Agent that is approved.
pub fn taker(
    vm: &OwnedVm,
    agents: &[AgentView],
    agent_machines: &[AgentMachineView],
) -> Option<String> {
    let is_its = |agent: &&AgentView| {
        matches_uuid(vm, &agent.identity) || refers_to(vm, agent) && !conflict(vm, &agent.identity)
    };
    let bound = agents.iter().filter(is_its).find_map(|it| machine_of(it, agent_machines));
    let was_bound = matches!(vm.phase, Some(Phase::Bound | Phase::Released));
    let recorded = || vm.machine_ref.as_ref().filter(|_| was_bound)?.name.clone();
    let machine = bound.or_else(recorded)?;
    let of_machine = agent_machines.iter().find(|it| it.machine.as_ref() == Some(&machine));
    Some(of_machine.map_or(machine, |it| it.name.clone()))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ObjectReference;

    use super::*;
    use crate::api::names::AGENT_MACHINE_REF;
    use crate::identity::Identity;

    const UUID: &str = "42324d21-274c-03a8-b6fe-f9e8edb55e33";

    fn machine(name: &str, uid: &str, of: Option<&str>) -> AgentMachineView {
        let machine = of.map(str::to_owned);
        AgentMachineView { name: name.into(), uid: uid.into(), machine, ..Default::default() }
    }

    fn bound_to(label: &str) -> AgentView {
        AgentView {
            identity: Identity { uuid: UUID.into(), ..Identity::default() },
            labels: [(AGENT_MACHINE_REF.to_owned(), label.to_owned())].into(),
            ..AgentView::default()
        }
    }

    #[test]
    fn whoever_has_the_agent_has_the_vm() {
        let machines =
            [machine("a", "uid-a", None), machine("b", "uid-b", None), machine("c", "", Some("m"))];
        let vm = |phase, of: Option<&str>| OwnedVm {
            bios_uuid: UUID.into(),
            phase: Some(phase),
            machine_ref: of.map(|name| ObjectReference {
                name: Some(name.into()),
                ..ObjectReference::default()
            }),
            ..OwnedVm::named("a")
        };
        for (case, vm, agents, taker_of_it) in [
            ("nobody", vm(Phase::Available, None), vec![AgentView::default()], None),
            ("by name", vm(Phase::Available, None), vec![bound_to("b")], Some("b")),
            ("by uid", vm(Phase::Bound, None), vec![bound_to("uid-b")], Some("b")),
            ("its own", vm(Phase::Bound, Some("a")), vec![bound_to("a")], Some("a")),
            ("given back", vm(Phase::Released, Some("b")), vec![], Some("b")),
            ("a Machine of another name", vm(Phase::Bound, Some("m")), vec![], Some("c")),
            ("long ago", vm(Phase::Orphaned, Some("b")), vec![], None),
        ] {
            assert_eq!(taker(&vm, &agents, &machines).as_deref(), taker_of_it, "{case}");
        }
    }
}
