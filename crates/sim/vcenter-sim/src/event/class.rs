/// Whether an event class is `base` or derives from it.
pub(super) fn is_a(class: &str, base: &str) -> bool {
    let mut class = class;
    // As deep as the tree of event classes is, and more.
    for _ in 0..8 {
        if class == base {
            return true;
        }
        class = parent(class);
    }
    false
}

fn parent(class: &str) -> &str {
    match class {
        "Event" => "",
        "VmBeingClonedEvent"
        | "VmClonedEvent"
        | "VmCloneFailedEvent"
        | "VmBeingClonedNoFolderEvent" => "VmCloneEvent",
        "DrsVmPoweredOnEvent" => "VmPoweredOnEvent",
        "DrsVmMigratedEvent" => "VmMigratedEvent",
        "VmBeingRelocatedEvent" | "VmRelocatedEvent" | "VmRelocateFailedEvent" => {
            "VmRelocateSpecEvent"
        }
        "CustomizationStartedEvent" | "CustomizationSucceeded" | "CustomizationFailed" => {
            "CustomizationEvent"
        }
        "CustomizationNetworkSetupFailed" | "CustomizationSysprepFailed" => "CustomizationFailed",
        "CustomizationEvent" => "VmEvent",
        "UserLoginSessionEvent" | "UserLogoutSessionEvent" | "BadUsernameSessionEvent" => {
            "SessionEvent"
        }
        "ResourcePoolCreatedEvent"
        | "ResourcePoolDestroyedEvent"
        | "ResourcePoolReconfiguredEvent" => "ResourcePoolEvent",
        "HostConnectedEvent" | "HostDisconnectedEvent" | "HostConnectionLostEvent" => "HostEvent",
        "CustomFieldDefAddedEvent" => "CustomFieldDefEvent",
        "CustomFieldDefEvent" => "CustomFieldEvent",
        vm if vm.starts_with("Vm") && vm.ends_with("Event") && vm != "VmEvent" => "VmEvent",
        "" => "",
        _ => "Event",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_classes_match_their_subclasses() {
        for (class, base) in [
            ("VmRenamedEvent", "VmEvent"),
            ("VmClonedEvent", "VmCloneEvent"),
            ("DrsVmPoweredOnEvent", "VmPoweredOnEvent"),
            ("CustomizationNetworkSetupFailed", "CustomizationEvent"),
            ("CustomizationSucceeded", "VmEvent"),
            ("UserLoginSessionEvent", "SessionEvent"),
            ("TaskEvent", "Event"),
        ] {
            assert!(is_a(class, base), "{class} {base}");
        }
        assert!(!is_a("VmRenamedEvent", "SessionEvent"));
        assert!(!is_a("Event", "VmEvent"));
    }
}
