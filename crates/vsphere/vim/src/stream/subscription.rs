use std::sync::Arc;

use jiff::Timestamp;
use roost_vim_wire::MoRef;
use roost_vim_wire::types::PropertyChange;
use tokio::sync::{mpsc, watch};

use super::Command;
use super::feed::Feed;
use crate::client_core::Guarded;
use crate::{CallError, Properties};

/// What has changed since the batch before.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// At most one per object.
    pub updates: Vec<Update>,
    /// Objects that were named and do not exist. Nothing more is told of them unless they are named again.
    pub missing: Vec<MoRef>,
    /// With this batch, everything that the server shows has been delivered. False while the first load is under way, and
    /// from a break until the load after it is complete: what is missing then may yet come. A break is told at once, if
    /// need be with a batch that holds nothing else.
    pub synced: bool,
    /// A load after a break was completed: all objects have entered once more, and those that are gone have left.
    pub resynced: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    pub obj: MoRef,
    pub change: Change,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The object with all its properties, new or once more: it replaces what was known.
    Enter(Properties),
    /// What changed, in order. See [`Properties::apply`].
    Modify(Vec<PropertyChange>),
    /// The object is gone, or no longer among those watched.
    Leave,
}

/// How far a subscription can be believed at this moment.
#[derive(Debug, Clone, Default)]
pub struct StreamStatus {
    /// All that the server shows has been delivered, and nothing is known to have broken since.
    pub synced: bool,
    /// When the server last answered with the state of what is watched, changed or not.
    pub last_contact: Option<Timestamp>,
    /// Loads after a break.
    pub resyncs: u64,
    /// Why it is not synced, if something is wrong.
    pub trouble: Option<CallError>,
}

/// A running watch. Dropping it ends the watch and what it has on the server.
#[derive(Debug)]
pub struct Subscription {
    id: u64,
    feed: Arc<Feed>,
    commands: mpsc::UnboundedSender<Command>,
    _client: Arc<Guarded>,
}

impl Subscription {
    pub(crate) fn new(
        id: u64,
        commands: mpsc::UnboundedSender<Command>,
        client: Arc<Guarded>,
    ) -> Self {
        Self { id, feed: Arc::new(Feed::default()), commands, _client: client }
    }

    pub(super) fn feed(&self) -> Arc<Feed> {
        Arc::clone(&self.feed)
    }

    /// What has changed since the last batch; waits if nothing has. A reader that is slow gets one larger batch instead of
    /// many. `None` when the stream has ended with its client. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Batch> {
        self.feed.next().await
    }

    /// What waits to be read at this moment, without waiting for more. For readers that share a subscription behind a lock of their own: the one that
    /// has the lock takes what is next.
    pub fn take(&self) -> Option<Batch> {
        self.feed.take()
    }

    /// Waits until there is something to [`take`](Self::take). False when the stream has ended with its client.
    pub async fn has_more(&self) -> bool {
        self.feed.has_more().await
    }

    /// Changes which single objects are watched. What is added enters, what is removed leaves, and the others are not told again. Objects that do not
    /// exist are left out and told as [`missing`](Batch::missing). Only for a watch of [`Watched::Objects`](super::Watched::Objects).
    pub fn change_objects(&self, add: Vec<MoRef>, remove: Vec<MoRef>) {
        let _ = self.commands.send(Command::Relist { id: self.id, add, remove });
    }

    pub fn status(&self) -> StreamStatus {
        self.feed.status.borrow().clone()
    }

    /// Follows the status.
    pub fn watch_status(&self) -> watch::Receiver<StreamStatus> {
        self.feed.status.subscribe()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Unwatch(self.id));
    }
}
