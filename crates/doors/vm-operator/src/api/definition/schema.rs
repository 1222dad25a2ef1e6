//! The notation of the files in `crds/`, and the schema that the API server wants.
//!
//! A field is `name: type`. `name!` is required; `name+` exists in the newer version only.
//!
//! | Type | Is |
//! | --- | --- |
//! | `string`, `bool`, `int32`, `int64`, `quantity`, `time`, `uuid`, `int-or-string` | that |
//! | `any`, `object` | anything, an object of anything |
//! | `Red \| Green` | one of these texts |
//! | `Name` | the type of that name in `types.yaml` |
//! | `'[T]'`, `'{T}'` | a list, a map from texts |
//! | `T = value` | with a default |
//!
//! A mapping is an object with those fields, or, with `$list`, a list, or, with `$type`, a type. Words that begin with `$` say more: `$default`, `$min`, `$max`,
//! `$minLength`, `$maxLength`, `$pattern`, `$maxItems`, `$keys` (a list that is a map by these fields), `$set`, `$atomic`, `$atomicMap`, `$rules` and `$rules+`.

use serde_json::{Map, Value, json};

/// What Kubernetes accepts as a quantity.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// A place and what is wrong there.
type Problem = (String, String);

pub(super) struct Types<'a> {
    pub(super) types: &'a Value,
    pub(super) is_older: bool,
}

impl Types<'_> {
    pub(super) fn schema(&self, node: &Value, place: &str) -> Result<Value, Problem> {
        match node {
            Value::String(text) => self.text(text, place),
            Value::Object(fields) => self.mapping(fields, place),
            Value::Null => Ok(json!({"type": "object"})),
            _ => Err((place.to_owned(), format!("is no type: {node}"))),
        }
    }

    fn text(&self, text: &str, place: &str) -> Result<Value, Problem> {
        let (kind, default) = match text.split_once(" = ") {
            Some((kind, default)) => (kind, Some(default)),
            None => (text, None),
        };
        let mut schema = self.named(kind.trim(), place)?;
        if let Some(default) = default {
            schema["default"] = match schema["type"].as_str() {
                Some("string") => default.into(),
                _ => serde_json::from_str(default)
                    .map_err(|_| (place.to_owned(), format!("has the default {default}")))?,
            };
        }
        Ok(schema)
    }

    fn named(&self, kind: &str, place: &str) -> Result<Value, Problem> {
        if let Some(item) = kind.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return Ok(json!({"type": "array", "items": self.text(item, place)?}));
        }
        if let Some(item) = kind.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            return Ok(json!({"type": "object", "additionalProperties": self.text(item, place)?}));
        }
        if kind.contains('|') {
            let words: Vec<_> =
                kind.split('|').map(str::trim).filter(|word| !word.is_empty()).collect();
            return Ok(json!({"type": "string", "enum": words}));
        }
        Ok(match kind {
            "string" => json!({"type": "string"}),
            "bool" => json!({"type": "boolean"}),
            "int32" | "int64" => json!({"type": "integer", "format": kind}),
            "time" => json!({"type": "string", "format": "date-time"}),
            "uuid" => json!({"type": "string", "format": "uuid"}),
            "quantity" => json!({
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "pattern": QUANTITY,
                "x-kubernetes-int-or-string": true,
            }),
            "int-or-string" => json!({
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "x-kubernetes-int-or-string": true,
            }),
            "any" => json!({"x-kubernetes-preserve-unknown-fields": true}),
            "object" => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            name => match self.types.get(name) {
                Some(node) => self.schema(node, &format!("{place} ({name})"))?,
                None => return Err((place.to_owned(), format!("has the unknown type {name}"))),
            },
        })
    }

    fn mapping(&self, fields: &Map<String, Value>, place: &str) -> Result<Value, Problem> {
        let mut schema = if let Some(item) = fields.get("$list") {
            json!({"type": "array", "items": self.schema(item, &format!("{place}[]"))?})
        } else if let Some(Value::String(kind)) = fields.get("$type") {
            self.text(kind, place)?
        } else {
            self.object(fields, place)?
        };
        let mut rules = schema["x-kubernetes-validations"].as_array().cloned().unwrap_or_default();
        for (word, value) in fields.iter().filter(|(word, _)| word.starts_with('$')) {
            let field = match word.as_str() {
                "$list" | "$type" => continue,
                "$rules+" if self.is_older => continue,
                "$rules" | "$rules+" => {
                    rules.extend(value.as_array().cloned().unwrap_or_default());
                    continue;
                }
                "$keys" => {
                    schema["x-kubernetes-list-type"] = "map".into();
                    "x-kubernetes-list-map-keys"
                }
                "$set" | "$atomic" => {
                    schema["x-kubernetes-list-type"] = word[1..].into();
                    continue;
                }
                "$atomicMap" => {
                    schema["x-kubernetes-map-type"] = "atomic".into();
                    continue;
                }
                "$min" => "minimum",
                "$max" => "maximum",
                "$default" | "$minLength" | "$maxLength" | "$pattern" | "$maxItems" => &word[1..],
                _ => return Err((place.to_owned(), format!("has the unknown word {word}"))),
            };
            schema[field] = value.clone();
        }
        if let Some(fields) = schema.as_object_mut() {
            fields.remove("x-kubernetes-validations");
            if !rules.is_empty() {
                fields.insert("x-kubernetes-validations".to_owned(), rules.into());
            }
        }
        Ok(schema)
    }

    fn object(&self, fields: &Map<String, Value>, place: &str) -> Result<Value, Problem> {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for (name, node) in fields.iter().filter(|(name, _)| !name.starts_with('$')) {
            let (name, is_newer) = match name.strip_suffix('+') {
                Some(name) => (name, true),
                None => (name.as_str(), false),
            };
            if is_newer && self.is_older {
                continue;
            }
            let (name, is_required) = match name.strip_suffix('!') {
                Some(name) => (name, true),
                None => (name, false),
            };
            if is_required {
                required.push(name);
            }
            properties.insert(name.to_owned(), self.schema(node, &format!("{place}.{name}"))?);
        }
        let mut schema = json!({"type": "object"});
        if !properties.is_empty() {
            schema["properties"] = properties.into();
        }
        if !required.is_empty() {
            required.sort_unstable();
            schema["required"] = required.into();
        }
        Ok(schema)
    }
}
