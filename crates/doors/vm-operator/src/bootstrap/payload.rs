//! Payloads packed for the wire: gzip, then base64.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// No payload is as large when it is unpacked; what claims to be is cut off.
const MAX_BYTES: u64 = 8 << 20;
/// How often a payload may have been packed.
const MAX_LAYERS: usize = 8;

/// The same text always gives the same bytes: no time is written, and the level is fixed.
pub fn encode(text: &str) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    // Writing to memory cannot fail.
    let packed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    STANDARD.encode(packed.unwrap_or_default())
}

/// Unpacks base64 and gzip as often as they were applied. Plain text stays as it is.
pub fn decode(payload: &[u8]) -> Vec<u8> {
    let mut bytes = payload.to_vec();
    for _ in 0..MAX_LAYERS {
        let Some(unpacked) = gunzip(&bytes).or_else(|| unbase64(&bytes)) else { break };
        bytes = unpacked;
    }
    bytes
}

fn gunzip(bytes: &[u8]) -> Option<Vec<u8>> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return None;
    }
    let mut unpacked = Vec::new();
    GzDecoder::new(bytes).take(MAX_BYTES).read_to_end(&mut unpacked).ok()?;
    Some(unpacked)
}

fn unbase64(bytes: &[u8]) -> Option<Vec<u8>> {
    let text: Vec<u8> = bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    // What cloud-init reads begins with a comment, a MIME header or a mapping, none of which is base64.
    if text.is_empty() || !text.len().is_multiple_of(4) {
        return None;
    }
    STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_comes_back_however_often() {
        let text = "#cloud-config\nruncmd: [ls]\n";
        assert_eq!(encode(text), encode(text));
        assert_eq!(decode(encode(text).as_bytes()), text.as_bytes());
        assert_eq!(decode(text.as_bytes()), text.as_bytes());
        let twice = STANDARD.encode(encode(text));
        assert_eq!(decode(twice.as_bytes()), text.as_bytes());
        let wrapped = format!("{}\n", STANDARD.encode(text));
        assert_eq!(decode(wrapped.as_bytes()), text.as_bytes());
    }
}
