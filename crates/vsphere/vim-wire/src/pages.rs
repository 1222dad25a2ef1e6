//! Decoding the two large answers while they arrive.
//!
//! A page set of 10,000 VMs is tens of megabytes of `<objects>` or `<objectSet>` elements. [`PageDecoder`] takes the body in
//! chunks of any size and hands out each element as soon as its last byte is there, so memory holds one element and
//! one chunk, never the body. When a chunk ends inside an element, decoding goes back to the element's start and waits
//! until the buffer has grown by half: every byte is looked at a bounded number of times.

use crate::envelope::read_fault;
use crate::types::{MissingObject, ObjectContent, ObjectUpdate};
use crate::xml::{Event, Reader, Start};
use crate::{Field, LocalizedMethodFault, MoRef, WireError};

/// One element may be as large as this. The widest VM seen is some hundred kilobytes.
const MAX_ITEM: usize = 64 << 20;

/// One piece of an answer of `RetrievePropertiesEx` or `WaitForUpdatesEx`.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// An object of a retrieve call.
    Object(ObjectContent),
    /// More objects wait behind this token.
    Token(String),
    /// The updates that follow belong to this filter.
    Filter(MoRef),
    Update(ObjectUpdate),
    /// Objects that the current filter cannot read.
    Missing(MissingObject),
    Version(String),
    Truncated(bool),
    /// The answer is a fault.
    Fault(LocalizedMethodFault),
}

/// See the module's words above.
#[derive(Debug, Default)]
pub struct PageDecoder {
    buffer: Vec<u8>,
    /// Raw names of the containers that are open at the start of the buffer.
    open: Vec<Box<[u8]>>,
    /// Below this many bytes another try cannot be worth it.
    wanted: usize,
    inside: Inside,
}

/// Which containers have been entered; items are known by name below them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Inside {
    #[default]
    Document,
    Envelope,
    Body,
    Response,
    Returnval,
    FilterSet,
    /// The envelope has ended.
    Done,
}

impl PageDecoder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the body and hands out what they complete.
    pub fn feed(&mut self, chunk: &[u8], mut found: impl FnMut(Item)) -> Result<(), WireError> {
        if self.inside == Inside::Done {
            return Ok(()); // what follows the envelope is nobody's business, however it was cut
        }
        self.buffer.extend_from_slice(chunk);
        if self.buffer.len() < self.wanted {
            return Ok(());
        }
        if self.decode(&mut found)? {
            self.wanted = self.buffer.len() + (self.buffer.len() / 2).max(1);
            if self.buffer.len() > MAX_ITEM {
                return Err(WireError::TooLarge { limit: MAX_ITEM });
            }
        }
        Ok(())
    }

    /// Says that the body has ended.
    pub fn finish(mut self, mut found: impl FnMut(Item)) -> Result<(), WireError> {
        if self.inside != Inside::Done {
            self.decode(&mut found)?;
        }
        if self.inside == Inside::Done { Ok(()) } else { Err(WireError::Incomplete) }
    }

    /// Decodes what is complete and drops it from the buffer. Returns whether something incomplete is left.
    fn decode(&mut self, found: &mut impl FnMut(Item)) -> Result<bool, WireError> {
        let mut reader = Reader::resume(&self.buffer, &self.open);
        let (mut inside, mut kept_from, mut kept_depth) = (self.inside, 0, self.open.len());
        let left = loop {
            match step(&mut reader, &mut inside, found) {
                Ok(()) if inside == Inside::Done => {
                    (self.inside, kept_from, kept_depth) = (inside, self.buffer.len(), 0);
                    break false;
                }
                // `<filterSet/>`: its end exists only in the reader, so nothing can be dropped before that is read.
                Ok(()) if reader.is_self_closed() => {}
                Ok(()) => {
                    (self.inside, kept_from, kept_depth) =
                        (inside, reader.position(), reader.depth());
                }
                Err(WireError::Incomplete) => break true,
                Err(other) => return Err(other),
            }
        };
        // The step that failed may have opened more; the containers it stands in come first.
        self.open = reader.open_elements().take(kept_depth).map(Into::into).collect();
        self.buffer.drain(..kept_from);
        Ok(left && !self.buffer.is_empty())
    }
}

/// Enters or leaves one container, or reads one item.
fn step(
    reader: &mut Reader<'_>,
    inside: &mut Inside,
    found: &mut impl FnMut(Item),
) -> Result<(), WireError> {
    match reader.next()? {
        Event::Text(_) => Ok(()),
        Event::Eof if *inside == Inside::Done => Ok(()),
        Event::Eof => Err(WireError::Incomplete),
        Event::End => {
            *inside = match inside {
                Inside::FilterSet => Inside::Returnval,
                Inside::Returnval => Inside::Response,
                Inside::Response => Inside::Body,
                Inside::Body => Inside::Envelope,
                Inside::Envelope | Inside::Document | Inside::Done => Inside::Done,
            };
            Ok(())
        }
        Event::Start(start) => enter(reader, inside, &start, found),
    }
}

fn enter(
    reader: &mut Reader<'_>,
    inside: &mut Inside,
    start: &Start<'_>,
    found: &mut impl FnMut(Item),
) -> Result<(), WireError> {
    fn read<T: Field>(reader: &mut Reader<'_>, start: &Start<'_>) -> Result<T, WireError> {
        let mut field = T::default();
        field.read(reader, start)?;
        Ok(field)
    }
    match (*inside, start.name) {
        (Inside::Document, "Envelope") => *inside = Inside::Envelope,
        (Inside::Document, other) => {
            return Err(WireError::Unexpected { wanted: "SOAP envelope", found: other.into() });
        }
        (Inside::Envelope, "Body") => *inside = Inside::Body,
        (Inside::Body, "Fault") => found(Item::Fault(read_fault(reader)?)),
        (Inside::Body, _) => *inside = Inside::Response,
        (Inside::Response, "returnval") => *inside = Inside::Returnval,
        (Inside::Returnval, "filterSet") => *inside = Inside::FilterSet,
        (Inside::Returnval, "objects") => found(Item::Object(read(reader, start)?)),
        (Inside::Returnval, "token") => found(Item::Token(read(reader, start)?)),
        (Inside::Returnval, "version") => found(Item::Version(read(reader, start)?)),
        (Inside::Returnval, "truncated") => found(Item::Truncated(read(reader, start)?)),
        (Inside::FilterSet, "filter") => found(Item::Filter(read(reader, start)?)),
        (Inside::FilterSet, "objectSet") => found(Item::Update(read(reader, start)?)),
        (Inside::FilterSet, "missingSet") => found(Item::Missing(read(reader, start)?)),
        _ => reader.skip()?,
    }
    Ok(())
}

#[cfg(test)]
mod tests;
