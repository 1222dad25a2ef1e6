//! Keys that this program and its users agree on: annotations, labels, finalizers, and the keys in a VM's extraConfig.

pub mod annotation {
    /// No reconcile and no delete while it is there; its value does not matter.
    pub const PAUSED: &str = "vmoperator.vmware.com/paused";
    /// Delete the object and keep the VM.
    pub const SKIP_DELETE_PLATFORM_RESOURCE: &str =
        "vmoperator.vmware.com.protected/skip-delete-platform-resource";
    /// An integer that replaces the computed priority.
    pub const RECONCILE_PRIORITY: &str = "vmoperator.vmware.com.protected/reconcile-priority";
    pub const SKIP_VALIDATION: &str = "vmoperator.vmware.com.protected/skip-validation";
    /// No change of power before this instant.
    pub const APPLY_POWER_STATE_TIME: &str =
        "vmoperator.vmware.com.protected/apply-power-state-time";
    /// On groups: from when the delays of members count.
    pub const LAST_UPDATED_POWER_STATE_TIME: &str =
        "vmoperator.vmware.com.protected/last-updated-power-state-time";
    /// `type;status;reason;message` to be shown as a condition.
    pub const CONDITION_PREFIX: &str = "condition.vmoperator.vmware.com.protected/";
    /// No power-on while one of these is there.
    pub const POWER_ON_CHECK_PREFIX: &str = "poweron.check.vmoperator.vmware.com/";
    /// No deletion while one of these is there.
    pub const DELETE_CHECK_PREFIX: &str = "delete.check.vmoperator.vmware.com/";
    /// `direct`, `linked`; any other text turns fast deploy off for this VM.
    pub const FAST_DEPLOY: &str = "vmoperator.vmware.com/fast-deploy";
    /// `datacenterID,datastoreID,profileID` that the VM waits for.
    pub const IMAGE_CACHE_LOCATION: &str = "vmicache.vmoperator.vmware.com/location";
    /// The vCenter's instance UUID.
    pub const MANAGER_ID: &str = "vmoperator.vmware.com/manager-id";
    pub const FIRST_BOOT_DONE: &str = "virtualmachine.vmoperator.vmware.com/first-boot-done";
    /// Used once as cloud-init's instance id.
    pub const CLOUD_INIT_INSTANCE_ID: &str = "vmoperator.vmware.com/cloud-init-instance-id";
    pub const BOOTSTRAP_HASH_CONFIG_SPEC: &str = "vmoperator.vmware.com/bootstrap-hash-configspec";
    pub const BOOTSTRAP_HASH_CUSTOM_SPEC: &str = "vmoperator.vmware.com/bootstrap-hash-customspec";
    /// The class that the VM was last sized by: `{"name","uid","generation"}`.
    pub const LAST_RESIZED_VM_CLASS: &str = "vmoperator.vmware.com/last-resized-vm-class";
    /// Follow edits of the class itself.
    pub const SAME_VM_CLASS_RESIZE: &str = "vmoperator.vmware.com/same-vm-class-resize";
    pub const UPGRADED_TO_BUILD_VERSION: &str = "vmoperator.vmware.com/upgraded-to-build-version";
    pub const UPGRADED_TO_SCHEMA_VERSION: &str = "vmoperator.vmware.com/upgraded-to-schema-version";
    pub const UPGRADED_TO_FEATURE_VERSION: &str =
        "vmoperator.vmware.com/upgraded-to-feature-version";
    pub const CREATED_AT_BUILD_VERSION: &str = "vmoperator.vmware.com/created-at-build-version";
    pub const CREATED_AT_SCHEMA_VERSION: &str = "vmoperator.vmware.com/created-at-schema-version";
    pub const SNAPSHOT_REVERT_IN_PROGRESS: &str =
        "vmoperator.vmware.com/snapshot-revert-in-progress";
    pub const IMPORTED_SNAPSHOT: &str = "vmoperator.vmware.com/imported-snapshot";
    pub const BACKUP_VERSION: &str = "vmoperator.vmware.com/backup-version";
    pub const FORCE_ENABLE_BACKUP: &str = "vmoperator.vmware.com/force-enable-backup";
    pub const RESTORED_VM: &str = "vmoperator.vmware.com/restored-vm";
    pub const IMPORTED_VM: &str = "vmoperator.vmware.com/imported-vm";
    pub const FAILED_OVER_VM: &str = "vmoperator.vmware.com/failed-over-vm";
    /// `disable` skips the guest customization.
    pub const VSPHERE_CUSTOMIZATION: &str = "vmoperator.vmware.com/vsphere-customization";
    /// `guestinfo` or `cloudinitprep`.
    pub const CLOUD_INIT_TYPE: &str = "vmoperator.vmware.com/cloudinit-type";
    /// Gigabytes; `0` leaves it unset.
    pub const PCI_PASSTHRU_MMIO_SIZE: &str = "vmoperator.vmware.com/pci-passthru-64bit-mmio-size";
    pub const NO_DEFAULT_NIC: &str = "vmoperator.vmware.com/no-default-nic";
    pub const CLUSTER_MODULE_GROUP: &str = "vsphere-cluster-module-group";
    pub const CLUSTER_MODULE_UUID: &str = "vsphere-cluster-module-group-uuid";
    /// `requested`, then `completed` by the CSI driver.
    pub const CSI_VOLUME_SYNC: &str = "csi.vsphere.volume.sync";
    pub const CSI_ACCESSIBLE_TOPOLOGY: &str = "csi.vsphere.volume-accessible-topology";
    pub const CSI_REQUESTED_TOPOLOGY: &str = "csi.vsphere.volume-requested-topology";

    /// Is this a key that only privileged users may touch: its domain ends in `.protected`?
    pub fn is_protected(key: &str) -> bool {
        key.split_once('/').is_some_and(|(domain, _)| domain.ends_with(".protected"))
    }
}

pub mod label {
    /// Set by the controller: `devops`, `admin` or `both`.
    pub const PAUSED: &str = "vmoperator.vmware.com/paused";
    /// The cache object that the VM waits for.
    pub const IMAGE_CACHE_NAME: &str = "vmicache.vmoperator.vmware.com/name";
    pub const ZONE: &str = "topology.kubernetes.io/zone";
    pub const SNAPSHOT_VM_NAME: &str = "snapshot.vmoperator.vmware.com/vm-name";
    pub const WEB_CONSOLE_REQUEST_UUID: &str = "vmoperator.vmware.com/webconsolerequest-uuid";
    pub const REPLICA_SET_NAME: &str = "vmoperator.vmware.com/replicaset-name";
    /// Class instances that may be chosen.
    pub const ACTIVE: &str = "vmoperator.vmware.com/active";
    /// Nodes of a cluster made by Cluster API have one of these.
    pub const CLUSTER_ROLES: [&str; 2] =
        ["capw.vmware.com/cluster.role", "capv.vmware.com/cluster.role"];
    pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
}

pub mod finalizer {
    pub const VM: &str = "vmoperator.vmware.com/virtualmachine";
    /// Removed wherever it is seen.
    pub const DEPRECATED_VM: &str = "virtualmachine.vmoperator.vmware.com";
    pub const SNAPSHOT: &str = "vmoperator.vmware.com/virtualmachinesnapshot";
    pub const GROUP: &str = "vmoperator.vmware.com/virtualmachinegroup";
    pub const SERVICE: &str = "vmoperator.vmware.com/virtualmachineservice";
    pub const DEPRECATED_SERVICE: &str = "virtualmachineservice.vmoperator.vmware.com";
    pub const SET_RESOURCE_POLICY: &str = "vmoperator.vmware.com/virtualmachinesetresourcepolicy";
    pub const DEPRECATED_SET_RESOURCE_POLICY: &str =
        "virtualmachinesetresourcepolicy.vmoperator.vmware.com";
    pub const REPLICA_SET: &str = "virtualmachinereplicaset.vmoperator.vmware.com";
}

pub mod extra_config {
    /// `namespace/name` of the object that owns the VM.
    pub const NAMESPACED_NAME: &str = "vmservice.namespacedName";
    /// A true value pauses the VM.
    pub const PAUSE: &str = "vmservice.virtualmachine.pause";
    /// Nanoseconds since the epoch.
    pub const LAST_RESTART_TIME: &str = "vmservice.lastRestartTime";
    /// The class that the VM has its size from, as the annotation [`LAST_RESIZED_VM_CLASS`](super::annotation::LAST_RESIZED_VM_CLASS) has it. Written with the size itself, so
    /// neither a crash nor a revert can part the two.
    pub const SIZED_BY: &str = "vmservice.virtualmachine.sizedBy";
    pub const BACKUP_VM_YAML: &str = "vmservice.virtualmachine.resource.yaml";
    pub const BACKUP_ADDITIONAL_YAML: &str = "vmservice.virtualmachine.additional.resources.yaml";
    pub const BACKUP_PVC_DISKS: &str = "vmservice.virtualmachine.pvc.disk.data";
    pub const BACKUP_CLASSIC_DISKS: &str = "vmservice.virtualmachine.classicDiskData";
    pub const BACKUP_VERSION: &str = "vmservice.virtualmachine.backupVersion";
    pub const IMAGE_LABELS: &str = "vmservice.vmi.labels";
    pub const GUESTINFO_PREFIX: &str = "guestinfo.";
    pub const METADATA: &str = "guestinfo.metadata";
    pub const METADATA_ENCODING: &str = "guestinfo.metadata.encoding";
    pub const USERDATA: &str = "guestinfo.userdata";
    pub const USERDATA_ENCODING: &str = "guestinfo.userdata.encoding";
    /// How the two payloads are encoded.
    pub const ENCODING: &str = "gzip+base64";
    pub const LOCAL_IPV4: &str = "guestinfo.local-ipv4";
    pub const LOCAL_IPV6: &str = "guestinfo.local-ipv6";
    /// `bool[,reason[,message]]`, written by the guest.
    pub const BOOTSTRAP_CONDITION: &str = "guestinfo.vmservice.bootstrap.condition";
    pub const DISK_ENABLE_UUID: &str = "disk.enableUUID";
    pub const IGNORE_TOOLS_CHECK: &str = "vmware.tools.gosc.ignoretoolscheck";
    /// Non-empty while a customization is pending.
    pub const DEPLOY_PACKAGE: &str = "tools.deployPkg.fileName";
    /// Names of disks that deleting the VM keeps.
    pub const KEEP_DISKS: &str = "vmprov.keepDisks";
    pub const USE_64BIT_MMIO: &str = "pciPassthru.use64bitMMIO";
    pub const MMIO_SIZE_GB: &str = "pciPassthru.64bitMMIOSizeGB";
    /// Of old; always removed.
    pub const EVACUATION_POWER_OFF: &str = "maintenance.vm.evacuation.poweroff";
    pub const PREFER_HT: &str = "numa.vcpu.preferHT";
    pub const HUGE_PAGES_1G: &str = "sched.mem.lpage.enable1GPage";
    pub const TIME_TRACKER_LOW_LATENCY: &str = "timeTracker.lowLatency";
    pub const CPU_AFFINITY_EXCLUSIVE_NO_STATS: &str = "sched.cpu.affinity.exclusiveNoStats";
    pub const VMX_SWAP: &str = "sched.swap.vmxSwapEnabled";
    pub const NUMA_NODE_AFFINITY: &str = "numa.nodeAffinity";

    /// Keys below these belong to us and are taken out of images, and out of VMs that are given up.
    pub const OWN_PREFIXES: [&str; 3] = ["guestinfo.", "vmservice.", "imageregistry."];
    /// Keys of an image that are kept although they are below one of [`OWN_PREFIXES`].
    pub const KEPT_FROM_IMAGES: [&str; 2] = [BACKUP_PVC_DISKS, IMAGE_LABELS];

    pub fn is_own(key: &str) -> bool {
        OWN_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
    }

    /// May a VM inherit this key from the image that it is made of?
    pub fn is_inherited(key: &str) -> bool {
        !is_own(key) || KEPT_FROM_IMAGES.contains(&key)
    }

    /// Does this value say yes? vSphere and people write it in several ways.
    pub fn is_true(value: &str) -> bool {
        value.eq_ignore_ascii_case("true") || value == "1"
    }
}

/// The extension that the platform of VMware itself manages VMs by: never ours to touch.
pub const SUPERVISOR_EXTENSION: &str = "com.vmware.vcenter.wcp";
/// What a managed VM is called in `managedBy`.
pub const MANAGED_TYPE: &str = "VirtualMachine";
/// The notes of a VM whose object gives none.
pub const DEFAULT_NOTES: &str = "Virtual Machine managed by the vSphere Virtual Machine service";
/// The parameter of a StorageClass that names the storage policy.
pub const STORAGE_POLICY_PARAMETER: &str = "storagePolicyID";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protected_key_is_known_by_the_end_of_its_domain() {
        for key in [
            annotation::RECONCILE_PRIORITY,
            annotation::SKIP_DELETE_PLATFORM_RESOURCE,
            annotation::SKIP_VALIDATION,
            annotation::APPLY_POWER_STATE_TIME,
            "condition.vmoperator.vmware.com.protected/x",
            "anything.protected/y",
        ] {
            assert!(annotation::is_protected(key), "{key}");
        }
        for key in
            [annotation::PAUSED, "a/b.protected/c", "protected", ".protected", "x.protectedy/z"]
        {
            assert!(!annotation::is_protected(key), "{key}");
        }
    }

    #[test]
    fn an_image_hands_on_no_key_of_ours() {
        assert!(extra_config::is_inherited("disk.enableUUID"));
        assert!(extra_config::is_inherited(extra_config::IMAGE_LABELS));
        assert!(!extra_config::is_inherited(extra_config::NAMESPACED_NAME));
        assert!(!extra_config::is_inherited(extra_config::METADATA));
        assert!(extra_config::is_true("TRUE") && extra_config::is_true("1"));
        assert!(!extra_config::is_true("yes") && !extra_config::is_true(""));
    }
}
