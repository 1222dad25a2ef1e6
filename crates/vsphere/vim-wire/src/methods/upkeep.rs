//! What keeps a site going beside its VMs: figures, licenses.

use jiff::Timestamp;

use crate::{Element, MoRef};

methods! {
    on PerformanceManager {
        read QueryPerfProviderSummary = "QueryPerfProviderSummary" { entity: MoRef } -> Element;
        read QueryAvailablePerfMetric = "QueryAvailablePerfMetric" {
            entity: MoRef,
            begin_time "beginTime": Option<Timestamp>,
            end_time "endTime": Option<Timestamp>,
            interval_id "intervalId": Option<i32>,
        } -> Vec<Element>;
        read QueryPerfCounter = "QueryPerfCounter" { counter_id "counterId": Vec<i32> } -> Vec<Element>;
        read QueryPerfCounterByLevel = "QueryPerfCounterByLevel" { level: i32 } -> Vec<Element>;
        read QueryPerf = "QueryPerf" { query_spec "querySpec": Vec<Element> } -> Vec<Element>;
    }

    on LicenseManager {
        change AddLicense = "AddLicense" needs "Global.Licenses"
        { license_key "licenseKey": String, labels: Vec<Element> } -> Element;
        change UpdateLicense = "UpdateLicense" needs "Global.Licenses"
        { license_key "licenseKey": String, labels: Vec<Element> } -> Element;
        change RemoveLicense = "RemoveLicense" needs "Global.Licenses" { license_key "licenseKey": String } -> ();
        read DecodeLicense = "DecodeLicense" { license_key "licenseKey": String } -> Element;
        change UpdateLicenseLabel = "UpdateLicenseLabel" needs "Global.Licenses"
        { license_key "licenseKey": String, label_key "labelKey": String, label_value "labelValue": String } -> ();
        change RemoveLicenseLabel = "RemoveLicenseLabel" needs "Global.Licenses"
        { license_key "licenseKey": String, label_key "labelKey": String } -> ();
    }

    on LicenseAssignmentManager {
        read QueryAssignedLicenses = "QueryAssignedLicenses" { entity_id "entityId": Option<String> } -> Vec<Element>;
        change UpdateAssignedLicense = "UpdateAssignedLicense" needs "Global.Licenses" {
            entity: String,
            license_key "licenseKey": String,
            entity_display_name "entityDisplayName": Option<String>,
        } -> Element;
        change RemoveAssignedLicense = "RemoveAssignedLicense" needs "Global.Licenses" { entity_id "entityId": String } -> ();
    }

    on EventManager {
        change PostEvent = "PostEvent" needs "Global.LogEvent"
        { event_to_post "eventToPost": Element, task_info "taskInfo": Option<Element> } -> ();
    }

    on Datacenter {
        change PowerOnMultiVmTask = "PowerOnMultiVM_Task" needs "VirtualMachine.Interact.PowerOn"
            task "Datacenter.powerOnVm" "Initialize powering On"
        { vm: Vec<MoRef>, option: Vec<Element> } -> MoRef;
    }
}
