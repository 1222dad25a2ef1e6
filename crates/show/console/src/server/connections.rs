//! How many connections there may be, and which one goes when there are too many.
//!
//! A new connection is always taken: a probe must be answered however many clients hold theirs open. At the limit, the one that has been silent
//! for longest makes room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rustix::process::{Resource, getrlimit};
use tokio::task::{AbortHandle, Id};
use tokio::time::Instant;

/// Operators, a Prometheus or two, and pages that are open.
const MOST: usize = 512;
/// Also everybody behind one proxy together.
const MOST_OF_ONE_PEER: usize = 128;

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) all: usize,
    pub(super) of_one_peer: usize,
}

impl Limits {
    /// At most a quarter of the files that this process may open: the rest is for the servers that it works with.
    pub(super) fn of_this_process() -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::for_files(usize::try_from(files).unwrap_or(usize::MAX))
    }

    fn for_files(files: usize) -> Self {
        let all = (files / 4).clamp(4, MOST);
        Self { all, of_one_peer: MOST_OF_ONE_PEER.min(all / 2) }
    }
}

/// What a connection does.
#[derive(Debug)]
pub(super) struct Activity {
    began: Instant,
    /// When a byte was last read or written, in milliseconds after that.
    moved: AtomicU64,
    /// Requests that are being worked on.
    at_work: AtomicUsize,
}

impl Activity {
    pub(super) fn new(began: Instant) -> Arc<Self> {
        let activity = Self { began, moved: AtomicU64::new(0), at_work: AtomicUsize::new(0) };
        activity.moved();
        Arc::new(activity)
    }

    /// Bytes went either way.
    pub(super) fn moved(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.store(now, Ordering::Relaxed);
    }

    /// A request is worked on until the result is dropped.
    pub(super) fn at_work(self: &Arc<Self>) -> AtWork {
        self.at_work.fetch_add(1, Ordering::Relaxed);
        AtWork(Arc::clone(self))
    }

    /// The first of all goes first: those without a request before those with one, then the one that was silent for longest.
    fn rank(&self) -> (bool, u64) {
        (self.at_work.load(Ordering::Relaxed) > 0, self.moved.load(Ordering::Relaxed))
    }
}

#[derive(Debug)]
pub(super) struct AtWork(Arc<Activity>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.at_work.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Those that are open.
#[derive(Debug)]
pub(super) struct Connections {
    limits: Limits,
    open: HashMap<Id, Open>,
    of_peer: HashMap<IpAddr, usize>,
    /// How many were ended to make room, since that was last told.
    ended: u64,
}

#[derive(Debug)]
struct Open {
    peer: IpAddr,
    activity: Arc<Activity>,
    task: AbortHandle,
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, open: HashMap::new(), of_peer: HashMap::new(), ended: 0 }
    }

    /// Makes room for one more of this peer.
    pub(super) fn make_room(&mut self, peer: IpAddr) {
        if self.of_peer.get(&peer).is_some_and(|open| *open >= self.limits.of_one_peer) {
            self.end_one(|open| open.peer == peer);
        } else if self.open.len() >= self.limits.all {
            self.end_one(|_| true);
        }
    }

    fn end_one(&mut self, is_meant: impl Fn(&Open) -> bool) {
        let meant = self.open.iter().filter(|(_, open)| is_meant(open));
        let first = meant.min_by_key(|(_, open)| open.activity.rank()).map(|(id, _)| *id);
        if let Some(open) = first.and_then(|id| self.forget(id)) {
            open.task.abort();
            self.ended += 1;
        }
    }

    pub(super) fn add(&mut self, peer: IpAddr, activity: Arc<Activity>, task: AbortHandle) {
        *self.of_peer.entry(peer).or_default() += 1;
        self.open.insert(task.id(), Open { peer, activity, task });
    }

    /// It has ended.
    pub(super) fn remove(&mut self, id: Id) {
        self.forget(id);
    }

    fn forget(&mut self, id: Id) -> Option<Open> {
        let open = self.open.remove(&id)?;
        if let Some(left) = self.of_peer.get_mut(&open.peer) {
            *left -= 1;
            if *left == 0 {
                self.of_peer.remove(&open.peer);
            }
        }
        Some(open)
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// How many were ended to make room since the last call.
    pub(super) fn take_ended(&mut self) -> u64 {
        std::mem::take(&mut self.ended)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    struct Lab {
        connections: Connections,
        began: Instant,
        tasks: Vec<(tokio::task::JoinHandle<()>, Arc<Activity>)>,
    }

    impl Lab {
        fn new(all: usize, of_one_peer: usize) -> Self {
            let connections = Connections::new(Limits { all, of_one_peer });
            Self { connections, began: Instant::now(), tasks: Vec::new() }
        }

        async fn connect(&mut self, peer: IpAddr) {
            sleep(Duration::from_secs(1)).await;
            self.connections.make_room(peer);
            let (task, activity) = (tokio::spawn(pending()), Activity::new(self.began));
            self.connections.add(peer, Arc::clone(&activity), task.abort_handle());
            self.tasks.push((task, activity));
        }

        /// Which of them are open, in the order in which they came.
        async fn open(&self) -> Vec<usize> {
            sleep(Duration::from_millis(1)).await;
            let tasks = self.tasks.iter().enumerate();
            tasks.filter(|(_, (task, _))| !task.is_finished()).map(|(index, _)| index).collect()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_limit_the_one_that_was_silent_for_longest_goes() {
        let mut lab = Lab::new(3, 3);
        for _ in 0..3 {
            lab.connect(PEER).await;
        }
        sleep(Duration::from_secs(1)).await;
        lab.tasks[0].1.moved();
        lab.connect(OTHER).await;
        assert_eq!(lab.open().await, [0, 2, 3]);
        let _at_work = lab.tasks[2].1.at_work();
        lab.connect(OTHER).await;
        assert_eq!(lab.open().await, [2, 3, 4], "what is worked on stays");
        assert_eq!((lab.connections.take_ended(), lab.connections.take_ended()), (2, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_with_many_connections_takes_its_own() {
        let mut lab = Lab::new(10, 2);
        lab.connect(OTHER).await;
        for _ in 0..5 {
            lab.connect(PEER).await;
        }
        assert_eq!(lab.open().await, [0, 4, 5]);
        assert_eq!(lab.connections.len(), 3);
    }

    #[test]
    fn most_files_are_left_to_the_rest_of_the_process() {
        for (files, all, of_one_peer) in
            [(1_000_000, 512, 128), (1024, 256, 128), (256, 64, 32), (64, 16, 8), (8, 4, 2)]
        {
            assert_eq!(Limits::for_files(files), Limits { all, of_one_peer }, "{files}");
        }
    }
}
