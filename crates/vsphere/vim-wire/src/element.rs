use crate::xml::{Event, Reader, Start, Writer};
use crate::{Field, MoRef, MoType, Value, WireError};

/// Any XML element, kept as it came: for what is rare, unknown, or must be sent back unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    pub name: String,
    pub xsi_type: Option<String>,
    pub ref_type: Option<String>,
    pub text: String,
    pub children: Vec<Element>,
}

impl Element {
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    pub fn leaf(name: &str, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), ..Self::default() }
    }

    #[must_use]
    pub fn typed(mut self, xsi_type: &str) -> Self {
        self.xsi_type = Some(xsi_type.into());
        self
    }

    #[must_use]
    pub fn with(mut self, child: Element) -> Self {
        self.children.push(child);
        self
    }

    /// Adds what a field writes: nothing for an unset option, several for a list.
    #[must_use]
    pub fn with_field(mut self, name: &str, field: &impl Field) -> Self {
        self.children.extend(Self::of_field(name, field));
        self
    }

    /// The elements that a field writes.
    pub fn of_field(name: &str, field: &impl Field) -> Vec<Element> {
        let mut writer = Writer::default();
        writer.open("list");
        field.write(&mut writer, name);
        writer.close("list");
        Self::parse(&writer.into_bytes()).map(|list| list.children).unwrap_or_default()
    }

    /// The document element of `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        match reader.next()? {
            Event::Start(start) => Self::read_from(&mut reader, &start),
            _ => Err(WireError::Incomplete),
        }
    }

    pub(crate) fn read_from(r: &mut Reader<'_>, start: &Start<'_>) -> Result<Self, WireError> {
        let mut element = Self {
            name: start.name.into(),
            xsi_type: start.xsi_type.map(Into::into),
            ref_type: start.ref_type.map(Into::into),
            ..Self::default()
        };
        loop {
            match r.next()? {
                Event::Start(child) => element.children.push(Self::read_from(r, &child)?),
                Event::Text(text) => element.text.push_str(&text),
                Event::End => break,
                Event::Eof => return Err(WireError::Incomplete),
            }
        }
        if !element.children.is_empty() {
            element.text.clear(); // indentation between children
        }
        Ok(element)
    }

    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    pub fn child_mut(&mut self, name: &str) -> Option<&mut Element> {
        self.children.iter_mut().find(|child| child.name == name)
    }

    pub fn children_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.as_str())
    }

    pub fn number_of(&self, name: &str) -> Option<i64> {
        self.text_of(name)?.trim().parse().ok()
    }

    /// This element as a reference to a managed object, if it is one.
    pub fn moref(&self) -> Option<MoRef> {
        let kind = MoType::from(self.ref_type.as_deref()?);
        Some(MoRef::new(kind, self.text.trim()))
    }

    /// Reads a typed field out of the children called `name`.
    pub fn get<T: Field>(&self, name: &str) -> T {
        let mut field = T::default();
        for child in self.children_named(name) {
            let mut writer = Writer::default();
            child.write_as(&mut writer, name);
            let bytes = writer.into_bytes();
            let mut reader = Reader::new(&bytes);
            if let Ok(Event::Start(start)) = reader.next() {
                // Written by ourselves a line above: it reads back.
                let _ = field.read(&mut reader, &start);
            }
        }
        field
    }

    pub(crate) fn write_as(&self, w: &mut Writer, name: &str) {
        w.open_with(
            name,
            self.xsi_type.as_deref().map(qualified).as_deref(),
            self.ref_type.as_deref(),
        );
        w.text(&self.text);
        for child in &self.children {
            child.write_as(w, &child.name);
        }
        w.close(name);
    }
}

/// The reader drops the prefix of a schema type; the built-in ones need it back.
fn qualified(xsi_type: &str) -> String {
    match xsi_type {
        "string" | "boolean" | "int" | "long" | "short" | "byte" | "float" | "double"
        | "dateTime" | "base64Binary" | "anyURI" | "unsignedInt" | "unsignedLong"
        | "unsignedShort" | "unsignedByte" => format!("xsd:{xsi_type}"),
        _ => xsi_type.to_owned(),
    }
}

impl Field for Element {
    const TYPE: &'static str = "anyType";

    fn write(&self, w: &mut Writer, name: &str) {
        self.write_as(w, name);
    }

    fn read(&mut self, r: &mut Reader<'_>, start: &Start<'_>) -> Result<(), WireError> {
        *self = Self::read_from(r, start)?;
        Ok(())
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Other(Box::new(self.clone())))
    }
}

impl crate::field::ListItem for Element {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_element_goes_back_as_it_came() {
        let xml = r#"<d xsi:type="VirtualNew"><key>5</key><x type="Folder">g</x><v xsi:type="xsd:int">1 &lt; 2</v><empty></empty></d>"#;
        let element = Element::parse(xml.as_bytes()).unwrap();
        let mut writer = Writer::default();
        element.write(&mut writer, "d");
        assert_eq!(String::from_utf8(writer.into_bytes()).unwrap(), xml);
    }

    #[test]
    fn typed_fields_can_be_read_out_of_it() {
        let element =
            Element::parse(b"<e><n>7</n><s>a</s><s>b</s><r type=\"Task\">task-1</r></e>").unwrap();
        assert_eq!(element.get::<i32>("n"), 7);
        assert_eq!(element.get::<Vec<String>>("s"), ["a", "b"]);
        assert_eq!(element.get::<Option<MoRef>>("r"), Some(MoRef::new(MoType::Task, "task-1")));
        assert_eq!(element.get::<Option<i64>>("missing"), None);
    }
}
