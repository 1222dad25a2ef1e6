//! How one field of a data object goes to XML and back.
//!
//! Reading is forgiving by design: servers leave required fields out, send empty enums and numbers that do not fit, and a
//! newer one sends fields nobody here knows. One odd field must never cost a whole answer, so what cannot be
//! understood keeps its default.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;

use crate::xml::{Reader, Start, Writer};
use crate::{Array, Value, WireError};

pub trait Field: Default {
    /// The schema's name for the type: `xsd:int`, `ManagedObjectReference`, `TaskInfo`.
    const TYPE: &'static str;

    /// Writes the element or elements called `name`: none for an unset option, many for a list.
    fn write(&self, w: &mut Writer, name: &str);

    /// Reads the element that `start` opened, through its end. A list gains an item, anything else is replaced.
    fn read(&mut self, r: &mut Reader<'_>, start: &Start<'_>) -> Result<(), WireError>;

    /// The same as a property value; `None` when unset.
    fn to_value(&self) -> Option<Value>;
}

macro_rules! number {
    ($($rust:ty, $xsd:literal, $variant:ident;)+) => {$(
        impl Field for $rust {
            const TYPE: &'static str = concat!("xsd:", $xsd);

            fn write(&self, w: &mut Writer, name: &str) {
                w.open(name);
                w.plain(self);
                w.close(name);
            }

            fn read(&mut self, r: &mut Reader<'_>, _: &Start<'_>) -> Result<(), WireError> {
                *self = r.text()?.trim().parse().unwrap_or_default();
                Ok(())
            }

            fn to_value(&self) -> Option<Value> {
                Some(Value::$variant(*self))
            }
        }
    )+};
}

number! {
    i8, "byte", Byte;
    i16, "short", Short;
    i32, "int", Int;
    i64, "long", Long;
    f32, "float", Float;
    f64, "double", Double;
}

impl Field for bool {
    const TYPE: &'static str = "xsd:boolean";

    fn write(&self, w: &mut Writer, name: &str) {
        w.leaf(name, if *self { "true" } else { "false" });
    }

    fn read(&mut self, r: &mut Reader<'_>, _: &Start<'_>) -> Result<(), WireError> {
        *self = matches!(r.text()?.trim(), "true" | "1");
        Ok(())
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Bool(*self))
    }
}

impl Field for String {
    const TYPE: &'static str = "xsd:string";

    fn write(&self, w: &mut Writer, name: &str) {
        w.leaf(name, self);
    }

    fn read(&mut self, r: &mut Reader<'_>, _: &Start<'_>) -> Result<(), WireError> {
        *self = r.text()?.into_owned();
        Ok(())
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::String(self.clone()))
    }
}

impl Field for Timestamp {
    const TYPE: &'static str = "xsd:dateTime";

    fn write(&self, w: &mut Writer, name: &str) {
        w.open(name);
        w.plain(self);
        w.close(name);
    }

    fn read(&mut self, r: &mut Reader<'_>, _: &Start<'_>) -> Result<(), WireError> {
        *self = parse_time(&r.text()?);
        Ok(())
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Time(*self))
    }
}

/// A time without an offset is taken as UTC: some hosts leave it out.
pub(crate) fn parse_time(text: &str) -> Timestamp {
    let text = text.trim();
    text.parse().or_else(|_| format!("{text}Z").parse()).unwrap_or_default()
}

impl Field for Vec<u8> {
    const TYPE: &'static str = "xsd:base64Binary";

    fn write(&self, w: &mut Writer, name: &str) {
        w.leaf(name, &BASE64.encode(self));
    }

    fn read(&mut self, r: &mut Reader<'_>, _: &Start<'_>) -> Result<(), WireError> {
        *self = BASE64.decode(r.text()?.trim()).unwrap_or_default();
        Ok(())
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Binary(self.clone()))
    }
}

/// The answer of a call that answers nothing.
impl Field for () {
    const TYPE: &'static str = "void";

    fn write(&self, _: &mut Writer, _: &str) {}

    fn read(&mut self, r: &mut Reader<'_>, _: &Start<'_>) -> Result<(), WireError> {
        r.skip()
    }

    fn to_value(&self) -> Option<Value> {
        None
    }
}

impl<T: Field> Field for Option<T> {
    const TYPE: &'static str = T::TYPE;

    fn write(&self, w: &mut Writer, name: &str) {
        if let Some(value) = self {
            value.write(w, name);
        }
    }

    fn read(&mut self, r: &mut Reader<'_>, start: &Start<'_>) -> Result<(), WireError> {
        self.insert(T::default()).read(r, start)
    }

    fn to_value(&self) -> Option<Value> {
        self.as_ref().and_then(Field::to_value)
    }
}

impl<T: Field> Field for Box<T> {
    const TYPE: &'static str = T::TYPE;

    fn write(&self, w: &mut Writer, name: &str) {
        (**self).write(w, name);
    }

    fn read(&mut self, r: &mut Reader<'_>, start: &Start<'_>) -> Result<(), WireError> {
        (**self).read(r, start)
    }

    fn to_value(&self) -> Option<Value> {
        (**self).to_value()
    }
}

impl<T: Field + ListItem> Field for Vec<T> {
    const TYPE: &'static str = T::TYPE;

    fn write(&self, w: &mut Writer, name: &str) {
        for item in self {
            item.write(w, name);
        }
    }

    fn read(&mut self, r: &mut Reader<'_>, start: &Start<'_>) -> Result<(), WireError> {
        let mut item = T::default();
        item.read(r, start)?;
        self.push(item);
        Ok(())
    }

    fn to_value(&self) -> Option<Value> {
        let items: Vec<_> = self.iter().filter_map(Field::to_value).collect();
        (!items.is_empty()).then(|| Value::Array(Array::new(T::TYPE, items)))
    }
}

/// What a list can hold. Bytes are not among it: `Vec<u8>` is one base64 value.
pub trait ListItem {}

impl ListItem for i32 {}
impl ListItem for i64 {}
impl ListItem for String {}
impl ListItem for crate::MoRef {}
impl ListItem for Value {}
