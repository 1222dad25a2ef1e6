//! The part of JSONPath that printer columns use.

use serde_json::Value;

#[derive(Debug, PartialEq)]
enum Step {
    Field(String),
    Index(usize),
    All,
    /// `[?(@.type=="Ready")]`
    Where(String, String),
}

/// What the path leads to; nothing when it cannot be read.
pub(crate) fn find<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![value];
    for step in steps(path) {
        found = found.into_iter().flat_map(|value| follow(value, &step)).collect();
    }
    found
}

fn follow<'a>(value: &'a Value, step: &Step) -> Vec<&'a Value> {
    let items = || value.as_array().map(|items| items.iter().collect::<Vec<_>>());
    match step {
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::Index(at) => value.get(at).into_iter().collect(),
        Step::All => items()
            .or_else(|| value.as_object().map(|fields| fields.values().collect()))
            .unwrap_or_default(),
        Step::Where(field, wanted) => items()
            .unwrap_or_default()
            .into_iter()
            .filter(|item| {
                crate::object::at(item, field).is_some_and(|found| match found {
                    Value::String(text) => text == wanted,
                    other => other.to_string().as_str() == wanted,
                })
            })
            .collect(),
    }
}

fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest =
        path.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let Some(end) = bracket_end(inner) else { return steps };
            steps.extend(bracket(&inner[..end]));
            rest = &inner[end + 1..];
        } else {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let mut name = String::new();
            let mut letters = rest.char_indices();
            let mut length = rest.len();
            while let Some((at, letter)) = letters.next() {
                match letter {
                    // A dot that belongs to the name.
                    '\\' => name.extend(letters.next().map(|(_, letter)| letter)),
                    '.' | '[' => {
                        length = at;
                        break;
                    }
                    _ => name.push(letter),
                }
            }
            if name == "*" {
                steps.push(Step::All);
            } else if !name.is_empty() {
                steps.push(Step::Field(name));
            }
            rest = &rest[length..];
        }
    }
    steps
}

/// Where a bracket closes, outside of quotes.
fn bracket_end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (None, ']') => return Some(at),
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), letter) if open == letter => quote = None,
            _ => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Option<Step> {
    let bare = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    if let Some(condition) = inner.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        let (field, wanted) = condition.split_once("==")?;
        return Some(Step::Where(field.trim().trim_start_matches("@.").to_owned(), bare(wanted)));
    }
    match inner.trim() {
        "*" => Some(Step::All),
        text => Some(text.parse().map_or_else(|_| Step::Field(bare(text)), Step::Index)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_of_printer_columns() {
        let value = json!({
            "metadata": {"labels": {"a.b/c": "l"}},
            "status": {"conditions": [{"type": "Old", "status": "False"}, {"type": "Ready", "status": "True"}], "ips": ["1", "2"]}
        });
        for (path, want) in [
            (".status.conditions[?(@.type==\"Ready\")].status", vec![json!("True")]),
            (".status.conditions[?(@.type=='Ready')].status", vec![json!("True")]),
            (".metadata.labels.a\\.b/c", vec![json!("l")]),
            (".metadata.labels['a.b/c']", vec![json!("l")]),
            (".status.ips[1]", vec![json!("2")]),
            (".status.ips[*]", vec![json!("1"), json!("2")]),
            (".spec.none", vec![]),
        ] {
            assert_eq!(find(&value, path).into_iter().cloned().collect::<Vec<_>>(), want, "{path}");
        }
    }
}
