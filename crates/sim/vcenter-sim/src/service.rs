//! The service instance: what the server is, and where its managers are.

use roost_vim_wire::types::{AboutInfo, ServiceContent};
use roost_vim_wire::{MoRef, MoType, Request};

use crate::call::{CallContext, CallResult};
use crate::model::calls;
use crate::options::{Options, Product};
use crate::world::World;

/// The methods that need a session; `RetrieveServiceContent` does not.
pub(crate) fn call(
    request: &Request<'_>,
    _: &MoRef,
    _: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    calls! { request;
        CurrentTime => |_| Ok(cx.now),
    }
}

/// The answer of `RetrieveServiceContent`.
pub(crate) fn content(options: &Options) -> ServiceContent {
    let product = options.product;
    let at = |kind: &str| manager(product, kind);
    let given = |kind: &str| Some(manager(product, kind));
    let only = |of: Product, kind: &str| (product == of).then(|| manager(product, kind));
    let only_vcenter = |kind: &str| only(Product::VirtualCenter, kind);
    let only_host = |kind: &str| only(Product::HostAgent, kind);
    ServiceContent {
        root_folder: root_folder(product),
        property_collector: at("PropertyCollector"),
        view_manager: given("ViewManager"),
        about: about(options),
        setting: given("OptionManager"),
        user_directory: given("UserDirectory"),
        session_manager: given("SessionManager"),
        authorization_manager: given("AuthorizationManager"),
        service_manager: given("ServiceManager"),
        perf_manager: given("PerformanceManager"),
        scheduled_task_manager: only_vcenter("ScheduledTaskManager"),
        alarm_manager: only_vcenter("AlarmManager"),
        event_manager: given("EventManager"),
        task_manager: given("TaskManager"),
        extension_manager: only_vcenter("ExtensionManager"),
        customization_spec_manager: only_vcenter("CustomizationSpecManager"),
        guest_customization_manager: only_vcenter("VirtualMachineGuestCustomizationManager"),
        custom_fields_manager: only_vcenter("CustomFieldsManager"),
        account_manager: only_host("HostLocalAccountManager"),
        diagnostic_manager: given("DiagnosticManager"),
        license_manager: given("LicenseManager"),
        search_index: given("SearchIndex"),
        file_manager: given("FileManager"),
        datastore_namespace_manager: given("DatastoreNamespaceManager"),
        virtual_disk_manager: given("VirtualDiskManager"),
        virtualization_manager: None,
        snmp_system: only_vcenter("HostSnmpSystem"),
        vm_provisioning_checker: only_vcenter("VirtualMachineProvisioningChecker"),
        vm_compatibility_checker: only_vcenter("VirtualMachineCompatibilityChecker"),
        ovf_manager: given("OvfManager"),
        ip_pool_manager: only_vcenter("IpPoolManager"),
        dv_switch_manager: given("DistributedVirtualSwitchManager"),
        host_profile_manager: only_vcenter("HostProfileManager"),
        cluster_profile_manager: only_vcenter("ClusterProfileManager"),
        compliance_manager: only_vcenter("ProfileComplianceManager"),
        localization_manager: given("LocalizationManager"),
        storage_resource_manager: given("StorageResourceManager"),
        guest_operations_manager: given("GuestOperationsManager"),
        overhead_memory_manager: only_vcenter("OverheadMemoryManager"),
        certificate_manager: only_vcenter("CertificateManager"),
        io_filter_manager: only_vcenter("IoFilterManager"),
        vstorage_object_manager: match product {
            Product::VirtualCenter => given("VcenterVStorageObjectManager"),
            Product::HostAgent => given("HostVStorageObjectManager"),
        },
        host_spec_manager: only_vcenter("HostSpecificationManager"),
        crypto_manager: match product {
            Product::VirtualCenter => given("CryptoManagerKmip"),
            Product::HostAgent => given("CryptoManager"),
        },
        health_update_manager: only_vcenter("HealthUpdateManager"),
        failover_cluster_configurator: only_vcenter("FailoverClusterConfigurator"),
        failover_cluster_manager: only_vcenter("FailoverClusterManager"),
        tenant_manager: only_vcenter("TenantTenantManager"),
        site_info_manager: only_vcenter("SiteInfoManager"),
        storage_query_manager: only_vcenter("StorageQueryManager"),
    }
}

pub(crate) fn root_folder(product: Product) -> MoRef {
    let id = match product {
        Product::VirtualCenter => "group-d1",
        Product::HostAgent => "ha-folder-root",
    };
    MoRef::new(MoType::Folder, id)
}

/// The one object of this kind, as the product names it.
pub(crate) fn manager(product: Product, kind: &str) -> MoRef {
    let id = MANAGERS.iter().find(|(name, ..)| *name == kind).map_or(kind, |(_, vcenter, host)| {
        match product {
            Product::VirtualCenter => vcenter,
            Product::HostAgent => host,
        }
    });
    MoRef::new(MoType::from(kind), id)
}

/// Whether this is the service instance or a manager that the product has.
pub(crate) fn is_manager(product: Product, obj: &MoRef) -> bool {
    let ids = MANAGERS.iter().find(|(name, ..)| *name == obj.kind.as_str());
    ids.is_some_and(|(_, vcenter, host)| match product {
        Product::VirtualCenter => !vcenter.is_empty() && *vcenter == &*obj.id,
        Product::HostAgent => !host.is_empty() && *host == &*obj.id,
    })
}

/// Kind, id on vCenter, id on a host; empty where the product has none.
const MANAGERS: &[(&str, &str, &str)] = &[
    ("ServiceInstance", "ServiceInstance", "ServiceInstance"),
    ("PropertyCollector", "propertyCollector", "ha-property-collector"),
    ("ViewManager", "ViewManager", "ViewManager"),
    ("OptionManager", "VpxSettings", "HostAgentSettings"),
    ("UserDirectory", "UserDirectory", "ha-user-directory"),
    ("SessionManager", "SessionManager", "ha-sessionmgr"),
    ("AuthorizationManager", "AuthorizationManager", "ha-authmgr"),
    ("ServiceManager", "ServiceMgr", "ha-servicemanager"),
    ("PerformanceManager", "PerfMgr", "ha-perfmgr"),
    ("ScheduledTaskManager", "ScheduledTaskManager", ""),
    ("AlarmManager", "AlarmManager", ""),
    ("EventManager", "EventManager", "ha-eventmgr"),
    ("TaskManager", "TaskManager", "ha-taskmgr"),
    ("ExtensionManager", "ExtensionManager", ""),
    ("CustomizationSpecManager", "CustomizationSpecManager", ""),
    ("CustomFieldsManager", "CustomFieldsManager", ""),
    ("LicenseManager", "LicenseManager", "ha-license-manager"),
    ("SearchIndex", "SearchIndex", "ha-searchindex"),
    ("FileManager", "FileManager", "ha-nfc-file-manager"),
    ("VirtualDiskManager", "virtualDiskManager", "ha-vdiskmanager"),
    ("OvfManager", "OvfManager", "ha-ovf-manager"),
    ("DistributedVirtualSwitchManager", "DVSManager", "ha-dvsmanager"),
    ("StorageResourceManager", "StorageResourceManager", "ha-storage-resource-manager"),
    ("GuestOperationsManager", "guestOperationsManager", "ha-guest-operations-manager"),
    ("GuestProcessManager", "guestOperationsProcessManager", "ha-guest-operations-process-manager"),
    ("GuestFileManager", "guestOperationsFileManager", "ha-guest-operations-file-manager"),
    ("GuestAuthManager", "guestOperationsAuthManager", "ha-guest-operations-auth-manager"),
    ("GuestAliasManager", "guestOperationsAliasManager", "ha-guest-operations-alias-manager"),
    (
        "GuestWindowsRegistryManager",
        "guestOperationsWindowsRegistryManager",
        "ha-guest-operations-windows-registry-manager",
    ),
    ("VirtualMachineGuestCustomizationManager", "GuestCustomizationManager", ""),
    ("HostLocalAccountManager", "", "ha-localacctmgr"),
    ("DiagnosticManager", "DiagMgr", "ha-diagnosticmgr"),
    ("DatastoreNamespaceManager", "DatastoreNamespaceManager", "ha-datastore-namespace-manager"),
    ("HostSnmpSystem", "SnmpSystem", ""),
    ("VirtualMachineProvisioningChecker", "ProvChecker", ""),
    ("VirtualMachineCompatibilityChecker", "CompatChecker", ""),
    ("IpPoolManager", "IpPoolManager", ""),
    ("HostProfileManager", "HostProfileManager", ""),
    ("ClusterProfileManager", "ClusterProfileManager", ""),
    ("ProfileComplianceManager", "MoComplianceManager", ""),
    ("LocalizationManager", "LocalizationManager", "ha-l10n-manager"),
    ("OverheadMemoryManager", "OverheadMemoryManager", ""),
    ("CertificateManager", "certificateManager", ""),
    ("IoFilterManager", "IoFilterManager", ""),
    ("VcenterVStorageObjectManager", "VStorageObjectManager", ""),
    ("HostVStorageObjectManager", "", "ha-vstorage-object-manager"),
    ("HostSpecificationManager", "HostSpecificationManager", ""),
    ("CryptoManagerKmip", "CryptoManager", ""),
    ("CryptoManager", "", "ha-crypto-manager"),
    ("HealthUpdateManager", "HealthUpdateManager", ""),
    ("FailoverClusterConfigurator", "FailoverClusterConfigurator", ""),
    ("FailoverClusterManager", "FailoverClusterManager", ""),
    ("TenantTenantManager", "TenantManager", ""),
    ("SiteInfoManager", "SiteInfoManager", ""),
    ("StorageQueryManager", "StorageQueryManager", ""),
    ("LicenseAssignmentManager", "LicenseAssignmentManager", ""),
    ("VslmServiceInstance", "ServiceInstance", ""),
    ("VslmSessionManager", "SessionManager", ""),
    ("VslmVStorageObjectManager", "VStorageObjectManager", ""),
    ("VslmStorageLifecycleManager", "StorageLifecycleManager", ""),
    ("PbmServiceInstance", "ServiceInstance", ""),
    ("PbmSessionManager", "SessionManager", ""),
    ("PbmCapabilityMetadataManager", "CapabilityMetadataManager", ""),
    ("PbmProfileProfileManager", "ProfileManager", ""),
    ("PbmComplianceManager", "complianceManager", ""),
    ("PbmPlacementSolver", "placementSolver", ""),
    ("PbmReplicationManager", "ReplicationManager", ""),
];

pub(crate) fn about(options: &Options) -> AboutInfo {
    let about = about_product(options.product, &options.api_version);
    let of_vcenter = options.product == Product::VirtualCenter;
    AboutInfo { instance_uuid: of_vcenter.then(|| instance_uuid(options.seed)), ..about }
}

/// What any server of a product says about itself; a vCenter's hosts are one of the other product.
pub(crate) fn about_product(product: Product, api_version: &str) -> AboutInfo {
    // "8.0.3.0" is the API of release 8.0.3.
    let version = api_version.splitn(4, '.').take(3).collect::<Vec<_>>().join(".");
    let (name, os_type, line, api_type, license) = match product {
        Product::VirtualCenter => (
            "VMware vCenter Server",
            "linux-x64",
            "vpx",
            "VirtualCenter",
            "VMware VirtualCenter Server",
        ),
        Product::HostAgent => {
            ("VMware ESXi", "vmnix-x86", "embeddedEsx", "HostAgent", "VMware ESX Server")
        }
    };
    AboutInfo {
        name: name.into(),
        full_name: format!("{name} {version} build-{BUILD} (Roost simulator)"),
        vendor: "VMware, Inc.".into(),
        version,
        patch_level: None,
        build: BUILD.into(),
        locale_version: Some("INTL".into()),
        locale_build: Some("000".into()),
        os_type: os_type.into(),
        product_line_id: line.into(),
        api_type: api_type.into(),
        api_version: api_version.into(),
        instance_uuid: None,
        license_product_name: Some(license.into()),
        license_product_version: Some("8.0".into()),
    }
}

const BUILD: &str = "24322831";

fn instance_uuid(seed: u64) -> String {
    roost_clock::Random::from_seed(seed).fork("instance").uuid()
}

/// The answer of `GET /sdk/vimServiceVersions.xml`.
pub(crate) fn versions_xml(options: &Options) -> String {
    let own = &options.api_version;
    let known: Vec<&str> =
        PRIOR_VERSIONS.iter().copied().filter(|version| version != own).collect();
    let prior = known.join("</version><version>");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" ?>\n<namespaces version=\"1.0\"><namespace><name>urn:vim25</name>\
         <version>{own}</version><priorVersions><version>{prior}</version></priorVersions></namespace></namespaces>"
    )
}

const PRIOR_VERSIONS: &[&str] =
    &["8.0.2.0", "8.0.1.0", "8.0.0.0", "7.0.3.0", "7.0.0.0", "6.7.3", "6.7", "6.5"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_names_its_managers_differently_and_lacks_those_of_vcenter() {
        let content = content(&Options { product: Product::HostAgent, ..Options::default() });
        assert_eq!(&*content.property_collector.id, "ha-property-collector");
        assert_eq!(&*content.root_folder.id, "ha-folder-root");
        assert_eq!(content.about.api_type, "HostAgent");
        assert_eq!((content.custom_fields_manager, content.alarm_manager), (None, None));
        assert!(!is_manager(
            Product::HostAgent,
            &manager(Product::VirtualCenter, "SessionManager")
        ));
        assert!(!is_manager(Product::HostAgent, &manager(Product::HostAgent, "AlarmManager")));
    }

    #[test]
    fn the_version_document_names_the_own_version_first_and_once() {
        let xml = versions_xml(&Options { api_version: "7.0.3.0".into(), ..Options::default() });
        assert_eq!(xml.matches("7.0.3.0").count(), 1);
        assert!(xml.contains("<name>urn:vim25</name><version>7.0.3.0</version><priorVersions>"));
    }
}
