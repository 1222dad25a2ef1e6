//! Events: what the monitors say, the ends of processes, and what this runtime itself changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::stream::{StreamExt, unfold};
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;

use super::argv::EVENTS;
use super::qmp::Qmp;
use super::{Inner, process_ended};
use crate::error::RuntimeError;
use crate::record::{EventKind, VmEvent, VmRecord};
use crate::runtime::Watch;

/// What a VM can do by itself that changes whether it runs.
const TELLING: [&str; 6] =
    ["SHUTDOWN", "POWERDOWN", "RESET", "STOP", "GUEST_PANICKED", "BLOCK_IO_ERROR"];

struct Stream {
    inner: Arc<Inner>,
    changes: broadcast::Receiver<VmEvent>,
    first: Vec<VmEvent>,
    seen: mpsc::Receiver<VmEvent>,
    tell: mpsc::Sender<VmEvent>,
    followed: BTreeSet<(String, u32)>,
    /// Ends with the stream.
    followers: JoinSet<()>,
}

/// Every VM once, then changes. Whoever is too slow to listen is told that the stream broke, and lists again.
pub(super) fn watch(inner: &Arc<Inner>) -> Watch {
    let (tell, seen) = mpsc::channel(64);
    let changes = inner.changes.subscribe();
    let mut first: Vec<VmEvent> =
        inner.list().into_iter().map(|vm| VmEvent { event: EventKind::Added, vm }).collect();
    first.reverse();
    let stream = Stream {
        inner: Arc::clone(inner),
        changes,
        first,
        seen,
        tell,
        followed: BTreeSet::new(),
        followers: JoinSet::new(),
    };
    unfold(Some(stream), next).boxed()
}

async fn next(stream: Option<Stream>) -> Option<(Result<VmEvent, RuntimeError>, Option<Stream>)> {
    let mut stream = stream?;
    let event = if let Some(event) = stream.first.pop() {
        event
    } else {
        tokio::select! {
            Some(event) = stream.seen.recv() => event,
            change = stream.changes.recv() => match change {
                Ok(event) => event,
                Err(broadcast::error::RecvError::Closed) => return None,
                Err(broadcast::error::RecvError::Lagged(lost)) => {
                    let detail = format!("{lost} events were lost");
                    let command = "events".to_owned();
                    return Some((Err(RuntimeError::Failed { command, detail }), None));
                }
            },
        }
    };
    stream.follow(&event.vm);
    Some((Ok(event), Some(stream)))
}

impl Stream {
    /// A process is followed once.
    fn follow(&mut self, vm: &VmRecord) {
        while self.followers.try_join_next().is_some() {}
        if vm.state.is_running() && self.followed.insert((vm.id.clone(), vm.pid)) {
            let follower = follow(Arc::clone(&self.inner), vm.clone(), self.tell.clone());
            self.followers.spawn(follower);
        }
    }
}

async fn follow(inner: Arc<Inner>, vm: VmRecord, tell: mpsc::Sender<VmEvent>) {
    let events = inner.store.vm_folder(&vm.id).join(EVENTS);
    let said = async {
        let Ok(mut monitor) = Qmp::connect(&events).await else {
            return std::future::pending::<()>().await;
        };
        while let Some(name) = monitor.event().await {
            tracing::debug!(vm = vm.name(), "QEMU says {name}");
            if TELLING.contains(&name.as_str()) {
                tell_of(&inner, &vm, &tell).await;
            }
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = said => {}
        _ = process_ended(vm.pid) => tell_of(&inner, &vm, &tell).await,
    }
}

async fn tell_of(inner: &Inner, vm: &VmRecord, tell: &mpsc::Sender<VmEvent>) {
    let event = match inner.inspect(&vm.id) {
        Ok(vm) => VmEvent { event: EventKind::Modified, vm },
        Err(_) => VmEvent { event: EventKind::Deleted, vm: vm.clone() },
    };
    let _ = tell.send(event).await;
}
