use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

#[derive(Debug, Default)]
pub(super) struct Store {
    blobs: BTreeMap<String, Vec<u8>>,
    /// By repository and tag, or repository and digest.
    manifests: BTreeMap<(String, String), Vec<u8>>,
    uploads: BTreeMap<String, Vec<u8>>,
    begun: u64,
}

pub(super) fn digest(content: &[u8]) -> String {
    let hash = Sha256::digest(content);
    hash.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

impl Store {
    pub(super) fn put_blob(&mut self, content: Vec<u8>) -> String {
        let digest = digest(&content);
        self.blobs.entry(digest.clone()).or_insert(content);
        digest
    }

    pub(super) fn blob(&self, digest: &str) -> Option<&Vec<u8>> {
        self.blobs.get(digest)
    }

    pub(super) fn put_manifest(
        &mut self,
        repository: &str,
        reference: &str,
        content: Vec<u8>,
    ) -> String {
        let digest = digest(&content);
        let repository = repository.to_owned();
        self.manifests.insert((repository.clone(), digest.clone()), content.clone());
        self.manifests.insert((repository, reference.to_owned()), content);
        digest
    }

    pub(super) fn manifest(&self, repository: &str, reference: &str) -> Option<&Vec<u8>> {
        self.manifests.get(&(repository.to_owned(), reference.to_owned()))
    }

    /// False: a digest that is not there. A tag that is not there is fine.
    pub(super) fn delete_manifest(&mut self, repository: &str, reference: &str) -> bool {
        let key = (repository.to_owned(), reference.to_owned());
        let Some(content) = self.manifests.remove(&key) else {
            return !reference.starts_with("sha256:");
        };
        if reference.starts_with("sha256:") {
            self.manifests.retain(|(of, _), other| of != repository || *other != content);
        }
        true
    }

    pub(super) fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        let keys = self.manifests.keys().filter(|(_, reference)| !reference.starts_with("sha256:"));
        keys.map(|(repository, tag)| (repository.as_str(), tag.as_str()))
    }

    pub(super) fn begin_upload(&mut self) -> String {
        self.begun += 1;
        let id = format!("upload-{}", self.begun);
        self.uploads.insert(id.clone(), Vec::new());
        id
    }

    pub(super) fn upload(&mut self, id: &str) -> Option<&mut Vec<u8>> {
        self.uploads.get_mut(id)
    }

    pub(super) fn end_upload(&mut self, id: &str) -> Option<Vec<u8>> {
        self.uploads.remove(id)
    }
}
