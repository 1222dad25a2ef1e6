use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

/// Names a stream for as long as its connection lives. Those of clients are odd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names in lower case, each with one value.
pub type Headers = BTreeMap<String, String>;

/// What a peer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A stream begins. With `fin` its sender has nothing more to say on it.
    SynStream {
        id: StreamId,
        fin: bool,
        headers: Headers,
    },
    SynReply {
        id: StreamId,
        fin: bool,
        headers: Headers,
    },
    Headers {
        id: StreamId,
        fin: bool,
        headers: Headers,
    },
    /// A piece of a stream. One frame on the wire may be several of these; only the last of them has its `fin`.
    Data {
        id: StreamId,
        fin: bool,
        data: Bytes,
    },
    Reset {
        id: StreamId,
        code: u32,
    },
    Ping {
        id: u32,
    },
    GoAway {
        last: StreamId,
        status: u32,
    },
    /// Settings, windows and kinds that are not known.
    Other {
        kind: u16,
    },
}

/// Why a stream is ended at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetCode {
    ProtocolError = 1,
    RefusedStream = 3,
    Cancel = 5,
}

pub(crate) const VERSION: u16 = 3;
pub(crate) const CONTROL: u32 = 0x8000_0000;
pub(crate) const FIN: u8 = 0x01;
/// Length of what every frame begins with.
pub(crate) const HEAD: usize = 8;
/// No length of a frame is larger.
pub(crate) const MAX_LENGTH: usize = 0x00ff_ffff;

pub(crate) mod kind {
    pub(crate) const SYN_STREAM: u16 = 1;
    pub(crate) const SYN_REPLY: u16 = 2;
    pub(crate) const RST_STREAM: u16 = 3;
    pub(crate) const PING: u16 = 6;
    pub(crate) const GOAWAY: u16 = 7;
    pub(crate) const HEADERS: u16 = 8;
}
