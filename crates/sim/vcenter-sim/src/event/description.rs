use roost_vim_wire::Value;

use crate::inventory::Record;

/// How a class of events is shown: how grave it is and what it is called.
const CLASSES: &[(&str, &str, &str)] = &[
    ("BadUsernameSessionEvent", "error", "Invalid user name"),
    ("CustomFieldDefAddedEvent", "info", "Custom field definition added"),
    ("CustomizationFailed", "error", "Customization failed"),
    ("CustomizationNetworkSetupFailed", "error", "Cannot complete customization network setup"),
    ("CustomizationStartedEvent", "info", "Started customization"),
    ("CustomizationSucceeded", "info", "Customization succeeded"),
    ("DrsVmMigratedEvent", "info", "DRS VM migrated"),
    ("DrsVmPoweredOnEvent", "info", "DRS VM powered on"),
    ("HostConnectedEvent", "info", "Host connected"),
    ("HostConnectionLostEvent", "error", "Host connection lost"),
    ("HostDisconnectedEvent", "info", "Host disconnected"),
    ("ResourcePoolCreatedEvent", "info", "Resource pool created"),
    ("ResourcePoolDestroyedEvent", "info", "Resource pool deleted"),
    ("ResourcePoolReconfiguredEvent", "info", "Resource pool reconfigured"),
    ("TaskEvent", "info", "Task event"),
    ("UserLoginSessionEvent", "info", "User login"),
    ("UserLogoutSessionEvent", "info", "User logout"),
    ("VmBeingClonedEvent", "info", "VM being cloned"),
    ("VmBeingCreatedEvent", "info", "Creating VM"),
    ("VmBeingDeployedEvent", "info", "Deploying VM"),
    ("VmBeingRelocatedEvent", "info", "VM relocating"),
    ("VmCloneFailedEvent", "error", "Cannot complete VM clone"),
    ("VmClonedEvent", "info", "VM cloned"),
    ("VmCreatedEvent", "info", "VM created"),
    ("VmDeployedEvent", "info", "VM deployed"),
    ("VmDisconnectedEvent", "info", "VM disconnected"),
    ("VmFailedToPowerOnEvent", "error", "Cannot power on the VM."),
    ("VmGuestRebootEvent", "info", "Guest reboot"),
    ("VmGuestShutdownEvent", "info", "Guest OS shut down"),
    ("VmGuestStandbyEvent", "info", "Guest standby"),
    ("VmInstanceUuidAssignedEvent", "info", "Assign a new instance UUID"),
    ("VmMigratedEvent", "info", "VM migrated"),
    ("VmPoweredOffEvent", "info", "VM powered off"),
    ("VmPoweredOnEvent", "info", "VM powered on"),
    ("VmReconfiguredEvent", "info", "VM reconfigured"),
    ("VmRegisteredEvent", "info", "VM registered"),
    ("VmRelocatedEvent", "info", "VM relocated"),
    ("VmRelocateFailedEvent", "error", "Cannot relocate VM"),
    ("VmRemovedEvent", "info", "VM removed"),
    ("VmRenamedEvent", "warning", "VM renamed"),
    ("VmResettingEvent", "info", "VM resetting"),
    ("VmStartingEvent", "info", "VM starting"),
    ("VmStoppingEvent", "info", "VM stopping"),
    ("VmSuspendedEvent", "info", "VM suspended"),
    ("VmSuspendingEvent", "info", "VM being suspended"),
    ("VmUuidAssignedEvent", "info", "VM UUID assigned"),
];

/// The event manager's `description`, from which clients take an event's category.
pub(crate) fn description() -> Value {
    let categories = ["info", "warning", "error", "user"];
    let categories = categories.map(|key| {
        Record::of("ElementDescription").text("label", key).text("summary", key).text("key", key)
    });
    let classes = CLASSES.iter().map(|(class, category, description)| {
        let detail = Record::of("EventDescriptionEventDetail");
        let named =
            detail.text("key", class).text("description", description).text("category", category);
        // All of our messages read the same wherever they are shown.
        let contexts = [
            "formatOnDatacenter",
            "formatOnComputeResource",
            "formatOnHost",
            "formatOnVm",
            "fullFormat",
        ];
        contexts.into_iter().fold(named, |detail, context| detail.text(context, description))
    });
    Record::of("EventDescription")
        .records("category", "ElementDescription", categories.into())
        .records("eventInfo", "EventDescriptionEventDetail", classes.collect())
        .value()
}
