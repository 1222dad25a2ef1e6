//! What a person can do about VirtualMachines that wait for one.

/// By the step that it stands at.
pub(super) fn advice(gate: &str) -> Option<&'static str> {
    Some(match gate {
        "accepted" => {
            "Somebody paused it: `roost resume vm NAMESPACE/NAME` has it worked at again."
        }
        "class" => {
            "Make a VirtualMachineClass of this name in its namespace, or have the object name one that is there. It goes on by itself."
        }
        "image" => {
            "Put the image into the content library or the inventory, or have the object name one that `kubectl get vmi` lists. It goes on by itself."
        }
        "storage" => {
            "Make a storage class that names a datastore of its zone, or have the object name another. It goes on by itself."
        }
        "policy" | "bootstrap" | "network" => {
            "Make what is named in the namespace of the object, or have the object name something else. It goes on by itself."
        }
        "placement" => {
            "See that its zone is configured and has a resource pool and a datastore, or have the object ask for another zone."
        }
        "created" | "configured" | "power" => {
            "The words are vCenter's or an administrator's: correct the object or lift the pause in vCenter, then `roost recheck` tries it at once."
        }
        _ => return None,
    })
}
