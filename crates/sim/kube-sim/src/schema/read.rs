//! From the JSON of a schema to [`Schema`].

use serde_json::{Map, Value};

use super::{Additional, Bounds, Kind, ListKind, Pattern, Schema};
use crate::cel::Rule;
use crate::object::strings;

const DEFINITIONS: &str = "#/components/schemas/";

/// Definitions that references lead to, and those that are being followed.
struct Reader<'a> {
    definitions: Option<&'a Map<String, Value>>,
    following: Vec<String>,
}

impl Schema {
    /// Of an `openAPIV3Schema`, which stands alone.
    pub(crate) fn read(json: &Value) -> Self {
        Reader { definitions: None, following: Vec::new() }.schema(json)
    }

    /// Of a schema whose references lead to `definitions`.
    pub(crate) fn read_with(json: &Value, definitions: &Map<String, Value>) -> Self {
        Reader { definitions: Some(definitions), following: Vec::new() }.schema(json)
    }
}

impl Reader<'_> {
    fn schema(&mut self, json: &Value) -> Schema {
        if let Some(reference) = json["$ref"].as_str() {
            return self.follow(reference);
        }
        // A reference with a description beside it.
        if let [only] = json["allOf"].as_array().map(Vec::as_slice).unwrap_or_default()
            && let Some(reference) = only["$ref"].as_str()
        {
            return self.follow(reference);
        }
        let flag = |name: &str| json[name].as_bool().unwrap_or(false);
        let mut schema = Schema {
            kind: json["type"].as_str().and_then(kind),
            format: json["format"].as_str().map(ToOwned::to_owned),
            required: strings(json.get("required")).into_iter().map(ToOwned::to_owned).collect(),
            default: json.get("default").filter(|value| !value.is_null()).cloned(),
            allowed: json["enum"].as_array().cloned().unwrap_or_default(),
            pattern: json["pattern"]
                .as_str()
                .map(|text| Pattern { text: text.to_owned(), regex: regex::Regex::new(text).ok() }),
            bounds: bounds(json),
            nullable: flag("nullable"),
            preserves_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            int_or_string: flag("x-kubernetes-int-or-string")
                || json["format"].as_str() == Some("int-or-string"),
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            is_atomic: json["x-kubernetes-map-type"].as_str() == Some("atomic"),
            list: match json["x-kubernetes-list-type"].as_str() {
                Some("set") => ListKind::Set,
                Some("map") => ListKind::Map(
                    strings(json.get("x-kubernetes-list-map-keys"))
                        .into_iter()
                        .map(ToOwned::to_owned)
                        .collect(),
                ),
                _ => ListKind::Atomic,
            },
            rules: json["x-kubernetes-validations"]
                .as_array()
                .map(|rules| rules.iter().map(Rule::read).collect())
                .unwrap_or_default(),
            ..Schema::default()
        };
        if let Some(properties) = json["properties"].as_object() {
            schema.properties =
                properties.iter().map(|(name, child)| (name.clone(), self.schema(child))).collect();
        }
        schema.additional = match &json["additionalProperties"] {
            Value::Bool(true) => Additional::Any,
            Value::Object(map) if map.is_empty() => Additional::Any,
            child @ Value::Object(_) => Additional::Each(Box::new(self.schema(child))),
            _ => Additional::None,
        };
        schema.items = json.get("items").map(|items| Box::new(self.schema(items)));
        schema.all_of = self.list(&json["allOf"]);
        schema.any_of = self.list(&json["anyOf"]);
        schema.one_of = self.list(&json["oneOf"]);
        schema.not = json.get("not").map(|not| Box::new(self.schema(not)));
        // A built-in object without properties, such as a raw extension, holds anything.
        if self.definitions.is_some()
            && matches!(schema.kind, Some(Kind::Object) | None)
            && schema.properties.is_empty()
            && matches!(schema.additional, Additional::None)
        {
            schema.preserves_unknown = true;
        }
        schema
    }

    fn list(&mut self, json: &Value) -> Vec<Schema> {
        json.as_array()
            .map(|list| list.iter().map(|one| self.schema(one)).collect())
            .unwrap_or_default()
    }

    fn follow(&mut self, reference: &str) -> Schema {
        let name = reference.strip_prefix(DEFINITIONS).unwrap_or(reference);
        let known = self.definitions.and_then(|all| all.get(name));
        // The schema of schemas contains itself: from there on anything goes.
        let Some(known) = known.filter(|_| !self.following.iter().any(|on_way| on_way == name))
        else {
            return Schema { preserves_unknown: true, ..Schema::default() };
        };
        let known = known.clone();
        self.following.push(name.to_owned());
        let schema = self.schema(&known);
        self.following.pop();
        schema
    }
}

fn kind(name: &str) -> Option<Kind> {
    Some(match name {
        "object" => Kind::Object,
        "array" => Kind::Array,
        "string" => Kind::String,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        _ => return None,
    })
}

fn bounds(json: &Value) -> Bounds {
    let number = |name: &str| json[name].as_f64();
    let count = |name: &str| json[name].as_u64().and_then(|count| usize::try_from(count).ok());
    Bounds {
        minimum: number("minimum"),
        exclusive_minimum: json["exclusiveMinimum"].as_bool().unwrap_or(false),
        maximum: number("maximum"),
        exclusive_maximum: json["exclusiveMaximum"].as_bool().unwrap_or(false),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: json["uniqueItems"].as_bool().unwrap_or(false),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
    }
}
