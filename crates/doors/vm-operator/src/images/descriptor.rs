//! Descriptors of images, as the cache keeps them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::ConfigMap;

/// The keys of the ConfigMap that a descriptor is stored in.
pub(crate) const VALUE: &str = "value";
pub(crate) const CONTENT_VERSION: &str = "contentVersion";

/// The descriptor of this version of an image, if the ConfigMap has it. One that another program wrote in its own form is none.
pub(crate) fn stored_descriptor(stored: &ConfigMap, version: &str) -> Option<String> {
    let data = stored.data.as_ref()?;
    let is_of_version = data.get(CONTENT_VERSION).map(String::as_str) == Some(version);
    let text = data.get(VALUE).filter(|_| is_of_version)?;
    text.trim_start_matches('\u{feff}').trim_start().starts_with('<').then(|| text.clone())
}

/// Descriptors that this process has read, by item; the last version of each.
#[derive(Debug, Default)]
pub(crate) struct Descriptors(Mutex<BTreeMap<String, (String, Arc<str>)>>);

impl Descriptors {
    pub(crate) fn get(&self, item: &str, version: &str) -> Option<Arc<str>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(item).filter(|(own, _)| own == version).map(|(_, text)| Arc::clone(text))
    }

    pub(crate) fn keep(&self, item: &str, version: &str, text: String) -> Arc<str> {
        let text: Arc<str> = text.into();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(item.to_owned(), (version.to_owned(), Arc::clone(&text)));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_descriptor_of_the_version_counts() {
        let map = |value: &str, version: &str| ConfigMap {
            data: Some(BTreeMap::from([
                (VALUE.to_owned(), value.to_owned()),
                (CONTENT_VERSION.to_owned(), version.to_owned()),
            ])),
            ..ConfigMap::default()
        };
        assert_eq!(
            stored_descriptor(&map("<Envelope/>", "2"), "2").as_deref(),
            Some("<Envelope/>")
        );
        assert_eq!(stored_descriptor(&map("<Envelope/>", "1"), "2"), None);
        assert_eq!(stored_descriptor(&map("references: []", "2"), "2"), None, "another's form");
        let known = Descriptors::default();
        known.keep("item", "1", "<a/>".to_owned());
        assert_eq!(known.get("item", "1").as_deref(), Some("<a/>"));
        assert_eq!(known.get("item", "2"), None);
    }
}
