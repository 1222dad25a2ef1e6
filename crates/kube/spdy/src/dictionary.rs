//! The words that every SPDY/3 header block may refer to. Both sides know them, so none is ever sent.

use std::sync::LazyLock;

/// Each stands in the dictionary after its length in four bytes.
const WORDS: [&str; 65] = [
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
];

/// Stands after the words, without a length.
const TAIL: &str = concat!(
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505",
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Una",
    "uthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service",
    " UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, ",
    "Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,applicat",
    "ion/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf",
    "-8charset=iso-8859-1,utf-,*,enq=0.",
);

pub(crate) static DICTIONARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut all = Vec::with_capacity(1423);
    for word in WORDS {
        let length = u32::try_from(word.len()).unwrap_or_default();
        all.extend(length.to_be_bytes());
        all.extend(word.as_bytes());
    }
    all.extend(TAIL.as_bytes());
    all
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dictionary_is_the_one_that_peers_name_by_its_checksum() {
        let (mut a, mut b) = (1_u32, 0_u32);
        for byte in DICTIONARY.iter() {
            a = (a + u32::from(*byte)) % 65521;
            b = (b + a) % 65521;
        }
        assert_eq!((DICTIONARY.len(), (b << 16) | a), (1423, 0xe3c6_a7c2));
    }
}
