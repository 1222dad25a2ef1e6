use jiff::Timestamp;
use roost_vim_wire::types::{
    DynamicProperty, MissingProperty, ObjectContent, PropertyChange, PropertyChangeOp,
};
use roost_vim_wire::{DataObject, LocalizedMethodFault, MoRef, Value};

/// Properties of one object by path, as far as they are set. A path is spelled as it was asked for:
/// `runtime.powerState`, `config.extraConfig["guestinfo.x"]`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Properties {
    // A list: objects have some ten paths, and a scan over ten beats hashing.
    set: Vec<DynamicProperty>,
    unreadable: Vec<MissingProperty>,
}

impl Properties {
    pub(crate) fn new(set: Vec<DynamicProperty>, unreadable: Vec<MissingProperty>) -> Self {
        Self { set, unreadable }
    }

    /// What an object that enters the stream has.
    pub(crate) fn of_changes(
        changes: Vec<PropertyChange>,
        unreadable: Vec<MissingProperty>,
    ) -> Self {
        let mut properties = Self::new(Vec::with_capacity(changes.len()), unreadable);
        for change in changes {
            properties.apply(change);
        }
        properties
    }

    /// `None` when the property is unset, was not asked for, or cannot be read.
    pub fn get(&self, path: &str) -> Option<&Value> {
        self.set.iter().find(|property| property.name == path).map(|property| &property.val)
    }

    /// A string, or the value of an enumeration.
    pub fn str(&self, path: &str) -> Option<&str> {
        self.get(path)?.as_str()
    }

    pub fn bool(&self, path: &str) -> Option<bool> {
        self.get(path)?.as_bool()
    }

    pub fn i64(&self, path: &str) -> Option<i64> {
        self.get(path)?.as_i64()
    }

    pub fn time(&self, path: &str) -> Option<Timestamp> {
        self.get(path)?.as_time()
    }

    pub fn moref(&self, path: &str) -> Option<&MoRef> {
        self.get(path)?.as_ref()
    }

    pub fn refs(&self, path: &str) -> Vec<MoRef> {
        self.get(path).map(|value| value.refs().cloned().collect()).unwrap_or_default()
    }

    pub fn data<T: DataObject>(&self, path: &str) -> Option<&T> {
        self.get(path)?.as_data()
    }

    /// Why a path could not be read: no permission, no such property.
    pub fn unreadable(&self, path: &str) -> Option<&LocalizedMethodFault> {
        self.unreadable.iter().find(|missing| missing.path == path).map(|missing| &missing.fault)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.set.iter().map(|property| (property.name.as_str(), &property.val))
    }

    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Takes over a change as the stream delivers it.
    pub fn apply(&mut self, change: PropertyChange) {
        let PropertyChange { name, op, val } = change;
        let at = self.set.iter().position(|property| property.name == name);
        match (op, val, at) {
            (PropertyChangeOp::Remove | PropertyChangeOp::IndirectRemove, _, at)
            | (_, None, at) => {
                if let Some(at) = at {
                    self.set.remove(at);
                }
            }
            (_, Some(val), Some(at)) => self.set[at].val = val,
            (_, Some(val), None) => self.set.push(DynamicProperty { name, val }),
        }
    }
}

impl From<ObjectContent> for Properties {
    fn from(content: ObjectContent) -> Self {
        Self::new(content.prop_set, content.missing_set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, op: PropertyChangeOp, val: Option<Value>) -> PropertyChange {
        PropertyChange { name: name.into(), op, val }
    }

    #[test]
    fn a_change_replaces_adds_or_unsets() {
        use PropertyChangeOp::{Add, Assign, IndirectRemove, Remove};
        let mut properties = Properties::default();
        properties.apply(change("name", Assign, Some(Value::string("a"))));
        properties.apply(change("name", Assign, Some(Value::string("b"))));
        properties.apply(change("config.hardware.device[4000]", Add, Some(Value::Int(1))));
        assert_eq!(properties.str("name"), Some("b"));
        assert_eq!(properties.i64("config.hardware.device[4000]"), Some(1));
        properties.apply(change("name", Assign, None));
        properties.apply(change("config.hardware.device[4000]", Remove, None));
        properties.apply(change("guest.net", IndirectRemove, None));
        assert!(properties.is_empty());
    }
}
