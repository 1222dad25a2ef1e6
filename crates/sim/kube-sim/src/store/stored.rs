use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::object;

/// One state of one object. Its text is made once, however many lists and watches show it.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) value: Value,
    pub(crate) revision: u64,
    json: OnceLock<Bytes>,
    /// Without `apiVersion` and `kind`, as items of built-in lists are.
    item: OnceLock<Bytes>,
}

impl Stored {
    pub(crate) fn new(mut value: Value, revision: u64) -> Arc<Self> {
        object::metadata_mut(&mut value)
            .insert("resourceVersion".into(), json!(revision.to_string()));
        Arc::new(Self { value, revision, json: OnceLock::new(), item: OnceLock::new() })
    }

    pub(crate) fn json(&self) -> &Bytes {
        self.json.get_or_init(|| Bytes::from(self.value.to_string()))
    }

    pub(crate) fn item(&self) -> &Bytes {
        self.item.get_or_init(|| {
            let mut value = self.value.clone();
            if let Some(fields) = value.as_object_mut() {
                fields.remove("apiVersion");
                fields.remove("kind");
            }
            Bytes::from(value.to_string())
        })
    }

    pub(crate) fn uid(&self) -> &str {
        object::uid(&self.value)
    }
}
