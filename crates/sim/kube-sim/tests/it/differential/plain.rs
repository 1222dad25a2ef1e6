//! Answers without what differs by nature: uids, times, versions, fields that hold nothing.

use serde_json::{Value, json};

/// Without what differs by nature.
pub(super) fn plain(mut value: Value) -> Value {
    strip(&mut value);
    value
}

/// A server with types writes fields that hold nothing.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
        _ => false,
    }
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // The real server names faults in any order, in the causes and in the message made of them.
            let causes = fields.get_mut("details").and_then(|details| details.get_mut("causes"));
            if let Some(causes) =
                causes.and_then(Value::as_array_mut).filter(|causes| causes.len() > 1)
            {
                causes.sort_by_key(ToString::to_string);
                // It also says the same several times.
                causes.dedup();
                fields.insert("message".to_owned(), json!("of the causes"));
            }
            fields.retain(|_, value| !is_nothing(value));
            for (name, value) in fields.iter_mut() {
                match name.as_str() {
                    "uid" | "resourceVersion" | "creationTimestamp" | "deletionTimestamp"
                    | "time" | "lastTransitionTime" | "continue"
                        if !value.is_null() =>
                    {
                        *value = json!("-");
                    }
                    "managedFields" => {
                        let entries = value.as_array().cloned().unwrap_or_default();
                        let mut who: Vec<_> = entries
                            .iter()
                            .map(|entry| {
                                format!(
                                    "{} {} {}",
                                    entry["manager"], entry["operation"], entry["subresource"]
                                )
                            })
                            .collect();
                        who.sort();
                        *value = json!(who);
                    }
                    "message" => {
                        if let Some(text) = value.as_str() {
                            *value = json!(without_ids(text));
                        }
                    }
                    _ => strip(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Messages without uids, times and numbers of versions.
fn without_ids(text: &str) -> String {
    text.split(' ')
        .map(|word| {
            let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric());
            let is_uid = bare.len() == 36 && bare.matches('-').count() == 4;
            // A version of an object, as preconditions name it.
            let is_version = word.starts_with('(') && bare.parse::<u64>().is_ok();
            let is_time = bare.ends_with('Z') && bare.contains('T') && bare.len() == 20;
            if is_uid || is_time || is_version { word.replace(bare, "-") } else { word.to_owned() }
        })
        .collect::<Vec<_>>()
        .join(" ")
}
