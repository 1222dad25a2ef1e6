//! Merging an applied configuration into the live object.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::Value;

use super::managers::{Entry, entries, restrict};
use super::set::{Set, Step, shown};
use super::shape::{Shape, without_server_fields};
use crate::builtin;
use crate::kind::Kind;
use crate::schema::ListKind;
use crate::status::{ApiError, Cause};

/// The object after an apply, or the conflicts with others who own what it changes.
pub(crate) fn merge(
    kind: &Kind,
    version: &str,
    subresource: &str,
    live: Option<&Value>,
    applied: &Value,
    manager: &str,
    force: bool,
) -> Result<Value, ApiError> {
    let Some(live) = live else { return Ok(applied.clone()) };
    let schema = schema(kind, version);
    let shape = Shape::root(kind, schema.as_deref());
    let mine = restrict(kind, version, subresource, without_server_fields(shape.fields(applied)));
    let others: Vec<Entry> = entries(live)
        .into_iter()
        .filter(|entry| !entry.is_apply_of(manager, subresource))
        .collect();
    if !force {
        check_conflicts(live, applied, &mine, &others)?;
    }
    let mut merged = live.clone();
    merge_node(shape, &mut merged, applied);
    let before = entries(live).into_iter().find(|entry| entry.is_apply_of(manager, subresource));
    for path in before.map(|entry| entry.fields.paths()).unwrap_or_default() {
        let is_kept = mine.touches(&path) || others.iter().any(|other| other.fields.touches(&path));
        if !is_kept {
            remove(&mut merged, &path);
        }
    }
    Ok(merged)
}

pub(super) fn schema(kind: &Kind, version: &str) -> Option<std::sync::Arc<crate::schema::Schema>> {
    if kind.is_custom() { kind.version(version)?.schema() } else { builtin::schema(kind) }
}

/// The value at a path.
pub(super) fn value_at<'a>(object: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, step| step.of(value))
}

fn remove(object: &mut Value, path: &[Step]) {
    let Some((last, way)) = path.split_last() else { return };
    let mut here = object;
    for step in way {
        match step.of_mut(here) {
            Some(next) => here = next,
            None => return,
        }
    }
    last.remove_from(here);
}

fn check_conflicts(
    live: &Value,
    applied: &Value,
    mine: &Set,
    others: &[Entry],
) -> Result<(), ApiError> {
    let mut conflicts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in mine.paths() {
        let (wanted, found) = (value_at(applied, &path), value_at(live, &path));
        // Items of lists are shared; what is in them counts.
        if wanted == found || wanted.is_some_and(Value::is_object) {
            continue;
        }
        for other in others.iter().filter(|other| other.fields.contains(&path)) {
            conflicts.entry(other.shown()).or_default().push(shown(&path));
        }
    }
    if conflicts.is_empty() {
        return Ok(());
    }
    let count: usize = conflicts.values().map(Vec::len).sum();
    let mut causes = Vec::new();
    let mut texts = Vec::new();
    for (manager, fields) in &conflicts {
        for field in fields {
            causes.push(Cause::new(
                "FieldManagerConflict",
                field,
                format!("conflict with {manager}"),
            ));
        }
        texts.push(match fields.as_slice() {
            [one] => format!("conflict with {manager}: {one}"),
            many => format!("conflicts with {manager}:\n- {}", many.join("\n- ")),
        });
    }
    let plural = if count == 1 { "" } else { "s" };
    let message = format!("Apply failed with {count} conflict{plural}: {}", texts.join("\n"));
    Err(ApiError::new(StatusCode::CONFLICT, "Conflict", message).with_causes(&causes))
}

fn merge_node(shape: Shape<'_>, live: &mut Value, applied: &Value) {
    match (live, applied) {
        (Value::Object(fields), Value::Object(wanted)) if !shape.is_atomic_map() => {
            for (name, value) in wanted {
                match fields.get_mut(name) {
                    Some(known) => merge_node(shape.child(name), known, value),
                    None => {
                        fields.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(items), Value::Array(wanted)) if shape.list() != ListKind::Atomic => {
            for item in wanted {
                let step = shape.step(item);
                match step.as_ref().and_then(|step| {
                    items.iter().position(|known| shape.step(known).as_ref() == Some(step))
                }) {
                    Some(at) => merge_node(shape.item(), &mut items[at], item),
                    None => items.push(item.clone()),
                }
            }
        }
        (live, applied) => *live = applied.clone(),
    }
}
