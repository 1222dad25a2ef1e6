//! `anyType`: what a property, a task result or an option can hold.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use jiff::Timestamp;

use crate::field::parse_time;
use crate::types;
use crate::xml::{Event, Reader, Start, Writer};
use crate::{Element, Field, MoRef, WireError};

/// A data object of any class.
pub trait DataObject: Debug + Send + Sync + 'static {
    /// The schema's name of the concrete class.
    fn class(&self) -> &str;

    /// Writes the fields without an element around them.
    fn write_fields(&self, w: &mut Writer);

    /// One field by its wire name; `None` when unset or unknown.
    fn get(&self, name: &str) -> Option<Value>;

    fn as_any(&self) -> &dyn Any;
}

#[derive(Debug, Clone)]
pub enum Value {
    Bool(bool),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    String(String),
    Time(Timestamp),
    Binary(Vec<u8>),
    Ref(MoRef),
    /// An enumeration: its type and the value.
    Enum(Arc<str>, Arc<str>),
    Array(Array),
    /// A data object that Roost has a type for.
    Data(Arc<dyn DataObject>),
    /// A data object of any other class, kept as it came.
    Other(Box<Element>),
}

/// An `ArrayOfX`.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The item type with its `xsd:` prefix where it has one: `xsd:string`, `GuestNicInfo`.
    pub item: Arc<str>,
    pub items: Vec<Value>,
}

impl Array {
    pub fn new(item: &str, items: Vec<Value>) -> Self {
        Self { item: item.into(), items }
    }

    /// `ArrayOfString` holds elements called `string`.
    fn item_name(&self) -> &str {
        self.item.strip_prefix("xsd:").unwrap_or(&self.item)
    }
}

impl Value {
    pub fn data(object: impl DataObject) -> Self {
        Self::Data(Arc::new(object))
    }

    pub fn string(text: impl Into<String>) -> Self {
        Self::String(text.into())
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Any whole number.
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Self::Byte(value) => Some(value.into()),
            Self::Short(value) => Some(value.into()),
            Self::Int(value) => Some(value.into()),
            Self::Long(value) => Some(value),
            _ => None,
        }
    }

    /// A string or the value of an enumeration.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            Self::Enum(_, value) => Some(value),
            _ => None,
        }
    }

    pub fn as_time(&self) -> Option<Timestamp> {
        match self {
            Self::Time(time) => Some(*time),
            _ => None,
        }
    }

    pub fn as_ref(&self) -> Option<&MoRef> {
        match self {
            Self::Ref(moref) => Some(moref),
            _ => None,
        }
    }

    /// The items of an array; none for anything else.
    pub fn items(&self) -> &[Value] {
        match self {
            Self::Array(array) => &array.items,
            _ => &[],
        }
    }

    /// The references in an array, or the one reference this is.
    pub fn refs(&self) -> impl Iterator<Item = &MoRef> {
        std::slice::from_ref(self).iter().chain(self.items()).filter_map(Value::as_ref)
    }

    /// The data object of this type, if that is what it is.
    pub fn as_data<T: DataObject>(&self) -> Option<&T> {
        match self {
            Self::Data(object) => object.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// The data objects of this type in an array.
    pub fn data_items<T: DataObject>(&self) -> impl Iterator<Item = &T> {
        self.items().iter().filter_map(Value::as_data)
    }

    /// One field of a data object.
    pub fn get(&self, name: &str) -> Option<Value> {
        match self {
            Self::Data(object) => object.get(name),
            Self::Other(element) => element.child(name).map(Value::of_element),
            _ => None,
        }
    }

    fn of_element(element: &Element) -> Self {
        match element.moref() {
            Some(moref) => Self::Ref(moref),
            None if element.children.is_empty() => Self::String(element.text.clone()),
            None => Self::Other(Box::new(element.clone())),
        }
    }

    /// The schema type as it stands in `xsi:type`.
    pub fn type_name(&self) -> String {
        match self {
            Self::Bool(_) => bool::TYPE.into(),
            Self::Byte(_) => i8::TYPE.into(),
            Self::Short(_) => i16::TYPE.into(),
            Self::Int(_) => i32::TYPE.into(),
            Self::Long(_) => i64::TYPE.into(),
            Self::Float(_) => f32::TYPE.into(),
            Self::Double(_) => f64::TYPE.into(),
            Self::String(_) => String::TYPE.into(),
            Self::Time(_) => Timestamp::TYPE.into(),
            Self::Binary(_) => <Vec<u8> as Field>::TYPE.into(),
            Self::Ref(_) => MoRef::TYPE.into(),
            Self::Enum(name, _) => name.to_string(),
            Self::Array(array) => array_type(array.item_name()),
            Self::Data(object) => object.class().into(),
            Self::Other(element) => element.xsi_type.clone().unwrap_or_default(),
        }
    }

    fn read_as(r: &mut Reader<'_>, start: &Start<'_>, xsi_type: &str) -> Result<Self, WireError> {
        fn field<T: Field>(r: &mut Reader<'_>, start: &Start<'_>) -> Result<T, WireError> {
            let mut field = T::default();
            field.read(r, start)?;
            Ok(field)
        }
        Ok(match xsi_type {
            "string" | "anyURI" => Self::String(field(r, start)?),
            "boolean" => Self::Bool(field(r, start)?),
            "int" | "unsignedShort" => Self::Int(field(r, start)?),
            "long" | "unsignedInt" | "unsignedLong" => Self::Long(field(r, start)?),
            "short" | "unsignedByte" => Self::Short(field(r, start)?),
            "byte" => Self::Byte(field(r, start)?),
            "float" => Self::Float(field(r, start)?),
            "double" => Self::Double(field(r, start)?),
            "dateTime" => Self::Time(parse_time(&r.text()?)),
            "base64Binary" => Self::Binary(field(r, start)?),
            "ManagedObjectReference" => Self::Ref(field(r, start)?),
            _ if xsi_type.starts_with("ArrayOf") => {
                Self::Array(Self::read_array(r, &xsi_type["ArrayOf".len()..])?)
            }
            _ => match types::read_known(xsi_type, r, start)? {
                Some(object) => Self::Data(object),
                None => Self::read_unknown(r, start)?,
            },
        })
    }

    fn read_array(r: &mut Reader<'_>, item: &str) -> Result<Array, WireError> {
        let item = item_type(item);
        let declared = item.strip_prefix("xsd:").unwrap_or(&item);
        let mut items = Vec::new();
        while let Some(child) = r.child()? {
            items.push(Self::read_as(r, &child, child.xsi_type.unwrap_or(declared))?);
        }
        Ok(Array { item: item.as_str().into(), items })
    }

    /// Text without children is an enumeration; anything else stays an element.
    fn read_unknown(r: &mut Reader<'_>, start: &Start<'_>) -> Result<Self, WireError> {
        let mut ahead = r.clone();
        if let Event::Text(text) = ahead.next()?
            && matches!(ahead.next()?, Event::End)
            && let Some(name) = start.xsi_type
        {
            *r = ahead;
            return Ok(Self::Enum(name.into(), text.as_ref().into()));
        }
        let mut element = Element::read_from(r, start)?;
        // Inside an array the class may only be known from the element's own name.
        element.xsi_type.get_or_insert_with(|| start.name.into());
        Ok(Self::Other(Box::new(element)))
    }
}

/// `String` of `ArrayOfString` is `xsd:string`; other item types are classes.
fn item_type(array_of: &str) -> String {
    match array_of {
        "String" | "Boolean" | "Int" | "Long" | "Short" | "Byte" | "Float" | "Double" => {
            format!("xsd:{}", array_of.to_ascii_lowercase())
        }
        "DateTime" => "xsd:dateTime".into(),
        "Base64Binary" => "xsd:base64Binary".into(),
        "AnyURI" => "xsd:anyURI".into(),
        "AnyType" => "anyType".into(),
        _ => array_of.into(),
    }
}

fn array_type(item_name: &str) -> String {
    let (first, rest) = item_name.split_at_checked(1).unwrap_or_default();
    format!("ArrayOf{}{rest}", first.to_ascii_uppercase())
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Byte(a), Self::Byte(b)) => a == b,
            (Self::Short(a), Self::Short(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Long(a), Self::Long(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Double(a), Self::Double(b)) => a.to_bits() == b.to_bits(),
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Time(a), Self::Time(b)) => a == b,
            (Self::Binary(a), Self::Binary(b)) => a == b,
            (Self::Ref(a), Self::Ref(b)) => a == b,
            (Self::Enum(a, x), Self::Enum(b, y)) => a == b && x == y,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Other(a), Self::Other(b)) => a == b,
            (Self::Data(a), Self::Data(b)) => {
                Arc::ptr_eq(a, b) || a.class() == b.class() && written(&**a) == written(&**b)
            }
            _ => false,
        }
    }
}

fn written(object: &dyn DataObject) -> Vec<u8> {
    let mut writer = Writer::default();
    object.write_fields(&mut writer);
    writer.into_bytes()
}

impl Default for Value {
    fn default() -> Self {
        Self::String(String::new())
    }
}

impl Field for Value {
    const TYPE: &'static str = "anyType";

    fn write(&self, w: &mut Writer, name: &str) {
        match self {
            Self::Ref(moref) => {
                w.open_with(name, Some(MoRef::TYPE), Some(moref.kind.as_str()));
                w.text(&moref.id);
            }
            Self::Array(array) => {
                w.open_typed(name, &array_type(array.item_name()));
                for item in &array.items {
                    match item {
                        // The element's name says the type already; objects repeat it because they may be a subclass.
                        Self::Ref(moref) => moref.write(w, array.item_name()),
                        Self::String(text) => w.leaf(array.item_name(), text),
                        _ => item.write(w, array.item_name()),
                    }
                }
            }
            Self::Other(element) => return element.write_as(w, name),
            _ => {
                w.open_typed(name, &self.type_name());
                match self {
                    Self::Bool(value) => w.plain(value),
                    Self::Byte(value) => w.plain(value),
                    Self::Short(value) => w.plain(value),
                    Self::Int(value) => w.plain(value),
                    Self::Long(value) => w.plain(value),
                    Self::Float(value) => w.plain(value),
                    Self::Double(value) => w.plain(value),
                    Self::Time(value) => w.plain(value),
                    Self::String(text) => w.text(text),
                    Self::Enum(_, value) => w.text(value),
                    Self::Data(object) => object.write_fields(w),
                    Self::Binary(bytes) => {
                        use base64::Engine as _;
                        w.text(&base64::engine::general_purpose::STANDARD.encode(bytes));
                    }
                    Self::Ref(_) | Self::Array(_) | Self::Other(_) => {}
                }
            }
        }
        w.close(name);
    }

    fn read(&mut self, r: &mut Reader<'_>, start: &Start<'_>) -> Result<(), WireError> {
        *self = match start.xsi_type {
            Some(xsi_type) => Self::read_as(r, start, xsi_type)?,
            None if start.ref_type.is_some() => Self::read_as(r, start, MoRef::TYPE)?,
            None => Self::of_element(&Element::read_from(r, start)?),
        };
        Ok(())
    }

    fn to_value(&self) -> Option<Value> {
        Some(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::GuestNicInfo;

    fn parse(xml: &str) -> Value {
        let mut reader = Reader::new(xml.as_bytes());
        let start = reader.child().unwrap().unwrap();
        let mut value = Value::default();
        value.read(&mut reader, &start).unwrap();
        value
    }

    fn write(value: &Value) -> String {
        let mut writer = Writer::default();
        value.write(&mut writer, "val");
        String::from_utf8(writer.into_bytes()).unwrap()
    }

    #[test]
    fn every_shape_of_any_type_reads_and_writes() {
        for xml in [
            r#"<val xsi:type="xsd:string">a</val>"#,
            r#"<val xsi:type="xsd:boolean">true</val>"#,
            r#"<val xsi:type="xsd:int">-7</val>"#,
            r#"<val xsi:type="xsd:long">1007681536</val>"#,
            r#"<val xsi:type="xsd:dateTime">2026-11-15T19:37:12.883724071Z</val>"#,
            r#"<val xsi:type="xsd:base64Binary">AAEC</val>"#,
            r#"<val xsi:type="VirtualMachinePowerState">poweredOn</val>"#,
            r#"<val type="Folder" xsi:type="ManagedObjectReference">group-2</val>"#,
            r#"<val xsi:type="ArrayOfString"><string>a</string><string>b</string></val>"#,
            r#"<val xsi:type="ArrayOfManagedObjectReference"><ManagedObjectReference type="Task">task-1</ManagedObjectReference></val>"#,
            r#"<val xsi:type="SomethingNew"><x>1</x><y xsi:type="xsd:int">2</y></val>"#,
            r#"<val xsi:type="ArrayOfSomethingNew"><SomethingNew xsi:type="SomethingNewer"><x>1</x></SomethingNew></val>"#,
        ] {
            assert_eq!(write(&parse(xml)), xml);
        }
    }

    #[test]
    fn guest_nics_come_out_typed_from_an_array() {
        let value = parse(
            r#"<val xsi:type="ArrayOfGuestNicInfo"><GuestNicInfo><network>n</network><ipAddress>10.0.0.1</ipAddress><ipAddress>fe80::1</ipAddress>
            <macAddress>00:50:56:00:00:01</macAddress><connected>true</connected><deviceConfigId>4000</deviceConfigId><future>1</future></GuestNicInfo></val>"#,
        );
        let nics: Vec<&GuestNicInfo> = value.data_items().collect();
        assert_eq!(nics[0].ip_address, ["10.0.0.1", "fe80::1"]);
        assert_eq!(nics[0].device_config_id, 4000);
    }

    #[test]
    fn an_empty_element_of_an_unknown_type_is_kept() {
        let value = parse(r#"<val xsi:type="FaultToleranceState"></val>"#);
        assert_eq!(value.type_name(), "FaultToleranceState");
    }
}
