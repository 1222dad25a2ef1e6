//! A pull reader over bytes that may still be arriving.
//!
//! Our own and not a general XML crate's for three reasons: the input may end in the middle of an element and that is
//! not an error but [`WireError::Incomplete`]; depth is bounded; and a 10,000-VM answer is a million tags, so each
//! one is looked at once and borrowed, never copied. A DTD is refused, which leaves no entity that could expand.

use std::borrow::Cow;

use memchr::{memchr, memmem};

use crate::WireError;

/// vim25 nests about twenty deep (snapshot trees aside); a recursive decoder must not be led further down than this.
const MAX_DEPTH: usize = 128;

#[derive(Debug)]
pub enum Event<'a> {
    Start(Start<'a>),
    End,
    Text(Cow<'a, str>),
    /// The document is complete: every element that was opened is closed.
    Eof,
}

/// An opening tag, prefixes removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start<'a> {
    pub name: &'a str,
    /// The schema type (`xsi:type`, whatever its prefix), without the prefix of the value.
    pub xsi_type: Option<&'a str>,
    /// The unqualified `type` attribute: the kind of a managed object reference.
    pub ref_type: Option<&'a str>,
}

#[derive(Debug, Clone)]
pub struct Reader<'a> {
    input: &'a [u8],
    at: usize,
    open: Vec<&'a [u8]>,
    /// The last tag was `<name/>`: its end is reported next.
    self_closed: bool,
}

impl<'a> Reader<'a> {
    pub fn new(input: &'a [u8]) -> Self {
        Self { input, at: 0, open: Vec::with_capacity(16), self_closed: false }
    }

    /// Goes on in the middle of a document whose still open elements are `open`, outermost first.
    pub(crate) fn resume(input: &'a [u8], open: &'a [Box<[u8]>]) -> Self {
        let mut reader = Self::new(input);
        reader.open.extend(open.iter().map(|name| &**name));
        reader
    }

    /// How many bytes have been consumed.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// The raw names of the elements that are open now, outermost first.
    pub(crate) fn open_elements(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.open.iter().copied()
    }

    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Whether the last tag was `<name/>`, whose end is still to be reported.
    pub(crate) fn is_self_closed(&self) -> bool {
        self.self_closed
    }

    /// The next event. After an error the reader must not be used again.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator could not end with an error and `Eof` apart"
    )]
    pub fn next(&mut self) -> Result<Event<'a>, WireError> {
        if self.self_closed {
            self.self_closed = false;
            self.open.pop();
            return Ok(Event::End);
        }
        loop {
            let rest = &self.input[self.at..];
            match rest {
                [] if self.open.is_empty() => return Ok(Event::Eof),
                [] | [b'<'] => return Err(WireError::Incomplete),
                [b'<', b'/', ..] => return self.end_tag(),
                [b'<', b'?', ..] => self.pass("?>")?,
                [b'<', b'!', ..] => {
                    if rest.starts_with(b"<!--") {
                        self.pass("-->")?;
                    } else if rest.starts_with(b"<![CDATA[") {
                        return self.cdata();
                    } else if b"<![CDATA[".starts_with(rest) || b"<!--".starts_with(rest) {
                        return Err(WireError::Incomplete);
                    } else {
                        return Err(self.malformed("a document type declaration"));
                    }
                }
                [b'<', ..] => return self.start_tag().map(Event::Start),
                _ => {
                    if let Some(text) = self.text_run()? {
                        return Ok(Event::Text(text));
                    }
                }
            }
        }
    }

    /// The next child of the element that is open, or `None` once that element has ended. Each child must be consumed
    /// (by `child` until `None`, by [`text`](Self::text) or by [`skip`](Self::skip)) before the next is asked for.
    pub fn child(&mut self) -> Result<Option<Start<'a>>, WireError> {
        loop {
            match self.next()? {
                Event::Start(start) => return Ok(Some(start)),
                Event::End => return Ok(None),
                Event::Text(_) => {}
                Event::Eof => return Err(WireError::Incomplete),
            }
        }
    }

    /// The text of the element that is open, through its end. Children are passed over.
    pub fn text(&mut self) -> Result<Cow<'a, str>, WireError> {
        let mut text = Cow::Borrowed("");
        loop {
            match self.next()? {
                Event::Start(_) => self.skip()?,
                Event::End => return Ok(text),
                Event::Text(more) if text.is_empty() => text = more,
                Event::Text(more) => text.to_mut().push_str(&more),
                Event::Eof => return Err(WireError::Incomplete),
            }
        }
    }

    /// Passes over the rest of the element that is open, through its end.
    pub fn skip(&mut self) -> Result<(), WireError> {
        let outside = self.open.len().saturating_sub(1);
        while self.open.len() > outside {
            if matches!(self.next()?, Event::Eof) {
                return Err(WireError::Incomplete);
            }
        }
        Ok(())
    }

    fn malformed(&self, what: &'static str) -> WireError {
        WireError::Malformed { what, at: self.at }
    }

    fn utf8(&self, bytes: &'a [u8]) -> Result<&'a str, WireError> {
        std::str::from_utf8(bytes).map_err(|_| self.malformed("text that is not UTF-8"))
    }

    fn pass(&mut self, end: &'static str) -> Result<(), WireError> {
        let found = memmem::find(&self.input[self.at..], end.as_bytes());
        self.at += found.ok_or(WireError::Incomplete)? + end.len();
        Ok(())
    }

    fn cdata(&mut self) -> Result<Event<'a>, WireError> {
        if self.open.is_empty() {
            return Err(self.malformed("text outside the document"));
        }
        let from = self.at + b"<![CDATA[".len();
        let len = memmem::find(&self.input[from..], b"]]>").ok_or(WireError::Incomplete)?;
        let text = self.utf8(&self.input[from..from + len])?;
        self.at = from + len + b"]]>".len();
        Ok(Event::Text(Cow::Borrowed(text)))
    }

    /// Text up to the next tag; `None` for white space outside the document element.
    fn text_run(&mut self) -> Result<Option<Cow<'a, str>>, WireError> {
        let rest = &self.input[self.at..];
        let Some(len) = memchr(b'<', rest) else {
            let only_space = rest.iter().all(u8::is_ascii_whitespace);
            if self.open.is_empty() && !only_space && !rest.starts_with(&BYTE_ORDER_MARK) {
                return Err(self.malformed("text outside the document"));
            }
            if self.open.is_empty() {
                self.at = self.input.len();
                return Ok(None);
            }
            return Err(WireError::Incomplete);
        };
        let raw = &rest[..len];
        if self.open.is_empty() {
            let raw = raw.strip_prefix(&BYTE_ORDER_MARK).unwrap_or(raw);
            if !raw.iter().all(u8::is_ascii_whitespace) {
                return Err(self.malformed("text outside the document"));
            }
            self.at += len;
            return Ok(None);
        }
        let text = self.utf8(raw)?;
        let text = self.unescape(text)?;
        self.at += len;
        Ok(Some(text))
    }

    fn unescape(&self, text: &'a str) -> Result<Cow<'a, str>, WireError> {
        let Some(first) = memchr(b'&', text.as_bytes()) else { return Ok(Cow::Borrowed(text)) };
        let mut out = String::with_capacity(text.len());
        out.push_str(&text[..first]);
        let mut rest = &text[first..];
        while let Some(entity) = rest.strip_prefix('&') {
            let (name, after) =
                entity.split_once(';').ok_or_else(|| self.malformed("a bare '&'"))?;
            out.push(match name {
                "lt" => '<',
                "gt" => '>',
                "amp" => '&',
                "quot" => '"',
                "apos" => '\'',
                _ => character(name).ok_or_else(|| self.malformed("an unknown entity"))?,
            });
            let plain = memchr(b'&', after.as_bytes()).unwrap_or(after.len());
            out.push_str(&after[..plain]);
            rest = &after[plain..];
        }
        Ok(Cow::Owned(out))
    }

    fn end_tag(&mut self) -> Result<Event<'a>, WireError> {
        let from = self.at + 2;
        let len = memchr(b'>', &self.input[from..]).ok_or(WireError::Incomplete)?;
        let name = self.input[from..from + len].trim_ascii_end();
        match self.open.pop() {
            Some(open) if open == name => {}
            _ => return Err(self.malformed("an end tag that closes nothing")),
        }
        self.at = from + len + 1;
        Ok(Event::End)
    }

    fn start_tag(&mut self) -> Result<Start<'a>, WireError> {
        let from = self.at + 1;
        let tag = &self.input[from..];
        let name_len = tag
            .iter()
            .position(|byte| {
                matches!(byte, b'>' | b'/' | b' ' | b'\n' | b'\t' | b'\r' | b'<' | b'=')
            })
            .ok_or(WireError::Incomplete)?;
        let raw = &tag[..name_len];
        if raw.is_empty() || self.open.len() >= MAX_DEPTH {
            let what =
                if raw.is_empty() { "a tag without a name" } else { "elements nested too deep" };
            return Err(self.malformed(what));
        }
        let name = self.utf8(raw)?;
        let mut start = Start { name: local(name), xsi_type: None, ref_type: None };
        let mut at = name_len;
        let self_closed = loop {
            match tag.get(at).copied().ok_or(WireError::Incomplete)? {
                b'>' => break false,
                b'/' => match tag.get(at + 1) {
                    Some(b'>') => break true,
                    Some(_) => return Err(self.malformed("a '/' inside a tag")),
                    None => return Err(WireError::Incomplete),
                },
                b' ' | b'\n' | b'\t' | b'\r' => at += 1,
                _ => at = self.attribute(tag, at, &mut start)?,
            }
        };
        self.at = from + at + if self_closed { 2 } else { 1 };
        self.self_closed = self_closed;
        self.open.push(raw);
        Ok(start)
    }

    /// Reads one attribute and returns the position behind it.
    fn attribute(
        &self,
        tag: &'a [u8],
        at: usize,
        start: &mut Start<'a>,
    ) -> Result<usize, WireError> {
        let rest = &tag[at..];
        let name_len = rest
            .iter()
            .position(|byte| matches!(byte, b'=' | b'>' | b'<' | b' ' | b'\n' | b'\t' | b'\r'))
            .ok_or(WireError::Incomplete)?;
        let mut value_at = name_len;
        while rest.get(value_at).is_some_and(u8::is_ascii_whitespace) {
            value_at += 1;
        }
        match rest.get(value_at) {
            Some(b'=') => value_at += 1,
            Some(_) => return Err(self.malformed("an attribute without a value")),
            None => return Err(WireError::Incomplete),
        }
        while rest.get(value_at).is_some_and(u8::is_ascii_whitespace) {
            value_at += 1;
        }
        let quote = match rest.get(value_at).copied() {
            Some(quote @ (b'"' | b'\'')) => quote,
            Some(_) => return Err(self.malformed("an attribute value without quotes")),
            None => return Err(WireError::Incomplete),
        };
        let value = &rest[value_at + 1..];
        let len = memchr(quote, value).ok_or(WireError::Incomplete)?;
        match &rest[..name_len] {
            b"type" => start.ref_type = Some(self.utf8(&value[..len])?),
            name if name.ends_with(b":type") && !name.starts_with(b"xmlns:") => {
                start.xsi_type = Some(local(self.utf8(&value[..len])?));
            }
            _ => {}
        }
        Ok(at + value_at + 1 + len + 1)
    }
}

const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

fn local(name: &str) -> &str {
    memchr(b':', name.as_bytes()).map_or(name, |colon| &name[colon + 1..])
}

fn character(name: &str) -> Option<char> {
    let digits = name.strip_prefix('#')?;
    let code = match digits.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    char::from_u32(code.ok()?)
}

#[cfg(test)]
mod tests;
