use roost_vim_wire::{MoRef, Request};

use crate::call::{CallContext, CallResult};
use crate::inventory::{
    app_ops, cluster_ops, custom_field_ops, environment, folder_ops, host_ops, pool_ops, recommend,
    storage_pod, switch_ops,
};
use crate::model::calls;
use crate::nfc;
use crate::vm::{create, register};
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
        CreateDatacenter => |call| cluster_ops::create_datacenter(world, cx, this, &call.name),
        CreateClusterEx => |call| cluster_ops::create_cluster(world, cx, this, (&call.name, &call.spec)),
        AddStandaloneHostTask => |call| cluster_ops::add_host(world, cx, this, ("AddStandaloneHost_Task", &call.spec)),
        AddHostTask => |call| cluster_ops::add_host(world, cx, this, ("AddHost_Task", &call.spec)),
        MoveIntoTask => |call| Ok(cluster_ops::move_into(world, cx, this, call.host)),
        ReconfigureComputeResourceTask => |call| Ok(cluster_ops::reconfigure(world, cx, this, call.spec)),
        EnterMaintenanceModeTask => |call| Ok(host_ops::enter_maintenance(world, cx, this, call.evacuate_powered_off_vms.unwrap_or(false))),
        ExitMaintenanceModeTask => |_| Ok(host_ops::exit_maintenance(world, cx, this)),
        DisconnectHostTask => |_| Ok(host_ops::disconnect(world, cx, this)),
        QueryTpmAttestationReport => |_| Ok(None),
        ReconnectHostTask => |_| Ok(host_ops::reconnect(world, cx, this)),
        CreateDvsTask => |call| switch_ops::create(world, cx, this, call.spec),
        ReconfigureDvsTask => |call| Ok(switch_ops::reconfigure(world, cx, this, call.spec)),
        AddDvPortgroupTask => |call| Ok(switch_ops::add_groups(world, cx, this, ("AddDVPortgroup_Task", call.spec))),
        CreateDvPortgroupTask => |call| Ok(switch_ops::add_groups(world, cx, this, ("CreateDVPortgroup_Task", vec![call.spec]))),
        ReconfigureDvPortgroupTask => |call| Ok(switch_ops::reconfigure_group(world, cx, this, call.spec)),
        FetchDvPorts => |call| Ok(switch_ops::ports(world, this, call.criteria.as_ref())),
        RegisterVmTask => |call| register::register(world, cx, this, call),
        DestroyChildren => |_| pool_ops::destroy_children(world, cx, this),
        CreateFolder => |call| folder_ops::create(world, this, &call.name),
        MoveIntoFolderTask => |call| folder_ops::move_into(world, cx, this, call.list),
        CreateResourcePool => |call| pool_ops::create(world, cx, this, &call.name, &call.spec),
        CreateVApp => |call| app_ops::create(world, cx, this, call),
        CreateChildVmTask => |call| app_ops::create_vm(world, cx, this, (call.config, call.host)),
        PowerOnVAppTask => |_| app_ops::power_on(world, cx, this),
        PowerOffVAppTask => |_| app_ops::power_off(world, cx, this),
        SuspendVAppTask => |_| app_ops::suspend(world, cx, this),
        UpdateVAppConfig => |call| app_ops::update(world, this, &call.spec),
        UpdateConfig => |call| pool_ops::update(world, cx, this, call.name.as_deref(), call.config.as_ref()),
        AddCustomFieldDef => |call| custom_field_ops::define(world, &call.name, call.mo_type.as_deref()),
        RenameCustomFieldDef => |call| custom_field_ops::rename(world, call.key, &call.name),
        RemoveCustomFieldDef => |call| custom_field_ops::remove(world, call.key),
        SetField => |call| custom_field_ops::set(world, &call.entity, call.key, &call.value),
        QueryConfigOption => |_| Ok(environment::config_option()),
        QueryConfigOptionEx => |_| Ok(environment::config_option()),
        QueryConfigTarget => |_| Ok(environment::config_target(world, this)),
        PowerOnMultiVmTask => |call| crate::vm::power_on_many(world, cx, this, call.vm),
        CreateStoragePod => |call| storage_pod::create(world, this, &call.name),
        ConfigureStorageDrsForPodTask => |call| storage_pod::configure(world, cx, &call.pod),
        ApplyStorageDrsRecommendationTask => |call| storage_pod::apply(world, cx, this, &call.key),
        RecommendDatastores => |call| recommend::datastores(world, cx, &call.storage_spec),
        PlaceVmsXCluster => |call| recommend::place_across(world, cx, &call.placement_spec),
        PlaceVm => |call| recommend::place_vm(world, cx, this, &call.placement_spec),
        ImportVApp => |call| nfc::import(world, cx, this, &call),
    }
}
