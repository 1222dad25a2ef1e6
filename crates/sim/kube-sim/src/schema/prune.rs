//! Dropping what the schema does not know.

use serde_json::Value;

use super::{Additional, Schema, join};

/// What every embedded object has without its schema saying so.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

impl Schema {
    /// Drops unknown fields of a whole object and returns their paths.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut dropped = Vec::new();
        self.prune_node(object, "", true, &mut dropped);
        dropped
    }

    fn prune_node(
        &self,
        value: &mut Value,
        path: &str,
        is_object_root: bool,
        dropped: &mut Vec<String>,
    ) {
        match value {
            Value::Object(fields) => {
                let is_open = self.preserves_unknown || matches!(self.additional, Additional::Any);
                let is_resource = is_object_root || self.embedded_resource;
                fields.retain(|name, _| {
                    let stays = is_open
                        || self.child(name).is_some()
                        || is_resource && OBJECT_FIELDS.contains(&name.as_str());
                    if !stays {
                        dropped.push(join(path, name));
                    }
                    stays
                });
                for (name, value) in fields.iter_mut() {
                    // The metadata of an object is not the schema's affair.
                    if is_resource && name == "metadata" {
                        continue;
                    }
                    if let Some(schema) = self.child(name) {
                        schema.prune_node(value, &join(path, name), false, dropped);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    for (index, item) in items.iter_mut().enumerate() {
                        schema.prune_node(item, &format!("{path}[{index}]"), false, dropped);
                    }
                }
            }
            _ => {}
        }
    }
}
