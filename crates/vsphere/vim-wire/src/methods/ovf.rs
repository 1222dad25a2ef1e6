//! OVF packages: into a VM, out of it, and the lease under which the disks travel.

use crate::{Element, LocalizedMethodFault, MoRef};

methods! {
    on OvfManager {
        read CreateImportSpec = "CreateImportSpec"
        {
            ovf_descriptor "ovfDescriptor": String,
            resource_pool "resourcePool": MoRef,
            datastore: MoRef,
            cisp: Element,
        } -> Element;
        read ParseDescriptor = "ParseDescriptor"
        { ovf_descriptor "ovfDescriptor": String, pdp: Element } -> Element;
        read ValidateHost = "ValidateHost"
        { ovf_descriptor "ovfDescriptor": String, host: MoRef, vhp: Element } -> Element;
        read CreateDescriptor = "CreateDescriptor" { obj: MoRef, cdp: Element } -> Element;
    }

    on ResourcePool {
        change ImportVApp = "ImportVApp" needs "VApp.Import"
        { spec: Element, folder: Option<MoRef>, host: Option<MoRef> } -> MoRef;
    }

    on VirtualMachine {
        change ExportVm = "ExportVm" needs "VApp.Export" {} -> MoRef;
    }

    on HttpNfcLease {
        session HttpNfcLeaseProgress = "HttpNfcLeaseProgress" { percent: i32 } -> ();
        change HttpNfcLeaseComplete = "HttpNfcLeaseComplete" {} -> ();
        change HttpNfcLeaseAbort = "HttpNfcLeaseAbort" { fault: Option<LocalizedMethodFault> } -> ();
        read HttpNfcLeaseGetManifest = "HttpNfcLeaseGetManifest" {} -> Vec<Element>;
        session HttpNfcLeaseSetManifestChecksumType = "HttpNfcLeaseSetManifestChecksumType"
        { device_urls_to_checksum_types "deviceUrlsToChecksumTypes": Vec<Element> } -> ();
    }
}
