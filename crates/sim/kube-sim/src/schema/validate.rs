//! Saying what is wrong with an object, in the words of the real server.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Additional, Kind, Schema, join};
use crate::status::Cause;

impl Schema {
    /// Everything that is wrong with `value`. Rules in CEL are not asked; see [`Schema::check_rules`].
    pub(crate) fn validate(&self, value: &Value) -> Vec<Cause> {
        let mut causes = Vec::new();
        self.check(value, "", &mut causes);
        causes
    }

    fn check(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        if value.is_null() && self.nullable {
            return;
        }
        let fits = self.check_type(value, path, causes);
        self.check_combinations(value, path, causes);
        if !self.allowed.is_empty() && !self.allowed.contains(value) {
            causes.push(unsupported(path, value, &self.allowed));
        }
        // A number that is not whole is still a number.
        let is_broken_number = value.is_number() && self.kind == Some(Kind::Integer);
        if !fits && !is_broken_number {
            return;
        }
        match value {
            Value::Object(fields) => {
                if self.embedded_resource {
                    check_embedded(fields, path, causes);
                }
                let bounds = &self.bounds;
                if let Some(max) = bounds.max_properties.filter(|max| fields.len() > *max) {
                    let message =
                        format!("Too many: {}: must have at most {max} items", fields.len());
                    causes.push(Cause::new("FieldValueTooMany", path, message));
                }
                if let Some(min) = bounds.min_properties.filter(|min| fields.len() < *min) {
                    let why = format!("{path} in body should have at least {min} properties");
                    causes.push(Cause::invalid(path, &Value::from(fields.len()), &why));
                }
                for name in self.required.iter().filter(|name| !fields.contains_key(*name)) {
                    causes.push(Cause::required(&join(path, name), ""));
                }
                for (name, value) in fields {
                    if let Some(schema) = self.properties.get(name) {
                        schema.check(value, &join(path, name), causes);
                    } else if let Additional::Each(schema) = &self.additional {
                        schema.check(value, &join(path, name), causes);
                    }
                }
            }
            Value::Array(items) => self.check_items(items, path, causes),
            Value::String(text) => self.check_text(text, value, path, causes),
            Value::Number(number) => {
                if let Some(number) = number.as_f64() {
                    self.check_number(number, value, path, causes);
                }
            }
            _ => {}
        }
    }

    /// False when nothing else is worth asking.
    fn check_type(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) -> bool {
        if self.int_or_string {
            if value.is_string() || is_integer(value) {
                return true;
            }
        } else {
            let Some(kind) = self.kind else { return true };
            let fits = match kind {
                Kind::Object => value.is_object(),
                Kind::Array => value.is_array(),
                // The real server takes a list for a text with a format.
                Kind::String => value.is_string() || value.is_array() && self.format.is_some(),
                Kind::Integer => is_integer(value),
                Kind::Number => value.is_number(),
                Kind::Boolean => value.is_boolean(),
            };
            if fits {
                return true;
            }
        }
        let wanted =
            if self.int_or_string { "integer,string" } else { self.kind.map_or("", Kind::name) };
        let found = type_name(value);
        let (shown, place) = (Value::from(found), if path.is_empty() { "" } else { path });
        let why = format!("{place} in body must be of type {wanted}: {shown}");
        causes.push(Cause::new(
            "FieldValueTypeInvalid",
            path,
            format!("Invalid value: {shown}: {why}"),
        ));
        false
    }

    fn check_combinations(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        for schema in &self.all_of {
            schema.check(value, path, causes);
        }
        let fits = |schema: &&Schema| {
            let mut found = Vec::new();
            schema.check(value, path, &mut found);
            found.is_empty()
        };
        if !self.any_of.is_empty() && !self.any_of.iter().any(|schema| fits(&schema)) {
            causes.push(combination(path, "must validate at least one schema (anyOf)"));
        }
        if !self.one_of.is_empty() && self.one_of.iter().filter(fits).count() != 1 {
            causes.push(combination(path, "must validate one and only one schema (oneOf)"));
        }
        if self.not.as_deref().is_some_and(|schema| fits(&schema)) {
            causes.push(combination(path, "must not validate the schema (not)"));
        }
    }

    fn check_items(&self, items: &[Value], path: &str, causes: &mut Vec<Cause>) {
        if let Some(max) = self.bounds.max_items.filter(|max| items.len() > *max) {
            let message = format!("Too many: {}: must have at most {max} items", items.len());
            causes.push(Cause::new("FieldValueTooMany", path, message));
        }
        if let Some(min) = self.bounds.min_items.filter(|min| items.len() < *min) {
            let why = format!("{path} in body should have at least {min} items");
            causes.push(Cause::invalid(path, &Value::from(items.len()), &why));
        }
        let is_map = matches!(self.list, super::ListKind::Map(_));
        let is_odd = |item: &Value| is_map && !item.is_object() && !item.is_null();
        let first_odd = items.iter().position(is_odd);
        let key = |item: &Value| match &self.list {
            _ if first_odd.is_some() => None,
            super::ListKind::Atomic if !self.bounds.unique_items => None,
            super::ListKind::Map(_) if item.is_null() => None,
            super::ListKind::Map(names) => {
                Some(names.iter().map(|name| (name.clone(), item[name].clone())).collect::<Value>())
            }
            _ => Some(item.clone()),
        };
        let mut seen = BTreeMap::<String, usize>::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("{path}[{index}]");
            if let Some(key) = key(item) {
                let count = seen.entry(key.to_string()).or_default();
                *count += 1;
                // Said once, however many follow.
                if *count == 2 {
                    let message = format!("Duplicate value: {key}");
                    causes.push(Cause::new("FieldValueDuplicate", &path, message));
                }
            }
            if first_odd == Some(index) {
                let why = "must be an object for an array of list-type map";
                causes.push(Cause::invalid(&path, item, why));
            }
            if let Some(schema) = &self.items {
                schema.check(item, &path, causes);
            }
        }
    }

    fn check_text(&self, text: &str, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        let length = text.chars().count();
        if let Some(max) = self.bounds.max_length.filter(|max| length > *max) {
            let message = format!("Too long: may not be more than {max} bytes");
            causes.push(Cause::new("FieldValueTooLong", path, message));
        }
        if let Some(min) = self.bounds.min_length.filter(|min| length < *min) {
            let why = format!("{path} in body should be at least {min} chars long");
            causes.push(Cause::invalid(path, value, &why));
        }
        if let Some(pattern) = &self.pattern
            && pattern.regex.as_ref().is_some_and(|regex| !regex.is_match(text))
        {
            let why = format!("{path} in body should match '{}'", pattern.text);
            causes.push(Cause::invalid(path, value, &why));
        }
        if let Some(format) = &self.format
            && !has_format(text, format)
        {
            let message =
                format!("Invalid value: {value}: {path} in body must be of type {format}: {value}");
            causes.push(Cause::new("FieldValueTypeInvalid", path, message));
        }
    }

    fn check_number(&self, number: f64, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        let bounds = &self.bounds;
        let is_measured = bounds.minimum.or(bounds.maximum).or(bounds.multiple_of).is_some()
            || self.format.is_some();
        if is_measured && self.kind == Some(Kind::Integer) && !is_integer(value) {
            let format = self.format.as_deref().unwrap_or_default();
            let why =
                format!("Checked value must be of type integer with format {format} in {path}");
            causes.push(Cause::new(
                "FieldValueInvalid",
                "<nil>",
                format!("Invalid value: \"\": {why}"),
            ));
        }
        if let Some(min) = bounds.minimum {
            if bounds.exclusive_minimum && number <= min {
                let why = format!("{path} in body should be greater than {min}");
                causes.push(Cause::invalid(path, value, &why));
            } else if number < min {
                let why = format!("{path} in body should be greater than or equal to {min}");
                causes.push(Cause::invalid(path, value, &why));
            }
        }
        if let Some(max) = bounds.maximum {
            if bounds.exclusive_maximum && number >= max {
                let why = format!("{path} in body should be less than {max}");
                causes.push(Cause::invalid(path, value, &why));
            } else if number > max {
                let why = format!("{path} in body should be less than or equal to {max}");
                causes.push(Cause::invalid(path, value, &why));
            }
        }
        if let Some(step) = bounds.multiple_of
            && (number / step).fract().abs() > 1e-9
        {
            let why = format!("{path} in body should be a multiple of {step}");
            causes.push(Cause::invalid(path, value, &why));
        }
    }
}

/// An object inside an object says what it is.
fn check_embedded(fields: &Map<String, Value>, path: &str, causes: &mut Vec<Cause>) {
    for name in ["apiVersion", "kind"] {
        if fields.get(name).is_none_or(|value| value.as_str().is_none_or(str::is_empty)) {
            causes.push(Cause::required(&join(path, name), ""));
        }
    }
}

/// The real server does not say where, but for the words.
fn combination(path: &str, why: &str) -> Cause {
    Cause::new("FieldValueInvalid", "<nil>", format!("Invalid value: \"\": {path:?} {why}"))
}

fn unsupported(path: &str, value: &Value, allowed: &[Value]) -> Cause {
    let allowed: Vec<_> = allowed.iter().map(ToString::to_string).collect();
    let message = format!("Unsupported value: {value}: supported values: {}", allowed.join(", "));
    Cause::new("FieldValueNotSupported", path, message)
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The formats that the real server checks; all others hold for everything.
fn has_format(text: &str, format: &str) -> bool {
    match format {
        "date-time" => text.parse::<jiff::Timestamp>().is_ok(),
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "cidr" => text.split_once('/').is_some_and(|(address, bits)| {
            address.parse::<std::net::IpAddr>().is_ok_and(|address| {
                bits.parse::<u8>()
                    .is_ok_and(|bits| bits <= if address.is_ipv4() { 32 } else { 128 })
            })
        }),
        "uuid" => {
            text.len() == 36
                && text.bytes().enumerate().all(|(at, byte)| match at {
                    8 | 13 | 18 | 23 => byte == b'-',
                    _ => byte.is_ascii_hexdigit(),
                })
        }
        "byte" => {
            use base64::Engine as _;
            base64::engine::general_purpose::STANDARD.decode(text).is_ok()
        }
        _ => true,
    }
}
