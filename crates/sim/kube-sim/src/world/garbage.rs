//! What the controller manager does behind a real server: objects follow their owners, namespaces and definitions take
//! what is in them along. Here it happens in the same step as its cause, so that a run depends on nothing but its seed.

use serde_json::{Value, json};

use super::delete::{FOREGROUND, ORPHAN};
use super::{CLEANUP_FINALIZER, Deletion, World};
use crate::object;
use crate::store::{Key, TableId};

/// Consequences that wait to be drawn.
#[derive(Debug)]
pub(crate) enum Todo {
    /// The owner with this uid is gone.
    OwnerGone(String),
    /// An object of the owner with this uid is gone.
    DependentGone(String),
    /// An object got a deletion timestamp.
    Marked { table: TableId, key: Key },
    /// An object with owners was written; they may be gone already.
    Owned { table: TableId, key: Key },
    /// An object left its table and its namespace.
    Left { table: TableId, namespace: String },
}

impl World {
    pub(crate) fn run_todo(&mut self) {
        while let Some(todo) = self.todo.pop_front() {
            if !self.options.controllers {
                // Without the controller manager only definitions look after what is theirs.
                if let Todo::Marked { table, key } | Todo::Owned { table, key } = &todo {
                    self.empty_definition(table, key);
                } else if let Todo::Left { table, .. } = &todo {
                    self.finish_definition(table);
                }
                continue;
            }
            match todo {
                Todo::OwnerGone(uid) => self.collect_dependents(&uid),
                Todo::DependentGone(uid) => self.finish_foreground(&uid),
                Todo::Marked { table, key } => self.begin_deletion(&table, &key),
                Todo::Owned { table, key } => self.check_owners(&table, &key),
                Todo::Left { table, namespace } => {
                    self.finish_definition(&table);
                    self.finish_namespace(&namespace);
                }
            }
        }
    }

    fn dependents_of(&self, uid: &str) -> Vec<(TableId, Key)> {
        self.dependents.get(uid).map(|places| places.iter().cloned().collect()).unwrap_or_default()
    }

    fn collect_dependents(&mut self, uid: &str) {
        for (table, key) in self.dependents_of(uid) {
            self.check_owners(&table, &key);
        }
    }

    /// An object all of whose owners are gone goes too; references to some that are gone are dropped.
    fn check_owners(&mut self, table: &TableId, key: &Key) {
        let Some(kind) = self.kind_of_table(table) else { return };
        let Some(stored) = self.get(&kind, key) else { return };
        let owners = object::owners(&stored.value);
        let is_there = |uid: &str| self.by_uid.contains_key(uid);
        let there = owners.iter().filter(|owner| is_there(&owner.uid)).count();
        if owners.is_empty() || there == owners.len() {
            return;
        }
        if there == 0 {
            // Gone meanwhile is as good.
            let _ = self.delete_quietly(&kind, key);
            return;
        }
        let mut value = stored.value.clone();
        if let Some(Value::Array(references)) =
            object::metadata_mut(&mut value).get_mut("ownerReferences")
        {
            references.retain(|reference| reference["uid"].as_str().is_some_and(is_there));
        }
        self.write(&kind, key, value);
    }

    fn delete_quietly(&mut self, kind: &crate::kind::Kind, key: &Key) -> Option<()> {
        let stored = self.get(kind, key)?;
        if !object::is_being_deleted(&stored.value) {
            self.delete(kind, key, &Deletion::default()).ok()?;
        }
        Some(())
    }

    fn begin_deletion(&mut self, table: &TableId, key: &Key) {
        let Some(kind) = self.kind_of_table(table) else { return };
        let Some(stored) = self.get(&kind, key) else { return };
        let uid = stored.uid().to_owned();
        let finalizers = object::finalizers(&stored.value);
        if finalizers.contains(&ORPHAN) {
            self.release_dependents(&uid);
            self.drop_finalizer(table, key, ORPHAN);
        } else if finalizers.contains(&FOREGROUND) {
            for (table, key) in self.dependents_of(&uid) {
                let Some(kind) = self.kind_of_table(&table) else { continue };
                let _ = self.delete_quietly(&kind, &key);
            }
            self.finish_foreground(&uid);
        }
        if kind.is("", "namespaces") {
            self.empty_namespace(&key.1);
        }
        self.empty_definition(table, key);
    }

    fn release_dependents(&mut self, uid: &str) {
        for (table, key) in self.dependents_of(uid) {
            let Some(kind) = self.kind_of_table(&table) else { continue };
            let Some(stored) = self.get(&kind, &key) else { continue };
            let mut value = stored.value.clone();
            let metadata = object::metadata_mut(&mut value);
            if let Some(Value::Array(references)) = metadata.get_mut("ownerReferences") {
                references.retain(|reference| reference["uid"].as_str() != Some(uid));
                if references.is_empty() {
                    metadata.remove("ownerReferences");
                }
            }
            self.write(&kind, &key, value);
        }
    }

    /// Lets an owner go that waits for the objects that block it.
    fn finish_foreground(&mut self, uid: &str) {
        let Some((table, key)) = self.by_uid(uid).cloned() else { return };
        let Some(kind) = self.kind_of_table(&table) else { return };
        let Some(stored) = self.get(&kind, &key) else { return };
        if !object::is_being_deleted(&stored.value)
            || !object::finalizers(&stored.value).contains(&FOREGROUND)
        {
            return;
        }
        let is_blocked = self.dependents_of(uid).iter().any(|(table, key)| {
            let dependent = self.kind_of_table(table).and_then(|kind| self.get(&kind, key));
            dependent.is_some_and(|dependent| {
                object::owners(&dependent.value)
                    .iter()
                    .any(|owner| owner.uid == uid && owner.blocks_deletion)
            })
        });
        if !is_blocked {
            self.drop_finalizer(&table, &key, FOREGROUND);
        }
    }

    /// Drops a finalizer, and the object when it was the last.
    fn drop_finalizer(&mut self, table: &TableId, key: &Key, finalizer: &str) {
        let Some(kind) = self.kind_of_table(table) else { return };
        let Some(stored) = self.get(&kind, key) else { return };
        let left: Vec<String> = object::finalizers(&stored.value)
            .into_iter()
            .filter(|name| *name != finalizer)
            .map(ToOwned::to_owned)
            .collect();
        let mut value = stored.value.clone();
        object::set_finalizers(&mut value, &left);
        if left.is_empty() && object::is_being_deleted(&value) {
            self.remove(&kind, key);
        } else {
            self.write(&kind, key, value);
        }
    }

    fn empty_namespace(&mut self, namespace: &str) {
        let tables: Vec<_> = self.tables.keys().cloned().collect();
        for table in tables {
            let Some(kind) = self.kind_of_table(&table).filter(|kind| kind.is_namespaced) else {
                continue;
            };
            let keys: Vec<_> = self
                .tables
                .get(&table)
                .map(|table| {
                    table.objects(Some(namespace), None).map(|(key, _)| key.clone()).collect()
                })
                .unwrap_or_default();
            for key in keys {
                let _ = self.delete_quietly(&kind, &key);
            }
        }
        self.finish_namespace(namespace);
    }

    fn finish_namespace(&mut self, namespace: &str) {
        let is_ending =
            self.namespace(namespace).is_some_and(|stored| object::is_being_deleted(&stored.value));
        if namespace.is_empty() || !is_ending {
            return;
        }
        let is_empty =
            self.tables.values().all(|table| table.objects(Some(namespace), None).next().is_none());
        let Some(kind) = self.kind("", "namespaces").filter(|_| is_empty) else { return };
        let key = (String::new(), namespace.to_owned());
        let Some(stored) = self.get(&kind, &key) else { return };
        let mut value = stored.value.clone();
        value["spec"] = json!({});
        if object::finalizers(&value).is_empty() {
            self.remove(&kind, &key);
        } else if value != stored.value {
            self.write(&kind, &key, value);
        }
    }

    fn empty_definition(&mut self, table: &TableId, key: &Key) {
        if table.1 != "customresourcedefinitions" {
            return;
        }
        let Some(kind) = self.kind_of_table(table) else { return };
        let Some(stored) =
            self.get(&kind, key).filter(|stored| object::is_being_deleted(&stored.value))
        else {
            return;
        };
        let spec = &stored.value["spec"];
        let id = (super::text(&spec["group"]), super::text(&spec["names"]["plural"]));
        if let Some(custom) = self.kind_of_table(&id) {
            let keys: Vec<_> = self
                .tables
                .get(&id)
                .map(|table| table.objects(None, None).map(|(key, _)| key.clone()).collect())
                .unwrap_or_default();
            for key in keys {
                let _ = self.delete_quietly(&custom, &key);
            }
        }
        self.finish_definition(&id);
    }

    /// Lets a definition go that waits for its objects.
    fn finish_definition(&mut self, table: &TableId) {
        let Some(definitions) = self.kind("apiextensions.k8s.io", "customresourcedefinitions")
        else {
            return;
        };
        let key = (String::new(), format!("{}.{}", table.1, table.0));
        let Some(stored) = self.get(&definitions, &key) else { return };
        let is_waiting = object::is_being_deleted(&stored.value)
            && object::finalizers(&stored.value).contains(&CLEANUP_FINALIZER);
        if is_waiting && self.tables.get(table).is_none_or(super::Table::is_empty) {
            self.drop_finalizer(&definitions.table(), &key, CLEANUP_FINALIZER);
        }
    }
}
