//! The one world behind both doors, and the one lock around it.
//!
//! A call locks the world, does all of its work and unlocks it: no `await` happens in between, so every call is atomic and
//! a run is decided by the order of calls and timers alone. What takes simulated time is split at the wait, by
//! [`Shared::after`].

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use roost_clock::{Clock, Random};
use roost_vim_wire::types::ServiceContent;
use roost_vim_wire::{MoRef, MoType};
use tokio::task::AbortHandle;

use crate::collector::Collectors;
use crate::counters::Counters;
use crate::customization_specs::CustomizationSpecs;
use crate::disk_object::DiskObjects;
use crate::event::Events;
use crate::extension::Extensions;
use crate::fault_rules::Rules;
use crate::guest::Guests;
use crate::host_config::HostConfigs;
use crate::inventory::{Inventory, Recommendations};
use crate::library::Libraries;
use crate::license::Licenses;
use crate::nfc::Leases;
use crate::options::{Options, Product};
use crate::outage::Availability;
use crate::permission::Permissions;
use crate::policy::Policies;
use crate::property::Reading;
use crate::rest::Rest;
use crate::session::Sessions;
use crate::settings::Settings;
use crate::store::Store;
use crate::task::Tasks;
use crate::timer::{Timers, drive};
use crate::view::Views;
use crate::{model, service, vslm};

/// Everything that a call can see or change.
#[derive(Debug)]
pub(crate) struct World {
    pub inventory: Inventory,
    pub tasks: Tasks,
    pub events: Events,
    pub guests: Guests,
    pub store: Store,
    pub product: Product,
    pub service: ServiceContent,
    pub sessions: Sessions,
    pub views: Views,
    pub collectors: Collectors,
    pub permissions: Permissions,
    pub settings: Settings,
    pub rest: Rest,
    pub libraries: Libraries,
    pub leases: Leases,
    pub licenses: Licenses,
    pub policies: Policies,
    pub disk_objects: DiskObjects,
    pub customization_specs: CustomizationSpecs,
    pub extensions: Extensions,
    pub recommendations: Recommendations,
    pub host_configs: HostConfigs,
    pub rules: Rules,
    pub counters: Counters,
    pub random: Random,
}

impl World {
    /// Whether this object exists for the holder of `session`.
    pub(crate) fn has(&self, obj: &MoRef, session: &str) -> bool {
        // What lives in one session does not exist in another.
        if obj
            .id
            .strip_prefix("session[")
            .is_some_and(|rest| rest.split(']').next() != Some(session))
        {
            return false;
        }
        match obj.kind {
            MoType::ContainerView | MoType::ListView => self.views.contains(obj, session),
            MoType::PropertyFilter => self.collectors.contains_filter(session, obj),
            MoType::PropertyCollector => {
                *obj == self.service.property_collector || self.collectors.contains(session, obj)
            }
            MoType::Other(ref kind) if **kind == *"VslmTask" => {
                model::contains(self, &vslm::original(obj))
            }
            _ => service::is_manager(self.product, obj) || model::contains(self, obj),
        }
    }

    /// Tells views and collectors what has changed since they were last told.
    fn publish(&mut self, now: Timestamp) {
        let changes = self.inventory.take_changes();
        for change in &changes {
            self.views.apply(change, &self.inventory);
        }
        let deltas = self.views.take_deltas();
        if changes.is_empty() && deltas.is_empty() {
            return;
        }
        let mut collectors = std::mem::take(&mut self.collectors);
        let reading = Reading { world: self, session: None, now, is_stale: false };
        collectors.apply(&reading, &changes, &deltas);
        self.collectors = collectors;
    }
}

/// A world and what runs it. Only ever behind a [`Handle`].
pub(crate) struct Shared {
    world: Mutex<World>,
    timers: Arc<Timers>,
    driver: Mutex<Option<AbortHandle>>,
    pub availability: Availability,
    /// Of the certificate that the wire door shows, once there is one.
    thumbprint: OnceLock<String>,
    /// Where the wire door listens, once there is one.
    port: OnceLock<u16>,
    pub clock: Arc<dyn Clock>,
    pub options: Options,
}

/// Work that is kept for later (timers, spawned tasks) must not own one, or the simulator is never dropped: timers are
/// handed one when they run, spawned tasks keep a `Weak`.
pub(crate) type Handle = Arc<Shared>;

impl Shared {
    /// Builds the world and starts its timers. Needs a tokio runtime.
    pub(crate) fn start(options: Options, clock: Arc<dyn Clock>) -> Handle {
        let mut random = Random::from_seed(options.seed).fork("world");
        let now = clock.now();
        let mut world = World {
            inventory: Inventory::build(&options, &mut random, now),
            tasks: Tasks::new(&options),
            events: Events::new(&options),
            guests: Guests::new(&options),
            store: Store::new(&options),
            product: options.product,
            service: service::content(&options),
            sessions: Sessions::new(&options),
            views: Views::default(),
            collectors: Collectors::default(),
            permissions: Permissions::new(&service::root_folder(options.product)),
            settings: Settings::new(&options),
            rest: Rest::new(&options),
            libraries: Libraries::new(&options),
            leases: Leases::default(),
            licenses: Licenses::default(),
            policies: Policies::new(&options),
            disk_objects: DiskObjects::new(&options),
            customization_specs: CustomizationSpecs::default(),
            extensions: Extensions::default(),
            recommendations: Recommendations::default(),
            host_configs: HostConfigs::default(),
            rules: Rules::new(options.seed),
            counters: Counters::default(),
            random,
        };
        model::furnish(&mut world, Arc::clone(&clock));
        let timers = Arc::<Timers>::default();
        let shared = Arc::new(Self {
            world: Mutex::new(world),
            timers: Arc::clone(&timers),
            driver: Mutex::default(),
            availability: Availability::default(),
            thumbprint: OnceLock::new(),
            port: OnceLock::new(),
            clock,
            options,
        });
        let driver = tokio::spawn(drive(Arc::downgrade(&shared), timers));
        *shared.driver.lock().unwrap_or_else(PoisonError::into_inner) = Some(driver.abort_handle());
        shared
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn thumbprint(&self) -> Option<String> {
        self.thumbprint.get().cloned()
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.port.get().copied()
    }

    /// Only the first counts: a simulated server has one.
    pub(crate) fn set_port(&self, port: u16) {
        let _ = self.port.set(port);
    }

    /// Hosts show the certificate that the server shows. Only the first counts: a simulated server has one.
    pub(crate) fn set_thumbprint(&self, thumbprint: &str) {
        if self.thumbprint.set(thumbprint.into()).is_ok() {
            self.with(|world| world.inventory.host_thumbprint = Some(thumbprint.into()));
        }
    }

    /// Locks, runs `f`, then hands every change that the inventory recorded to the collectors and wakes those that wait.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut World) -> R) -> R {
        let mut world = self.lock();
        let result = f(&mut world);
        world.publish(self.now());
        result
    }

    /// Runs `f` on the world after `delay` of simulated time, unless the simulator is dropped. Timers of one instant run in
    /// the order they were set, so a seed replays exactly. May be called with the world locked.
    pub(crate) fn after(
        &self,
        delay: Duration,
        f: impl FnOnce(&mut World, &Handle) + Send + 'static,
    ) {
        self.timers.set(delay, Box::new(f));
    }

    /// A timer that panics is counted and logged; the others go on.
    pub(crate) fn run_guarded(self: &Arc<Self>, work: impl FnOnce(&mut World, &Handle)) {
        if catch_unwind(AssertUnwindSafe(|| self.with(|world| work(world, self)))).is_err() {
            tracing::error!("a simulated timer panicked");
            self.lock().counters.panics += 1;
        }
    }

    /// A panic under the lock poisons it; the world stays usable, because calls answer `SystemError` and are counted.
    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.lock().unwrap_or_else(PoisonError::into_inner).take() {
            driver.abort();
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}
