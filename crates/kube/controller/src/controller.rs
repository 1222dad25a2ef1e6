use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use roost_clock::{Clock, Random};
use roost_workqueue::{Ageing, Backoff, PriorityLabels, Settings, Workqueue};

use crate::cause::Cause;
use crate::draft::Home;
use crate::intake::{Intake, Trigger};
use crate::key::Key;
use crate::manager::Manager;
use crate::object::Object;
use crate::reconciler::Reconciler;
use crate::watch::{Change, Listener, Watch};
use crate::worker::{Run, Worker};

/// How a controller works.
#[derive(Debug, Clone)]
pub struct ControllerSettings {
    pub workers: usize,
    /// One worker of so many takes the oldest key instead of the most urgent one; 0 is none.
    pub oldest_one_in: usize,
    /// After this time a pass is dropped and counted as an error.
    pub timeout: Duration,
    /// Every object is looked at again after this time, a tenth more or less; `None` is never.
    pub resync: Option<Duration>,
    pub backoff: Backoff,
    pub ageing: Option<Ageing>,
    pub labels: PriorityLabels,
}

impl Default for ControllerSettings {
    fn default() -> Self {
        Self {
            workers: 4,
            oldest_one_in: 4,
            // Longer than any call to a vCenter that still comes back.
            timeout: Duration::from_mins(5),
            resync: Some(Duration::from_mins(30)),
            backoff: Backoff::default(),
            ageing: Some(Ageing::default()),
            labels: PriorityLabels::default(),
        }
    }
}

/// A controller in the making; [`Controller::reconcile`] finishes it.
pub struct Controller<'a, K: Object> {
    manager: &'a mut Manager,
    name: String,
    watch: Watch<K>,
    settings: ControllerSettings,
    intake: Arc<Intake<K>>,
    awaited: Vec<Awaited>,
}

/// Waits for a store to be filled.
pub(crate) type Awaited = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

fn awaited<K: Object>(watch: &Watch<K>) -> Awaited {
    let store = watch.store();
    Arc::new(move || {
        let store = store.clone();
        Box::pin(async move { store.synced().await })
    })
}

impl<'a, K: Object> Controller<'a, K> {
    pub(crate) fn new(
        manager: &'a mut Manager,
        name: &str,
        watch: &Watch<K>,
        settings: ControllerSettings,
    ) -> Self {
        let queue_settings = Settings {
            backoff: settings.backoff,
            ageing: settings.ageing,
            labels: settings.labels,
        };
        let queue = Workqueue::measured(&queue_settings, name, &manager.metrics().queues);
        let intake = Arc::new(Intake::new(queue, watch.store()));
        watch.listen({
            let intake = Arc::clone(&intake);
            move |change: &Change<K>| intake.changed(change)
        });
        let awaited = vec![awaited(watch)];
        Self { manager, name: name.to_owned(), watch: watch.clone(), settings, intake, awaited }
    }

    /// Calls this controller from outside.
    pub fn trigger(&self) -> Trigger {
        Trigger::new(Arc::clone(&self.intake))
    }

    /// Objects of this kind depend on those of another: `dependents` says which, from an index. Work begins
    /// only once these are listed as well.
    #[must_use]
    pub fn related<R: Object>(
        mut self,
        watch: &Watch<R>,
        dependents: impl Fn(&Change<R>) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        let intake = Arc::clone(&self.intake);
        let listener: Listener<R> = Arc::new(move |change: &Change<R>| {
            let cause = match change.cause {
                // A list at the start brings no news for those who depend on it.
                Cause::InitialList => Cause::InitialList,
                _ => Cause::Related,
            };
            for key in dependents(change) {
                intake.put(key, cause);
            }
        });
        // What this process itself writes is news for those who depend on it.
        watch.store().follow(Arc::clone(&listener));
        watch.listen(move |change| listener(change));
        self.awaited.push(awaited(watch));
        self
    }

    /// Work begins only once this kind is listed, though its changes cause no pass.
    #[must_use]
    pub fn needs<R: Object>(mut self, watch: &Watch<R>) -> Self {
        self.awaited.push(awaited(watch));
        self
    }

    /// Gives the work to a reconciler.
    pub fn reconcile<R: Reconciler<Object = K>>(self, reconciler: Arc<R>) {
        self.intake.set_priority({
            let reconciler = Arc::clone(&reconciler);
            Box::new(move |object, cause| reconciler.priority(object, cause))
        });
        let author: Arc<dyn crate::draft::Author> = Arc::clone(&self.intake) as _;
        let home = Home { store: self.watch.store(), author };
        let metrics = self.manager.metrics().of(&self.name);
        let worker = Worker {
            clock: self.manager.clock(),
            random: self.manager.random().fork(&self.name),
            name: self.name,
            settings: self.settings,
            intake: self.intake,
            awaited: self.awaited,
            reconciler,
            resource: self.watch.resource().clone(),
            home,
            metrics,
        };
        self.manager.add(Box::new(Arc::new(worker)));
    }
}

impl<K: Object> fmt::Debug for Controller<'_, K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Controller").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Everything that runs while this process leads.
pub(crate) trait Lead: Send + Sync {
    fn name(&self) -> &str;
    fn run(&self, run: Run) -> BoxFuture<'static, ()>;
}

pub(crate) type SharedClock = Arc<dyn Clock>;
pub(crate) type SharedRandom = Random;
