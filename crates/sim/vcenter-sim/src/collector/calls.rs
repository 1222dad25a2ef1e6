//! The methods that make and end collectors and filters.

use roost_vim_wire::methods::{
    CancelWaitForUpdates, CreateFilter, CreatePropertyCollector, DestroyPropertyCollector,
    DestroyPropertyFilter,
};
use roost_vim_wire::{Method, MoRef, Request};

use super::key;
use crate::call::{CallContext, CallResult, Failure, ReplyBody, decode};
use crate::property::Reading;
use crate::world::World;

pub(crate) fn call(
    request: &Request<'_>,
    this: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    Some(match request.method {
        CreatePropertyCollector::NAME => {
            let id = world.sessions.scoped_id(cx.session);
            Ok(ReplyBody::of::<CreatePropertyCollector>(&world.collectors.create(cx.session, id)))
        }
        DestroyPropertyCollector::NAME => destroy(this, world, cx),
        CreateFilter::NAME => create_filter(request, this, world, cx),
        DestroyPropertyFilter::NAME => {
            world.collectors.destroy_filter(this);
            Ok(ReplyBody::of::<DestroyPropertyFilter>(&()))
        }
        CancelWaitForUpdates::NAME => {
            world.collectors.cancel_wait(cx.session, this);
            Ok(ReplyBody::of::<CancelWaitForUpdates>(&()))
        }
        _ => return None,
    })
}

/// The default collector belongs to the server and stays.
fn destroy(this: &MoRef, world: &mut World, cx: &CallContext<'_>) -> CallResult {
    if *this == world.service.property_collector {
        return Err(Failure::of(
            "NotSupported",
            "The default property collector cannot be destroyed.",
        ));
    }
    world.collectors.destroy(&key(cx.session, this));
    Ok(ReplyBody::of::<DestroyPropertyCollector>(&()))
}

fn create_filter(
    request: &Request<'_>,
    this: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> CallResult {
    let asked: CreateFilter = decode(request)?;
    let id = world.sessions.scoped_id(cx.session);
    let mut collectors = std::mem::take(&mut world.collectors);
    let reading = Reading { world, session: Some(cx.session), now: cx.now, is_stale: false };
    let made = collectors.create_filter(&reading, this, id, asked.spec, asked.partial_updates);
    world.collectors = collectors;
    Ok(ReplyBody::of::<CreateFilter>(&made?))
}
