//! The service instance, sessions and views.

use jiff::Timestamp;

use crate::{Element, MoRef};

data! {
    struct AboutInfo {
        name: String,
        full_name "fullName": String,
        vendor: String,
        version: String,
        patch_level "patchLevel": Option<String>,
        build: String,
        locale_version "localeVersion": Option<String>,
        locale_build "localeBuild": Option<String>,
        os_type "osType": String,
        product_line_id "productLineId": String,
        api_type "apiType": String,
        api_version "apiVersion": String,
        instance_uuid "instanceUuid": Option<String>,
        license_product_name "licenseProductName": Option<String>,
        license_product_version "licenseProductVersion": Option<String>,
    }

    /// The managers of a vCenter and of a host.
    struct ServiceContent {
        root_folder "rootFolder": MoRef,
        property_collector "propertyCollector": MoRef,
        view_manager "viewManager": Option<MoRef>,
        about: AboutInfo,
        setting: Option<MoRef>,
        user_directory "userDirectory": Option<MoRef>,
        session_manager "sessionManager": Option<MoRef>,
        authorization_manager "authorizationManager": Option<MoRef>,
        service_manager "serviceManager": Option<MoRef>,
        perf_manager "perfManager": Option<MoRef>,
        scheduled_task_manager "scheduledTaskManager": Option<MoRef>,
        alarm_manager "alarmManager": Option<MoRef>,
        event_manager "eventManager": Option<MoRef>,
        task_manager "taskManager": Option<MoRef>,
        extension_manager "extensionManager": Option<MoRef>,
        customization_spec_manager "customizationSpecManager": Option<MoRef>,
        guest_customization_manager "guestCustomizationManager": Option<MoRef>,
        custom_fields_manager "customFieldsManager": Option<MoRef>,
        account_manager "accountManager": Option<MoRef>,
        diagnostic_manager "diagnosticManager": Option<MoRef>,
        license_manager "licenseManager": Option<MoRef>,
        search_index "searchIndex": Option<MoRef>,
        file_manager "fileManager": Option<MoRef>,
        datastore_namespace_manager "datastoreNamespaceManager": Option<MoRef>,
        virtual_disk_manager "virtualDiskManager": Option<MoRef>,
        virtualization_manager "virtualizationManager": Option<MoRef>,
        snmp_system "snmpSystem": Option<MoRef>,
        vm_provisioning_checker "vmProvisioningChecker": Option<MoRef>,
        vm_compatibility_checker "vmCompatibilityChecker": Option<MoRef>,
        ovf_manager "ovfManager": Option<MoRef>,
        ip_pool_manager "ipPoolManager": Option<MoRef>,
        dv_switch_manager "dvSwitchManager": Option<MoRef>,
        host_profile_manager "hostProfileManager": Option<MoRef>,
        cluster_profile_manager "clusterProfileManager": Option<MoRef>,
        compliance_manager "complianceManager": Option<MoRef>,
        localization_manager "localizationManager": Option<MoRef>,
        storage_resource_manager "storageResourceManager": Option<MoRef>,
        guest_operations_manager "guestOperationsManager": Option<MoRef>,
        overhead_memory_manager "overheadMemoryManager": Option<MoRef>,
        certificate_manager "certificateManager": Option<MoRef>,
        io_filter_manager "ioFilterManager": Option<MoRef>,
        vstorage_object_manager "vStorageObjectManager": Option<MoRef>,
        host_spec_manager "hostSpecManager": Option<MoRef>,
        crypto_manager "cryptoManager": Option<MoRef>,
        health_update_manager "healthUpdateManager": Option<MoRef>,
        failover_cluster_configurator "failoverClusterConfigurator": Option<MoRef>,
        failover_cluster_manager "failoverClusterManager": Option<MoRef>,
        tenant_manager "tenantManager": Option<MoRef>,
        site_info_manager "siteInfoManager": Option<MoRef>,
        storage_query_manager "storageQueryManager": Option<MoRef>,
    }

    struct UserSession {
        key: String,
        user_name "userName": String,
        full_name "fullName": String,
        login_time "loginTime": Timestamp,
        last_active_time "lastActiveTime": Timestamp,
        locale: String,
        message_locale "messageLocale": String,
        extension_session "extensionSession": Option<bool>,
        ip_address "ipAddress": Option<String>,
        user_agent "userAgent": Option<String>,
        call_count "callCount": Option<i64>,
    }

    typed SessionManagerHttpServiceRequestSpec {
        method: Option<String>,
        url: String,
    }

    struct SessionManagerGenericServiceTicket {
        id: String,
        host_name "hostName": Option<String>,
        ssl_thumbprint "sslThumbprint": Option<String>,
    }

    struct LocalizableMessage {
        key: String,
        arg: Vec<Element>,
        message: Option<String>,
    }
}
