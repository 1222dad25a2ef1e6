//! The properties that the API documents, by kind: a property that nobody has modelled is unset, one that does not exist is refused.

/// Whether objects of this kind have a property of this name, modelled or not.
pub(crate) fn is_documented(kind: &str, property: &str) -> bool {
    let Some((_, bases, own)) = PROPERTIES.iter().find(|(name, ..)| *name == kind) else {
        return false;
    };
    own.split_ascii_whitespace().any(|name| name == property)
        || bases.split_ascii_whitespace().any(|base| is_documented(base, property))
}

/// Kind, the kinds that it extends, and its own properties.
const PROPERTIES: &[(&str, &str, &str)] = &[
    ("Alarm", "ExtensibleManagedObject", "info"),
    ("AlarmManager", "", "defaultExpression description"),
    ("AuthorizationManager", "", "privilegeList roleList description"),
    (
        "ClusterComputeResource",
        "ComputeResource",
        "configuration recommendation drsRecommendation hciConfig migrationHistory actionHistory drsFault",
    ),
    ("ClusterEVCManager", "ExtensibleManagedObject", "managedCluster evcState"),
    ("ClusterProfile", "Profile", ""),
    ("ClusterProfileManager", "ProfileManager", ""),
    (
        "ComputeResource",
        "ManagedEntity",
        "resourcePool host datastore network summary environmentBrowser configurationEx lifecycleManaged",
    ),
    ("ContainerView", "ManagedObjectView", "container type recursive"),
    ("CryptoManager", "", "enabled"),
    ("CryptoManagerHost", "CryptoManager", ""),
    ("CryptoManagerKmip", "CryptoManager", "kmipServers"),
    ("CustomFieldsManager", "", "field"),
    ("CustomizationSpecManager", "", "info encryptionKey"),
    (
        "Datacenter",
        "ManagedEntity",
        "vmFolder hostFolder datastoreFolder networkFolder datastore network configuration",
    ),
    ("Datastore", "ManagedEntity", "info summary host vm browser capability iormConfiguration"),
    ("DistributedVirtualPortgroup", "Network", "key config portKeys"),
    (
        "DistributedVirtualSwitch",
        "ManagedEntity",
        "uuid capability summary config networkResourcePool portgroup runtime",
    ),
    ("EnvironmentBrowser", "", "datastoreBrowser"),
    ("EventHistoryCollector", "HistoryCollector", "latestPage"),
    ("EventManager", "", "description latestEvent maxCollector"),
    ("ExtensibleManagedObject", "", "value availableField"),
    ("ExtensionManager", "", "extensionList"),
    ("FailoverClusterConfigurator", "", "disabledConfigureMethod"),
    ("FailoverClusterManager", "", "disabledClusterMethod"),
    ("Folder", "ManagedEntity", "childType childEntity namespace"),
    (
        "GuestOperationsManager",
        "",
        "authManager fileManager processManager guestWindowsRegistryManager aliasManager",
    ),
    ("HistoryCollector", "", "filter"),
    ("HostAccessManager", "", "lockdownMode"),
    ("HostAssignableHardwareManager", "", "binding config"),
    ("HostAuthenticationManager", "", "info supportedStore"),
    ("HostAuthenticationStore", "", "info"),
    ("HostAutoStartManager", "", "config"),
    ("HostCacheConfigurationManager", "", "cacheConfigurationInfo"),
    ("HostCertificateManager", "", "certificateInfo"),
    ("HostCpuSchedulerSystem", "ExtensibleManagedObject", "hyperthreadInfo cpuSchedulerInfo"),
    ("HostDatastoreBrowser", "", "datastore supportedType"),
    ("HostDatastoreSystem", "", "datastore capabilities"),
    ("HostDateTimeSystem", "", "dateTimeInfo"),
    ("HostDiagnosticSystem", "", "activePartition"),
    ("HostDirectoryStore", "HostAuthenticationStore", ""),
    ("HostEsxAgentHostManager", "", "configInfo"),
    ("HostFirewallSystem", "ExtensibleManagedObject", "firewallInfo"),
    (
        "HostGraphicsManager",
        "ExtensibleManagedObject",
        "graphicsInfo graphicsConfig sharedPassthruGpuTypes sharedGpuCapabilities",
    ),
    ("HostHealthStatusSystem", "", "runtime"),
    ("HostLocalAuthentication", "HostAuthenticationStore", ""),
    (
        "HostMemorySystem",
        "ExtensibleManagedObject",
        "consoleReservationInfo virtualMachineReservationInfo",
    ),
    (
        "HostNetworkSystem",
        "ExtensibleManagedObject",
        "capabilities networkInfo offloadCapabilities networkConfig dnsConfig ipRouteConfig \
         consoleIpRouteConfig",
    ),
    ("HostNvdimmSystem", "", "nvdimmSystemInfo"),
    ("HostPciPassthruSystem", "ExtensibleManagedObject", "pciPassthruInfo sriovDevicePoolInfo"),
    ("HostPowerSystem", "", "capability info"),
    (
        "HostProfile",
        "Profile",
        "validationState validationStateUpdateTime validationFailureInfo referenceHost",
    ),
    ("HostProfileManager", "ProfileManager", ""),
    ("HostServiceSystem", "ExtensibleManagedObject", "serviceInfo"),
    ("HostSnmpSystem", "", "configuration limits"),
    (
        "HostStorageSystem",
        "ExtensibleManagedObject",
        "storageDeviceInfo fileSystemVolumeInfo systemFile multipathStateInfo",
    ),
    (
        "HostSystem",
        "ManagedEntity",
        "runtime summary hardware capability licensableResource remediationState precheckRemediationResult \
         remediationResult complianceCheckState complianceCheckResult configManager config vm datastore \
         network datastoreBrowser systemResources answerFileValidationState answerFileValidationResult",
    ),
    ("HostVFlashManager", "", "vFlashConfigInfo"),
    ("HostVMotionSystem", "ExtensibleManagedObject", "netConfig ipConfig"),
    ("HostVirtualNicManager", "ExtensibleManagedObject", "info"),
    ("HostVsanSystem", "", "config"),
    ("HttpNfcLease", "", "initializeProgress transferProgress mode capabilities info state error"),
    ("InventoryView", "ManagedObjectView", ""),
    (
        "LicenseManager",
        "",
        "source sourceAvailable diagnostics featureInfo licensedEdition licenses licenseAssignmentManager \
         evaluation",
    ),
    ("ListView", "ManagedObjectView", ""),
    ("LocalizationManager", "", "catalog"),
    (
        "ManagedEntity",
        "ExtensibleManagedObject",
        "parent customValue overallStatus configStatus configIssue effectiveRole permission name \
         disabledMethod recentTask declaredAlarmState triggeredAlarmState alarmActionsEnabled tag",
    ),
    ("ManagedObjectView", "", "view"),
    ("Network", "ManagedEntity", "summary host vm name"),
    ("OpaqueNetwork", "Network", "capability extraConfig"),
    ("OptionManager", "", "supportedOption setting"),
    ("OvfManager", "", "ovfImportOption ovfExportOption"),
    ("PerformanceManager", "", "description historicalInterval perfCounter"),
    ("Profile", "", "config description name createdTime modifiedTime entity complianceStatus"),
    ("ProfileManager", "", "profile"),
    ("PropertyCollector", "", "filter"),
    ("PropertyFilter", "", "spec partialUpdates"),
    (
        "ResourcePool",
        "ManagedEntity",
        "summary runtime owner resourcePool vm config namespace childConfiguration",
    ),
    ("ScheduledTask", "ExtensibleManagedObject", "info"),
    ("ScheduledTaskManager", "", "scheduledTask description"),
    ("ServiceInstance", "", "serverClock capability content"),
    ("ServiceManager", "", "service"),
    (
        "SessionManager",
        "",
        "sessionList currentSession message messageLocaleList supportedLocaleList defaultLocale",
    ),
    ("SimpleCommand", "", "encodingType entity"),
    ("StoragePod", "Folder", "summary podStorageDrsEntry"),
    ("Task", "ExtensibleManagedObject", "info"),
    ("TaskHistoryCollector", "HistoryCollector", "latestPage"),
    ("TaskManager", "", "recentTask description maxCollector"),
    ("UserDirectory", "", "domainList"),
    ("ViewManager", "", "viewList"),
    (
        "VirtualApp",
        "ResourcePool",
        "parentFolder datastore network vAppConfig parentVApp childLink",
    ),
    (
        "VirtualMachine",
        "ManagedEntity",
        "capability config layout layoutEx storage environmentBrowser resourcePool parentVApp resourceConfig \
         runtime guest summary datastore network snapshot rootSnapshot guestHeartbeatStatus",
    ),
    ("VirtualMachineSnapshot", "ExtensibleManagedObject", "config childSnapshot vm"),
    ("VmwareDistributedVirtualSwitch", "DistributedVirtualSwitch", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_the_properties_of_those_that_it_extends() {
        for (kind, property, wanted) in [
            ("VirtualMachine", "rootSnapshot", true),
            ("VirtualMachine", "triggeredAlarmState", true),
            ("VirtualApp", "childLink", true),
            ("VirtualApp", "summary", true),
            ("VirtualMachine", "colour", false),
            ("LicenseManager", "licenses", true),
        ] {
            assert_eq!(is_documented(kind, property), wanted, "{kind}.{property}");
        }
    }
}
