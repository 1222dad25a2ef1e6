use super::ConditionType;

words! {
    /// Why a condition is as it is. [`ConditionType::reasons`] says which go with which.
    pub enum Reason {
        True = "True",
        Synced = "Synced",
        NotSynced = "NotSynced",
        Ready = "Ready",
        NotReady = "NotReady",
        Unknown = "Unknown",
        Error = "Error",
        Failed = "Failed",
        NotFound = "NotFound",
        Forbidden = "Forbidden",
        Invalid = "Invalid",
        InternalError = "InternalError",
        GetError = "GetError",
        NotSet = "NotSet",
        UnknownKind = "UnknownKind",
        NotSupported = "NotSupported",
        StorageClassRequired = "StorageClassRequired",
        DatastoreNotFound = "DatastoreNotFound",
        RequiredKeyNotFound = "RequiredKeyNotFound",
        ZoneMismatch = "ZoneMismatch",
        ToolsNotRunning = "VirtualMachineToolsNotRunning",
        NoGuestInfo = "NoGuestInfo",
        CustomizationPending = "GuestCustomizationPending",
        CustomizationRunning = "GuestCustomizationRunning",
        CustomizationFailed = "GuestCustomizationFailed",
        ReconcilePaused = "VirtualMachineReconcilePaused",
        DiskPromotionPending = "DiskPromotionPending",
        DiskPromotionRunning = "DiskPromotionRunning",
        DiskPromotionTaskError = "DiskPromotionTaskError",
        DiskPromotionTaskTransientError = "DiskPromotionTaskTransientError",
        ClassNameChanged = "ClassNameChanged",
        SameClassResize = "SameClassResize",
        ClassUpdated = "ClassUpdated",
        ClassNotFound = "ClassNotFound",
        RevertInProgress = "VirtualMachineSnapshotRevertInProgress",
        RevertTaskFailed = "VirtualMachineSnapshotRevertTaskFailed",
        RevertFailedInvalidManifest = "VirtualMachineSnapshotRevertFailedInvalidVMManifest",
        RevertSkipped = "VirtualMachineSnapshotRevertSkipped",
        RevertFailed = "VirtualMachineSnapshotRevertFailed",
        BackupPaused = "VirtualMachineBackupPaused",
        BackupFailed = "VirtualMachineBackupFailed",
        ResourcePoolMismatch = "ResourcePoolMismatch",
        FolderMismatch = "FolderMismatch",
        ResourcePoolAndFolderMismatch = "ResourcePoolAndFolderMismatch",
        NotMember = "NotMember",
        EncryptionClassNotFound = "EncryptionClassNotFound",
        EncryptionClassInvalid = "EncryptionClassInvalid",
        NoDefaultKeyProvider = "NoDefaultKeyProvider",
        InvalidState = "InvalidState",
        InvalidChanges = "InvalidChanges",
        ReconfigureError = "ReconfigureError",
        PrerequisiteNotMet = "PrerequisiteNotMet",
        PowerOffRequired = "PowerOffRequired",
        PowerCyclePending = "PowerCyclePending",
        Disconnected = "Disconnected",
        Inaccessible = "Inaccessible",
        Orphaned = "Orphaned",
        SnapshotWaitingForCreation = "VirtualMachineSnapshotWaitingForCreation",
        SnapshotWaitingForCsiSync = "VirtualMachineSnapshotWaitingForCSISync",
        SnapshotWaitingForDiskRegistration = "VirtualMachineSnapshotWaitingForDiskRegistration",
        SnapshotCreationInProgress = "VirtualMachineSnapshotCreationInProgress",
        SnapshotCreationFailed = "VirtualMachineSnapshotCreationFailed",
        SnapshotCsiSyncInProgress = "VirtualMachineSnapshotCSISyncInProgress",
        ImageNotSynced = "VirtualMachineImageNotSynced",
        ImageProviderNotReady = "VirtualMachineImageProviderNotReady",
        ImageProviderSecurityNotCompliant = "VirtualMachineImageProviderSecurityNotCompliant",
    }
}

/// What can go wrong with reading an object that a VM names.
const LOOKUP: &[Reason] = &[
    Reason::True,
    Reason::NotFound,
    Reason::Forbidden,
    Reason::Invalid,
    Reason::InternalError,
    Reason::GetError,
    Reason::Unknown,
];

impl ConditionType {
    /// The reasons that this condition can have. `GuestBootstrap` has whatever the guest says.
    pub fn reasons(self) -> Vec<Reason> {
        use Reason as R;
        let more = |more: &[R]| [LOOKUP, more].concat();
        match self {
            Self::Ready => vec![
                R::True,
                R::NotReady,
                R::Unknown,
                R::Failed,
                R::ImageNotSynced,
                R::ImageProviderNotReady,
                R::ImageProviderSecurityNotCompliant,
            ],
            Self::Created => vec![R::True, R::Error],
            Self::ClassReady => LOOKUP.to_vec(),
            Self::ImageReady => more(&[
                R::NotSet,
                R::UnknownKind,
                R::NotReady,
                R::NotSupported,
                R::ImageNotSynced,
                R::ImageProviderNotReady,
                R::ImageProviderSecurityNotCompliant,
            ]),
            Self::SetResourcePolicyReady => more(&[R::NotReady]),
            Self::StorageReady => more(&[R::StorageClassRequired, R::DatastoreNotFound]),
            Self::BootstrapReady => more(&[R::RequiredKeyNotFound]),
            Self::NetworkReady | Self::ImageCacheReady => vec![R::True, R::NotReady],
            Self::PlacementReady => vec![R::True, R::NotReady, R::ZoneMismatch, R::Error],
            Self::PowerStateSynced | Self::GuestNetworkConfigSynced => {
                vec![R::Synced, R::NotSynced]
            }
            Self::Tools => vec![R::True, R::ToolsNotRunning, R::NoGuestInfo, R::Unknown],
            Self::GuestCustomization => vec![
                R::True,
                R::CustomizationPending,
                R::CustomizationRunning,
                R::CustomizationFailed,
                R::Unknown,
                R::NoGuestInfo,
            ],
            Self::GuestBootstrap => Vec::new(),
            Self::GuestIdReconfigured => vec![R::True, R::Invalid],
            Self::ReconcileReady => vec![R::True, R::ReconcilePaused],
            Self::DiskPromotionStarted | Self::HardwareDeviceConfigVerified => vec![R::True],
            Self::DiskPromotionSynced => vec![
                R::True,
                R::DiskPromotionPending,
                R::DiskPromotionRunning,
                R::DiskPromotionTaskError,
                R::DiskPromotionTaskTransientError,
            ],
            Self::ClassConfigurationSynced => vec![
                R::True,
                R::ClassNameChanged,
                R::SameClassResize,
                R::ClassUpdated,
                R::ClassNotFound,
            ],
            Self::SnapshotRevertSucceeded => vec![
                R::True,
                R::RevertInProgress,
                R::RevertTaskFailed,
                R::RevertFailedInvalidManifest,
                R::RevertSkipped,
                R::RevertFailed,
            ],
            Self::BackupUpToDate => vec![R::True, R::BackupPaused, R::BackupFailed],
            Self::LocationValid => vec![
                R::True,
                R::ResourcePoolMismatch,
                R::FolderMismatch,
                R::ResourcePoolAndFolderMismatch,
            ],
            Self::GroupLinked => vec![R::True, R::NotFound, R::NotMember, R::Error],
            Self::EncryptionSynced => vec![
                R::True,
                R::InternalError,
                R::EncryptionClassNotFound,
                R::EncryptionClassInvalid,
                R::NoDefaultKeyProvider,
                R::InvalidState,
                R::InvalidChanges,
                R::ReconfigureError,
            ],
            Self::ComputeConfigSynced | Self::ExtraConfigSynced | Self::NetworkConfigSynced => {
                vec![R::True, R::PrerequisiteNotMet, R::PowerOffRequired, R::PowerCyclePending]
            }
            Self::Connected => {
                vec![R::True, R::Disconnected, R::Inaccessible, R::Invalid, R::Orphaned, R::Unknown]
            }
            Self::SnapshotReady => vec![
                R::True,
                R::SnapshotWaitingForCreation,
                R::SnapshotWaitingForCsiSync,
                R::SnapshotWaitingForDiskRegistration,
            ],
            Self::SnapshotCreated => {
                vec![R::True, R::SnapshotCreationInProgress, R::SnapshotCreationFailed]
            }
            Self::SnapshotCsiSynced => vec![R::True, R::SnapshotCsiSyncInProgress],
            Self::CacheHardwareReady | Self::CacheProviderReady | Self::CacheFilesReady => {
                vec![R::True, R::Failed]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The API server takes a reason of letters, digits and some signs, and a type of at most 316 characters.
    #[test]
    fn every_text_is_one_that_the_api_server_takes() {
        for reason in Reason::ALL {
            let text = reason.as_str();
            assert!(text.chars().all(|c| c.is_ascii_alphanumeric()), "{text}");
            assert!(text.starts_with(|c: char| c.is_ascii_alphabetic()), "{text}");
        }
        let mut types: Vec<_> = ConditionType::ALL.iter().map(|kind| kind.as_str()).collect();
        types.sort_unstable();
        types.dedup();
        assert_eq!(types.len(), ConditionType::ALL.len());
    }

    #[test]
    fn every_reason_belongs_to_a_condition() {
        for reason in Reason::ALL.iter().filter(|reason| **reason != Reason::Ready) {
            let used = ConditionType::ALL.iter().any(|kind| kind.reasons().contains(reason));
            assert!(used, "{reason}");
        }
    }
}
