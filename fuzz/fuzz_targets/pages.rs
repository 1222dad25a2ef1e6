//! Property pages in chunks: the first byte of the input is the chunk size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use roost_vim_wire::PageDecoder;

fuzz_target!(|input: &[u8]| {
    let Some((chunk, body)) = input.split_first() else { return };
    let whole = collect(body, body.len().max(1));
    let cut = collect(body, usize::from(*chunk).max(1));
    assert_eq!(whole, cut, "the outcome depends on how the body was cut");
});

/// The items, and whether the body was a whole answer.
fn collect(body: &[u8], chunk: usize) -> (Vec<String>, bool) {
    let (mut decoder, mut items) = (PageDecoder::new(), Vec::new());
    for chunk in body.chunks(chunk) {
        if decoder.feed(chunk, |item| items.push(format!("{item:?}"))).is_err() {
            return (items, false);
        }
    }
    let ended = decoder.finish(|item| items.push(format!("{item:?}")));
    (items, ended.is_ok())
}
