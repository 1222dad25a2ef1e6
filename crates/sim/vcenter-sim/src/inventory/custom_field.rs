use std::collections::{BTreeMap, HashMap};

use roost_vim_wire::MoRef;
use roost_vim_wire::types::{CustomFieldDef, CustomFieldValue};

/// Custom attributes: their definitions, and their values by object.
#[derive(Debug, Clone, Default)]
pub(crate) struct CustomFields {
    pub definitions: Vec<CustomFieldDef>,
    values: HashMap<MoRef, BTreeMap<i32, String>>,
}

/// The first key that a vCenter gives out.
const FIRST_KEY: i32 = 101;

impl CustomFields {
    pub(crate) fn define(&mut self, name: &str, kind: Option<&str>) -> CustomFieldDef {
        let key = self.definitions.last().map_or(FIRST_KEY, |last| last.key + 1);
        let definition = CustomFieldDef {
            key,
            name: name.into(),
            kind: "string".into(),
            managed_object_type: kind.filter(|kind| !kind.is_empty()).map(Into::into),
        };
        self.definitions.push(definition.clone());
        definition
    }

    pub(crate) fn named(&self, name: &str) -> Option<&CustomFieldDef> {
        self.definitions.iter().find(|definition| definition.name == name)
    }

    pub(crate) fn get(&self, key: i32) -> Option<&CustomFieldDef> {
        self.definitions.iter().find(|definition| definition.key == key)
    }

    /// The definitions that apply to objects of a kind.
    pub(crate) fn for_kind(&self, obj: &MoRef) -> Vec<CustomFieldDef> {
        let fits = |definition: &&CustomFieldDef| {
            definition.managed_object_type.as_deref().is_none_or(|base| obj.kind.is_a(base))
        };
        self.definitions.iter().filter(fits).cloned().collect()
    }

    pub(crate) fn set(&mut self, obj: &MoRef, key: i32, value: &str) {
        let values = self.values.entry(obj.clone()).or_default();
        if value.is_empty() {
            values.remove(&key);
        } else {
            values.insert(key, value.into());
        }
    }

    pub(crate) fn values(&self, obj: &MoRef) -> Vec<CustomFieldValue> {
        let values = self.values.get(obj).into_iter().flatten();
        let wire = |(key, value): (&i32, &String)| CustomFieldValue {
            key: *key,
            value: Some(value.clone()),
            ..CustomFieldValue::of("CustomFieldStringValue")
        };
        values.map(wire).collect()
    }

    /// Drops a definition. Returns the objects that had a value.
    pub(crate) fn remove(&mut self, key: i32) -> Vec<MoRef> {
        self.definitions.retain(|definition| definition.key != key);
        let had = self
            .values
            .iter_mut()
            .filter_map(|(obj, values)| values.remove(&key).map(|_| obj.clone()));
        let mut had: Vec<MoRef> = had.collect();
        had.sort();
        had
    }

    pub(crate) fn forget(&mut self, obj: &MoRef) {
        self.values.remove(obj);
    }
}
