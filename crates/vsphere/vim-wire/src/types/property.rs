//! The property collector's own types.

use crate::{LocalizedMethodFault, MoRef, Value};

data! {
    struct PropertyFilterSpec {
        prop_set "propSet": Vec<PropertySpec>,
        object_set "objectSet": Vec<ObjectSpec>,
        report_missing_objects_in_results "reportMissingObjectsInResults": Option<bool>,
    }

    struct PropertySpec {
        kind "type": String,
        all: Option<bool>,
        path_set "pathSet": Vec<String>,
    }

    struct ObjectSpec {
        obj: MoRef,
        skip: Option<bool>,
        select_set "selectSet": Vec<SelectionSpec>,
    }

    /// A `SelectionSpec` (a name only) or a `TraversalSpec` (all of it).
    open SelectionSpec {
        name: Option<String>,
        kind "type": Option<String>,
        path: Option<String>,
        skip: Option<bool>,
        select_set "selectSet": Vec<SelectionSpec>,
    }

    struct RetrieveOptions {
        max_objects "maxObjects": Option<i32>,
    }

    struct RetrieveResult {
        token: Option<String>,
        objects: Vec<ObjectContent>,
    }

    struct ObjectContent {
        obj: MoRef,
        prop_set "propSet": Vec<DynamicProperty>,
        missing_set "missingSet": Vec<MissingProperty>,
    }

    struct DynamicProperty {
        name: String,
        val: Value,
    }

    struct MissingProperty {
        path: String,
        fault: LocalizedMethodFault,
    }

    struct MissingObject {
        obj: MoRef,
        fault: LocalizedMethodFault,
    }

    struct WaitOptions {
        max_wait_seconds "maxWaitSeconds": Option<i32>,
        max_object_updates "maxObjectUpdates": Option<i32>,
    }

    struct UpdateSet {
        version: String,
        filter_set "filterSet": Vec<PropertyFilterUpdate>,
        truncated: Option<bool>,
    }

    struct PropertyFilterUpdate {
        filter: MoRef,
        object_set "objectSet": Vec<ObjectUpdate>,
        missing_set "missingSet": Vec<MissingObject>,
    }

    struct ObjectUpdate {
        kind: ObjectUpdateKind,
        obj: MoRef,
        change_set "changeSet": Vec<PropertyChange>,
        missing_set "missingSet": Vec<MissingProperty>,
    }

    struct PropertyChange {
        name: String,
        op: PropertyChangeOp,
        /// `None` with `assign` means that the property is now unset.
        val: Option<Value>,
    }
}

names! {
    enum ObjectUpdateKind { Enter = "enter", Modify = "modify", Leave = "leave" }

    enum PropertyChangeOp {
        Assign = "assign",
        Add = "add",
        Remove = "remove",
        IndirectRemove = "indirectRemove",
    }
}

impl PropertySpec {
    pub fn new(kind: &str, paths: &[&str]) -> Self {
        Self {
            kind: kind.into(),
            all: None,
            path_set: paths.iter().map(|path| (*path).into()).collect(),
        }
    }
}

impl SelectionSpec {
    /// From an object of `kind` along its property `path`.
    pub fn traverse(kind: &str, path: &str) -> Self {
        Self { kind: Some(kind.into()), path: Some(path.into()), ..Self::of("TraversalSpec") }
    }

    /// Back to a traversal of this name, which makes it recursive.
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.into()), ..Self::of("SelectionSpec") }
    }
}

impl PropertyFilterSpec {
    /// The objects that `view` shows, and of each the paths that fit its type.
    pub fn of_view(view: &MoRef, prop_set: Vec<PropertySpec>) -> Self {
        let select = SelectionSpec::traverse(view.kind.as_str(), "view");
        let start = ObjectSpec { obj: view.clone(), skip: Some(true), select_set: vec![select] };
        Self { prop_set, object_set: vec![start], report_missing_objects_in_results: None }
    }
}
