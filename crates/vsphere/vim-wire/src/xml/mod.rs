//! The XML that SOAP peers speak: elements, text and the two `type` attributes. No DTD, no tree.

mod reader;
mod writer;

pub use reader::{Event, Reader, Start};
pub use writer::Writer;
