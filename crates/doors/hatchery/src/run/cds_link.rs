//! How CDS is heard and how it hears us.

use std::collections::BTreeMap;
use std::sync::Mutex;

use roost_cds::{HeartbeatHealth, Protocol, QueueHealth};
use tokio::sync::watch;

use super::scheduler::lock;

/// What the loops that speak to CDS tell of their links, for whoever shows it.
#[derive(Debug, Default)]
pub(crate) struct CdsLink {
    queues: Mutex<BTreeMap<Protocol, watch::Receiver<QueueHealth>>>,
    hearts: Mutex<BTreeMap<Protocol, watch::Receiver<HeartbeatHealth>>>,
    version: Mutex<Option<String>>,
}

impl CdsLink {
    /// Remembers how a queue is heard.
    pub(super) fn follow_queue(&self, protocol: Protocol, health: watch::Receiver<QueueHealth>) {
        lock(&self.queues).insert(protocol, health);
    }

    /// How each queue is heard.
    pub(crate) fn queue_health(&self) -> Vec<(Protocol, QueueHealth)> {
        let queues = lock(&self.queues);
        queues.iter().map(|(protocol, health)| (*protocol, health.borrow().clone())).collect()
    }

    /// Remembers how CDS takes the heartbeats of a protocol.
    pub(super) fn follow_heart(
        &self,
        protocol: Protocol,
        health: watch::Receiver<HeartbeatHealth>,
    ) {
        lock(&self.hearts).insert(protocol, health);
    }

    /// How CDS takes the heartbeats of each protocol.
    pub(crate) fn heart_health(&self) -> Vec<(Protocol, HeartbeatHealth)> {
        let hearts = lock(&self.hearts);
        hearts.iter().map(|(protocol, health)| (*protocol, health.borrow().clone())).collect()
    }

    /// As CDS says itself; `None` until it has.
    pub(crate) fn version(&self) -> Option<String> {
        lock(&self.version).clone()
    }

    pub(super) fn tell_version(&self, version: String) {
        *lock(&self.version) = Some(version);
    }
}
