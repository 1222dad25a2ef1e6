//! JSON as the Go side writes and reads it: null means absent, and `<`, `>`, `&` leave escaped.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::ser::{CharEscape, Formatter, Serializer};

/// Why a document is not what was expected. Names places, never content: a document may hold secrets.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DecodeError {
    #[error("not JSON from line {line} column {column}")]
    Syntax { line: usize, column: usize },
    #[error("no value of the expected type at `{path}`")]
    Shape { path: String },
}

/// Reads a document; unknown fields are ignored, a null is as good as no field, and an empty document is null.
pub fn decode<T: DeserializeOwned>(document: &[u8]) -> Result<T, DecodeError> {
    let value = if document.trim_ascii().is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(document)
            .map_err(|error| DecodeError::Syntax { line: error.line(), column: error.column() })?
    };
    decode_value(value)
}

/// As [`decode`], from a value.
pub fn decode_value<T: DeserializeOwned>(mut value: Value) -> Result<T, DecodeError> {
    drop_nulls(&mut value);
    match value {
        // Go writes null for an empty list, an absent object and nothing at all.
        Value::Null => ["[]", "{}", "null"]
            .iter()
            .find_map(|nothing| serde_json::from_str(nothing).ok())
            .ok_or_else(|| DecodeError::Shape { path: ".".to_owned() }),
        value => serde_path_to_error::deserialize(value)
            .map_err(|error| DecodeError::Shape { path: error.path().to_string() }),
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(drop_nulls);
        }
        _ => {}
    }
}

/// Writes a document byte for byte as Go's `json.Marshal` does.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, GoFormatter));
    // Our types have text keys and write into memory: neither of the two ways to fail exists.
    debug_assert!(written.is_ok(), "a wire type does not serialise: {written:?}");
    bytes
}

struct GoFormatter;

/// What U+2028 and U+2029 begin with, as UTF-8.
const LINE_SEPARATORS: u8 = 0xe2;

impl Formatter for GoFormatter {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        // Nearly all text has none of them, and bytes are quicker asked than characters.
        if !fragment.bytes().any(|byte| matches!(byte, b'<' | b'>' | b'&' | LINE_SEPARATORS)) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let (before, from) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            let mut characters = from.chars();
            if let Some(character) = characters.next() {
                write!(writer, "\\u{:04x}", u32::from(character))?;
            }
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        match escape {
            CharEscape::Quote => writer.write_all(b"\\\""),
            CharEscape::ReverseSolidus => writer.write_all(b"\\\\"),
            CharEscape::Solidus => writer.write_all(b"/"),
            CharEscape::Backspace => writer.write_all(b"\\b"),
            CharEscape::FormFeed => writer.write_all(b"\\f"),
            CharEscape::LineFeed => writer.write_all(b"\\n"),
            CharEscape::CarriageReturn => writer.write_all(b"\\r"),
            CharEscape::Tab => writer.write_all(b"\\t"),
            CharEscape::AsciiControl(byte) => write!(writer, "\\u{byte:04x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Thing {
        name: String,
        tags: Vec<String>,
        inner: Option<Box<Thing>>,
    }

    #[test]
    fn null_is_as_good_as_absent_and_unknown_fields_are_ignored() {
        let document = br#"{"name":null,"tags":["a",null],"inner":{"tags":null,"x":1},"y":[null]}"#;
        let thing: Thing = decode(document).unwrap();
        let inner = Some(Box::default());
        assert_eq!(thing, Thing { name: String::new(), tags: vec!["a".into()], inner });
        assert_eq!(decode::<Vec<Thing>>(b"null").unwrap(), []);
        assert_eq!(decode::<Thing>(b"").unwrap(), Thing::default());
        decode::<()>(b"null").unwrap();
    }

    #[test]
    fn errors_name_the_place_and_never_the_content() {
        let error = decode::<Thing>(br#"{"inner":{"tags":["a",{"hunter2":1}]}}"#).unwrap_err();
        assert_eq!(error, DecodeError::Shape { path: "inner.tags[1]".into() });
        let error = decode::<Thing>(b"<html>hunter2").unwrap_err();
        assert_eq!(error, DecodeError::Syntax { line: 1, column: 1 });
    }

    #[test]
    fn text_is_escaped_as_go_does() {
        let text = "a<b> & \"c\"\n\u{1}\u{2028}é/";
        assert_eq!(
            String::from_utf8(encode(text)).unwrap(),
            r#""a\u003cb\u003e \u0026 \"c\"\n\u0001\u2028é/""#
        );
    }
}
