//! Watches: changes as a stream of lines.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use crate::kind::Kind;
use crate::object;
use crate::present::Presenter;
use crate::selector::Selector;
use crate::sim::KubeSim;
use crate::status::ApiError;
use crate::store::{Change, Stored};

/// Between two bookmarks, about as the real server does it.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);

/// What a watch is to show.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) kind: Arc<Kind>,
    pub(crate) selector: Selector,
    pub(crate) presenter: Presenter,
    /// Objects that the watch starts with, as if they were added now.
    pub(crate) initial: Vec<Arc<Stored>>,
    /// Changes that the client missed.
    pub(crate) missed: Vec<Arc<Change>>,
    pub(crate) changes: UnboundedReceiver<Arc<Change>>,
    pub(crate) bookmarks: bool,
    /// A bookmark after the initial objects says that these were all.
    pub(crate) marks_initial_end: bool,
    pub(crate) revision: u64,
    pub(crate) ends: Instant,
    pub(crate) disturbance: Disturbance,
    /// Where a webhook makes the version that is asked for.
    pub(crate) converter: Option<KubeSim>,
}

/// What faults do to the events of a watch.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Disturbance {
    /// Ends the stream after this many events.
    pub(crate) cut_after: Option<u64>,
    /// Ends it with `410 Gone` instead of silently.
    pub(crate) gone: bool,
    /// Every event this much later.
    pub(crate) delay: Option<Duration>,
    /// Every event this many times.
    pub(crate) repeat: u32,
}

struct State {
    watch: Watch,
    lines: VecDeque<Bytes>,
    next_bookmark: Instant,
    sent: u64,
    ended: bool,
}

impl Watch {
    /// One JSON line per event, until the time is over, the server cuts it, or nobody listens.
    pub(crate) fn into_lines(mut self) -> impl Stream<Item = Bytes> + Send {
        let mut lines = VecDeque::new();
        for stored in std::mem::take(&mut self.initial) {
            if self.selector.matches(&stored.value) {
                lines.push_back(self.presenter.event(&self.kind, "ADDED", &stored));
            }
        }
        if self.marks_initial_end {
            lines.push_back(self.bookmark(true));
        }
        for change in std::mem::take(&mut self.missed) {
            lines.extend(self.line(&change));
        }
        let next_bookmark = Instant::now() + BOOKMARK_EVERY;
        let state = State { watch: self, lines, next_bookmark, sent: 0, ended: false };
        futures_util::stream::unfold(state, State::next)
    }

    /// Lets a webhook convert what a change may show.
    async fn convert(&self, change: &Change) -> Result<(), ApiError> {
        let Some(sim) = &self.converter else { return Ok(()) };
        let states: Vec<_> = change.before.iter().chain([&change.now]).map(Arc::clone).collect();
        sim.convert_states(&self.kind, self.presenter.version(), &states).await
    }

    fn line(&mut self, change: &Change) -> Option<Bytes> {
        self.revision = self.revision.max(change.revision);
        let was = change.before.as_ref().is_some_and(|before| self.selector.matches(&before.value));
        let is = !change.is_removal && self.selector.matches(&change.now.value);
        match (was, is) {
            (false, false) => None,
            (false, true) => Some(self.presenter.event(&self.kind, "ADDED", &change.now)),
            (true, true) => Some(self.presenter.event(&self.kind, "MODIFIED", &change.now)),
            (true, false) if change.is_removal => {
                Some(self.presenter.event(&self.kind, "DELETED", &change.now))
            }
            // It is there but no longer selected: its last state that was, at the time of the change.
            (true, false) => {
                let last = change.before.as_ref().map(|before| {
                    let last = Stored::new(before.value.clone(), change.revision);
                    crate::convert::inherit(before, &last);
                    last
                });
                last.map(|last| self.presenter.event(&self.kind, "DELETED", &last))
            }
        }
    }

    fn bookmark(&self, is_initial_end: bool) -> Bytes {
        let version = self.presenter.version();
        let mut bookmark = json!({
            "kind": self.kind.kind,
            "apiVersion": self.kind.api_version(version),
            "metadata": {"resourceVersion": self.revision.to_string(), "creationTimestamp": Value::Null},
        });
        if is_initial_end {
            object::metadata_mut(&mut bookmark)
                .insert("annotations".into(), json!({"k8s.io/initial-events-end": "true"}));
        }
        line("BOOKMARK", &bookmark)
    }
}

impl State {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        loop {
            if self.ended {
                return None;
            }
            if self.watch.disturbance.cut_after.is_some_and(|limit| self.sent >= limit) {
                self.ended = true;
                if self.watch.disturbance.gone {
                    return Some((gone(self.watch.revision), self));
                }
                return None;
            }
            if let Some(line) = self.lines.pop_front() {
                self.sent += 1;
                if let Some(delay) = self.watch.disturbance.delay {
                    tokio::time::sleep(delay).await;
                }
                return Some((line, self));
            }
            let bookmark = async {
                if self.watch.bookmarks {
                    tokio::time::sleep_until(self.next_bookmark).await;
                } else {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                biased;
                change = self.watch.changes.recv() => match change {
                    Some(change) => {
                        if let Err(error) = self.watch.convert(&change).await {
                            self.ended = true;
                            return Some((line("ERROR", &error.to_value()), self));
                        }
                        let line = self.watch.line(&change);
                        for _ in 0..=self.watch.disturbance.repeat {
                            self.lines.extend(line.clone());
                        }
                    }
                    None => self.ended = true,
                },
                () = tokio::time::sleep_until(self.watch.ends) => self.ended = true,
                () = bookmark => {
                    self.next_bookmark = Instant::now() + BOOKMARK_EVERY;
                    let line = self.watch.bookmark(false);
                    self.lines.push_back(line);
                }
            }
        }
    }
}

pub(crate) fn line(kind: &str, object: &Value) -> Bytes {
    Bytes::from(format!("{}\n", json!({"type": kind, "object": object})))
}

/// The event that tells a watch to list again.
pub(crate) fn gone(revision: u64) -> Bytes {
    let error =
        ApiError::expired(format!("too old resource version: {revision} ({})", revision + 1));
    line("ERROR", &error.to_value())
}
