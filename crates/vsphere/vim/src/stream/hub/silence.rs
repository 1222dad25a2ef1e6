//! A server that answers reads and cannot be waited on: what is watched is read by time.

use std::sync::Arc;
use std::time::Duration;

use roost_vim_wire::types::{ObjectContent, PropertyFilterSpec};
use tokio::time::Instant;

use super::{Done, Hub, Link, Waiting};
use crate::CallError;
use crate::client_core::Core;
use crate::session::Lease;
use crate::stream::tasks::{self, List};
use crate::stream::watch::Place;

/// Most breaks pass: a new stream is tried so often before anything is read.
pub(super) const BREAKS_BEFORE_READS: u32 = 2;

/// How often such a server is asked whether it can be waited on by now. Not with every read: a server that never answers costs a whole deadline.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// A read that takes long is not begun again at once.
const READS_TAKE_AT_MOST: u32 = 10;

pub(super) struct Silence {
    error: CallError,
    pub(super) read_at: Instant,
    try_at: Instant,
}

/// Everything that is watched.
pub(super) struct ReadInstead {
    error: CallError,
    began: Instant,
    tried: bool,
    /// By the id of the watch.
    watches: Vec<(u64, Vec<ObjectContent>)>,
    tasks: Option<Vec<ObjectContent>>,
}

impl Hub {
    pub(super) fn fall_silent(&mut self, error: CallError) {
        let Link::Up(up) = &mut self.link else { return };
        tracing::warn!("the server cannot be waited on and is read instead: {error}");
        // What stood for half a load is worth nothing.
        (up.version, up.truncated, up.resuming) = (None, false, false);
        let now = Instant::now();
        up.silence = Some(Silence { error, read_at: now, try_at: now + TRY_AGAIN });
    }

    /// Reads all, once, after asking whether there is need for it.
    pub(super) fn begin_reads(&mut self) {
        let Link::Up(up) = &mut self.link else { return };
        let Some(silence) = &up.silence else { return };
        let watches: Vec<(u64, PropertyFilterSpec)> = self
            .watches
            .iter()
            .filter_map(|(id, watch)| match &watch.place {
                Place::Built(built) => {
                    let properties = watch.spec.properties.clone();
                    Some((*id, PropertyFilterSpec::of_view(built.view(), properties)))
                }
                Place::Unbuilt(_) | Place::Building => None,
            })
            .collect();
        let tasks = match &self.tasks.list {
            List::Ready(built) => {
                Some(PropertyFilterSpec::of_view(built.view(), tasks::properties()))
            }
            List::Absent | List::Building => None,
        };
        let (began, error) = (Instant::now(), silence.error.clone());
        let tries = silence.try_at <= began;
        if tries {
            up.calculation += 1;
        }
        let (core, lease, collector) =
            (Arc::clone(&self.core), up.lease.clone(), up.collector.moref().clone());
        let epoch = self.epoch;
        let abort = self.calls.spawn(async move {
            let mut error = error;
            if tries {
                match core.wait_for_updates(&lease, collector, None, Duration::ZERO).await {
                    Err(still) if !Self::is_link_lost(&still) => error = still,
                    answered => return (epoch, Done::Waited(answered)),
                }
            }
            let read = read_all(&core, &lease, watches, tasks).await;
            let read = read.map(|(watches, tasks)| ReadInstead {
                error,
                began,
                tried: tries,
                watches,
                tasks,
            });
            (epoch, Done::ReadInstead(read))
        });
        up.waiting = Some(Waiting { abort, is_long: false, is_cancelled: false });
    }

    pub(super) fn read_instead(&mut self, result: Result<ReadInstead, CallError>) {
        let Link::Up(up) = &mut self.link else { return };
        up.waiting = None;
        let read = match result {
            Ok(read) => read,
            Err(error) => return self.break_link(Some(&error)),
        };
        let now = Instant::now();
        if let Some(silence) = &mut up.silence {
            let every = self.core.settings.stream.read_instead.unwrap_or(TRY_AGAIN);
            silence.read_at = now + every.max(read.began.elapsed() * READS_TAKE_AT_MOST);
            if read.tried {
                silence.try_at = now + TRY_AGAIN;
            }
            silence.error = read.error.clone();
        }
        self.failures = 0;
        for (id, found) in read.watches {
            if let Some(watch) = self.watches.get_mut(&id) {
                watch.read(found, read.error.clone(), self.core.clock.now());
                watch.publish();
            }
        }
        // After all else: who hears that a task has ended finds what it changed.
        if let Some(found) = read.tasks {
            self.tasks.loaded = true;
            for content in found {
                self.tasks.read(content);
            }
        }
    }
}

/// Tasks first, so that what is read of VMs is no older than the end of a task.
async fn read_all(
    core: &Core,
    lease: &Lease,
    watches: Vec<(u64, PropertyFilterSpec)>,
    tasks: Option<PropertyFilterSpec>,
) -> Result<(Vec<(u64, Vec<ObjectContent>)>, Option<Vec<ObjectContent>>), CallError> {
    let ended = match tasks {
        Some(spec) => Some(core.retrieve_in(lease, spec).await?),
        None => None,
    };
    let mut shown = Vec::new();
    for (id, spec) in watches {
        shown.push((id, core.retrieve_in(lease, spec).await?));
    }
    Ok((shown, ended))
}
