//! Frames to bytes.

use bytes::{BufMut, Bytes, BytesMut};

use crate::block::Packer;
use crate::frame::{CONTROL, FIN, Frame, HEAD, MAX_LENGTH, VERSION, kind};

/// Writes frames in the order in which they are to be sent: header blocks refer to those before them.
#[derive(Debug)]
pub struct Encoder {
    packer: Packer,
}

impl Default for Encoder {
    fn default() -> Self {
        Self { packer: Packer::new() }
    }
}

impl Encoder {
    /// Data that is longer than a frame becomes several of them.
    pub fn encode(&mut self, frame: &Frame) -> Bytes {
        let mut to = BytesMut::new();
        match frame {
            Frame::SynStream { id, fin, headers } => {
                let block = self.packer.pack(headers);
                control(&mut to, kind::SYN_STREAM, *fin, 10 + block.len());
                to.put_u32(id.0);
                // Belongs to no other stream, and is as urgent as any.
                to.put_u32(0);
                to.put_u16(0);
                to.put_slice(&block);
            }
            Frame::SynReply { id, fin, headers } | Frame::Headers { id, fin, headers } => {
                let block = self.packer.pack(headers);
                let is_reply = matches!(frame, Frame::SynReply { .. });
                let kind = if is_reply { kind::SYN_REPLY } else { kind::HEADERS };
                control(&mut to, kind, *fin, 4 + block.len());
                to.put_u32(id.0);
                to.put_slice(&block);
            }
            Frame::Data { id, fin, data } => {
                let mut rest = data.clone();
                loop {
                    let piece = rest.split_to(rest.len().min(MAX_LENGTH));
                    let flags = if *fin && rest.is_empty() { FIN } else { 0 };
                    to.reserve(HEAD + piece.len());
                    to.put_u32(id.0);
                    length(&mut to, flags, piece.len());
                    to.put_slice(&piece);
                    if rest.is_empty() {
                        break;
                    }
                }
            }
            Frame::Reset { id, code } => {
                control(&mut to, kind::RST_STREAM, false, 8);
                to.put_u32(id.0);
                to.put_u32(*code);
            }
            Frame::Ping { id } => {
                control(&mut to, kind::PING, false, 4);
                to.put_u32(*id);
            }
            Frame::GoAway { last, status } => {
                control(&mut to, kind::GOAWAY, false, 8);
                to.put_u32(last.0);
                to.put_u32(*status);
            }
            Frame::Other { kind } => control(&mut to, *kind, false, 0),
        }
        to.freeze()
    }
}

fn control(to: &mut BytesMut, kind: u16, fin: bool, size: usize) {
    to.put_u32(CONTROL | u32::from(VERSION) << 16 | u32::from(kind));
    length(to, if fin { FIN } else { 0 }, size);
}

fn length(to: &mut BytesMut, flags: u8, size: usize) {
    to.put_u32(u32::from(flags) << 24 | u32::try_from(size).unwrap_or_default());
}
