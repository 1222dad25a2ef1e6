//! Keeping the mirror up to date from a vCenter.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use jiff::Timestamp;
use roost_vim::wire::MoRef;
use roost_vim::{Batch, CallError, Observer, Properties, Remedy, StreamStatus, Subscription};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Mirror;
use super::paths::watch_spec;
use crate::VmId;
use crate::time::elapsed;

/// How the property stream is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct StreamState {
    /// All that the server shows has been delivered, and nothing is known to have broken since.
    pub synced: bool,
    /// When the server last answered, by our clock.
    pub last_contact: Option<Timestamp>,
    /// How often everything was loaded anew after a break.
    pub resyncs: u64,
    pub trouble: Option<String>,
}

impl From<&StreamStatus> for StreamState {
    fn from(status: &StreamStatus) -> Self {
        Self {
            synced: status.synced,
            last_contact: status.last_contact,
            resyncs: status.resyncs,
            trouble: status.trouble.as_ref().map(ToString::to_string),
        }
    }
}

impl StreamState {
    /// Both at once: no better than the worse of the two.
    fn and(self, other: Self) -> Self {
        Self {
            synced: self.synced && other.synced,
            last_contact: self.last_contact.min(other.last_contact),
            resyncs: self.resyncs + other.resyncs,
            trouble: self.trouble.or(other.trouble),
        }
    }
}

/// The first of several that is ready, and which it was. The others are dropped.
async fn first<F: Future>(several: impl Iterator<Item = F>) -> (usize, F::Output) {
    let mut several: Vec<_> = several.map(Box::pin).collect();
    poll_fn(|context| {
        for (index, one) in several.iter_mut().enumerate() {
            if let Poll::Ready(done) = one.as_mut().poll(context) {
                return Poll::Ready((index, done));
            }
        }
        Poll::Pending
    })
    .await
}

impl Mirror {
    /// Follows the VMs and resource pools below each container (a datacenter, folder or cluster) until the client is shut down.
    /// All are heard over the one stream that the client has. Ends with an error if the subscription cannot be made. It may be called again after it has ended or was
    /// dropped: the mirror keeps what it knows and is not complete again before the new load is.
    ///
    /// The only other calls it makes are reads of single VMs of which our own knowledge and the stream disagree.
    pub async fn follow(&self, observer: &Observer, containers: &[MoRef]) -> Result<(), CallError> {
        let paths = self.core().vm_paths();
        let mut subscriptions = Vec::new();
        for container in containers {
            subscriptions.push(observer.watch(watch_spec(container, &paths)).await?);
        }
        let _ended = Ended(self);
        self.core().begin_load(containers.len());
        self.run(observer, subscriptions).await;
        Ok(())
    }

    /// Takes over a batch from somewhere else than [`follow`](Self::follow): a recording, a test. A batch that is synced is taken
    /// for an answer of the server at this moment.
    pub fn feed(&self, batch: &Batch) {
        self.apply(0, batch, batch.synced);
        let mut stream = self.core().stream.clone();
        stream.synced = batch.synced;
        stream.resyncs += u64::from(batch.resynced);
        if batch.synced {
            stream.last_contact = Some(self.shared.clock.now());
        }
        self.contact(stream);
    }

    async fn run(&self, observer: &Observer, mut subscriptions: Vec<Subscription>) {
        let paths = self.core().vm_paths();
        let mut statuses: Vec<_> = subscriptions.iter().map(Subscription::watch_status).collect();
        statuses.iter_mut().for_each(watch::Receiver::mark_changed);
        // What each has delivered so far, which is not what its status says: a batch may still be on its way to us.
        let mut delivered = vec![false; subscriptions.len()];
        let mut reads: JoinSet<(VmId, Result<Properties, CallError>)> = JoinSet::new();
        loop {
            let alarm = self.core().next_alarm();
            let rung = async {
                match alarm {
                    Some(at) => sleep(elapsed(self.shared.clock.now(), at)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // What an answer brought is applied before the answer counts.
                biased;
                (from, batch) = first(subscriptions.iter_mut().map(Subscription::next)) => {
                    let Some(batch) = batch else { return };
                    delivered[from] = batch.synced;
                    self.apply(from, &batch, delivered.iter().all(|synced| *synced));
                }
                (_, Ok(())) = first(statuses.iter_mut().map(watch::Receiver::changed)) => {
                    let states = statuses.iter_mut().map(|status| {
                        StreamState::from(&*status.borrow_and_update())
                    });
                    if let Some(state) = states.reduce(StreamState::and) {
                        self.contact(state);
                    }
                }
                Some(read) = reads.join_next() => {
                    if let Ok((vm, result)) = read {
                        self.take_read(&vm, result);
                    }
                }
                () = self.shared.learned.notified() => {}
                () = rung => {}
            }
            let now = self.shared.clock.now();
            let doubts = self.core().take_doubts(now);
            for vm in doubts {
                let (observer, paths) = (observer.clone(), Arc::clone(&paths));
                reads.spawn(async move {
                    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                    let read = observer.properties(&vm.moref(), &paths).await;
                    (vm, read)
                });
            }
        }
    }

    /// `synced` says whether all containers have been delivered with this batch.
    fn apply(&self, from: usize, batch: &Batch, synced: bool) {
        let now = self.shared.clock.now();
        let was_complete = self.freshness().complete;
        self.update(|core| core.apply(from, &batch.updates, synced, batch.resynced, now));
        // The load may be completed by a batch that is read after the status was heard.
        if self.freshness().complete != was_complete {
            self.shared.stream.send_modify(|_| {});
        }
    }

    fn contact(&self, state: StreamState) {
        // Also by a read, where the server tells no changes: that is trouble, and an answer.
        let answered = state.synced;
        let now = self.shared.clock.now();
        self.update(|core| {
            core.stream.clone_from(&state);
            if answered {
                core.answered(now);
            }
        });
        self.shared.stream.send_replace(state);
    }

    fn take_read(&self, vm: &VmId, result: Result<Properties, CallError>) {
        let now = self.shared.clock.now();
        self.update(|core| match result {
            Ok(properties) => core.read(vm, Some(&properties), now),
            Err(error) if error.remedy() == Remedy::Gone => core.read(vm, None, now),
            Err(error) => {
                tracing::debug!(%vm, "{vm} could not be read: {error}");
                core.read_failed(vm, now);
            }
        });
    }
}

/// Says that nobody follows any more, however that came about.
struct Ended<'a>(&'a Mirror);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.core().stream.synced = false;
        self.0.shared.stream.send_modify(|stream| stream.synced = false);
    }
}
