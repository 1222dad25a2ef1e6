//! The methods of the view manager and of views.

use roost_vim_wire::methods::{
    CreateContainerView, CreateListView, DestroyView, ModifyListView, ResetListView,
};
use roost_vim_wire::{Method, MoRef, Request};

use super::Container;
use crate::call::{CallContext, CallResult, Failure, ReplyBody, decode};
use crate::ordered_set::OrderedSet;
use crate::world::World;

pub(crate) fn call(
    request: &Request<'_>,
    this: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    Some(match request.method {
        CreateContainerView::NAME => create_container(request, world, cx),
        CreateListView::NAME => create_list(request, world, cx),
        ModifyListView::NAME => modify_list(request, world, cx),
        ResetListView::NAME => reset_list(request, world, cx),
        DestroyView::NAME => {
            world.views.destroy(this);
            Ok(ReplyBody::of::<DestroyView>(&()))
        }
        _ => return None,
    })
}

fn create_container(request: &Request<'_>, world: &mut World, cx: &CallContext<'_>) -> CallResult {
    let asked: CreateContainerView = decode(request)?;
    if !Container::can_be(&asked.container) {
        return Err(Failure::invalid_argument("container"));
    }
    if !asked.kind.iter().all(|kind| Container::can_show(kind)) {
        return Err(Failure::invalid_argument("type"));
    }
    if !world.inventory.contains(&asked.container) {
        return Err(Failure::not_found(&asked.container));
    }
    let container =
        Container { root: asked.container, kinds: asked.kind, is_recursive: asked.recursive };
    let members = container.list(&world.inventory);
    let id = world.sessions.scoped_id(cx.session);
    Ok(ReplyBody::of::<CreateContainerView>(&world.views.add(
        id,
        cx.session,
        Some(container),
        members,
    )))
}

fn create_list(request: &Request<'_>, world: &mut World, cx: &CallContext<'_>) -> CallResult {
    let asked: CreateListView = decode(request)?;
    if let Some(missing) = asked.obj.iter().find(|obj| !world.has(obj, cx.session)) {
        return Err(Failure::not_found(missing));
    }
    let id = world.sessions.scoped_id(cx.session);
    Ok(ReplyBody::of::<CreateListView>(&world.views.add(
        id,
        cx.session,
        None,
        asked.obj.into_iter().collect(),
    )))
}

fn modify_list(request: &Request<'_>, world: &mut World, cx: &CallContext<'_>) -> CallResult {
    let asked: ModifyListView = decode(request)?;
    let (known, unresolved): (Vec<_>, Vec<_>) =
        asked.add.into_iter().partition(|obj| world.has(obj, cx.session));
    world.views.change_members(&asked.this, |members, deltas| {
        for obj in &asked.remove {
            if members.remove(obj) {
                deltas.left(obj);
            }
        }
        for obj in &known {
            if members.insert(obj.clone()) {
                deltas.entered(obj);
            }
        }
    });
    Ok(ReplyBody::of::<ModifyListView>(&unresolved))
}

/// Objects that were in the list and stay in it neither leave nor enter.
fn reset_list(request: &Request<'_>, world: &mut World, cx: &CallContext<'_>) -> CallResult {
    let asked: ResetListView = decode(request)?;
    let (known, unresolved): (Vec<_>, Vec<_>) =
        asked.obj.into_iter().partition(|obj| world.has(obj, cx.session));
    let now: OrderedSet<MoRef> = known.into_iter().collect();
    world.views.change_members(&asked.this, |members, deltas| {
        members.iter().filter(|obj| !now.contains(obj)).for_each(|obj| deltas.left(obj));
        now.iter().filter(|obj| !members.contains(obj)).for_each(|obj| deltas.entered(obj));
        *members = now;
    });
    Ok(ReplyBody::of::<ResetListView>(&unresolved))
}
