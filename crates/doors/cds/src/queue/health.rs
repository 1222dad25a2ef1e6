use jiff::Timestamp;

/// How one queue is heard, for `/mon/status`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueHealth {
    /// Since when the websocket is open; `None` while it is not.
    pub connected: Option<Timestamp>,
    /// How many times it was opened.
    pub connections: u64,
    pub pushed_jobs: u64,
    pub last_poll: Option<Timestamp>,
    /// Since `last_poll`.
    pub failed_polls: u32,
    /// Why the websocket last closed or the poll last failed.
    pub last_error: Option<String>,
}
