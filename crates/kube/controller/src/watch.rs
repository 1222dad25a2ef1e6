//! Keeps a store as the API server has it, and tells listeners what changed.
//!
//! A watch that ends is taken up again; after a gap everything is listed. What a list does not show any more is
//! asked for by name before it counts as deleted, so a list that comes back short deletes nothing. Where a selector picks
//! the objects, the question has the same selector: an object that is there and not picked is gone from this view.

use std::collections::HashSet;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use kube::core::ObjectList;
use kube::core::Request;
use kube::core::params::{GetParams, ListParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use roost_clock::Random;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tracing::{debug, info, warn};

use crate::cause::Cause;
use crate::contact::Contact;
use crate::controller::SharedClock;
use crate::index::Index;
use crate::key::Key;
use crate::object::Object;
use crate::store::{Arrival, Extent, Store};

/// The first and the longest wait after a failed list or watch.
const RETRY_WAIT: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// How long to wait before asking again for an object whose fate is unknown.
const CONFIRM_AGAIN: Duration = Duration::from_secs(5);

/// How long the watch may stand still for such questions. What is not answered then is not known yet.
const CONFIRM_WITHIN: Duration = Duration::from_secs(10);

/// Requests at a time for objects that a list did not show.
const CONFIRM_AT_ONCE: usize = 8;

/// What happened to an object.
#[derive(Debug, Clone)]
pub struct Change<K> {
    pub cause: Cause,
    /// As it is now, or as it last was.
    pub object: Arc<K>,
    pub old: Option<Arc<K>>,
}

type Trim<K> = Box<dyn Fn(&mut K) + Send + Sync>;

pub(crate) type Listener<K> = Arc<dyn Fn(&Change<K>) + Send + Sync>;

/// One kind, watched once however many controllers look at it. Cheap to clone.
pub struct Watch<K: Object> {
    shared: Arc<Shared<K>>,
}

struct Shared<K: Object> {
    api: Api<K>,
    client: Client,
    resource: K::DynamicType,
    config: watcher::Config,
    store: Store<K>,
    listeners: RwLock<Vec<Listener<K>>>,
    trim: OnceLock<Trim<K>>,
    random: Random,
    contact: Contact,
    clock: SharedClock,
}

impl<K: Object> Watch<K> {
    pub(crate) fn new(
        api: Api<K>,
        resource: K::DynamicType,
        config: watcher::Config,
        random: Random,
        (contact, clock): (Contact, SharedClock),
    ) -> Self {
        let is_selective = config.label_selector.is_some() || config.field_selector.is_some();
        let extent = if is_selective { Extent::Selected } else { Extent::All };
        let (store, listeners) = (Store::new(extent), RwLock::default());
        let client = api.clone().into_client();
        let trim = OnceLock::new();
        let shared = Shared {
            api,
            client,
            resource,
            config,
            store,
            listeners,
            trim,
            random,
            contact,
            clock,
        };
        Self { shared: Arc::new(shared) }
    }

    pub fn store(&self) -> Store<K> {
        self.shared.store.clone()
    }

    /// See [`Store::index`].
    pub fn index<I>(&self, values: impl Fn(&K) -> I + Send + Sync + 'static) -> Index<K>
    where
        I: IntoIterator<Item = String>,
    {
        self.shared.store.index(values)
    }

    /// Takes away what nobody reads before an object is kept, so that large objects of others cost little memory. Only for kinds that are never
    /// written as a whole. The first call counts.
    pub fn trim(&self, trim: impl Fn(&mut K) + Send + Sync + 'static) {
        let _ = self.shared.trim.set(Box::new(trim));
    }

    /// Called for each change, after the store has it. Must not block.
    pub fn listen(&self, listener: impl Fn(&Change<K>) + Send + Sync + 'static) {
        let mut listeners = self.shared.listeners.write().unwrap_or_else(PoisonError::into_inner);
        listeners.push(Arc::new(listener));
    }

    pub(crate) fn resource(&self) -> &K::DynamicType {
        &self.shared.resource
    }

    pub(crate) fn kind(&self) -> String {
        K::kind(&self.shared.resource).into_owned()
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(&self) {
        let shared = &self.shared;
        let kind = self.kind();
        let mut random = shared.random.clone();
        let mut events = pin!(watcher(shared.api.clone(), shared.config.clone()));
        let mut listed: HashSet<Key> = HashSet::new();
        let mut unconfirmed: Vec<Key> = Vec::new();
        let mut confirm_at = Instant::now();
        let (mut failures, mut broke_off) = (0_u32, None);
        let mut failed_last: Option<Instant> = None;
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = sleep_until(confirm_at), if !unconfirmed.is_empty() => {
                    unconfirmed = self.confirm(std::mem::take(&mut unconfirmed)).await;
                    confirm_at = Instant::now() + CONFIRM_AGAIN;
                    continue;
                }
            };
            if matches!(event, Some(Ok(ref event)) if !matches!(event, Event::Init)) {
                (failures, broke_off) = (0, None);
                shared.contact.answered();
            }
            match event {
                Some(Ok(Event::Init)) => listed.clear(),
                Some(Ok(Event::InitApply(object))) => {
                    listed.insert(Key::of(&object));
                    let is_first = !shared.store.is_synced();
                    self.arrive(object, if is_first { Cause::InitialList } else { Cause::Created });
                }
                Some(Ok(Event::InitDone)) => {
                    let is_missing = |key: &Key| !listed.contains(key);
                    let missing: Vec<_> =
                        shared.store.keys().into_iter().filter(is_missing).collect();
                    unconfirmed = self.confirm(missing).await;
                    confirm_at = Instant::now() + CONFIRM_AGAIN;
                    let objects = listed.len();
                    info!(%kind, objects, "{objects} objects of {kind} listed");
                    listed = HashSet::new();
                    shared.store.set_synced();
                }
                Some(Ok(Event::Apply(object))) => {
                    self.arrive(object, Cause::Created);
                }
                Some(Ok(Event::Delete(object))) => {
                    if let Some(last) = shared.store.delete(&object) {
                        self.tell(Cause::Deleted, Arc::new(object), Some(last));
                    }
                }
                Some(Err(error)) => {
                    let (first, longest) = RETRY_WAIT;
                    let wait = first.saturating_mul(1 << failures.min(16)).min(longest);
                    let wait = random.duration(wait / 2, wait);
                    // A watch that is taken up again says nothing until something changes: what failed long ago has recovered since.
                    if failed_last.is_some_and(|at| at.elapsed() > longest * 2) {
                        (failures, broke_off) = (0, None);
                    }
                    failures = failures.saturating_add(1);
                    let since = *broke_off.get_or_insert_with(|| shared.clock.now());
                    shared.contact.failed(since, failures, &error);
                    // Servers end watches now and then; only what lasts is worth a line.
                    if failures > 2 {
                        warn!(%kind, failures, %error, "watch of {kind} failed, again in {wait:?}");
                    } else {
                        debug!(%kind, %error, "watch of {kind} is taken up again");
                    }
                    sleep(wait).await;
                    failed_last = Some(Instant::now());
                }
                // The stream of kube does not end; if it did, a new one would be the remedy.
                None => events.set(watcher(shared.api.clone(), shared.config.clone())),
            }
        }
    }

    fn arrive(&self, mut object: K, if_new: Cause) {
        // Half of an object's size, and nothing that a reconciler may depend on.
        object.meta_mut().managed_fields = None;
        if let Some(trim) = self.shared.trim.get() {
            trim(&mut object);
        }
        match self.shared.store.arrive(object) {
            Arrival::Known => {}
            Arrival::Created(new) => self.tell(if_new, new, None),
            Arrival::Changed { old, new } => self.tell(Cause::Changed, new, Some(old)),
            Arrival::Replaced { old, new } => {
                self.tell(Cause::Deleted, Arc::clone(&old), Some(old));
                self.tell(Cause::Created, new, None);
            }
        }
    }

    fn tell(&self, cause: Cause, object: Arc<K>, old: Option<Arc<K>>) {
        let change = Change { cause, object, old };
        let listeners =
            self.shared.listeners.read().unwrap_or_else(PoisonError::into_inner).clone();
        for listener in listeners {
            listener(&change);
        }
    }

    /// Asks for each object by name. Returns those of which nothing could be learned.
    async fn confirm(&self, missing: Vec<Key>) -> Vec<Key> {
        let deadline = Instant::now() + CONFIRM_WITHIN;
        let mut unknown = missing.clone();
        let mut answered: HashSet<Key> = HashSet::new();
        let ask = |key: Key| async move {
            let answer = self.fetch(&key).await;
            (key, answer)
        };
        let mut answers = stream::iter(missing).map(ask).buffer_unordered(CONFIRM_AT_ONCE);
        loop {
            let (key, answer) = match timeout_at(deadline, answers.next()).await {
                Ok(Some(answer)) => answer,
                Ok(None) => {
                    unknown.retain(|key| !answered.contains(key));
                    return unknown;
                }
                Err(_) => {
                    unknown.retain(|key| !answered.contains(key));
                    let kind = self.kind();
                    warn!(%kind, "whether {} objects of {kind} were deleted is not known yet", unknown.len());
                    // Those that were asked for come last next time, so that they keep nobody waiting.
                    let asked = CONFIRM_AT_ONCE.min(unknown.len());
                    unknown.rotate_left(asked);
                    return unknown;
                }
            };
            match answer {
                Ok(Found::Object(object)) => {
                    warn!(%key, "{key} was missing in a list, but is there");
                    self.arrive(*object, Cause::Created);
                }
                Ok(Found::Nothing { version }) => {
                    if let Some(last) = self.shared.store.forget(&key, version) {
                        self.tell(Cause::Deleted, Arc::clone(&last), Some(last));
                    }
                }
                Err(error) => {
                    debug!(%key, %error, "whether {key} was deleted is not known yet");
                    continue;
                }
            }
            answered.insert(key);
        }
    }

    /// Looks for one object of this view.
    async fn fetch(&self, key: &Key) -> kube::Result<Found<K>> {
        let shared = &self.shared;
        let request = Request::new(K::url_path(&shared.resource, key.namespace()));
        if shared.store.extent() == Extent::All {
            let request = request.get(key.name(), &GetParams::default());
            let request = request.map_err(kube::Error::BuildRequest)?;
            return match shared.client.request(request).await {
                Ok(object) => Ok(Found::Object(Box::new(object))),
                Err(kube::Error::Api(status)) if status.is_not_found() => {
                    Ok(Found::Nothing { version: None })
                }
                Err(error) => Err(error),
            };
        }
        let by_name = format!("metadata.name={}", key.name());
        let fields = shared.config.field_selector.iter().cloned().chain([by_name]);
        let mut params = ListParams::default().fields(&fields.collect::<Vec<_>>().join(","));
        params.label_selector.clone_from(&shared.config.label_selector);
        let request = request.list(&params).map_err(kube::Error::BuildRequest)?;
        let list: ObjectList<K> = shared.client.request(request).await?;
        let version = list.metadata.resource_version.and_then(|version| version.parse().ok());
        let found = list.items.into_iter().next();
        Ok(found.map_or(Found::Nothing { version }, |object| Found::Object(Box::new(object))))
    }
}

/// What an object that a list did not show was found to be.
enum Found<K> {
    Object(Box<K>),
    /// At this version of all objects, if the answer said so.
    Nothing {
        version: Option<u64>,
    },
}

impl<K: Object> Clone for Watch<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Object> fmt::Debug for Watch<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Watch").field("kind", &self.kind()).finish_non_exhaustive()
    }
}
