//! The search index: an object by its path, its identity or its address.

use roost_vim_wire::methods::{
    FindAllByUuid, FindByDnsName, FindByInventoryPath, FindByIp, FindByUuid, FindChild,
};
use roost_vim_wire::types::GuestNicInfo;
use roost_vim_wire::{Method, MoRef, MoType, Request, Value};

use crate::call::{CallContext, CallResult, Failure, ReplyBody, decode};
use crate::model;
use crate::world::World;

pub(crate) fn call(
    request: &Request<'_>,
    _: &MoRef,
    world: &mut World,
    _: &CallContext<'_>,
) -> Option<CallResult> {
    Some(match request.method {
        FindByInventoryPath::NAME => decode(request).map(|asked: FindByInventoryPath| {
            ReplyBody::of::<FindByInventoryPath>(&by_path(world, &asked.inventory_path))
        }),
        FindChild::NAME => decode(request).and_then(|asked: FindChild| {
            if !world.inventory.contains(&asked.entity) {
                return Err(Failure::not_found(&asked.entity));
            }
            Ok(ReplyBody::of::<FindChild>(&child(world, &asked.entity, &asked.name)))
        }),
        FindByUuid::NAME => decode(request).and_then(|asked: FindByUuid| {
            let path = match (asked.vm_search, asked.instance_uuid) {
                (true, Some(true)) => "config.instanceUuid",
                (true, _) => "config.uuid",
                (false, _) => "summary.hardware.uuid",
            };
            let fits = |obj: &MoRef| {
                text(world, obj, path).is_some_and(|uuid| uuid.eq_ignore_ascii_case(&asked.uuid))
            };
            let found = find(world, asked.vm_search, asked.datacenter.as_ref(), fits)?;
            Ok(ReplyBody::of::<FindByUuid>(&found))
        }),
        FindAllByUuid::NAME => decode(request).and_then(|asked: FindAllByUuid| {
            let path = match (asked.vm_search, asked.instance_uuid) {
                (true, Some(true)) => "config.instanceUuid",
                (true, _) => "config.uuid",
                (false, _) => "summary.hardware.uuid",
            };
            let fits = |obj: &MoRef| {
                text(world, obj, path).is_some_and(|uuid| uuid.eq_ignore_ascii_case(&asked.uuid))
            };
            let found = find_all(world, asked.vm_search, asked.datacenter.as_ref(), fits)?;
            Ok(ReplyBody::of::<FindAllByUuid>(&found))
        }),
        FindByIp::NAME => decode(request).and_then(|asked: FindByIp| {
            let fits = |obj: &MoRef| has_address(world, obj, &asked.ip);
            let found = find(world, asked.vm_search, asked.datacenter.as_ref(), fits)?;
            Ok(ReplyBody::of::<FindByIp>(&found))
        }),
        FindByDnsName::NAME => decode(request).and_then(|asked: FindByDnsName| {
            let path = if asked.vm_search { "guest.hostName" } else { "name" };
            let fits =
                |obj: &MoRef| text(world, obj, path).is_some_and(|name| name == asked.dns_name);
            let found = find(world, asked.vm_search, asked.datacenter.as_ref(), fits)?;
            Ok(ReplyBody::of::<FindByDnsName>(&found))
        }),
        _ => return None,
    })
}

/// The root folder is no part of a path: `/DC0/vm/web`.
pub(crate) fn by_path(world: &World, path: &str) -> Option<MoRef> {
    let names = path.split('/').filter(|name| !name.is_empty());
    names
        .into_iter()
        .try_fold(world.service.root_folder.clone(), |place, name| child(world, &place, name))
}

fn child(world: &World, place: &MoRef, name: &str) -> Option<MoRef> {
    let children = world.inventory.children(place);
    children.into_iter().find(|child| world.inventory.name(child) == Some(name))
}

fn find(
    world: &World,
    is_vm: bool,
    datacenter: Option<&MoRef>,
    fits: impl Fn(&MoRef) -> bool,
) -> Result<Option<MoRef>, Failure> {
    Ok(candidates(world, is_vm, datacenter)?.find(|obj| fits(obj)))
}

fn find_all(
    world: &World,
    is_vm: bool,
    datacenter: Option<&MoRef>,
    fits: impl Fn(&MoRef) -> bool,
) -> Result<Vec<MoRef>, Failure> {
    Ok(candidates(world, is_vm, datacenter)?.filter(|obj| fits(obj)).collect())
}

/// The VMs or hosts of a datacenter, or of all.
fn candidates<'a>(
    world: &'a World,
    is_vm: bool,
    datacenter: Option<&'a MoRef>,
) -> Result<impl Iterator<Item = MoRef> + 'a, Failure> {
    if let Some(missing) = datacenter.filter(|datacenter| !world.inventory.contains(datacenter)) {
        return Err(Failure::not_found(missing));
    }
    let kind = if is_vm { MoType::VirtualMachine } else { MoType::HostSystem };
    let is_within = move |obj: &MoRef| {
        datacenter.is_none_or(|datacenter| {
            std::iter::successors(Some(obj.clone()), |place| world.inventory.parent(place))
                .any(|at| at == *datacenter)
        })
    };
    Ok(world.inventory.of_kind(&kind).into_iter().filter(is_within))
}

fn text(world: &World, obj: &MoRef, path: &str) -> Option<String> {
    let value = model::property(world, obj, path).ok().flatten()?;
    value.as_str().map(ToOwned::to_owned)
}

/// Any address of the guest, not only its first.
fn has_address(world: &World, obj: &MoRef, ip: &str) -> bool {
    if obj.kind == MoType::HostSystem {
        return text(world, obj, "name").is_some_and(|name| name == ip);
    }
    let nics = model::property(world, obj, "guest.net").ok().flatten();
    text(world, obj, "guest.ipAddress").is_some_and(|own| own == ip)
        || nics
            .iter()
            .flat_map(Value::data_items::<GuestNicInfo>)
            .any(|nic| nic.ip_address.iter().any(|own| own == ip))
}
