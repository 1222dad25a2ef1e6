//! What a person can do about AgentMachines that wait for one.

/// By the step that it stands at.
pub(super) fn advice(gate: &str) -> Option<&'static str> {
    Some(match gate {
        "pool" => {
            "One VsphereAgentPool has to name its NodePool, without the annotation agent-forge.containeroo.ch/paused. AgentMachines go on by themselves."
        }
        "vm" => {
            "A VM of that name is somebody else's and is never touched: rename or delete it by hand, or give the pool another name prefix."
        }
        "vcenter" => {
            "The pool names something that the vCenter does not have: correct its spec, or make what is missing."
        }
        "registered" => {
            "Look at the console of the VM: it boots the ISO, needs DHCP, and must reach the assisted service."
        }
        _ => return None,
    })
}
