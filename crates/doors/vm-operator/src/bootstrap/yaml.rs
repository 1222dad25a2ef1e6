//! YAML as every guest reads it.
//!
//! Written here and not by a library, because its text is compared with what the VM has: another way of writing the same would be a change of every VM. Texts are quoted unless they
//! can be nothing else for a parser of any age (`on` and `0644` are not texts for all of them).

use std::fmt::Write as _;

use serde_json::Value;

/// Words that some parser takes for something else than a text.
const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// A mapping or a list in block form.
pub(super) fn to_yaml(value: &Value) -> String {
    let mut text = String::new();
    block(&mut text, value, 0);
    text
}

fn block(text: &mut String, value: &Value, indent: usize) {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let _ = write!(text, "{pad}{}:", scalar(&Value::String(key.clone())));
                nested(text, value, indent + 2);
            }
        }
        Value::Array(items) => {
            for item in items {
                let _ = write!(text, "{pad}-");
                match item {
                    // The first field stands beside the dash.
                    Value::Object(fields) if !fields.is_empty() => {
                        let mut inner = String::new();
                        block(&mut inner, item, indent + 2);
                        text.push(' ');
                        text.push_str(inner.trim_start());
                    }
                    _ => nested(text, item, indent + 2),
                }
            }
        }
        _ => {
            let _ = writeln!(text, "{pad}{}", scalar(value));
        }
    }
}

/// What stands behind a colon or a dash.
fn nested(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            text.push('\n');
            block(text, value, indent);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            block(text, value, indent);
        }
        _ => {
            let _ = writeln!(text, " {}", scalar(value));
        }
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        // JSON's way of writing texts, numbers, booleans and empty collections is YAML's, too.
        _ => value.to_string(),
    }
}

fn is_plain(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(is_inner)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_stay_texts_for_every_parser() {
        let value = json!({
            "a": {"b": [1, "x", {"c": true, "d": "0644"}, ["sh", "-c", "echo: done"], []], "e": {}},
            "on": "yes",
            "text": "two\nlines \"quoted\"",
            "none": null,
        });
        let text = to_yaml(&value);
        let expected = "\
a:
  b:
    - 1
    - x
    - c: true
      d: \"0644\"
    -
      - sh
      - \"-c\"
      - \"echo: done\"
    - []
  e: {}
none: null
\"on\": \"yes\"
text: \"two\\nlines \\\"quoted\\\"\"
";
        assert_eq!(text, expected);
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, value);
    }
}
