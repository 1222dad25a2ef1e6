use serde_json::{Map, Value, json};

use crate::key::{Json, Key, Shape};
use crate::problem::Problems;
use crate::reader::Reader;
use crate::section::Section;
use crate::tree::Table;

impl Section {
    /// The configuration that others may see: every key that is not hidden, with its default where the file does not give it.
    pub fn json(&self, section: &Table) -> Map<String, Value> {
        // Whatever is wrong was said by those who read it.
        let ignored = Problems::default();
        let mut top = Map::new();
        self.fill(&mut top, &self.reader(section, &ignored), "");
        top
    }

    /// Puts the keys with this prefix that are not keys of a list further down.
    fn fill(&self, object: &mut Map<String, Value>, reader: &Reader<'_>, prefix: &str) {
        for key in self.keys {
            let Some(rest) = key.path.strip_prefix(prefix) else { continue };
            if !rest.contains("[]")
                && key.json != Json::Hidden
                && let Some(value) = self.value(key, reader)
            {
                insert(object, key, rest, value);
            }
        }
    }

    fn value(&self, key: &Key, reader: &Reader<'_>) -> Option<Value> {
        let value = match key.shape {
            Shape::Text(_) => json!(reader.text(key)),
            Shape::Integer(_) => json!(reader.integer(key)),
            Shape::Boolean(_) => json!(reader.boolean(key)),
            Shape::Texts(_) => json!(reader.texts(key)),
            Shape::Secret => return None,
            Shape::Tables | Shape::NamedTables => Value::Array(self.entries(key, reader)),
        };
        let empty = value == json!("") || value == json!(0) || value == json!([]);
        (!empty || key.json != Json::UnlessEmpty).then_some(value)
    }

    fn entries(&self, key: &Key, reader: &Reader<'_>) -> Vec<Value> {
        let prefix = self
            .keys
            .iter()
            .find_map(|inner| {
                inner.path.strip_prefix(key.path)?.starts_with("[].").then_some(inner.path)
            })
            .map_or("", |path| &path[..key.path.len() + "[].".len()]);
        reader
            .tables(key, prefix)
            .iter()
            .map(|listed| {
                let mut object = Map::new();
                self.fill(&mut object, &listed.reader, prefix);
                if let Some(name) = listed.name {
                    object.insert("name".to_owned(), json!(name));
                }
                Value::Object(object)
            })
            .collect()
    }
}

fn insert(object: &mut Map<String, Value>, key: &Key, path: &str, value: Value) {
    let Some((table, rest)) = path.split_once('.') else {
        let name = if let Json::As(name) = key.json { name } else { path };
        object.insert(name.to_owned(), value);
        return;
    };
    let inner = object.entry(table).or_insert_with(|| json!({}));
    if let Value::Object(inner) = inner {
        insert(inner, key, rest, value);
    }
}
