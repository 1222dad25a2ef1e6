//! Objects in the form that a client asks for: whole, as metadata only, or as rows of a table.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use roost_clock::Clock;
use serde_json::{Value, json};

use crate::convert;
use crate::kind::Kind;
use crate::store::Stored;
use crate::table;

/// The form, and the version that the URL names.
#[derive(Debug, Clone)]
pub(crate) struct Presenter {
    clock: Arc<dyn Clock>,
    form: Form,
    version: String,
    /// Of tables: `None`, `Metadata` or `Object`.
    include: Include,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Metadata,
    Table,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Presenter {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        accept: &str,
        version: &str,
        include_object: &str,
    ) -> Self {
        let include = match include_object {
            "None" => Include::Nothing,
            "Object" => Include::Object,
            _ => Include::Metadata,
        };
        Self { clock, form: form(accept), version: version.to_owned(), include }
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    fn is_plain(&self, kind: &Kind, stored: &Stored) -> bool {
        self.form == Form::Whole && !convert::is_needed(kind, &self.version, &stored.value)
    }

    fn converted(&self, kind: &Kind, stored: &Stored) -> Value {
        convert::from_storage(kind, &self.version, stored)
    }

    /// One object.
    pub(crate) fn object(&self, kind: &Kind, stored: &Stored) -> Bytes {
        if self.is_plain(kind, stored) {
            return stored.json().clone();
        }
        let value = self.converted(kind, stored);
        let shown = match self.form {
            Form::Whole => value,
            Form::Metadata => metadata_only(&value),
            Form::Table => {
                let mut shown =
                    table::table(kind, &self.version, &[&value], self.include, self.clock.now());
                shown["metadata"] = json!({"resourceVersion": stored.revision.to_string()});
                shown
            }
        };
        Bytes::from(shown.to_string())
    }

    /// A list, put together from texts that are made once per object.
    pub(crate) fn list(&self, kind: &Kind, items: &[Arc<Stored>], metadata: &Value) -> Bytes {
        let converted = || items.iter().map(|stored| self.converted(kind, stored));
        match self.form {
            Form::Whole => {
                let (list_kind, api_version) =
                    (json!(kind.list_kind), json!(kind.api_version(&self.version)));
                let mut text = BytesMut::new();
                text.put_slice(
                    format!("{{\"kind\":{list_kind},\"apiVersion\":{api_version},\"metadata\":{metadata},\"items\":[")
                        .as_bytes(),
                );
                for (index, stored) in items.iter().enumerate() {
                    if index > 0 {
                        text.put_u8(b',');
                    }
                    if !self.is_plain(kind, stored) {
                        text.put_slice(self.converted(kind, stored).to_string().as_bytes());
                    } else if kind.is_custom() {
                        text.put_slice(stored.json());
                    } else {
                        text.put_slice(stored.item());
                    }
                }
                text.put_slice(b"]}\n");
                text.freeze()
            }
            Form::Metadata => {
                let items: Vec<_> = converted().map(|value| metadata_only(&value)).collect();
                let list = json!({
                    "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items,
                });
                Bytes::from(list.to_string())
            }
            Form::Table => {
                let values: Vec<_> = converted().collect();
                let mut shown = table::table(
                    kind,
                    &self.version,
                    &values.iter().collect::<Vec<_>>(),
                    self.include,
                    self.clock.now(),
                );
                shown["metadata"] = metadata.clone();
                Bytes::from(shown.to_string())
            }
        }
    }

    /// One event of a watch.
    pub(crate) fn event(&self, kind: &Kind, event: &str, stored: &Stored) -> Bytes {
        let object = self.object(kind, stored);
        let mut text = BytesMut::with_capacity(object.len() + 32);
        text.put_slice(b"{\"type\":\"");
        text.put_slice(event.as_bytes());
        text.put_slice(b"\",\"object\":");
        text.put_slice(&object);
        text.put_slice(b"}\n");
        text.freeze()
    }
}

/// The first form in `Accept` that we can make.
fn form(accept: &str) -> Form {
    for choice in accept.split(',') {
        let mut parts = choice.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        if !matches!(media, "application/json" | "*/*" | "application/*") {
            continue;
        }
        let wish = parts.find_map(|part| part.strip_prefix("as="));
        match wish {
            None => return Form::Whole,
            Some("Table") => return Form::Table,
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") => return Form::Metadata,
            Some(_) => {}
        }
    }
    Form::Whole
}

fn metadata_only(value: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": value["metadata"]})
}
