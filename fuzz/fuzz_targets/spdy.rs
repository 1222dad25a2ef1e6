//! A client's bytes in chunks: the first byte of the input is the chunk size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use roost_spdy::{Decoder, Frame};

fuzz_target!(|input: &[u8]| {
    let Some((chunk, wire)) = input.split_first() else { return };
    let whole = decode(wire, wire.len().max(1));
    let cut = decode(wire, usize::from(*chunk).max(1));
    assert_eq!(whole, cut, "the outcome depends on how the bytes were cut");
});

/// What was understood, and whether all of it was. Data counts by its length: pieces depend on the cut.
fn decode(wire: &[u8], chunk: usize) -> (Vec<String>, usize, bool) {
    let (mut decoder, mut frames, mut data) = (Decoder::default(), Vec::new(), 0);
    for chunk in wire.chunks(chunk) {
        decoder.buffer().extend_from_slice(chunk);
        loop {
            match decoder.next_frame() {
                Ok(Some(Frame::Data { data: piece, .. })) => data += piece.len(),
                Ok(Some(frame)) => frames.push(format!("{frame:?}")),
                Ok(None) => break,
                Err(_) => return (frames, data, false),
            }
        }
    }
    (frames, data, true)
}
