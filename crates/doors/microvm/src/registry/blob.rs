use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    pub fn of(content: &[u8]) -> Self {
        let mut hash = Hash::default();
        hash.update(content);
        hash.finish()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Digest {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// A digest in the making.
#[derive(Default)]
pub(super) struct Hash {
    sha: Sha256,
    pub(super) size: u64,
}

impl Hash {
    pub(super) fn update(&mut self, content: &[u8]) {
        self.sha.update(content);
        self.size += content.len() as u64;
    }

    pub(super) fn finish(self) -> Digest {
        use fmt::Write as _;
        let mut text = String::from("sha256:");
        for byte in self.sha.finalize() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Digest(text)
    }
}

/// Pieces of a blob as they come.
#[derive(Debug)]
pub struct BlobSource {
    pub(super) response: reqwest::Response,
}

impl BlobSource {
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, reqwest::Error> {
        self.response.chunk().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_the_world() {
        assert_eq!(
            Digest::of(b"abc").as_str(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
