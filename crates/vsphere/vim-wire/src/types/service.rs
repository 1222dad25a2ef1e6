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

    /// The managers that Roost uses, and those that other clients insist on.
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
        custom_fields_manager "customFieldsManager": Option<MoRef>,
        license_manager "licenseManager": Option<MoRef>,
        search_index "searchIndex": Option<MoRef>,
        file_manager "fileManager": Option<MoRef>,
        virtual_disk_manager "virtualDiskManager": Option<MoRef>,
        ovf_manager "ovfManager": Option<MoRef>,
        dv_switch_manager "dvSwitchManager": Option<MoRef>,
        storage_resource_manager "storageResourceManager": Option<MoRef>,
        guest_operations_manager "guestOperationsManager": Option<MoRef>,
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
