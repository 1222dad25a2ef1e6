use roost_vim_wire::{MoRef, MoType, Request};

use super::{collector, post};
use crate::call::{CallContext, CallResult, Failure};
use crate::model::calls;
use crate::options::Product;
use crate::task;
use crate::world::World;

/// The methods of the event manager, and of collectors of both kinds.
pub(crate) fn call(
    request: &Request<'_>,
    this: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    let is_tasks = this.kind == MoType::TaskHistoryCollector;
    calls! { request;
        QueryEvents => |call| match world.product {
            Product::VirtualCenter => collector::query(world, &call.filter),
            // A host only has collectors.
            Product::HostAgent => Err(Failure::of("NotImplemented", "The operation is not implemented.")),
        },
        PostEvent => |call| post::post_foreign(world, cx, &call.event_to_post),
        CreateCollectorForEvents => |call| collector::create(world, cx, call.filter),
        ReadNextEvents => |call| collector::read_next(world, this, call.max_count),
        ReadPreviousEvents => |call| collector::read_previous(world, this, call.max_count),
        SetCollectorPageSize => |call| if is_tasks { task::collector::set_page_size(world, this, call.max_count) } else { collector::set_page_size(world, this, call.max_count) },
        RewindCollector => |_| if is_tasks { task::collector::seek(world, this, true) } else { collector::seek(world, this, true) },
        ResetCollector => |_| if is_tasks { task::collector::seek(world, this, false) } else { collector::seek(world, this, false) },
        DestroyCollector => |_| {
            if is_tasks { task::collector::destroy(world, this) } else { collector::destroy(world, this) }
            Ok(())
        },
    }
}
