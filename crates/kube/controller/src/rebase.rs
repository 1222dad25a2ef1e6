//! Our change of an object, made on top of what others made of it in the meantime.
//!
//! Maps are merged field by field. Conditions are merged by type, owner references by uid, finalizers one by
//! one: what we did not touch stays as the others have it. Any other list is ours if we changed it.

use serde_json::{Map, Value};

/// Both changed the same condition, and it is not ours alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contested {
    pub(crate) condition: String,
}

/// `ours` was made from `base`; the result is the same change made to `theirs`.
pub(crate) fn rebase(
    base: &Value,
    ours: &Value,
    theirs: &Value,
    owned: &[String],
) -> Result<Value, Contested> {
    field("", base, ours, theirs, owned)
}

fn field(
    name: &str,
    base: &Value,
    ours: &Value,
    theirs: &Value,
    owned: &[String],
) -> Result<Value, Contested> {
    if base == ours || ours == theirs {
        return Ok(theirs.clone());
    }
    match (name, ours, theirs) {
        ("conditions", Value::Array(ours), Value::Array(theirs)) => {
            conditions(items(base), ours, theirs, owned).map(Value::Array)
        }
        ("finalizers", Value::Array(ours), Value::Array(theirs)) => {
            Ok(Value::Array(by(Value::as_str, items(base), ours, theirs)))
        }
        ("ownerReferences", Value::Array(ours), Value::Array(theirs)) => {
            Ok(Value::Array(by(|item| item.get("uid")?.as_str(), items(base), ours, theirs)))
        }
        // The last of ours is gone: what others added is still theirs.
        ("finalizers", Value::Null, Value::Array(theirs)) => {
            Ok(Value::Array(by(Value::as_str, items(base), &[], theirs)))
        }
        (_, Value::Object(ours), Value::Object(theirs)) => {
            let none = Map::new();
            let base = base.as_object().unwrap_or(&none);
            let mut merged = Map::new();
            let mut names: Vec<_> = theirs.keys().collect();
            names.extend(ours.keys().filter(|name| !theirs.contains_key(*name)));
            for name in names {
                let part =
                    |fields: &Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
                let value = field(name, &part(base), &part(ours), &part(theirs), owned)?;
                if !value.is_null() {
                    merged.insert(name.clone(), value);
                }
            }
            Ok(Value::Object(merged))
        }
        _ => Ok(ours.clone()),
    }
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Items are recognised by `id`: ours added or changed win, ours removed go, all others stay.
fn by(
    id: fn(&Value) -> Option<&str>,
    base: &[Value],
    ours: &[Value],
    theirs: &[Value],
) -> Vec<Value> {
    let find =
        |list: &[Value], wanted: Option<&str>| list.iter().find(|item| id(item) == wanted).cloned();
    let mut merged = Vec::new();
    for item in theirs {
        match (find(base, id(item)), find(ours, id(item))) {
            // We removed it.
            (Some(_), None) => {}
            (Some(base), Some(ours)) if base != ours => merged.push(ours),
            _ => merged.push(item.clone()),
        }
    }
    let is_new = |item: &&Value| {
        let id = id(item);
        find(theirs, id).is_none() && find(base, id).as_ref() != Some(*item)
    };
    merged.extend(ours.iter().filter(is_new).cloned());
    merged
}

fn kind(condition: &Value) -> Option<&str> {
    condition.get("type")?.as_str()
}

fn conditions(
    base: &[Value],
    ours: &[Value],
    theirs: &[Value],
    owned: &[String],
) -> Result<Vec<Value>, Contested> {
    let find =
        |list: &[Value], wanted: &str| list.iter().find(|item| kind(item) == Some(wanted)).cloned();
    for theirs in theirs {
        let Some(name) = kind(theirs) else { continue };
        let (base, ours) = (find(base, name), find(ours, name));
        let is_changed_by_both =
            base != ours && base.as_ref() != Some(theirs) && ours.as_ref() != Some(theirs);
        if is_changed_by_both && !owned.iter().any(|owned| owned == name) {
            return Err(Contested { condition: name.to_owned() });
        }
    }
    Ok(by(kind, base, ours, theirs))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(base: &Value, ours: &Value, theirs: &Value) -> Value {
        rebase(base, ours, theirs, &[]).unwrap()
    }

    #[test]
    fn what_we_did_not_touch_stays_as_the_others_have_it() {
        let base = json!({"labels": {"a": "1", "b": "1", "gone": "1"}, "phase": "x"});
        let ours = json!({"labels": {"a": "2", "b": "1"}, "phase": "y"});
        let theirs = json!({"labels": {"a": "1", "b": "3", "gone": "1", "new": "1"}, "phase": "x"});
        let expected = json!({"labels": {"a": "2", "b": "3", "new": "1"}, "phase": "y"});
        assert_eq!(merged(&base, &ours, &theirs), expected);
    }

    #[test]
    fn foreign_finalizers_survive_ours() {
        let metadata = |list: Value| json!({"finalizers": list});
        let base = metadata(json!(["us", "old"]));
        let theirs = metadata(json!(["us", "old", "them"]));
        let gone = merged(&base, &json!({}), &theirs);
        assert_eq!(gone, metadata(json!(["them"])));
        let added = merged(&base, &metadata(json!(["us", "old", "more"])), &theirs);
        assert_eq!(added, metadata(json!(["us", "old", "them", "more"])));
    }

    #[test]
    fn foreign_conditions_survive_and_contested_ones_are_told() {
        let status = |a: &str, b: &str| json!({"conditions": [{"type": "A", "status": a}, {"type": "B", "status": b}]});
        let base = status("False", "False");
        let ours = status("True", "False");
        assert_eq!(merged(&base, &ours, &status("False", "True")), status("True", "True"));
        let contested = rebase(&base, &ours, &status("Unknown", "False"), &[]);
        assert_eq!(contested, Err(Contested { condition: "A".to_owned() }));
        let owned = rebase(&base, &ours, &status("Unknown", "False"), &["A".to_owned()]);
        assert_eq!(owned, Ok(status("True", "False")));
        let agreed = rebase(&base, &ours, &status("True", "False"), &[]);
        assert_eq!(agreed, Ok(status("True", "False")));
    }

    #[test]
    fn a_condition_that_others_removed_and_we_kept_stays_removed() {
        let base = json!({"conditions": [{"type": "A"}, {"type": "B"}]});
        let ours = json!({"conditions": [{"type": "A"}, {"type": "B"}, {"type": "C"}]});
        let theirs = json!({"conditions": [{"type": "A"}]});
        assert_eq!(
            merged(&base, &ours, &theirs),
            json!({"conditions": [{"type": "A"}, {"type": "C"}]})
        );
    }
}
