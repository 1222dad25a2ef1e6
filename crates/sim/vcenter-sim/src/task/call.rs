use roost_vim_wire::{MoRef, Request};

use crate::call::{CallContext, CallResult};
use crate::model::calls;
use crate::task::{collector, run};
use crate::world::World;

/// The methods of tasks and of the task manager.
pub(crate) fn call(
    request: &Request<'_>,
    this: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    calls! { request;
        CancelTask => |_| run::cancel(world, cx.handle, this),
        CreateCollectorForTasks => |call| collector::create(world, cx, &call.filter),
        ReadNextTasks => |call| collector::read(world, this, call.max_count),
    }
}
