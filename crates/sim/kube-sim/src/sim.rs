//! The handle on an embedded API server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use roost_clock::Clock;
use serde_json::Value;

use tokio::time::Instant;

use crate::admission::WebhookHandler;
use crate::fault::Rules;
use crate::options::Options;
use crate::world::World;

/// An embedded Kubernetes API server. Clones are handles on the same one.
#[derive(Clone)]
pub struct KubeSim {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    // A std mutex: nothing is awaited while it is held.
    world: Mutex<World>,
    rules: Mutex<Rules>,
    handlers: Mutex<BTreeMap<String, WebhookHandler>>,
    /// Requests before then are refused as if nobody listened.
    down_until: Mutex<Option<Instant>>,
}

impl fmt::Debug for KubeSim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.world();
        f.debug_struct("KubeSim").field("revision", &world.revision).finish_non_exhaustive()
    }
}

impl KubeSim {
    /// An empty cluster: the usual namespaces and nothing else.
    pub fn start(options: Options, clock: Arc<dyn Clock>) -> Self {
        let rules = Mutex::new(Rules::new(options.seed));
        let world = Mutex::new(World::new(options, clock));
        let (handlers, down_until) = (Mutex::default(), Mutex::default());
        Self { shared: Arc::new(Shared { world, rules, handlers, down_until }) }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn rules_mut(&self) -> MutexGuard<'_, Rules> {
        self.shared.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn handlers(&self) -> MutexGuard<'_, BTreeMap<String, WebhookHandler>> {
        self.shared.handlers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_down(&self) -> bool {
        let until = self.shared.down_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// The server goes away and comes back with what was stored: watches end, and requests are refused for this long.
    pub fn restart(&self, outage: Duration) {
        *self.shared.down_until.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Instant::now() + outage);
        self.cut_watches();
    }

    /// Serves the kinds of these definitions, as if they had been installed before the start. They are taken as they are, so they should be ones that
    /// a server has accepted elsewhere.
    pub fn define(&self, definitions: impl IntoIterator<Item = Value>) {
        let mut world = self.world();
        for definition in definitions {
            world.define(definition);
        }
    }

    /// Lets a bearer token stand for a user.
    pub fn add_token(&self, token: &str, user: crate::user::User) {
        self.world().options.tokens.insert(token.to_owned(), user);
    }

    /// Adds a row to the table of who may do what.
    pub fn add_grant(&self, grant: crate::options::Grant) {
        self.world().options.grants.push(grant);
    }

    /// Ends every watch that is open, without a word, and says how many there were.
    pub fn cut_watches(&self) -> usize {
        self.world().cut_watches()
    }

    /// Forgets the history: a watch from before now gets `410 Gone` and must list again.
    pub fn compact(&self) {
        self.world().compact();
    }

    /// The `resourceVersion` of the latest change.
    pub fn revision(&self) -> u64 {
        self.world().revision
    }

    /// How many objects there are of a kind; the group of built-in kinds such as pods is empty.
    pub fn count(&self, group: &str, plural: &str) -> usize {
        let world = self.world();
        world
            .kind(group, plural)
            .and_then(|kind| world.table(&kind).map(crate::store::Table::len))
            .unwrap_or(0)
    }

    /// How many watches are open.
    pub fn watches(&self) -> usize {
        self.world().tables().map(|(_, table)| table.watches()).sum()
    }

    /// All objects of a kind as they are stored, whether the server answers at present or not.
    pub fn objects(&self, group: &str, plural: &str) -> Vec<Value> {
        let world = self.world();
        let Some(kind) = world.kind(group, plural) else { return Vec::new() };
        let Some(table) = world.table(&kind) else { return Vec::new() };
        table.objects(None, None).map(|(_, stored)| stored.value.clone()).collect()
    }

    /// An object as it is stored.
    pub fn object(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let world = self.world();
        let kind = world.kind(group, plural)?;
        Some(world.get(&kind, &(namespace.to_owned(), name.to_owned()))?.value.clone())
    }
}
