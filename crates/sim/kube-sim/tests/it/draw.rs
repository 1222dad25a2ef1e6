//! Values drawn from a schema: mostly right, now and then wrong.

use regex::Regex;
use roost_clock::Random;
use serde_json::{Value, json};

/// Deeper than this only what is required is filled in.
const DEEP: usize = 5;

/// Texts of the kinds that patterns ask for.
const TEXTS: [&str; 20] = [
    "a",
    "web-0",
    "1",
    "42",
    "10.0.0.1",
    "10.0.0.0/24",
    "fd00::1",
    "50%",
    "1Gi",
    "500m",
    "true",
    "None",
    "Default",
    "00:50:56:00:00:01",
    "example.com/a",
    "a.b.c",
    "vm-1",
    "2026-01-01T00:00:00Z",
    "abc_def",
    "A",
];

pub(crate) struct Draw<'a> {
    pub(crate) random: &'a mut Random,
    /// How likely each place is wrong.
    pub(crate) faults: f64,
}

impl Draw<'_> {
    pub(crate) fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if depth > 0 && self.random.chance(self.faults) {
            let wrong = [
                json!(null),
                json!("wrong"),
                json!(-7),
                json!([]),
                json!({}),
                json!(true),
                json!(1.5),
            ];
            return self.random.pick(&wrong).cloned().unwrap_or_default();
        }
        if let Some(allowed) =
            schema["enum"].as_array().filter(|_| !self.random.chance(self.faults))
        {
            return self.random.pick(allowed).cloned().unwrap_or_default();
        }
        if schema["x-kubernetes-int-or-string"] == true {
            return if self.random.chance(0.5) {
                json!(self.random.below(100))
            } else {
                self.text(schema)
            };
        }
        match schema["type"].as_str() {
            Some("array") => self.list(schema, depth),
            Some("string") => self.text(schema),
            Some("integer") => self.integer(schema),
            Some("number") => json!(0.5),
            Some("boolean") => json!(self.random.chance(0.5)),
            _ => self.object(schema, depth),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut object = json!({});
        let required: Vec<_> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let chance = if depth >= DEEP { 0.0 } else { 0.4 };
        for (name, child) in schema["properties"].as_object().into_iter().flatten() {
            if depth == 0 && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let is_required = required.contains(&name.as_str());
            if is_required && !self.random.chance(self.faults) || self.random.chance(chance) {
                object[name] = self.value(child, depth + 1);
            }
        }
        if schema["additionalProperties"].is_object() {
            for name in ["a", "b"] {
                if self.random.chance(0.5) {
                    object[name] = self.value(&schema["additionalProperties"], depth + 1);
                }
            }
        }
        if schema["x-kubernetes-preserve-unknown-fields"] == true || self.random.chance(self.faults)
        {
            object["anyThing"] = json!({"goes": [1, null, "x"]});
        }
        object
    }

    fn list(&mut self, schema: &Value, depth: usize) -> Value {
        let most = if depth >= DEEP { 1 } else { 4 };
        let least = schema["minItems"].as_u64().unwrap_or(0);
        let most = schema["maxItems"].as_u64().unwrap_or(most).min(most).max(least);
        let count = least + self.random.below(most - least + 1);
        (0..count).map(|_| self.value(&schema["items"], depth + 1)).collect()
    }

    fn text(&mut self, schema: &Value) -> Value {
        let is_wrong = self.random.chance(self.faults * 2.0);
        match schema["format"].as_str() {
            Some("date-time") if !is_wrong => return json!("2026-01-01T00:00:00Z"),
            Some("uuid") if !is_wrong => return json!("7b5ed3b6-4a1f-4c8e-9d1c-0a1b2c3d4e5f"),
            Some("byte") if !is_wrong => return json!("aGVsbG8="),
            _ => {}
        }
        let pattern = schema["pattern"].as_str().and_then(|pattern| Regex::new(pattern).ok());
        let length = |name: &str, other: u64| schema[name].as_u64().unwrap_or(other);
        let (least, most) = (length("minLength", 0), length("maxLength", 1000));
        let fits = |text: &&&str| {
            let length = text.len() as u64;
            pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
                && (least..=most).contains(&length)
        };
        let fitting: Vec<_> = TEXTS.iter().filter(fits).collect();
        if is_wrong || fitting.is_empty() {
            return json!(self.random.pick(&TEXTS));
        }
        json!(self.random.pick(&fitting))
    }

    fn integer(&mut self, schema: &Value) -> Value {
        let least = schema["minimum"].as_i64().unwrap_or(0);
        let most = schema["maximum"].as_i64().unwrap_or(least + 9);
        if self.random.chance(self.faults * 2.0) {
            return json!(if self.random.chance(0.5) { least - 1 } else { most.saturating_add(1) });
        }
        let span = u64::try_from(most - least).unwrap_or(0);
        json!(least + i64::try_from(self.random.below(span.saturating_add(1).max(1))).unwrap_or(0))
    }
}
