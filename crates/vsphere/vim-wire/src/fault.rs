//! Faults: one type for about nine hundred classes, with the ancestry of those that matter.

use crate::types::LocalizableMessage;
use crate::{Element, Field, MoRef};

data! {
    /// A vim25 fault of any class; the fields of that class are in `rest`.
    open Fault {
        fault_cause "faultCause": Option<Box<LocalizedMethodFault>>,
        fault_message "faultMessage": Vec<LocalizableMessage>,
    }

    /// A fault with the server's words for it, which are localized and may be empty: show them, never match on them.
    struct LocalizedMethodFault {
        fault: Fault,
        localized_message "localizedMessage": Option<String>,
    }
}

impl Fault {
    /// Whether this is a `class` or a subclass of it.
    pub fn is(&self, class: &str) -> bool {
        is_a(&self.class, class)
    }

    /// A text field of the fault, such as `privilegeId`.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.rest.iter().find(|element| element.name == field).map(|element| element.text.as_str())
    }

    /// A reference that the fault carries, such as the `object` of a `DuplicateName`.
    pub fn object(&self, field: &str) -> Option<MoRef> {
        self.rest.iter().find(|element| element.name == field).and_then(Element::moref)
    }

    #[must_use]
    pub fn with(mut self, field: &str, value: &impl Field) -> Self {
        self.rest.extend(Element::of_field(field, value));
        self
    }

    /// What vCenter says in `faultMessage`, often the only useful text.
    pub fn messages(&self) -> impl Iterator<Item = &str> {
        self.fault_message
            .iter()
            .filter_map(|message| message.message.as_deref())
            .filter(|text| !text.is_empty())
    }
}

impl LocalizedMethodFault {
    pub fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self { fault, localized_message: Some(message.into()) }
    }
}

/// Whether the fault class `class` is `base` or derives from it, as far as the table below knows.
pub fn is_a(class: &str, base: &str) -> bool {
    let mut class = class;
    // The table has no cycle, but the bound makes that a property of this loop and not of the data.
    for _ in 0..16 {
        if class == base {
            return true;
        }
        match PARENTS.binary_search_by_key(&class, |(child, _)| child) {
            Ok(found) => class = PARENTS[found].1,
            Err(_) => return base == "MethodFault",
        }
    }
    false
}

/// Sorted by class.
const PARENTS: &[(&str, &str)] = &[
    ("AlreadyExists", "VimFault"),
    ("CannotAccessFile", "FileFault"),
    ("CannotAccessVmComponent", "VmConfigFault"),
    ("CannotAccessVmDisk", "CannotAccessVmDevice"),
    ("ConcurrentAccess", "VimFault"),
    ("CpuHotPlugNotSupported", "VmConfigFault"),
    ("CustomizationFault", "VimFault"),
    ("CustomizationPending", "CustomizationFault"),
    ("DatacenterMismatch", "MigrationFault"),
    ("DuplicateName", "VimFault"),
    ("FileAlreadyExists", "FileFault"),
    ("FileFault", "VimFault"),
    ("FileLocked", "FileFault"),
    ("FileNotFound", "FileFault"),
    ("FileNotWritable", "FileFault"),
    ("FileTooLarge", "FileFault"),
    ("GenericVmConfigFault", "VmConfigFault"),
    ("GuestComponentsOutOfDate", "GuestOperationsFault"),
    ("GuestOperationsFault", "VimFault"),
    ("GuestOperationsUnavailable", "GuestOperationsFault"),
    ("GuestPermissionDenied", "GuestOperationsFault"),
    ("GuestProcessNotFound", "GuestOperationsFault"),
    ("HostCommunication", "RuntimeFault"),
    ("HostConnectFault", "VimFault"),
    ("HostNotConnected", "HostCommunication"),
    ("HostNotReachable", "HostCommunication"),
    ("InaccessibleDatastore", "InvalidDatastore"),
    ("InsufficientCpuResourcesFault", "InsufficientResourcesFault"),
    ("InsufficientHostCapacityFault", "InsufficientResourcesFault"),
    ("InsufficientMemoryResourcesFault", "InsufficientResourcesFault"),
    ("InsufficientResourcesFault", "VimFault"),
    ("InvalidArgument", "RuntimeFault"),
    ("InvalidCollectorVersion", "MethodFault"),
    ("InvalidController", "InvalidDeviceSpec"),
    ("InvalidDatastore", "VimFault"),
    ("InvalidDatastorePath", "InvalidDatastore"),
    ("InvalidDeviceBacking", "InvalidDeviceSpec"),
    ("InvalidDeviceOperation", "InvalidDeviceSpec"),
    ("InvalidDeviceSpec", "InvalidVmConfig"),
    ("InvalidGuestLogin", "GuestOperationsFault"),
    ("InvalidLocale", "VimFault"),
    ("InvalidLogin", "VimFault"),
    ("InvalidName", "VimFault"),
    ("InvalidPowerState", "InvalidState"),
    ("InvalidProperty", "MethodFault"),
    ("InvalidRequest", "RuntimeFault"),
    ("InvalidState", "VimFault"),
    ("InvalidType", "InvalidRequest"),
    ("InvalidVmConfig", "VmConfigFault"),
    ("LinuxVolumeNotClean", "CustomizationFault"),
    ("ManagedObjectNotFound", "RuntimeFault"),
    ("MemoryHotPlugNotSupported", "VmConfigFault"),
    ("MethodDisabled", "RuntimeFault"),
    ("MethodNotFound", "InvalidRequest"),
    ("MigrationFault", "VimFault"),
    ("NicSettingMismatch", "CustomizationFault"),
    ("NoCompatibleHost", "VimFault"),
    ("NoDiskSpace", "FileFault"),
    ("NoPermission", "SecurityError"),
    ("NotAuthenticated", "NoPermission"),
    ("NotEnoughLicenses", "RuntimeFault"),
    ("NotFound", "VimFault"),
    ("NotImplemented", "RuntimeFault"),
    ("NotSupported", "RuntimeFault"),
    ("NumVirtualCpusExceedsLimit", "InsufficientResourcesFault"),
    ("OperationDisabledByGuest", "GuestOperationsFault"),
    ("OperationNotSupportedByGuest", "GuestOperationsFault"),
    ("OutOfBounds", "VimFault"),
    ("QuestionPending", "InvalidState"),
    ("RequestCanceled", "RuntimeFault"),
    ("ResourceInUse", "VimFault"),
    ("RestrictedVersion", "SecurityError"),
    ("RuntimeFault", "MethodFault"),
    ("SecurityError", "RuntimeFault"),
    ("SnapshotFault", "VimFault"),
    ("SystemError", "RuntimeFault"),
    ("TaskInProgress", "VimFault"),
    ("Timedout", "VimFault"),
    ("TooManyDevices", "InvalidVmConfig"),
    ("TooManyGuestLogons", "GuestOperationsFault"),
    ("ToolsUnavailable", "VimFault"),
    ("UncustomizableGuest", "CustomizationFault"),
    ("UnexpectedFault", "RuntimeFault"),
    ("VimFault", "MethodFault"),
    ("VmConfigFault", "VimFault"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_row_ends_at_the_root() {
        assert!(PARENTS.is_sorted_by_key(|(child, _)| child));
        for (class, _) in PARENTS {
            assert!(is_a(class, "MethodFault"), "{class}");
        }
    }

    #[test]
    fn ancestry_follows_the_table() {
        assert!(is_a("NotAuthenticated", "NoPermission"));
        assert!(is_a("InaccessibleDatastore", "InvalidDatastore"));
        assert!(is_a("InvalidPowerState", "VimFault"));
        assert!(!is_a("InvalidState", "InvalidPowerState"));
        assert!(is_a("NeverHeardOfIt", "MethodFault"));
        assert!(!is_a("NeverHeardOfIt", "VimFault"));
    }
}
