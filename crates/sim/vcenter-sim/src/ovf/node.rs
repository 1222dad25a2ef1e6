use std::borrow::Cow;

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, escape};

use super::OvfError;

/// An element of a descriptor without its prefixes: two that differ by prefix alone do not occur in practice.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub name: String,
    attributes: Vec<(String, String)>,
    pub text: String,
    pub children: Vec<Node>,
}

/// Deeper than any descriptor; a hostile one must not exhaust the stack when it is dropped.
const MAX_DEPTH: usize = 64;

impl Node {
    /// The document element.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, OvfError> {
        let text = std::str::from_utf8(bytes).map_err(|_| OvfError::NotXml)?;
        let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
        let mut open: Vec<Node> = vec![Node::default()];
        loop {
            match reader.read_event().map_err(|_| OvfError::NotXml)? {
                Event::Start(start) if open.len() < MAX_DEPTH => open.push(Self::of(&start)),
                Event::Start(_) => return Err(OvfError::NotXml),
                Event::Empty(start) => {
                    let node = Self::of(&start);
                    if let Some(parent) = open.last_mut() {
                        parent.children.push(node);
                    }
                }
                Event::End(_) => {
                    let Some(node) = open.pop() else { return Err(OvfError::NotXml) };
                    let Some(parent) = open.last_mut() else { return Err(OvfError::NotXml) };
                    parent.children.push(node);
                }
                Event::Text(text) => {
                    if let Some(node) = open.last_mut() {
                        node.text.push_str(&text);
                    }
                }
                Event::GeneralRef(name) => {
                    let reference = format!("&{};", &*name);
                    if let (Some(node), Ok(text)) = (open.last_mut(), escape::unescape(&reference))
                    {
                        node.text.push_str(&text);
                    }
                }
                Event::CData(text) => {
                    if let Some(node) = open.last_mut() {
                        node.text.push_str(&text);
                    }
                }
                Event::Eof => break,
                _ => {}
            }
        }
        match (open.pop(), open.is_empty()) {
            (Some(document), true) => document
                .children
                .into_iter()
                .find(|node| !node.name.is_empty())
                .ok_or(OvfError::NotXml),
            _ => Err(OvfError::NotXml),
        }
    }

    fn of(start: &BytesStart<'_>) -> Self {
        let local = |name: &str| name.rsplit(':').next().unwrap_or_default().to_owned();
        let attributes = start.attributes().flatten().map(|attribute| {
            let value = escape::unescape(&attribute.value);
            let value = value.map_or_else(|_| attribute.value.to_string(), Cow::into_owned);
            (local(attribute.key.as_ref()), value)
        });
        Self {
            name: local(start.name().as_ref()),
            attributes: attributes.collect(),
            ..Self::default()
        }
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn child(&self, name: &str) -> Option<&Node> {
        self.children.iter().find(|child| child.name == name)
    }

    pub(super) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Node> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The text of a child; empty children count as absent.
    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.trim()).filter(|text| !text.is_empty())
    }

    pub(super) fn number_of(&self, name: &str) -> Option<i64> {
        self.text_of(name)?.parse().ok()
    }
}
