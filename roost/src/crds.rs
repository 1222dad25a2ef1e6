//! `roost crds`: the definitions of the kinds that front doors serve.

use anyhow::Context as _;
use roost_client::say;
use roost_controller::crd::crds_to_yaml;

use crate::cli::DoorWithKinds;

pub(crate) fn print(doors: &[DoorWithKinds]) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for door in
        DoorWithKinds::ALL.into_iter().filter(|door| doors.is_empty() || doors.contains(door))
    {
        let found = match door {
            DoorWithKinds::VmOperator => {
                roost_vm_operator::api::definitions().context("vm-operator")?
            }
            DoorWithKinds::AgentForge => roost_agent_forge::api::crds().context("agent-forge")?,
        };
        all.extend(found);
    }
    say(&crds_to_yaml(&all));
    Ok(())
}
