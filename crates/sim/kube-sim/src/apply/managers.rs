//! `metadata.managedFields`: who set which field last.

use serde_json::{Value, json};

use super::merge::{schema, value_at};
use super::set::{Set, Step};
use super::shape::{Shape, without_server_fields};
use crate::convert;
use crate::kind::Kind;
use crate::object;
use crate::verb::Draft;

/// One manager and the fields it owns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) manager: String,
    pub(super) is_apply: bool,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: String,
    pub(super) fields: Set,
}

impl Entry {
    pub(super) fn is_apply_of(&self, manager: &str, subresource: &str) -> bool {
        self.is_apply && self.manager == manager && self.subresource == subresource
    }

    /// As conflicts name a manager.
    pub(super) fn shown(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        if self.is_apply { text } else { format!("{text} using {}", self.api_version) }
    }

    fn to_json(&self) -> Value {
        let mut entry = json!({
            "manager": self.manager,
            "operation": if self.is_apply { "Apply" } else { "Update" },
            "apiVersion": self.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": self.fields.to_json(),
        });
        if !self.time.is_empty() {
            entry["time"] = json!(self.time);
        }
        if !self.subresource.is_empty() {
            entry["subresource"] = json!(self.subresource);
        }
        entry
    }
}

pub(super) fn entries(object: &Value) -> Vec<Entry> {
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    object::metadata(object)
        .get("managedFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|entry| Entry {
            manager: text(entry, "manager"),
            is_apply: entry["operation"] == "Apply",
            api_version: text(entry, "apiVersion"),
            subresource: text(entry, "subresource"),
            time: text(entry, "time"),
            fields: Set::read(&entry["fieldsV1"]),
        })
        .collect()
}

/// Status and the rest are written apart; nobody owns what they cannot write.
pub(super) fn restrict(kind: &Kind, version: &str, subresource: &str, mut set: Set) -> Set {
    let status = Step::Field("status".to_owned());
    if subresource == "status" {
        set.children.retain(|step, _| {
            *step == status || !kind.is_custom() && *step == Step::Field("metadata".to_owned())
        });
    } else if kind.version(version).is_some_and(|version| version.has_status) {
        set.children.remove(&status);
    }
    set
}

/// Whether two states have the same owners of the same fields.
pub(crate) fn is_same_ownership(one: &Value, other: &Value) -> bool {
    let without_time = |object: &Value| -> Vec<Entry> {
        entries(object).into_iter().map(|entry| Entry { time: String::new(), ..entry }).collect()
    };
    let (one_list, other_list) =
        (object::metadata(one).get("managedFields"), object::metadata(other).get("managedFields"));
    one_list == other_list || without_time(one) == without_time(other)
}

/// Writes down who owns what after this draft.
pub(crate) fn track(draft: &mut Draft, now: &str) {
    let kind = draft.subject.kind.clone();
    let schema = schema(&kind, &draft.version);
    let shape = Shape::root(&kind, schema.as_deref());
    let old = draft.old.as_ref().map(|old| convert::from_storage(&kind, &draft.version, old));
    let mut all = old.as_ref().map(entries).unwrap_or_default();
    if draft.subresource == "scale" && draft.applied.is_none() && !has_scale_owner(draft, &all) {
        return;
    }
    let has = without_server_fields(shape.fields(&draft.new));
    let wanted = match &draft.applied {
        Some((applied, _)) => restrict(
            &kind,
            &draft.version,
            &draft.subresource,
            without_server_fields(shape.fields(applied)),
        ),
        None => changed(&draft.new, old.as_ref(), &has),
    };
    let is_apply = draft.applied.is_some();
    // What changed is no longer others'; what an apply repeats unchanged is shared.
    let differs = |path: &[Step]| {
        old.as_ref().is_some_and(|old| value_at(old, path) != value_at(&draft.new, path))
    };
    let api_version = kind.api_version(&draft.version);
    let is_mine = |entry: &Entry| {
        entry.manager == draft.manager
            && entry.is_apply == is_apply
            && entry.subresource == draft.subresource
            && (is_apply || entry.api_version == api_version)
    };
    for entry in all.iter_mut().filter(|entry| !is_mine(entry)) {
        for path in entry.fields.paths() {
            let is_gone = value_at(&draft.new, &path).is_none();
            let is_taken =
                wanted.contains(&path) && differs(&path) && !is_container(&draft.new, &path);
            if is_gone {
                entry.fields.remove(&path);
            } else if is_taken {
                entry.fields.remove_one(&path);
            }
        }
    }
    let at = all.iter().position(is_mine);
    let before = at.map(|at| all[at].clone());
    let mut fields = if is_apply {
        Set::default()
    } else {
        before.as_ref().map(|entry| entry.fields.clone()).unwrap_or_default()
    };
    for path in fields.paths() {
        if value_at(&draft.new, &path).is_none() {
            fields.remove(&path);
        }
    }
    for path in wanted.paths() {
        fields.insert(&path);
    }
    let time = match &before {
        Some(entry) if entry.fields == fields => entry.time.clone(),
        _ => now.to_owned(),
    };
    let entry = Entry {
        manager: draft.manager.clone(),
        is_apply,
        api_version,
        subresource: draft.subresource.clone(),
        time,
        fields,
    };
    match at {
        Some(at) => all[at] = entry,
        None => all.push(entry),
    }
    all.retain(|entry| !entry.fields.is_empty());
    all.sort_by(|a, b| (b.is_apply, &a.time, &a.manager).cmp(&(a.is_apply, &b.time, &b.manager)));
    let metadata = object::metadata_mut(&mut draft.new);
    if all.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".into(), all.iter().map(Entry::to_json).collect());
    }
}

/// A scale in which nobody owns the replicas has no owners, and those of an object without any are not begun by an update.
fn has_scale_owner(draft: &Draft, owners: &[Entry]) -> bool {
    let version = draft.subject.kind.version(&draft.version);
    let Some(scale) = version.and_then(|version| version.scale.as_ref()) else { return true };
    let names = scale.spec_replicas.trim_start_matches('.').split('.');
    let path: Vec<_> = names.map(|name| Step::Field(name.to_owned())).collect();
    owners.iter().any(|owner| owner.fields.contains(&path))
}

/// An item of a list that is owned by all who set something in it.
fn is_container(object: &Value, path: &[Step]) -> bool {
    matches!(path.last(), Some(Step::Key(_)))
        && value_at(object, path).is_some_and(Value::is_object)
}

/// The fields that are new or other than before.
fn changed(new: &Value, old: Option<&Value>, has: &Set) -> Set {
    let Some(old) = old else { return has.clone() };
    let mut changed = Set::default();
    for path in has.paths() {
        let before = value_at(old, &path);
        if before.is_none() || before != value_at(new, &path) && !is_container(new, &path) {
            changed.insert(&path);
        }
    }
    changed
}
