//! Following events as they happen, without a gap.
//!
//! A history collector shows the newest events as its `latestPage`, and the property stream tells when that changes. Every change
//! brings the whole page, so that it is kept small and what was seen before is dropped. When a page has nothing that was
//! seen, more has happened than it holds, and the rest is queried. The same rule closes the gap after a lost session.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use roost_supervise::Backoff;
use roost_vim_wire::methods::{CreateCollectorForEvents, CurrentTime, SetCollectorPageSize};
use roost_vim_wire::types::Event;
use roost_vim_wire::{MoRef, Value};

use super::error::EventError;
use super::query::EventQuery;
use crate::cleanup::{Destroy, SessionObject};
use crate::{CallError, Change, Faulted, Observer, Subscription, WatchSpec};

/// Where a tail begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailFrom {
    /// With what happens after the call.
    Now,
    /// With what happened at this time of the server's clock.
    Time(Timestamp),
}

/// What one page holds. Each event makes the server send the whole page again.
const PAGE: i32 = 20;
const LATEST: &str = "latestPage";

/// Between attempts to make a collector that vanishes at once.
const PAUSE: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));

/// Events as they happen. Dropping it destroys what it has on the server.
#[derive(Debug)]
pub struct EventTail {
    observer: Observer,
    query: EventQuery,
    seen: Seen,
    running: Option<Running>,
    /// A page that has come and is not yet taken: kept here so that a dropped [`EventTail::next`] loses nothing.
    page: Option<Vec<Event>>,
    vanished: u32,
}

#[derive(Debug)]
struct Running {
    collector: SessionObject,
    updates: Subscription,
    is_there: bool,
}

impl Observer {
    /// Follows the events that a query selects; its end time is ignored.
    pub async fn tail_events(
        &self,
        query: EventQuery,
        from: TailFrom,
    ) -> Result<EventTail, EventError> {
        let entity = query.entity.clone();
        EventTail::start(self, query, from)
            .await
            .map_err(|source| EventError::Tail { entity, source })
    }
}

impl EventTail {
    async fn start(
        observer: &Observer,
        query: EventQuery,
        from: TailFrom,
    ) -> Result<Self, CallError> {
        let since = match from {
            TailFrom::Time(time) => time,
            TailFrom::Now => {
                observer.read(&CurrentTime { this: MoRef::service_instance() }).await?
            }
        };
        let query = EventQuery { to: None, ..query };
        let seen = Seen::since(since);
        let mut tail = Self {
            observer: observer.clone(),
            query,
            seen,
            running: None,
            page: None,
            vanished: 0,
        };
        let running = tail.collect().await?;
        if from == TailFrom::Now {
            // What has happened by now is not what happens after the call.
            let read = observer.properties(running.collector.moref(), &[LATEST]).await?;
            tail.seen.take(read.get(LATEST).map(events).unwrap_or_default());
        }
        tail.running = Some(running);
        Ok(tail)
    }

    /// The next events, oldest first, never none. Waits for them. After an error it can be called again and goes on where it was;
    /// dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Vec<Event>, EventError> {
        let entity = self.query.entity.clone();
        loop {
            if self.page.is_none()
                && let Err(source) = self.wait_for_page().await
            {
                return Err(EventError::Tail { entity, source });
            }
            let Some(page) = &self.page else { continue };
            let missed = if self.seen.has_gap(page) { self.missed().await? } else { Vec::new() };
            let page = self.page.take().unwrap_or_default();
            let fresh = self.seen.take(missed.into_iter().chain(page).collect());
            if !fresh.is_empty() {
                return Ok(fresh);
            }
        }
    }

    async fn missed(&self) -> Result<Vec<Event>, EventError> {
        self.observer.events(&self.query_since_last()).await
    }

    fn query_since_last(&self) -> EventQuery {
        EventQuery { from: Some(self.seen.last), ..self.query.clone() }
    }

    /// Waits for a change of the page, on a new collector if the last one went away with its session.
    async fn wait_for_page(&mut self) -> Result<(), CallError> {
        let running = match &mut self.running {
            Some(running) => running,
            empty => {
                tokio::time::sleep(PAUSE.pause(self.vanished)).await;
                match Self::collect_for(&self.observer, &self.query, self.seen.last).await {
                    Ok(made) => empty.insert(made),
                    // The session went away between two calls.
                    Err(error) if error.is_fault("ManagedObjectNotFound") => {
                        self.vanished += 1;
                        return Ok(());
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        let batch = running.updates.next().await.ok_or(CallError::ShuttingDown)?;
        let mut is_gone = false;
        for update in batch.updates {
            let value = match update.change {
                Change::Enter(properties) => {
                    running.is_there = true;
                    properties.get(LATEST).cloned()
                }
                Change::Modify(changes) => {
                    changes.into_iter().rfind(|change| change.name == LATEST).and_then(|it| it.val)
                }
                Change::Leave => {
                    is_gone = true;
                    None
                }
            };
            if let Some(value) = value {
                self.page = Some(events(&value));
            }
        }
        if is_gone || batch.synced && !running.is_there {
            self.running = None;
            self.vanished += 1;
        } else if running.is_there {
            self.vanished = 0;
        }
        Ok(())
    }

    async fn collect(&self) -> Result<Running, CallError> {
        Self::collect_for(&self.observer, &self.query, self.seen.last).await
    }

    async fn collect_for(
        observer: &Observer,
        query: &EventQuery,
        from: Timestamp,
    ) -> Result<Running, CallError> {
        let filter = EventQuery { from: Some(from), ..query.clone() }.filter();
        let call = CreateCollectorForEvents { this: observer.event_manager()?, filter };
        let collector = observer.create(&call, Destroy::History).await?;
        let this = collector.moref().clone();
        observer.session(&SetCollectorPageSize { this, max_count: PAGE }).await?;
        let updates =
            observer.watch(WatchSpec::object(collector.moref().clone(), &[LATEST])).await?;
        Ok(Running { collector, updates, is_there: false })
    }
}

fn events(page: &Value) -> Vec<Event> {
    page.data_items::<Event>().cloned().collect()
}

/// Which events have been handed out: the newest some thousand by key, all before as a bound.
#[derive(Debug)]
struct Seen {
    keys: BTreeSet<i32>,
    /// Keys up to here count as seen.
    floor: i32,
    /// When the newest seen one happened, or when the tail began.
    last: Timestamp,
}

impl Seen {
    /// More than can be in one page or happen in the order of arrival of another.
    const REMEMBERED: usize = 4096;

    fn since(time: Timestamp) -> Self {
        Self { keys: BTreeSet::new(), floor: i32::MIN, last: time }
    }

    /// Whether events may have come and gone between what was seen and this page.
    fn has_gap(&self, page: &[Event]) -> bool {
        let is_full = page.len() >= usize::try_from(PAGE).unwrap_or_default();
        is_full && !page.iter().any(|event| self.contains(event.key))
    }

    fn contains(&self, key: i32) -> bool {
        key <= self.floor || self.keys.contains(&key)
    }

    /// Marks events as seen and returns those that were not, oldest first.
    fn take(&mut self, events: Vec<Event>) -> Vec<Event> {
        let mut fresh: Vec<_> =
            events.into_iter().filter(|event| !self.contains(event.key)).collect();
        fresh.sort_by_key(|event| event.key);
        fresh.dedup_by_key(|event| event.key);
        for event in &fresh {
            self.keys.insert(event.key);
            self.last = self.last.max(event.created_time);
        }
        while self.keys.len() > Self::REMEMBERED {
            self.floor = self.keys.pop_first().unwrap_or(self.floor);
        }
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(key: i32) -> Event {
        let created_time = Timestamp::from_second(key.into()).unwrap();
        Event { key, created_time, ..Event::of("VmPoweredOnEvent") }
    }

    fn page(keys: impl Iterator<Item = i32>) -> Vec<Event> {
        keys.map(event).collect()
    }

    fn keys(events: &[Event]) -> Vec<i32> {
        events.iter().map(|event| event.key).collect()
    }

    #[test]
    fn an_event_is_handed_out_once_and_in_order() {
        let mut seen = Seen::since(Timestamp::UNIX_EPOCH);
        assert_eq!(keys(&seen.take(page([3, 1, 2, 3].into_iter()))), [1, 2, 3]);
        assert_eq!(keys(&seen.take(page([4, 3, 2].into_iter()))), [4]);
        assert_eq!(seen.last, Timestamp::from_second(4).unwrap());
    }

    #[test]
    fn an_event_that_arrives_after_a_later_one_is_not_lost() {
        let mut seen = Seen::since(Timestamp::UNIX_EPOCH);
        seen.take(page([10, 12].into_iter()));
        assert_eq!(keys(&seen.take(page([10, 11, 12].into_iter()))), [11]);
    }

    #[test]
    fn a_full_page_without_anything_known_is_a_gap() {
        let mut seen = Seen::since(Timestamp::UNIX_EPOCH);
        assert!(!seen.has_gap(&page(1..5)), "a page that is not full holds all there is");
        assert!(seen.has_gap(&page(1..=PAGE)), "more may have happened since the beginning");
        seen.take(page(1..=5));
        assert!(!seen.has_gap(&page(5..5 + PAGE)));
        assert!(
            seen.has_gap(&page(6..6 + PAGE)),
            "6 may have come and 5 be the last before; nobody knows"
        );
    }

    #[test]
    fn what_is_forgotten_still_counts_as_seen() {
        let mut seen = Seen::since(Timestamp::UNIX_EPOCH);
        seen.take(page(0..6000));
        assert_eq!(seen.keys.len(), Seen::REMEMBERED);
        assert!(seen.take(page(0..6000)).is_empty());
    }
}
