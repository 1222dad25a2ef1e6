//! Deleting an object: at once, or when those who hold it let go.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{World, timestamp};
use crate::kind::Kind;
use crate::object;
use crate::status::ApiError;
use crate::store::{Key, Stored};

pub(super) const ORPHAN: &str = "orphan";
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// What becomes of the objects that this one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Propagation {
    /// They go after it.
    #[default]
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

/// What a delete asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deletion {
    pub(crate) propagation: Option<Propagation>,
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

impl Deletion {
    /// Of the `DeleteOptions` in a body.
    pub(crate) fn read(options: &Value) -> Result<Self, ApiError> {
        let propagation = match options["propagationPolicy"].as_str() {
            None => options["orphanDependents"]
                .as_bool()
                .map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                let cause = crate::verb::unsupported("propagationPolicy", &json!(other), &known);
                return Err(ApiError::invalid_options("DeleteOptions", &[cause]));
            }
        };
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        Ok(Self {
            propagation,
            grace_seconds: options["gracePeriodSeconds"].as_i64(),
            uid: text(&options["preconditions"]["uid"]),
            resource_version: text(&options["preconditions"]["resourceVersion"]),
        })
    }
}

/// What a delete does to an object.
enum Plan {
    /// After it was seen like this, if at all.
    Remove {
        first: Option<Value>,
    },
    /// It is marked already.
    Leave,
    Mark(Value),
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// It is gone.
    Gone(Arc<Stored>),
    /// It waits for its finalizers or its grace period.
    Pending(Arc<Stored>),
}

impl World {
    /// Deletes, or marks as being deleted.
    pub(crate) fn delete(
        &mut self,
        kind: &Kind,
        key: &Key,
        how: &Deletion,
    ) -> Result<Deleted, ApiError> {
        let stored = self.get(kind, key).ok_or_else(|| ApiError::not_found(kind, &key.1))?;
        check_preconditions(kind, &stored, how)?;
        let outcome = self.mark_or_remove(kind, key, &stored, how);
        self.run_todo();
        Ok(outcome)
    }

    /// What a dry run shows.
    pub(crate) fn would_delete(
        &self,
        kind: &Kind,
        stored: &Arc<Stored>,
        how: &Deletion,
    ) -> Result<Deleted, ApiError> {
        check_preconditions(kind, stored, how)?;
        Ok(match self.plan(kind, stored, how) {
            Plan::Remove { .. } => Deleted::Gone(Arc::clone(stored)),
            Plan::Leave => Deleted::Pending(Arc::clone(stored)),
            Plan::Mark(value) => Deleted::Pending(Stored::new(value, stored.revision)),
        })
    }

    fn mark_or_remove(
        &mut self,
        kind: &Kind,
        key: &Key,
        stored: &Arc<Stored>,
        how: &Deletion,
    ) -> Deleted {
        match self.plan(kind, stored, how) {
            Plan::Remove { first } => {
                if let Some(value) = first {
                    self.write(kind, key, value);
                }
                match self.remove(kind, key) {
                    Some(gone) => Deleted::Gone(gone),
                    None => Deleted::Gone(Arc::clone(stored)),
                }
            }
            Plan::Leave => Deleted::Pending(Arc::clone(stored)),
            Plan::Mark(value) => {
                let marked = self.write(kind, key, value);
                self.todo.push_back(super::Todo::Marked { table: kind.table(), key: key.clone() });
                Deleted::Pending(marked)
            }
        }
    }

    fn plan(&self, kind: &Kind, stored: &Stored, how: &Deletion) -> Plan {
        let mut value = stored.value.clone();
        let was_marked = object::is_being_deleted(&value);
        let grace = grace_seconds(kind, &value, how);
        self.set_propagation(&mut value, how.propagation);
        let is_namespace = kind.is("", "namespaces");
        let holds = !object::finalizers(&value).is_empty()
            || is_namespace
                && value["spec"]["finalizers"].as_array().is_some_and(|held| !held.is_empty());
        if !holds && grace == 0 {
            // A pod whose time is cut short is seen so before it goes.
            let is_cut_short = was_marked && kind.is("", "pods");
            object::metadata_mut(&mut value).insert("deletionGracePeriodSeconds".into(), json!(0));
            return Plan::Remove { first: is_cut_short.then_some(value) };
        }
        let shortens = object::metadata(&value)
            .get("deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .is_some_and(|left| left > grace);
        if was_marked && !shortens {
            if object::is_same_content(&value, &stored.value) {
                return Plan::Leave;
            }
        } else {
            let due = self.clock.now().saturating_add(jiff::SignedDuration::from_secs(grace));
            let due = timestamp(due.unwrap_or(jiff::Timestamp::MAX));
            let generation = object::generation(&value);
            let metadata = object::metadata_mut(&mut value);
            metadata.insert("deletionTimestamp".into(), json!(due));
            if !is_namespace {
                metadata.insert("deletionGracePeriodSeconds".into(), json!(grace));
            }
            if generation > 0 && !was_marked {
                metadata.insert("generation".into(), json!(generation + 1));
            }
            if is_namespace {
                value["status"]["phase"] = json!("Terminating");
            }
        }
        Plan::Mark(value)
    }

    /// The finalizers that stand for what becomes of dependents.
    fn set_propagation(&self, value: &mut Value, wish: Option<Propagation>) {
        let Some(wish) = wish.filter(|_| self.options.controllers) else { return };
        let mut finalizers: Vec<String> = object::finalizers(value)
            .into_iter()
            .filter(|name| *name != ORPHAN && *name != FOREGROUND)
            .map(ToOwned::to_owned)
            .collect();
        match wish {
            Propagation::Background => {}
            Propagation::Foreground => finalizers.push(FOREGROUND.to_owned()),
            Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
        }
        object::set_finalizers(value, &finalizers);
    }
}

fn check_preconditions(kind: &Kind, stored: &Stored, how: &Deletion) -> Result<(), ApiError> {
    let name = object::name(&stored.value);
    if let Some(uid) = how.uid.as_deref().filter(|uid| *uid != stored.uid()) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            stored.uid()
        );
        return Err(ApiError::precondition(kind, name, &why));
    }
    let version = object::resource_version(&stored.value);
    if let Some(wanted) = how.resource_version.as_deref().filter(|wanted| *wanted != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        );
        return Err(ApiError::precondition(kind, name, &why));
    }
    Ok(())
}

/// Only pods that a kubelet runs get time to end.
fn grace_seconds(kind: &Kind, value: &Value, how: &Deletion) -> i64 {
    if !kind.is("", "pods") {
        return 0;
    }
    let is_done = matches!(value["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    let is_bound = value["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    if is_done || !is_bound {
        return 0;
    }
    let default = value["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    how.grace_seconds.unwrap_or(default).max(0)
}
