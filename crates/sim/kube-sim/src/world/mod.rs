//! Everything that the server knows, behind one lock.

mod delete;
mod garbage;
mod names;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use roost_clock::{Clock, Random};
use serde_json::{Value, json};

pub(crate) use delete::{Deleted, Deletion};
use garbage::Todo;
pub(crate) use names::name_problems;

use crate::kind::Kind;
use crate::options::Options;
use crate::store::{Key, Stored, Table, TableId};
use crate::{builtin, custom, object};

/// Put on definitions, so that their objects go before they do.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Events are dropped after this long, as the real server does.
const EVENT_LIFE: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) revision: u64,
    kinds: BTreeMap<TableId, Arc<Kind>>,
    tables: BTreeMap<TableId, Table>,
    by_uid: HashMap<String, (TableId, Key)>,
    /// By the uid of the owner.
    dependents: HashMap<String, BTreeSet<(TableId, Key)>>,
    todo: VecDeque<Todo>,
    /// When events were written, oldest first, and which state of them that was: each write gives them another life.
    event_ages: VecDeque<(jiff::Timestamp, Key, u64)>,
    pub(crate) random: Random,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
    next_address: u32,
    definitions_revision: u64,
}

impl World {
    pub(crate) fn new(options: Options, clock: Arc<dyn Clock>) -> Self {
        let kinds = builtin::kinds()
            .into_iter()
            .map(|kind| ((kind.group.clone(), kind.plural.clone()), kind))
            .collect();
        let mut world = Self {
            revision: 1,
            kinds,
            tables: BTreeMap::new(),
            by_uid: HashMap::new(),
            dependents: HashMap::new(),
            todo: VecDeque::new(),
            event_ages: VecDeque::new(),
            random: Random::from_seed(options.seed).fork("objects"),
            clock,
            options,
            next_address: 10,
            definitions_revision: 1,
        };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            world.add_namespace(name);
        }
        world
    }

    fn add_namespace(&mut self, name: &str) {
        let Some(kind) = self.kind("", "namespaces") else { return };
        let value = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": name,
                "uid": self.random.uuid(),
                "creationTimestamp": self.now(),
                "labels": {"kubernetes.io/metadata.name": name},
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        });
        self.write(&kind, &(String::new(), name.to_owned()), value);
    }

    /// Stores a definition as it is, and serves its kind.
    pub(crate) fn define(&mut self, mut definition: Value) {
        let Some(kind) = self.kind("apiextensions.k8s.io", "customresourcedefinitions") else {
            return;
        };
        definition["apiVersion"] = json!("apiextensions.k8s.io/v1");
        definition["kind"] = json!("CustomResourceDefinition");
        definition["metadata"]["uid"] = json!(self.random.uuid());
        definition["metadata"]["creationTimestamp"] = json!(self.now());
        definition["metadata"]["generation"] = json!(1);
        let key = (String::new(), object::name(&definition).to_owned());
        self.write(&kind, &key, definition);
        self.settle(&kind, &key);
    }

    /// The time in the form of timestamps, to the second.
    pub(crate) fn now(&self) -> String {
        timestamp(self.clock.now())
    }

    pub(crate) fn kind(&self, group: &str, plural: &str) -> Option<Arc<Kind>> {
        self.kinds.get(&(group.to_owned(), plural.to_owned())).cloned()
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.values()
    }

    /// The kind that an object's `apiVersion` and `kind` name.
    pub(crate) fn kind_of(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let is_meant = |known: &&Arc<Kind>| {
            known.group == group && known.kind == kind && known.version(version).is_some()
        };
        self.kinds.values().find(is_meant).cloned()
    }

    pub(crate) fn table(&self, kind: &Kind) -> Option<&Table> {
        self.tables.get(&kind.table())
    }

    pub(crate) fn table_mut(&mut self, kind: &Kind) -> &mut Table {
        let revision = self.revision;
        self.tables.entry(kind.table()).or_insert_with(|| Table::since(revision.min(1)))
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = (&TableId, &Table)> {
        self.tables.iter()
    }

    pub(crate) fn get(&self, kind: &Kind, key: &Key) -> Option<Arc<Stored>> {
        self.table(kind)?.get(key).cloned()
    }

    pub(crate) fn namespace(&self, name: &str) -> Option<&Arc<Stored>> {
        self.tables
            .get(&(String::new(), "namespaces".to_owned()))?
            .get(&(String::new(), name.to_owned()))
    }

    /// Stores a state of an object and tells everybody.
    pub(crate) fn write(&mut self, kind: &Kind, key: &Key, value: Value) -> Arc<Stored> {
        self.revision += 1;
        let stored = Stored::new(value, self.revision);
        let before = self.get(kind, key);
        if let Some(before) = &before {
            crate::convert::inherit(before, &stored);
        }
        self.index(kind, key, before.as_deref(), Some(&stored));
        let keep = self.options.history;
        self.table_mut(kind).put(key.clone(), Arc::clone(&stored), keep);
        if kind.is("apiextensions.k8s.io", "customresourcedefinitions") {
            self.serve(&stored.value);
        }
        if kind.table().1 == "events" && kind.table().0.is_empty() {
            self.event_ages.push_back((self.clock.now(), key.clone(), self.revision));
            self.expire_events(kind);
        }
        stored
    }

    /// Removes an object at once, whatever holds it.
    pub(crate) fn remove(&mut self, kind: &Kind, key: &Key) -> Option<Arc<Stored>> {
        let before = self.get(kind, key)?;
        self.revision += 1;
        self.index(kind, key, Some(&before), None);
        let (revision, keep) = (self.revision, self.options.history);
        let gone = self.table_mut(kind).remove(key, revision, keep)?;
        if kind.is("apiextensions.k8s.io", "customresourcedefinitions") {
            let spec = &gone.value["spec"];
            let id = (text(&spec["group"]), text(&spec["names"]["plural"]));
            self.definitions_revision += 1;
            self.kinds.remove(&id);
            if let Some(mut table) = self.tables.remove(&id) {
                table.cut_watches();
            }
        }
        self.todo.push_back(Todo::OwnerGone(gone.uid().to_owned()));
        for owner in object::owners(&gone.value) {
            self.todo.push_back(Todo::DependentGone(owner.uid));
        }
        self.todo.push_back(Todo::Left { table: kind.table(), namespace: key.0.clone() });
        Some(gone)
    }

    fn index(
        &mut self,
        kind: &Kind,
        key: &Key,
        before: Option<&Stored>,
        now: Option<&Arc<Stored>>,
    ) {
        let place = (kind.table(), key.clone());
        if let Some(before) = before {
            self.by_uid.remove(before.uid());
            for owner in object::owners(&before.value) {
                if let Some(places) = self.dependents.get_mut(&owner.uid) {
                    places.remove(&place);
                    if places.is_empty() {
                        self.dependents.remove(&owner.uid);
                    }
                }
            }
        }
        if let Some(now) = now {
            self.by_uid.insert(now.uid().to_owned(), place.clone());
            for owner in object::owners(&now.value) {
                self.dependents.entry(owner.uid).or_default().insert(place.clone());
            }
        }
    }

    /// Serves the kind of a definition from now on.
    fn serve(&mut self, definition: &Value) {
        self.definitions_revision += 1;
        let kind = custom::shared_kind(definition);
        let id = (kind.group.clone(), kind.plural.clone());
        self.kinds.insert(id, kind);
    }

    /// What the controllers behind the real server do after a write.
    pub(crate) fn settle(&mut self, kind: &Kind, key: &Key) {
        let Some(stored) = self.get(kind, key) else { return self.run_todo() };
        if kind.is("apiextensions.k8s.io", "customresourcedefinitions")
            && !object::is_being_deleted(&stored.value)
        {
            let status = custom::established(&stored.value, &self.now());
            let has_finalizer = object::finalizers(&stored.value).contains(&CLEANUP_FINALIZER);
            if stored.value["status"] != status || !has_finalizer {
                let mut value = stored.value.clone();
                value["status"] = status;
                if !has_finalizer {
                    let mut finalizers: Vec<_> =
                        object::finalizers(&value).into_iter().map(ToOwned::to_owned).collect();
                    finalizers.push(CLEANUP_FINALIZER.to_owned());
                    object::set_finalizers(&mut value, &finalizers);
                }
                self.write(kind, key, value);
            }
        }
        if !object::owners(&stored.value).is_empty() {
            self.todo.push_back(Todo::Owned { table: kind.table(), key: key.clone() });
        }
        self.run_todo();
    }

    fn expire_events(&mut self, kind: &Kind) {
        let now = self.clock.now();
        while let Some((written, key, revision)) = self.event_ages.front() {
            if now.duration_since(*written) < EVENT_LIFE {
                break;
            }
            let (key, revision) = (key.clone(), *revision);
            self.event_ages.pop_front();
            if self.get(kind, &key).is_some_and(|event| event.revision == revision) {
                self.remove(kind, &key);
            }
        }
    }

    /// Grows whenever a kind comes, changes or goes.
    pub(crate) fn definitions_revision(&self) -> u64 {
        self.definitions_revision
    }

    /// An address for a service.
    pub(crate) fn cluster_address(&mut self) -> String {
        self.next_address += 1;
        format!("10.0.{}.{}", self.next_address / 250, self.next_address % 250 + 1)
    }

    pub(crate) fn by_uid(&self, uid: &str) -> Option<&(TableId, Key)> {
        self.by_uid.get(uid)
    }

    /// The kind whose objects a table holds.
    pub(crate) fn kind_of_table(&self, table: &TableId) -> Option<Arc<Kind>> {
        self.kinds.get(table).cloned()
    }

    /// Ends every watch, as a restart does.
    pub(crate) fn cut_watches(&mut self) -> usize {
        self.tables.values_mut().map(Table::cut_watches).sum()
    }

    /// Forgets all history: whoever watches from before gets `410 Gone`.
    pub(crate) fn compact(&mut self) {
        let revision = self.revision;
        self.tables.values_mut().for_each(|table| table.compact(revision));
    }
}

pub(crate) fn timestamp(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
