//! Custom fields and options.

use crate::MoRef;
use crate::types::{CustomFieldDef, OptionValue};

methods! {
    on CustomFieldsManager {
        change AddCustomFieldDef = "AddCustomFieldDef" needs "Global.ManageCustomFields"
        {
            name: String,
            mo_type "moType": Option<String>,
        } -> CustomFieldDef;
        change RenameCustomFieldDef = "RenameCustomFieldDef" needs "Global.ManageCustomFields"
        { key: i32, name: String } -> ();
        change RemoveCustomFieldDef = "RemoveCustomFieldDef" needs "Global.ManageCustomFields" { key: i32 } -> ();
        change SetField = "SetField" needs "Global.SetCustomField"
        { entity: MoRef, key: i32, value: String } -> ();
    }

    on OptionManager {
        read QueryOptions = "QueryOptions" { name: Option<String> } -> Vec<OptionValue>;
        change UpdateOptions = "UpdateOptions" needs "Global.Settings"
        { changed_value "changedValue": Vec<OptionValue> } -> ();
    }
}
