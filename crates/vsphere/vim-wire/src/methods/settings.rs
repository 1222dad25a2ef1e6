//! Custom fields, options and privileges.

use crate::MoRef;
use crate::types::{CustomFieldDef, OptionValue};

methods! {
    on CustomFieldsManager {
        change AddCustomFieldDef = "AddCustomFieldDef" needs "Global.ManageCustomFields"
        {
            name: String,
            mo_type "moType": Option<String>,
        } -> CustomFieldDef;
        change SetField = "SetField" needs "Global.SetCustomField"
        { entity: MoRef, key: i32, value: String } -> ();
    }

    on OptionManager {
        read QueryOptions = "QueryOptions" { name: Option<String> } -> Vec<OptionValue>;
        change UpdateOptions = "UpdateOptions" needs "Global.Settings"
        { changed_value "changedValue": Vec<OptionValue> } -> ();
    }

    on AuthorizationManager {
        read HasPrivilegeOnEntities = "HasPrivilegeOnEntities" {
            entity: Vec<MoRef>,
            session_id "sessionId": String,
            priv_id "privId": Vec<String>,
        } -> Vec<EntityPrivilege>;
    }
}

data! {
    struct EntityPrivilege {
        entity: MoRef,
        priv_availability "privAvailability": Vec<PrivilegeAvailability>,
    }

    struct PrivilegeAvailability {
        priv_id "privId": String,
        is_granted "isGranted": bool,
    }
}
