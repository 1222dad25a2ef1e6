//! The entry points of the model: what the doors and the property collector ask of it.

use std::sync::Arc;

use roost_clock::Clock;
use roost_vim_wire::types::UserSession;
use roost_vim_wire::{Method, MoRef, Request, Value};

use crate::call::{CallResult, Failure, ReplyBody, decode};
use crate::inventory::{self, NoSuchProperty};
use crate::store::Store;
use crate::world::World;
use crate::{event, task};

/// Carries out the method that is asked for, if it is one of those listed; its arguments go to the function behind the arrow.
macro_rules! calls {
    ($request:expr; $($method:ident => $carry_out:expr,)+) => {
        match $request.method {
            $(<::roost_vim_wire::methods::$method as ::roost_vim_wire::Method>::NAME => {
                Some($crate::model::answer::<::roost_vim_wire::methods::$method>($request, $carry_out))
            })+
            _ => None,
        }
    };
}
pub(crate) use calls;

pub(crate) fn answer<M: Method>(
    request: &Request<'_>,
    carry_out: impl FnOnce(M) -> Result<M::Output, Failure>,
) -> CallResult {
    carry_out(decode(request)?).map(|output| ReplyBody::of::<M>(&output))
}

/// Whether the model has this object: inventory, snapshots, tasks, event and task collectors, browsers, managers of the model.
pub(crate) fn contains(world: &World, obj: &MoRef) -> bool {
    world.inventory.contains(obj)
}

/// Any dotted path of any object of the model (inventory, tasks, event collectors and the managers that have
/// properties), also keyed: `config.hardware.device[4000]`, `config.extraConfig["x"]`. `Ok(None)` is unset. Narrow paths must
/// not build whole objects: 10,000 VMs are read with them.
pub(crate) fn property(
    world: &World,
    obj: &MoRef,
    path: &str,
) -> Result<Option<Value>, NoSuchProperty> {
    inventory::property::property(world, obj, path)
}

/// Puts into the other parts of a new world what its inventory at the start needs there.
pub(crate) fn furnish(world: &mut World, clock: Arc<dyn Clock>) {
    let now = clock.now();
    world.events.set_clock(clock);
    Store::furnish(world, now);
}

/// What ends with a session in the model: event and task collectors, transfer tokens.
pub(crate) fn session_ended(world: &mut World, session: &str) {
    for collector in world.tasks.end_session(session) {
        world.inventory.leave_other(&collector);
    }
    world.guests.end_session(session);
    event::session_ended(world, session);
}

/// Posts `UserLoginSessionEvent` and the like.
pub(crate) fn session_started(world: &mut World, session: &UserSession) {
    event::session_started(world, session);
}

/// How many event and task collectors are open.
pub(crate) fn open_collectors(world: &World) -> usize {
    world.events.open_collectors() + world.tasks.open_collectors()
}

/// The server process starts anew: what only its memory held is gone, running tasks with it or not, as the model sees fit.
pub(crate) fn restarted(world: &mut World) {
    let now = world.events.now();
    task::restarted(world, now);
}
