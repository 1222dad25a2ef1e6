//! Restarts: the server goes away, and comes back with its inventory and without its memory.

use std::sync::{Mutex, PoisonError};

use tokio::sync::futures::Notified;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::door::Vcenter;
use crate::fault_rules::Outage;
use crate::world::{Handle, World};
use crate::{model, session};

/// Whether the server can be reached.
#[derive(Debug)]
pub(crate) struct Availability {
    down: Mutex<Option<Down>>,
    /// Counts restarts. Who waits for an answer across one is cut off.
    restarts: watch::Sender<u64>,
    /// Rings for them in the order in which they came, which a watch does not.
    restarted: Notify,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Down {
    pub until: Instant,
    pub refuses: bool,
}

impl Default for Availability {
    fn default() -> Self {
        Self { down: Mutex::default(), restarts: watch::Sender::new(0), restarted: Notify::new() }
    }
}

impl Availability {
    pub(crate) fn restarts(&self) -> watch::Receiver<u64> {
        self.restarts.subscribe()
    }

    /// Ends with the first restart from now on.
    pub(crate) fn restarted(&self) -> Notified<'_> {
        self.restarted.notified()
    }

    /// The outage that lasts now, if any.
    pub(crate) fn down(&self) -> Option<Down> {
        let mut down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        *down = down.filter(|down| Instant::now() < down.until);
        *down
    }

    fn restart(&self, outage: Outage) {
        let until = Instant::now() + outage.lasts;
        let mut down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        *down = (!outage.lasts.is_zero()).then_some(Down { until, refuses: outage.refuses });
        self.restarts.send_modify(|count| *count += 1);
        self.restarted.notify_waiters();
    }
}

/// Restarts the server that `world` is the world of.
pub(crate) fn restart(world: &mut World, handle: &Handle, outage: Outage) {
    session::end_all(world);
    world.rest.restarted();
    world.libraries.restarted();
    crate::nfc::Leases::restarted(world);
    model::restarted(world);
    handle.availability.restart(outage);
}

impl Vcenter {
    /// Restarts the server: sessions and all that lives in them end, calls in flight are cut off, the inventory stays.
    pub fn restart(&self, outage: Outage) {
        self.handle.with(|world| restart(world, &self.handle, outage));
    }

    /// Ends every session, as if its idle limit had passed.
    pub fn expire_sessions(&self) {
        self.handle.with(session::end_all);
    }
}
