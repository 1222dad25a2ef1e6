//! What to do about a fault: the table of faults that matter, and the nouns that they carry.

use roost_vim_wire::{Element, Fault, MoRef, is_a};

/// The reaction to a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Remedy {
    /// The same call may succeed when it is repeated, with back-off. A change may have happened already: see
    /// [`CallError::outcome_unknown`](crate::CallError::outcome_unknown).
    Retry,
    /// The session is gone. The client logs in again by itself; who sees this saw it fail.
    Relogin,
    /// Something else has to change first: another task, capacity, a power state, a guest that boots. Look again later.
    Wait,
    /// Repeating it will not help: the request, the rights or the product are wrong for it.
    GiveUp,
    /// The object does not exist, or no longer.
    Gone,
}

/// The faults that have a meaning of their own, most special first where one derives from another. The names are also the
/// closed set of fault kinds in metrics.
const TABLE: &[(&str, Remedy)] = &[
    ("NotAuthenticated", Remedy::Relogin),
    ("InvalidLogin", Remedy::GiveUp),
    ("NoPermission", Remedy::GiveUp),
    ("RestrictedVersion", Remedy::GiveUp),
    ("ManagedObjectNotFound", Remedy::Gone),
    // Adopt `object` if it is ours, else another name: the same call fails again either way.
    ("DuplicateName", Remedy::GiveUp),
    ("AlreadyExists", Remedy::GiveUp),
    ("FileAlreadyExists", Remedy::GiveUp),
    ("FileNotFound", Remedy::Gone),
    ("FileLocked", Remedy::Retry),
    ("NoDiskSpace", Remedy::Wait),
    ("FileFault", Remedy::GiveUp),
    ("InvalidPowerState", Remedy::Wait),
    ("QuestionPending", Remedy::Wait),
    ("InvalidState", Remedy::Wait),
    ("TaskInProgress", Remedy::Wait),
    ("ConcurrentAccess", Remedy::Retry),
    // The caller falls back to a hard power-off.
    ("ToolsUnavailable", Remedy::GiveUp),
    ("GuestOperationsUnavailable", Remedy::Wait),
    // For a short time after boot; how long is the caller's to know.
    ("InvalidGuestLogin", Remedy::Wait),
    ("TooManyGuestLogons", Remedy::Wait),
    ("GuestPermissionDenied", Remedy::GiveUp),
    ("OperationDisabledByGuest", Remedy::GiveUp),
    ("OperationNotSupportedByGuest", Remedy::GiveUp),
    ("GuestComponentsOutOfDate", Remedy::GiveUp),
    ("GuestProcessNotFound", Remedy::Gone),
    ("GuestOperationsFault", Remedy::GiveUp),
    ("InsufficientMemoryResourcesFault", Remedy::Wait),
    ("InsufficientCpuResourcesFault", Remedy::Wait),
    ("NumVirtualCpusExceedsLimit", Remedy::Wait),
    ("InsufficientResourcesFault", Remedy::Wait),
    ("NoCompatibleHost", Remedy::Wait),
    // Another datastore may do; this one will not.
    ("InaccessibleDatastore", Remedy::GiveUp),
    ("InvalidDatastore", Remedy::GiveUp),
    ("InvalidDeviceSpec", Remedy::GiveUp),
    ("InvalidVmConfig", Remedy::GiveUp),
    ("GenericVmConfigFault", Remedy::GiveUp),
    ("CannotAccessVmComponent", Remedy::GiveUp),
    ("VmConfigFault", Remedy::GiveUp),
    ("NicSettingMismatch", Remedy::GiveUp),
    ("CustomizationPending", Remedy::GiveUp),
    ("LinuxVolumeNotClean", Remedy::GiveUp),
    ("UncustomizableGuest", Remedy::GiveUp),
    ("CustomizationFault", Remedy::GiveUp),
    ("InvalidName", Remedy::GiveUp),
    ("InvalidArgument", Remedy::GiveUp),
    ("MethodNotFound", Remedy::GiveUp),
    ("InvalidRequest", Remedy::GiveUp),
    ("InvalidProperty", Remedy::GiveUp),
    ("NotSupported", Remedy::GiveUp),
    ("NotImplemented", Remedy::GiveUp),
    ("MethodDisabled", Remedy::GiveUp),
    ("HostNotConnected", Remedy::Retry),
    ("HostNotReachable", Remedy::Retry),
    ("HostCommunication", Remedy::Retry),
    ("HostConnectFault", Remedy::Retry),
    ("Timedout", Remedy::Retry),
    ("SystemError", Remedy::Retry),
    ("ResourceInUse", Remedy::Wait),
    ("NotFound", Remedy::Gone),
    // Someone wanted it to end.
    ("RequestCanceled", Remedy::GiveUp),
    // The stream starts again from the empty version.
    ("InvalidCollectorVersion", Remedy::Retry),
];

fn row(class: &str) -> Option<&'static (&'static str, Remedy)> {
    TABLE
        .iter()
        .find(|(name, _)| *name == class)
        .or_else(|| TABLE.iter().find(|(base, _)| is_a(class, base)))
}

pub(crate) fn fault_remedy(fault: &Fault) -> Remedy {
    row(&fault.class).map_or(Remedy::GiveUp, |(_, remedy)| *remedy)
}

/// The name under which a fault is counted: one of the table, or `Other`.
pub(crate) fn fault_kind(fault: &Fault) -> &'static str {
    row(&fault.class).map_or("Other", |(name, _)| name)
}

/// What a failure knows about the fault behind it.
pub trait Faulted {
    /// The fault, if the server gave one.
    fn fault(&self) -> Option<&Fault>;

    /// Whether the fault is a `class` or derives from it.
    fn is_fault(&self, class: &str) -> bool {
        self.fault().is_some_and(|fault| fault.is(class))
    }

    /// The object that has the name already.
    fn duplicate_object(&self) -> Option<MoRef> {
        noun(self, "DuplicateName", |fault| fault.object("object"))
    }

    /// The task that has to end first.
    fn task_in_progress(&self) -> Option<MoRef> {
        noun(self, "TaskInProgress", |fault| fault.object("task"))
    }

    /// The object is already in the power state that was asked for, so there was nothing to do.
    fn power_state_reached(&self) -> bool {
        noun(self, "InvalidPowerState", |fault| {
            let requested = fault.text("requestedState").filter(|state| !state.is_empty())?;
            fault.text("existingState").map(|existing| existing == requested)
        })
        .unwrap_or(false)
    }

    /// The power state that stands in the way.
    fn existing_power_state(&self) -> Option<&str> {
        noun(self, "InvalidPowerState", |fault| fault.text("existingState"))
    }

    /// The object that does not exist.
    fn missing_object(&self) -> Option<MoRef> {
        noun(self, "ManagedObjectNotFound", |fault| fault.object("obj"))
    }

    /// The privileges that are missing and the objects they are missing on. Servers since 7.0.3 list several.
    fn missing_privileges(&self) -> Vec<(Option<MoRef>, String)> {
        let Some(fault) =
            self.fault().filter(|fault| fault.is("NoPermission") && !fault.is("NotAuthenticated"))
        else {
            return Vec::new();
        };
        let mut missing = Vec::new();
        for entry in fault.rest.iter().filter(|element| element.name == "missingPrivileges") {
            let entity = entry.child("entity").and_then(Element::moref);
            for privilege in entry.children_named("privilegeIds") {
                missing.push((entity.clone(), privilege.text.clone()));
            }
        }
        if missing.is_empty() {
            missing.extend(
                fault.text("privilegeId").map(|id| (fault.object("object"), id.to_owned())),
            );
        }
        missing
    }

    /// The file that a file fault is about, as a datastore path.
    fn file(&self) -> Option<&str> {
        noun(self, "FileFault", |fault| fault.text("file"))
    }

    /// Something of that name or path exists already, which is what a caller who makes directories wants.
    fn already_exists(&self) -> bool {
        self.is_fault("AlreadyExists") || self.is_fault("FileAlreadyExists")
    }

    /// The object or file is not there, which is what a caller who deletes wants.
    fn is_gone(&self) -> bool {
        self.fault().is_some_and(|fault| fault_remedy(fault) == Remedy::Gone)
    }

    /// No room: hosts, pool or datastore are full.
    fn is_capacity(&self) -> bool {
        self.is_fault("InsufficientResourcesFault")
            || self.is_fault("NoCompatibleHost")
            || self.is_fault("NoDiskSpace")
    }

    /// The datastore cannot be used or is full: another one may do.
    fn datastore_trouble(&self) -> Option<String> {
        let fault = self.fault()?;
        if fault.is("InvalidDatastore") {
            let name = fault.text("name").map(str::to_owned);
            return Some(
                name.or_else(|| fault.object("datastore").map(|it| it.id.to_string()))
                    .unwrap_or_default(),
            );
        }
        fault.is("NoDiskSpace").then(|| fault.text("datastore").unwrap_or_default().to_owned())
    }

    /// The argument or configuration property that the server does not like.
    fn invalid_property(&self) -> Option<&str> {
        let fault = self.fault()?;
        let field = match () {
            () if fault.is("InvalidArgument") => "invalidProperty",
            () if fault.is("InvalidVmConfig") => "property",
            () if fault.is("InvalidProperty") || fault.is("InvalidName") => "name",
            () => return None,
        };
        fault.text(field)
    }

    /// What the VM asks a person.
    fn question(&self) -> Option<&str> {
        noun(self, "QuestionPending", |fault| fault.text("text"))
    }

    /// Someone cancelled it.
    fn is_cancelled(&self) -> bool {
        self.is_fault("RequestCanceled")
    }
}

impl Faulted for Fault {
    fn fault(&self) -> Option<&Fault> {
        Some(self)
    }
}

fn noun<'a, F: Faulted + ?Sized, T>(
    of: &'a F,
    class: &str,
    take: impl FnOnce(&'a Fault) -> Option<T>,
) -> Option<T> {
    of.fault().filter(|fault| fault.is(class)).and_then(take)
}

#[cfg(test)]
mod tests;
