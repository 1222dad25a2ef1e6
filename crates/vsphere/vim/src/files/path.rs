use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

/// A place on a datastore, written `[LocalDS_0] iso/boot.iso`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatastorePath {
    datastore: String,
    /// Relative to the datastore, parts separated by `/`, no `/` at either end.
    path: String,
}

/// Why a text is no datastore path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatastorePathError {
    #[error(
        "{0:?} is no datastore path: it must begin with the datastore in brackets, as in \"[datastore1] iso/boot.iso\""
    )]
    NoDatastore(String),
    #[error("{0:?} is no datastore path: \"..\" could lead out of its directory")]
    Upward(String),
}

/// What may stand unchanged in one part of a URL's path.
const PATH_PART: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}')
    .add(b'+')
    .add(b';');

/// What may stand unchanged in a value of a URL's query.
const QUERY_VALUE: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

impl DatastorePath {
    pub fn new(datastore: impl Into<String>, path: &str) -> Self {
        let parts: Vec<&str> =
            path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        Self { datastore: datastore.into(), path: parts.join("/") }
    }

    pub fn datastore(&self) -> &str {
        &self.datastore
    }

    /// Without the datastore; empty for its root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The last part; empty for the root.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The directory it is in; the root for the root.
    #[must_use]
    pub fn parent(&self) -> Self {
        let path = self.path.rsplit_once('/').map_or("", |(parent, _)| parent);
        Self { datastore: self.datastore.clone(), path: path.into() }
    }

    #[must_use]
    pub fn join(&self, below: &str) -> Self {
        Self::new(self.datastore.clone(), &format!("{}/{below}", self.path))
    }

    /// The same place with another last part.
    #[must_use]
    pub fn with_file_name(&self, name: &str) -> Self {
        self.parent().join(name)
    }

    /// Path and query under which the server's HTTP door has the file.
    pub(crate) fn to_url_path(&self, datacenter_path: Option<&str>) -> String {
        let parts: Vec<_> = self
            .path
            .split('/')
            .map(|part| utf8_percent_encode(part, PATH_PART).to_string())
            .collect();
        let value = |text| utf8_percent_encode(text, QUERY_VALUE);
        let datacenter =
            datacenter_path.map(|path| format!("dcPath={}&", value(path))).unwrap_or_default();
        format!("/folder/{}?{datacenter}dsName={}", parts.join("/"), value(&self.datastore))
    }
}

impl fmt::Display for DatastorePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.datastore)?;
        if self.path.is_empty() { Ok(()) } else { write!(f, " {}", self.path) }
    }
}

impl FromStr for DatastorePath {
    type Err = DatastorePathError;

    fn from_str(text: &str) -> Result<Self, DatastorePathError> {
        let malformed = || DatastorePathError::NoDatastore(text.into());
        let (datastore, path) = text
            .trim()
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
            .ok_or_else(malformed)?;
        if datastore.is_empty() {
            return Err(malformed());
        }
        if path.split('/').any(|part| part.trim() == "..") {
            return Err(DatastorePathError::Upward(text.into()));
        }
        Ok(Self::new(datastore, path.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_and_written_in_the_usual_form() {
        for (text, datastore, path) in [
            ("[LocalDS_0] iso/a/boot.iso", "LocalDS_0", "iso/a/boot.iso"),
            ("[LocalDS_0]", "LocalDS_0", ""),
            ("[my store] a b/c.iso", "my store", "a b/c.iso"),
        ] {
            let parsed: DatastorePath = text.parse().unwrap();
            assert_eq!((parsed.datastore(), parsed.path()), (datastore, path));
            assert_eq!(parsed.to_string(), text);
        }
        assert_eq!(
            "[ds]/iso//boot.iso/".parse::<DatastorePath>().unwrap().to_string(),
            "[ds] iso/boot.iso"
        );
    }

    #[test]
    fn what_is_no_datastore_path_says_what_one_looks_like() {
        for text in ["iso/boot.iso", "[] a", "[ds", ""] {
            let error = text.parse::<DatastorePath>().unwrap_err();
            assert!(error.to_string().contains("[datastore1] iso/boot.iso"), "{error}");
        }
        assert!(matches!(
            "[ds] a/../../b".parse::<DatastorePath>(),
            Err(DatastorePathError::Upward(_))
        ));
    }

    #[test]
    fn parts_can_be_taken_apart_and_put_together() {
        let path = DatastorePath::new("ds", "iso/a/boot.iso");
        assert_eq!(path.file_name(), "boot.iso");
        assert_eq!(path.parent().to_string(), "[ds] iso/a");
        assert_eq!(path.parent().parent().parent().to_string(), "[ds]");
        assert_eq!(path.with_file_name("next.iso").to_string(), "[ds] iso/a/next.iso");
        assert_eq!(DatastorePath::new("ds", "").join("x/y").to_string(), "[ds] x/y");
    }

    #[test]
    fn urls_are_those_that_a_recorded_client_sends() {
        let path = DatastorePath::new("LocalDS_0", "iso/a/b/boot.iso");
        assert_eq!(
            path.to_url_path(Some("/DC0")),
            "/folder/iso/a/b/boot.iso?dcPath=%2FDC0&dsName=LocalDS_0"
        );
        let path = DatastorePath::new("my store/1", "a b/50%#?.iso");
        assert_eq!(path.to_url_path(None), "/folder/a%20b/50%25%23%3F.iso?dsName=my%20store%2F1");
    }
}
