//! Storage policies, which a vCenter serves beside vim25 at `/pbm`.

use crate::types::{
    PbmPlacementCompatibilityResult, PbmPlacementHub, PbmProfileId, PbmServerObjectRef,
};
use crate::{Element, MoRef};

methods! {
    on PbmServiceInstance {
        read PbmRetrieveServiceContent = "PbmRetrieveServiceContent" {} -> Element;
    }

    on PbmProfileProfileManager {
        read PbmQueryProfile = "PbmQueryProfile" needs "StorageProfile.View"
        {
            resource_type "resourceType": Element,
            profile_category "profileCategory": Option<String>,
        } -> Vec<PbmProfileId>;
        read PbmQueryProfileDetails = "PbmQueryProfileDetails" needs "StorageProfile.View"
        {
            profile_category "profileCategory": Option<String>,
            fetch_all_fields "fetchAllFields": bool,
        } -> Vec<Element>;
        read PbmRetrieveContent = "PbmRetrieveContent" needs "StorageProfile.View"
        { profile_ids "profileIds": Vec<PbmProfileId> } -> Vec<Element>;
        change PbmCreate = "PbmCreate" needs "StorageProfile.Update"
        { create_spec "createSpec": Element } -> PbmProfileId;
        change PbmUpdate = "PbmUpdate" needs "StorageProfile.Update"
        { profile_id "profileId": PbmProfileId, update_spec "updateSpec": Element } -> ();
        change PbmDelete = "PbmDelete" needs "StorageProfile.Update"
        { profile_id "profileId": Vec<PbmProfileId> } -> Vec<Element>;
        read PbmQueryAssociatedProfile = "PbmQueryAssociatedProfile" needs "StorageProfile.View"
        { entity: PbmServerObjectRef } -> Vec<PbmProfileId>;
        read PbmQueryAssociatedProfiles = "PbmQueryAssociatedProfiles" needs "StorageProfile.View"
        { entities: Vec<PbmServerObjectRef> } -> Vec<Element>;
        read PbmQueryAssociatedEntity = "PbmQueryAssociatedEntity" needs "StorageProfile.View"
        { profile: PbmProfileId, entity_type "entityType": Option<String> } -> Vec<PbmServerObjectRef>;
        read PbmQueryDefaultRequirementProfile = "PbmQueryDefaultRequirementProfile" needs "StorageProfile.View"
        { hub: PbmPlacementHub } -> Option<PbmProfileId>;
        read PbmQueryIOFiltersFromProfileId = "PbmQueryIOFiltersFromProfileId" needs "StorageProfile.View"
        { profile_ids "profileIds": Vec<PbmProfileId> } -> Vec<Element>;
        read PbmFetchCapabilityMetadata = "PbmFetchCapabilityMetadata" needs "StorageProfile.View"
        {
            resource_type "resourceType": Option<Element>,
            vendor_uuid "vendorUuid": Option<String>,
        } -> Vec<Element>;
        change PbmResolveK8sCompliantNames = "PbmResolveK8sCompliantNames" needs "StorageProfile.Update" {} -> ();
    }

    on PbmComplianceManager {
        read PbmFetchComplianceResult = "PbmFetchComplianceResult" needs "StorageProfile.View"
        { entities: Vec<PbmServerObjectRef>, profile: Option<PbmProfileId> } -> Vec<Element>;
        read PbmCheckCompliance = "PbmCheckCompliance" needs "StorageProfile.View"
        { entities: Vec<PbmServerObjectRef>, profile: Option<PbmProfileId> } -> Vec<Element>;
    }

    on PbmPlacementSolver {
        read PbmCheckRequirements = "PbmCheckRequirements" needs "StorageProfile.View"
        {
            hubs_to_search "hubsToSearch": Vec<PbmPlacementHub>,
            placement_subject_ref "placementSubjectRef": Option<PbmServerObjectRef>,
            placement_subject_requirement "placementSubjectRequirement": Vec<Element>,
        } -> Vec<PbmPlacementCompatibilityResult>;
        read PbmCheckCompatibility = "PbmCheckCompatibility" needs "StorageProfile.View"
        {
            hubs_to_search "hubsToSearch": Vec<PbmPlacementHub>,
            profile: PbmProfileId,
        } -> Vec<PbmPlacementCompatibilityResult>;
        read PbmQueryMatchingHub = "PbmQueryMatchingHub" needs "StorageProfile.View"
        {
            hubs_to_search "hubsToSearch": Vec<PbmPlacementHub>,
            profile: PbmProfileId,
        } -> Vec<PbmPlacementHub>;
    }
}

impl PbmServerObjectRef {
    /// A VM, for its home and all of its disks.
    pub fn vm(vm: &MoRef) -> Self {
        Self { object_type: "virtualMachine".into(), key: vm.id.to_string(), server_uuid: None }
    }
}
