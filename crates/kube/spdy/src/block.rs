//! Header blocks: names and values with their lengths, packed.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

use crate::decode::SpdyError;
use crate::dictionary::DICTIONARY;
use crate::frame::Headers;

/// A header block of Kubernetes has a hundred bytes. A small one that unpacks to more than this is an attack.
const MAX_UNPACKED: usize = 64 * 1024;

const PIECE: usize = 4 * 1024;

/// All blocks of one direction, which are one zlib stream.
#[derive(Debug)]
pub(crate) struct Unpacker {
    inflate: Decompress,
}

impl Unpacker {
    pub(crate) fn new() -> Self {
        Self { inflate: Decompress::new(true) }
    }

    pub(crate) fn headers(&mut self, block: &[u8]) -> Result<Headers, SpdyError> {
        parse(&self.unpack(block)?)
    }

    fn unpack(&mut self, block: &[u8]) -> Result<Vec<u8>, SpdyError> {
        let (mut unpacked, mut at) = (Vec::new(), 0);
        let mut piece = vec![0; PIECE];
        loop {
            let (taken, given) = (self.inflate.total_in(), self.inflate.total_out());
            let result = self.inflate.decompress(&block[at..], &mut piece, FlushDecompress::Sync);
            let count = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
            at += count(self.inflate.total_in(), taken);
            let made = count(self.inflate.total_out(), given);
            match result {
                Ok(_) => {}
                Err(error) if error.needs_dictionary().is_some() => {
                    self.inflate.set_dictionary(&DICTIONARY).map_err(|_| SpdyError::Packing)?;
                    continue;
                }
                Err(_) => return Err(SpdyError::Packing),
            }
            unpacked.extend_from_slice(piece.get(..made).ok_or(SpdyError::Packing)?);
            if unpacked.len() > MAX_UNPACKED {
                return Err(SpdyError::HeadersTooLarge);
            }
            // All is read, and nothing more comes out: what is left in there belongs to the next block.
            if at >= block.len() && made < piece.len() {
                return Ok(unpacked);
            }
            if made == 0 && count(self.inflate.total_in(), taken) == 0 {
                return Err(SpdyError::Packing);
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Packer {
    deflate: Compress,
}

impl Packer {
    pub(crate) fn new() -> Self {
        let mut deflate = Compress::new(Compression::default(), true);
        // Fails only in the middle of a stream.
        let _ = deflate.set_dictionary(&DICTIONARY);
        Self { deflate }
    }

    pub(crate) fn pack(&mut self, headers: &Headers) -> Vec<u8> {
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes();
        let mut plain = Vec::from(number(headers.len()));
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            plain.extend(number(text.len()));
            plain.extend(text.as_bytes());
        }
        let (mut packed, mut at) = (Vec::new(), 0);
        loop {
            packed.reserve(PIECE);
            let taken = self.deflate.total_in();
            // A vector with room cannot run out of it, which is the only failure there is.
            let _ = self.deflate.compress_vec(&plain[at..], &mut packed, FlushCompress::Sync);
            at += usize::try_from(self.deflate.total_in() - taken).unwrap_or(usize::MAX);
            if at >= plain.len() && packed.len() < packed.capacity() {
                return packed;
            }
        }
    }
}

/// Count, then name and value each with its length.
fn parse(block: &[u8]) -> Result<Headers, SpdyError> {
    let mut rest = block;
    let count = number(&mut rest)?;
    let mut headers = Headers::new();
    for _ in 0..count {
        let name = text(&mut rest)?.to_ascii_lowercase();
        let value = text(&mut rest)?;
        if headers.insert(name, value).is_some() {
            return Err(SpdyError::Headers);
        }
    }
    if rest.is_empty() { Ok(headers) } else { Err(SpdyError::Headers) }
}

fn number(rest: &mut &[u8]) -> Result<usize, SpdyError> {
    let (digits, after) = rest.split_first_chunk::<4>().ok_or(SpdyError::Headers)?;
    *rest = after;
    usize::try_from(u32::from_be_bytes(*digits)).map_err(|_| SpdyError::Headers)
}

fn text(rest: &mut &[u8]) -> Result<String, SpdyError> {
    let length = number(rest)?;
    let (text, after) = rest.split_at_checked(length).ok_or(SpdyError::Headers)?;
    *rest = after;
    String::from_utf8(text.to_vec()).map_err(|_| SpdyError::Headers)
}
