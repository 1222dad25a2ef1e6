use roost_vim_wire::{LocalizedMethodFault, MoType};

use super::*;
use crate::{CallError, TaskError};

/// Every fault of the reference's table (section 1.6), row by row.
#[test]
fn each_fault_of_the_reference_has_its_remedy() {
    use Remedy::{GiveUp, Gone, Relogin, Retry, Wait};
    let rows: &[(&str, &[(&str, Remedy)])] = &[
        ("session ended: log in again, retry", &[("NotAuthenticated", Relogin)]),
        ("bad credentials: stop and report", &[("InvalidLogin", GiveUp)]),
        ("no permission: permanent", &[("NoPermission", GiveUp)]),
        ("free licence: permanent", &[("RestrictedVersion", GiveUp)]),
        ("object deleted, or of an old session", &[("ManagedObjectNotFound", Gone)]),
        ("name taken: adopt or rename", &[("DuplicateName", GiveUp)]),
        ("exists: success for mkdir", &[("AlreadyExists", GiveUp), ("FileAlreadyExists", GiveUp)]),
        (
            "files",
            &[
                ("FileNotFound", Gone),
                ("FileFault", GiveUp),
                ("FileLocked", Retry),
                ("FileNotWritable", GiveUp),
            ],
        ),
        ("datastore full: back off", &[("NoDiskSpace", Wait)]),
        ("power state: re-read and decide", &[("InvalidPowerState", Wait)]),
        ("state: re-read, later", &[("InvalidState", Wait)]),
        ("another task: wait for it", &[("TaskInProgress", Wait)]),
        ("stale change version: re-read and retry", &[("ConcurrentAccess", Retry)]),
        ("question: report", &[("QuestionPending", Wait)]),
        ("no tools: fall back to power off", &[("ToolsUnavailable", GiveUp)]),
        (
            "guest operations",
            &[
                ("GuestOperationsUnavailable", Wait),
                ("InvalidGuestLogin", Wait),
                ("GuestPermissionDenied", GiveUp),
                ("OperationDisabledByGuest", GiveUp),
                ("GuestComponentsOutOfDate", GiveUp),
                ("GuestProcessNotFound", Gone),
                ("GuestOperationsFault", GiveUp),
            ],
        ),
        (
            "capacity: stop spawning",
            &[
                ("InsufficientResourcesFault", Wait),
                ("InsufficientMemoryResourcesFault", Wait),
                ("InsufficientCpuResourcesFault", Wait),
                ("InsufficientHostCapacityFault", Wait),
                ("NumVirtualCpusExceedsLimit", Wait),
                ("NoCompatibleHost", Wait),
            ],
        ),
        ("another datastore", &[("InvalidDatastore", GiveUp), ("InaccessibleDatastore", GiveUp)]),
        (
            "configuration: permanent",
            &[
                ("InvalidVmConfig", GiveUp),
                ("InvalidDeviceSpec", GiveUp),
                ("VmConfigFault", GiveUp),
                ("GenericVmConfigFault", GiveUp),
                ("CannotAccessVmComponent", GiveUp),
            ],
        ),
        (
            "customization: fix the spec",
            &[
                ("CustomizationFault", GiveUp),
                ("NicSettingMismatch", GiveUp),
                ("CustomizationPending", GiveUp),
                ("LinuxVolumeNotClean", GiveUp),
                ("UncustomizableGuest", GiveUp),
            ],
        ),
        (
            "programming or product limit",
            &[
                ("InvalidName", GiveUp),
                ("InvalidArgument", GiveUp),
                ("InvalidRequest", GiveUp),
                ("InvalidProperty", GiveUp),
                ("NotSupported", GiveUp),
                ("NotImplemented", GiveUp),
                ("MethodNotFound", GiveUp),
                ("MethodDisabled", GiveUp),
            ],
        ),
        (
            "host away: retry with back-off",
            &[
                ("HostConnectFault", Retry),
                ("HostCommunication", Retry),
                ("HostNotConnected", Retry),
                ("HostNotReachable", Retry),
                ("Timedout", Retry),
                ("SystemError", Retry),
            ],
        ),
        ("cancelled: expected", &[("RequestCanceled", GiveUp)]),
        ("stale collector version: from the empty one", &[("InvalidCollectorVersion", Retry)]),
        ("never heard of", &[("FaultOfTheFuture", GiveUp)]),
    ];
    for (row, faults) in rows {
        for (class, wanted) in *faults {
            let fault = LocalizedMethodFault::new(Fault::of(class), "");
            let task = MoRef::new(MoType::Task, "task-1");
            let failed = TaskError::Failed { task, fault: Box::new(fault.clone()) };
            assert_eq!(CallError::of_fault("m", fault).remedy(), *wanted, "{row}: {class}");
            assert_eq!(failed.remedy(), *wanted, "{row}: {class} in a task");
        }
    }
}

#[test]
fn a_subclass_has_the_remedy_of_its_nearest_row() {
    for (class, remedy, kind) in [
        ("CannotAccessFile", Remedy::GiveUp, "FileFault"),
        ("TooManyDevices", Remedy::GiveUp, "InvalidVmConfig"),
        ("NotAuthenticated", Remedy::Relogin, "NotAuthenticated"),
        ("InvalidPowerState", Remedy::Wait, "InvalidPowerState"),
        ("FaultOfTheFuture", Remedy::GiveUp, "Other"),
    ] {
        assert_eq!(fault_remedy(&Fault::of(class)), remedy, "{class}");
        assert_eq!(fault_kind(&Fault::of(class)), kind, "{class}");
    }
}

#[test]
fn a_base_class_never_hides_a_row_below_it() {
    for (index, (class, _)) in TABLE.iter().enumerate() {
        let hidden = TABLE[..index].iter().find(|(before, _)| is_a(class, before));
        assert_eq!(hidden, None, "{class}");
    }
}

fn text(value: &str) -> String {
    value.to_owned()
}

#[test]
fn faults_tell_their_nouns() {
    let (vm, task) = (MoRef::vm("vm-1"), MoRef::new(MoType::Task, "task-1"));
    let duplicate = Fault::of("DuplicateName").with("name", &text("ci-1")).with("object", &vm);
    assert_eq!(duplicate.duplicate_object(), Some(vm.clone()));
    assert_eq!(Fault::of("TaskInProgress").with("task", &task).task_in_progress(), Some(task));
    assert_eq!(
        Fault::of("ManagedObjectNotFound").with("obj", &vm).missing_object(),
        Some(vm.clone())
    );
    assert_eq!(
        Fault::of("FileLocked").with("file", &text("[ds] a.vmdk")).file(),
        Some("[ds] a.vmdk")
    );
    assert_eq!(
        Fault::of("QuestionPending").with("text", &text("moved or copied?")).question(),
        Some("moved or copied?")
    );
    assert_eq!(
        Fault::of("InvalidArgument").with("invalidProperty", &text("spec")).invalid_property(),
        Some("spec")
    );
    assert_eq!(
        Fault::of("InvalidDeviceSpec").with("property", &text("device")).invalid_property(),
        Some("device")
    );
    assert_eq!(
        Fault::of("InvalidProperty").with("name", &text("no.such")).invalid_property(),
        Some("no.such")
    );
    assert_eq!(Fault::of("SystemError").with("reason", &text("x")).invalid_property(), None);
    assert_eq!(
        Fault::of("NoDiskSpace").with("datastore", &text("nfs1")).datastore_trouble().as_deref(),
        Some("nfs1")
    );
    assert_eq!(
        Fault::of("InaccessibleDatastore")
            .with("name", &text("nfs2"))
            .datastore_trouble()
            .as_deref(),
        Some("nfs2")
    );
    assert!(
        Fault::of("FileAlreadyExists").already_exists()
            && Fault::of("AlreadyExists").already_exists()
    );
    assert!(Fault::of("GuestProcessNotFound").is_gone() && !Fault::of("DuplicateName").is_gone());
    assert!(
        Fault::of("InsufficientMemoryResourcesFault").is_capacity()
            && !Fault::of("Timedout").is_capacity()
    );
    assert!(Fault::of("RequestCanceled").is_cancelled());
    assert_eq!(Fault::of("SystemError").duplicate_object(), None);
}

#[test]
fn a_power_state_that_was_reached_is_told_from_one_in_the_way() {
    let fault = |requested: &str, existing: &str| {
        Fault::of("InvalidPowerState")
            .with("requestedState", &text(requested))
            .with("existingState", &text(existing))
    };
    assert!(fault("poweredOff", "poweredOff").power_state_reached());
    assert!(!fault("poweredOff", "poweredOn").power_state_reached());
    assert_eq!(fault("poweredOff", "suspended").existing_power_state(), Some("suspended"));
    // vCenter leaves the requested state out where the operation needs one of several.
    let only_existing = Fault::of("InvalidPowerState").with("existingState", &text("poweredOn"));
    assert!(!only_existing.power_state_reached());
    assert!(!Fault::of("InvalidState").power_state_reached());
}

#[test]
fn missing_privileges_are_named_with_their_objects() {
    let folder = MoRef::new(MoType::Folder, "group-v3");
    let old = Fault::of("NoPermission")
        .with("object", &folder)
        .with("privilegeId", &text("VirtualMachine.Inventory.Create"));
    assert_eq!(
        old.missing_privileges(),
        [(Some(folder.clone()), text("VirtualMachine.Inventory.Create"))]
    );
    let mut new = old;
    new.rest.push(
        Element::new("missingPrivileges")
            .with_field("entity", &folder)
            .with(Element::leaf("privilegeIds", "A.B"))
            .with(Element::leaf("privilegeIds", "C.D")),
    );
    let wanted = [(Some(folder.clone()), text("A.B")), (Some(folder), text("C.D"))];
    assert_eq!(new.missing_privileges(), wanted);
    assert!(
        Fault::of("NotAuthenticated")
            .with("privilegeId", &text("System.View"))
            .missing_privileges()
            .is_empty()
    );
}

#[test]
fn a_task_error_tells_the_nouns_of_its_fault() {
    let task = MoRef::new(MoType::Task, "task-7");
    let fault =
        LocalizedMethodFault::new(Fault::of("FileLocked").with("file", &text("[ds] a")), "locked");
    let failed = TaskError::Failed { task: task.clone(), fault: Box::new(fault) };
    assert_eq!((failed.file(), failed.outcome_unknown()), (Some("[ds] a"), false));
    assert_eq!(failed.to_string(), "task task-7 failed: FileLocked: locked [file [ds] a]");
    let vanished = TaskError::Vanished { task };
    assert_eq!((vanished.remedy(), vanished.outcome_unknown()), (Remedy::Gone, true));
}
