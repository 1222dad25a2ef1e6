//! Filling in what nobody said.

use serde_json::{Map, Value};

use super::{Additional, Schema};

impl Schema {
    /// Sets defaults, top down, so that a default of an object gets the defaults of its fields.
    pub(crate) fn set_defaults(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => self.set_defaults_of_fields(fields),
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    for item in items.iter_mut() {
                        schema.set_defaults(item);
                    }
                }
            }
            _ => {}
        }
    }

    fn set_defaults_of_fields(&self, fields: &mut Map<String, Value>) {
        for (name, schema) in &self.properties {
            // A null that the schema does not allow counts as not said.
            if !schema.nullable && fields.get(name).is_some_and(Value::is_null) {
                fields.remove(name);
            }
            if let Some(default) = &schema.default
                && !fields.contains_key(name)
            {
                fields.insert(name.clone(), default.clone());
            }
            if let Some(value) = fields.get_mut(name) {
                schema.set_defaults(value);
            }
        }
        if let Additional::Each(schema) = &self.additional {
            let is_named = |name: &String| self.properties.contains_key(name);
            // The same null as above: a default takes its place, or nothing does.
            fields.retain(|name, value| {
                if !is_named(name) && value.is_null() && !schema.nullable {
                    *value = schema.default.clone().unwrap_or_default();
                }
                is_named(name) || !value.is_null() || schema.nullable
            });
            for (_, value) in fields.iter_mut().filter(|(name, _)| !is_named(name)) {
                schema.set_defaults(value);
            }
        }
    }
}
