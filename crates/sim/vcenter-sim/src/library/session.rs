use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::vm::FilePath;

/// How far an update or a download of an item is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionState {
    Active,
    Done,
    Canceled,
    Failed(String),
}

impl SessionState {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::Done => "DONE",
            Self::Canceled => "CANCELED",
            Self::Failed(_) => "ERROR",
        }
    }
}

/// Files on their way into an item. They become the item's when the client says that it is done.
#[derive(Debug)]
pub(crate) struct UpdateSession {
    pub item: String,
    pub state: SessionState,
    pub expires: Timestamp,
    pub files: BTreeMap<String, SessionFile>,
}

#[derive(Debug)]
pub(crate) struct SessionFile {
    pub path: FilePath,
    pub announced: Option<i64>,
    /// Set when all of it has arrived.
    pub received: Option<i64>,
    pub checksum: Option<Value>,
    pub is_pulled: bool,
}

/// Files of an item that a client may fetch.
#[derive(Debug)]
pub(crate) struct DownloadSession {
    pub item: String,
    pub state: SessionState,
    pub expires: Timestamp,
}
