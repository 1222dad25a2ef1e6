use std::any::Any;

use roost_vim_wire::xml::Writer;
use roost_vim_wire::{Array, DataObject, Element, Field, Value};

/// A data object of a class that needs no type of its own: what clients read of hosts, switches and the like.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    class: &'static str,
    fields: Vec<(&'static str, Value)>,
}

impl Record {
    pub(crate) fn of(class: &'static str) -> Self {
        Self { class, fields: Vec::new() }
    }

    /// Fields are set in schema order; an unset option or an empty list leaves its field out.
    pub(crate) fn set(mut self, name: &'static str, field: &impl Field) -> Self {
        self.fields.extend(field.to_value().map(|value| (name, value)));
        self
    }

    pub(crate) fn text(self, name: &'static str, text: &str) -> Self {
        self.put(name, Value::string(text))
    }

    pub(crate) fn put(mut self, name: &'static str, value: Value) -> Self {
        self.fields.push((name, value));
        self
    }

    pub(crate) fn record(self, name: &'static str, record: Record) -> Self {
        self.put(name, record.value())
    }

    pub(crate) fn records(self, name: &'static str, class: &str, records: Vec<Record>) -> Self {
        let items = records.into_iter().map(Record::value).collect();
        self.put(name, Value::Array(Array::new(class, items)))
    }

    pub(crate) fn value(self) -> Value {
        Value::data(self)
    }

    /// The same as an element, for answers that are one.
    pub(crate) fn element(&self, name: &str) -> Option<Element> {
        let mut writer = Writer::default();
        writer.open_typed(name, self.class);
        self.write_fields(&mut writer);
        writer.close(name);
        Element::parse(&writer.into_bytes()).ok()
    }
}

impl DataObject for Record {
    fn class(&self) -> &str {
        self.class
    }

    fn write_fields(&self, w: &mut Writer) {
        for (name, value) in &self.fields {
            write_field(w, name, value);
        }
    }

    fn get(&self, name: &str) -> Option<Value> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Inside an object the schema declares the type, so only objects, which may be of a subclass, say theirs.
fn write_field(w: &mut Writer, name: &str, value: &Value) {
    match value {
        Value::Array(array) => array.items.iter().for_each(|item| write_field(w, name, item)),
        Value::Bool(value) => value.write(w, name),
        Value::Byte(value) => value.write(w, name),
        Value::Short(value) => value.write(w, name),
        Value::Int(value) => value.write(w, name),
        Value::Long(value) => value.write(w, name),
        Value::Float(value) => value.write(w, name),
        Value::Double(value) => value.write(w, name),
        Value::String(value) => value.write(w, name),
        Value::Time(value) => value.write(w, name),
        Value::Binary(value) => value.write(w, name),
        Value::Ref(value) => value.write(w, name),
        Value::Enum(_, value) => w.leaf(name, value),
        Value::Data(_) | Value::Other(_) => value.write(w, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_and_writes_like_a_typed_object() {
        let record = Record::of("DVPortgroupConfigInfo")
            .text("key", "dvportgroup-1")
            .set("uplink", &true)
            .set("description", &None::<String>)
            .set("portKeys", &vec!["1".to_owned(), "2".to_owned()])
            .record(
                "policy",
                Record::of("VMwareDVSPortgroupPolicy").set("vlanOverrideAllowed", &false),
            );
        assert_eq!(record.get("uplink"), Some(Value::Bool(true)));
        assert_eq!(record.get("description"), None);
        let mut writer = Writer::default();
        record.write_fields(&mut writer);
        let xml = String::from_utf8(writer.into_bytes()).unwrap();
        assert_eq!(
            xml,
            "<key>dvportgroup-1</key><uplink>true</uplink><portKeys>1</portKeys><portKeys>2</portKeys>\
             <policy xsi:type=\"VMwareDVSPortgroupPolicy\"><vlanOverrideAllowed>false</vlanOverrideAllowed></policy>"
        );
    }
}
