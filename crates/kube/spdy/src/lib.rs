#![doc = include_str!("../README.md")]

mod block;
mod decode;
mod dictionary;
mod encode;
mod frame;
mod session;

pub use decode::{Decoder, SpdyError};
pub use encode::Encoder;
pub use frame::{Frame, Headers, ResetCode, StreamId};
pub use session::{Incoming, Outgoing, Session, SessionEnded, Stream};

#[cfg(test)]
mod tests;
