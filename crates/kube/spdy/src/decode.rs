//! Bytes to frames, however the bytes are cut.

use bytes::{Buf, Bytes, BytesMut};

use crate::block::Unpacker;
use crate::frame::{CONTROL, FIN, Frame, HEAD, StreamId, VERSION, kind};

/// Control frames of Kubernetes are a hundred bytes; data is passed on as it comes and needs no limit.
const MAX_CONTROL: usize = 32 * 1024;

/// What a peer did wrong. The connection cannot be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpdyError {
    #[error("a control frame is of version {0}, not 3")]
    Version(u16),
    #[error("a control frame of {0} bytes is too long")]
    TooLong(usize),
    #[error("a control frame of kind {0} is too short")]
    TooShort(u16),
    #[error("a header block cannot be unpacked")]
    Packing,
    #[error("a header block is too large once it is unpacked")]
    HeadersTooLarge,
    #[error("a header block is not a list of names and values")]
    Headers,
    #[error("stream {0} cannot be opened: ids are odd and grow")]
    Stream(StreamId),
}

/// Takes bytes in and gives frames out.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    unpacker: Unpacker,
    /// The data frame that is being read, with the bytes that are still to come.
    open: Option<(StreamId, bool, usize)>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { buffer: BytesMut::new(), unpacker: Unpacker::new(), open: None }
    }
}

impl Decoder {
    /// Where the next bytes go.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next frame; `None` until more bytes are there.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, SpdyError> {
        if let Some((id, fin, left)) = self.open {
            return Ok(self.piece(id, fin, left));
        }
        if self.buffer.len() < HEAD {
            return Ok(None);
        }
        let mut head = &self.buffer[..HEAD];
        let (first, second) = (head.get_u32(), head.get_u32());
        let (flags, length) = (second.to_be_bytes()[0], (second & 0x00ff_ffff) as usize);
        if first & CONTROL == 0 {
            self.buffer.advance(HEAD);
            let (id, fin) = (StreamId(first), flags & FIN != 0);
            return Ok(self.piece(id, fin, length));
        }
        let version = u16::try_from((first & !CONTROL) >> 16).unwrap_or_default();
        if version != VERSION {
            return Err(SpdyError::Version(version));
        }
        if length > MAX_CONTROL {
            return Err(SpdyError::TooLong(length));
        }
        if self.buffer.len() < HEAD + length {
            return Ok(None);
        }
        self.buffer.advance(HEAD);
        let body = self.buffer.split_to(length).freeze();
        let kind = u16::try_from(first & 0xffff).unwrap_or_default();
        self.control(kind, flags, body).map(Some)
    }

    /// As much of a data frame as is there; all of an empty one.
    fn piece(&mut self, id: StreamId, fin: bool, left: usize) -> Option<Frame> {
        if left == 0 {
            self.open = None;
            return Some(Frame::Data { id, fin, data: Bytes::new() });
        }
        let data = self.buffer.split_to(left.min(self.buffer.len())).freeze();
        let left = left - data.len();
        self.open = (left > 0).then_some((id, fin, left));
        if data.is_empty() {
            return None;
        }
        Some(Frame::Data { id, fin: fin && left == 0, data })
    }

    fn control(&mut self, kind: u16, flags: u8, mut body: Bytes) -> Result<Frame, SpdyError> {
        let number = |body: &mut Bytes| body.try_get_u32().map_err(|_| SpdyError::TooShort(kind));
        let id = |raw: u32| StreamId(raw & !CONTROL);
        let fin = flags & FIN != 0;
        Ok(match kind {
            kind::SYN_STREAM => {
                let stream = id(number(&mut body)?);
                let _associated = number(&mut body)?;
                // Priority and slot.
                if body.len() < 2 {
                    return Err(SpdyError::TooShort(kind));
                }
                body.advance(2);
                Frame::SynStream { id: stream, fin, headers: self.unpacker.headers(&body)? }
            }
            kind::SYN_REPLY => {
                let stream = id(number(&mut body)?);
                Frame::SynReply { id: stream, fin, headers: self.unpacker.headers(&body)? }
            }
            kind::HEADERS => {
                let stream = id(number(&mut body)?);
                Frame::Headers { id: stream, fin, headers: self.unpacker.headers(&body)? }
            }
            kind::RST_STREAM => {
                Frame::Reset { id: id(number(&mut body)?), code: number(&mut body)? }
            }
            kind::PING => Frame::Ping { id: number(&mut body)? },
            kind::GOAWAY => {
                Frame::GoAway { last: id(number(&mut body)?), status: number(&mut body)? }
            }
            kind => Frame::Other { kind },
        })
    }
}
