use roost_vim_wire::{MoRef, Request};

use crate::call::{CallContext, CallResult};
use crate::inventory::{custom_field_ops, environment, folder_ops, pool_ops, recommend};
use crate::model::calls;
use crate::vm::create;
use crate::world::World;

/// The methods of folders, pools, clusters, custom fields and storage placement.
pub(crate) fn call(
    request: &Request<'_>,
    this: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    calls! { request;
        CreateVmTask => |call| create::create(world, cx, this, (call.config, call.pool, call.host)),
        CreateFolder => |call| folder_ops::create(world, this, &call.name),
        MoveIntoFolderTask => |call| folder_ops::move_into(world, cx, this, call.list),
        CreateResourcePool => |call| pool_ops::create(world, cx, this, &call.name, &call.spec),
        UpdateConfig => |call| pool_ops::update(world, cx, this, call.name.as_deref(), call.config.as_ref()),
        AddCustomFieldDef => |call| custom_field_ops::define(world, &call.name, call.mo_type.as_deref()),
        SetField => |call| custom_field_ops::set(world, &call.entity, call.key, &call.value),
        QueryConfigOption => |_| Ok(environment::config_option()),
        QueryConfigOptionEx => |_| Ok(environment::config_option()),
        QueryConfigTarget => |_| Ok(environment::config_target(world, this)),
        RecommendDatastores => |call| recommend::datastores(world, cx, &call.storage_spec),
        PlaceVmsXCluster => |call| recommend::place_across(world, cx, &call.placement_spec),
        PlaceVm => |call| recommend::place_vm(world, cx, this, &call.placement_spec),
    }
}
