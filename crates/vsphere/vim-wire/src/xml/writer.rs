use std::fmt::{self, Write as _};

/// Writes elements into a buffer. Names are ours and are not checked; text is escaped.
#[derive(Default)]
pub struct Writer {
    out: String,
}

impl Writer {
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: String::with_capacity(bytes) }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.out.into_bytes()
    }

    pub fn len(&self) -> usize {
        self.out.len()
    }

    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Markup that is already XML.
    pub fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    pub fn open(&mut self, name: &str) {
        self.out.push('<');
        self.out.push_str(name);
        self.out.push('>');
    }

    /// Opens an element that says which schema type it holds: a class name, or `xsd:string` and its like.
    pub fn open_typed(&mut self, name: &str, xsi_type: &str) {
        self.open_with(name, Some(xsi_type), None);
    }

    /// Opens an element with either, both or none of the two `type` attributes.
    pub fn open_with(&mut self, name: &str, xsi_type: Option<&str>, ref_type: Option<&str>) {
        self.out.push('<');
        self.out.push_str(name);
        for (attribute, value) in [(" type=\"", ref_type), (" xsi:type=\"", xsi_type)] {
            if let Some(value) = value {
                self.out.push_str(attribute);
                escape(value, &mut self.out);
                self.out.push('"');
            }
        }
        self.out.push('>');
    }

    pub fn close(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    pub fn text(&mut self, text: &str) {
        escape(text, &mut self.out);
    }

    /// Text that cannot need escaping: numbers and the like.
    pub fn plain(&mut self, value: impl fmt::Display) {
        let _ = write!(self.out, "{value}");
    }

    pub fn leaf(&mut self, name: &str, text: &str) {
        self.open(name);
        self.text(text);
        self.close(name);
    }
}

impl fmt::Debug for Writer {
    /// Only the size: what is written may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("bytes", &self.out.len()).finish()
    }
}

fn escape(text: &str, out: &mut String) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let entity = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&#34;",
            // A bare carriage return would be read back as a line feed.
            b'\r' => "&#xD;",
            b'\n' | b'\t' => continue,
            // XML 1.0 has no way to say these at all.
            0..=0x1f => "\u{fffd}",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        out.push_str(entity);
        from = at + 1;
    }
    out.push_str(&text[from..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::Reader;

    #[test]
    fn what_is_written_reads_back() {
        for text in ["", "plain", "a<b>&\"c'", "line\nfeed\r\ttab", "é 漢 \u{1f600}", "]]>"] {
            let mut writer = Writer::default();
            writer.leaf("a", text);
            let bytes = writer.into_bytes();
            let mut reader = Reader::new(&bytes);
            reader.child().unwrap();
            assert_eq!(reader.text().unwrap(), text);
        }
    }

    #[test]
    fn characters_that_xml_cannot_carry_are_replaced() {
        let mut writer = Writer::default();
        writer.text("a\u{1}b");
        assert_eq!(writer.into_bytes(), "a\u{fffd}b".as_bytes());
    }
}
