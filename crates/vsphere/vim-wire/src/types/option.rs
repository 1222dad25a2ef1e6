//! Keyed values: options, custom fields, pairs.

use crate::Value;

data! {
    typed OptionValue {
        key: String,
        value: Option<Value>,
    }

    struct KeyAnyValue {
        key: String,
        value: Option<Value>,
    }

    struct CustomFieldDef {
        key: i32,
        name: String,
        kind "type": String,
        managed_object_type "managedObjectType": Option<String>,
    }

    /// `CustomFieldStringValue` is the only subclass there is.
    open CustomFieldValue {
        key: i32,
        value: Option<String>,
    }
}

impl OptionValue {
    pub fn text(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { key: key.into(), value: Some(Value::String(value.into())) }
    }
}
