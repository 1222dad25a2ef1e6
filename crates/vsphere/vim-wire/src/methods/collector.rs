//! Property collector, its filters, and views. The first three of the collector answer pages that are decoded while they arrive; see `PageDecoder`.

use crate::types::{
    ObjectContent, PropertyFilterSpec, RetrieveOptions, RetrieveResult, UpdateSet, WaitOptions,
};
use crate::{MoRef, Value};

methods! {
    on PropertyCollector {
        read RetrievePropertiesEx = "RetrievePropertiesEx" {
            spec_set "specSet": Vec<PropertyFilterSpec>,
            options: RetrieveOptions,
        } -> Option<RetrieveResult>;
        read ContinueRetrievePropertiesEx = "ContinueRetrievePropertiesEx" { token: String } -> Option<RetrieveResult>;
        read WaitForUpdatesEx = "WaitForUpdatesEx" {
            version: Option<String>,
            options: Option<WaitOptions>,
        } -> Option<UpdateSet>;
        read CancelRetrievePropertiesEx = "CancelRetrievePropertiesEx" { token: String } -> ();
        read RetrieveProperties = "RetrieveProperties" {
            spec_set "specSet": Vec<PropertyFilterSpec>,
        } -> Vec<ObjectContent>;
        read WaitForUpdates = "WaitForUpdates" { version: Option<String> } -> UpdateSet;
        read CheckForUpdates = "CheckForUpdates" { version: Option<String> } -> Option<UpdateSet>;
        session CancelWaitForUpdates = "CancelWaitForUpdates" {} -> ();
        session CreatePropertyCollector = "CreatePropertyCollector" {} -> MoRef;
        session DestroyPropertyCollector = "DestroyPropertyCollector" {} -> ();
        session CreateFilter = "CreateFilter" {
            spec: PropertyFilterSpec,
            partial_updates "partialUpdates": bool,
        } -> MoRef;
    }

    on ManagedObject {
        /// One property of any managed object; how some clients read a plain attribute.
        read Fetch = "Fetch" { prop: String } -> Option<Value>;
    }

    on PropertyFilter {
        session DestroyPropertyFilter = "DestroyPropertyFilter" {} -> ();
    }

    on ViewManager {
        session CreateContainerView = "CreateContainerView" {
            container: MoRef,
            kind "type": Vec<String>,
            recursive: bool,
        } -> MoRef;
        session CreateListView = "CreateListView" { obj: Vec<MoRef> } -> MoRef;
    }

    on ListView {
        session ModifyListView = "ModifyListView" { add: Vec<MoRef>, remove: Vec<MoRef> } -> Vec<MoRef>;
        session ResetListView = "ResetListView" { obj: Vec<MoRef> } -> Vec<MoRef>;
    }

    on View {
        session DestroyView = "DestroyView" {} -> ();
    }
}
