//! The datacenter as one property stream shows it, and as our own changes have made it since.

mod alarms;
mod claim;
mod core;
mod follow;
mod known;
mod note;
mod paths;
mod pool;
mod snapshot;
mod tables;
mod vm;
mod waits;
mod wrote;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use roost_clock::Clock;
use roost_vim::{CallError, Observer, Remedy};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

use self::core::Core;
use crate::{Freshness, PoolId, VmId};

pub use self::claim::{Claim, Marks, Need, Recognise};
pub use self::follow::StreamState;
pub use self::note::{Note, Notes};
pub use self::pool::{Pool, PoolAmount, PoolUsage};
pub use self::snapshot::Snapshot;
pub use self::tables::VmChange;
pub use self::vm::{Connection, Guest, GuestNic, Power, Tools, Vm};
pub use self::waits::{Check, WaitError, condition};
pub use self::wrote::Wrote;

/// What is known of a datacenter's VMs and resource pools. A handle; clones share the mirror.
#[derive(Debug, Clone)]
pub struct Mirror {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    core: Mutex<Core>,
    /// A copy of the core's, for whoever follows it.
    stream: watch::Sender<StreamState>,
    generation: watch::Sender<u64>,
    /// We learned something by ourselves; whoever follows the stream looks when to check it.
    learned: Notify,
    clock: Arc<dyn Clock>,
}

impl Mirror {
    /// An empty mirror in which these doors recognise their VMs. [`follow`](Self::follow) fills it.
    pub fn new(doors: Vec<Arc<dyn Recognise>>, clock: Arc<dyn Clock>) -> Self {
        let shared = Shared {
            core: Mutex::new(Core::new(doors)),
            stream: watch::Sender::default(),
            generation: watch::Sender::default(),
            learned: Notify::new(),
            clock,
        };
        Self { shared: Arc::new(shared) }
    }

    // A panic under the lock leaves whole rows behind: each step replaces a row with another.
    fn core(&self) -> MutexGuard<'_, Core> {
        self.shared.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the core and tells whoever follows changes.
    fn update<R>(&self, change: impl FnOnce(&mut Core) -> R) -> R {
        let (result, generation) = {
            let mut core = self.core();
            let result = change(&mut core);
            (result, core.generation)
        };
        self.shared.generation.send_if_modified(|known| {
            let grown = generation > *known;
            *known = generation.max(*known);
            grown
        });
        result
    }

    /// Everything as it is now.
    pub fn snapshot(&self) -> Snapshot {
        let core = self.core();
        Snapshot {
            tables: core.tables.clone(),
            generation: core.generation,
            freshness: core.freshness(),
        }
    }

    /// One VM as it is now.
    pub fn vm(&self, id: &VmId) -> Option<Arc<Vm>> {
        self.core().tables.vm(id).cloned()
    }

    pub fn pool(&self, id: &PoolId) -> Option<Arc<Pool>> {
        self.core().tables.pool(id).cloned()
    }

    /// How far it can be believed at this moment.
    pub fn freshness(&self) -> Freshness {
        self.core().freshness()
    }

    /// How the stream is doing.
    pub fn stream(&self) -> watch::Receiver<StreamState> {
        self.shared.stream.subscribe()
    }

    /// Follows [`Snapshot::generation`]: changes when there is something new to see.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.generation.subscribe()
    }

    /// Waits until everything that the server shows has been taken over. False when that did not happen in time.
    pub async fn wait_complete(&self, within: Duration) -> bool {
        let mut stream = self.stream();
        let complete = async {
            while !self.freshness().complete {
                if stream.changed().await.is_err() {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(within, complete).await.unwrap_or(false)
    }

    /// The key of `extraConfig` itself, if a door needs it.
    pub(crate) fn extra_config_key(&self, key: &str) -> Option<&'static str> {
        self.core().extra_config_key(key)
    }

    /// A VM as the server has it now, without taking it over; `None` if there is none. One call.
    pub(crate) async fn read(
        &self,
        observer: &Observer,
        vm: &VmId,
    ) -> Result<Option<Vm>, CallError> {
        let paths = self.core().vm_paths();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        match observer.properties(&vm.moref(), &paths).await {
            Ok(properties) => Ok(Some(self.core().peek(vm, &properties))),
            Err(error) if error.remedy() == Remedy::Gone => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A VM was made by us, with what it was made as. It can be seen from here on, also if the stream shows it later.
    pub fn created(&self, vm: &VmId, made: Wrote) {
        self.learn(|core, now| core.wrote(vm, made, now));
    }

    /// A change of ours has succeeded. Nothing before it is shown from here on, also if the stream still tells it.
    pub fn changed(&self, vm: &VmId, wrote: Wrote) {
        self.learn(|core, now| core.wrote(vm, wrote, now));
    }

    /// A VM was destroyed by us. It cannot be seen any more, also if the stream still shows it.
    pub fn destroyed(&self, vm: &VmId) {
        self.learn(|core, now| core.destroyed(vm, now));
    }

    fn learn(&self, learn: impl FnOnce(&mut Core, jiff::Timestamp)) {
        let now = self.shared.clock.now();
        self.update(|core| learn(core, now));
        self.shared.learned.notify_one();
    }

    /// Waits until the VM is as `condition` wants it, and returns what that made of it. The condition is asked at once and then
    /// for every change of this VM; it is given the VM as it is, so what came and went in between does not matter. No call
    /// is made for it.
    pub async fn wait_until<T>(
        &self,
        vm: &VmId,
        within: Duration,
        mut condition: impl FnMut(Option<&Arc<Vm>>) -> Check<T>,
    ) -> Result<T, WaitError> {
        let waiting = Waiting::enter(self, vm);
        let deadline = Instant::now() + within;
        loop {
            // Rings from here on, so nothing is missed between the look and the wait.
            let rung = waiting.bell.notified();
            match condition(self.vm(vm).as_ref()) {
                Check::Met(found) => return Ok(found),
                Check::Never(why) => return Err(WaitError::Never { vm: vm.clone(), why }),
                Check::NotYet => {}
            }
            if timeout_at(deadline, rung).await.is_err() {
                let stale = !self.freshness().complete;
                return Err(WaitError::Deadline { vm: vm.clone(), after: within, stale });
            }
        }
    }
}

/// One who waits for a VM; leaves when dropped.
struct Waiting<'a> {
    mirror: &'a Mirror,
    vm: &'a VmId,
    bell: Arc<Notify>,
}

impl<'a> Waiting<'a> {
    fn enter(mirror: &'a Mirror, vm: &'a VmId) -> Self {
        let bell = mirror.core().waits.enter(vm);
        Self { mirror, vm, bell }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.mirror.core().waits.leave(self.vm);
    }
}
