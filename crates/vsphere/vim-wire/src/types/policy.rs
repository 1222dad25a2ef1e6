//! Storage policies.

use crate::{Element, LocalizedMethodFault};

data! {
    struct PbmProfileId {
        unique_id "uniqueId": String,
    }

    struct PbmServerObjectRef {
        /// `virtualMachine`, `virtualDiskId` or `datastore`.
        object_type "objectType": String,
        /// The id, or `vm-1:2000` for a disk.
        key: String,
        server_uuid "serverUuid": Option<String>,
    }

    struct PbmPlacementHub {
        hub_type "hubType": String,
        hub_id "hubId": String,
    }

    struct PbmPlacementCompatibilityResult {
        hub: PbmPlacementHub,
        matching_resources "matchingResources": Vec<Element>,
        how_many "howMany": Option<i64>,
        utilization: Vec<Element>,
        warning: Vec<LocalizedMethodFault>,
        error: Vec<LocalizedMethodFault>,
    }
}
