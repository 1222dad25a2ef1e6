//! Roles, permissions and privileges.

use crate::MoRef;

methods! {
    on AuthorizationManager {
        read HasPrivilegeOnEntities = "HasPrivilegeOnEntities" {
            entity: Vec<MoRef>,
            session_id "sessionId": String,
            priv_id "privId": Vec<String>,
        } -> Vec<EntityPrivilege>;
        change AddAuthorizationRole = "AddAuthorizationRole" needs "Authorization.ModifyRoles"
        { name: String, priv_ids "privIds": Vec<String> } -> i32;
        change UpdateAuthorizationRole = "UpdateAuthorizationRole" needs "Authorization.ModifyRoles"
        {
            role_id "roleId": i32,
            new_name "newName": String,
            priv_ids "privIds": Vec<String>,
        } -> ();
        change RemoveAuthorizationRole = "RemoveAuthorizationRole" needs "Authorization.ModifyRoles"
        { role_id "roleId": i32, fail_if_used "failIfUsed": bool } -> ();
        change SetEntityPermissions = "SetEntityPermissions" needs "Authorization.ModifyPermissions"
        { entity: MoRef, permission: Vec<Permission> } -> ();
        change RemoveEntityPermission = "RemoveEntityPermission" needs "Authorization.ModifyPermissions"
        { entity: MoRef, user: String, is_group "isGroup": bool } -> ();
        read RetrieveAllPermissions = "RetrieveAllPermissions" {} -> Vec<Permission>;
        read RetrieveEntityPermissions = "RetrieveEntityPermissions" { entity: MoRef, inherited: bool } -> Vec<Permission>;
        read RetrieveRolePermissions = "RetrieveRolePermissions" { role_id "roleId": i32 } -> Vec<Permission>;
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

    struct Permission {
        entity: Option<MoRef>,
        principal: String,
        group: bool,
        role_id "roleId": i32,
        propagate: bool,
    }
}
