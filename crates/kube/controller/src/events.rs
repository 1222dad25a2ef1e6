//! Events of `events.k8s.io/v1`: what `kubectl describe` shows under an object.
//!
//! The same event again is not another one: its series counts. Each object has a budget, so that a controller that goes
//! round in circles fills no etcd. Publishing never waits and never fails a pass.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use roost_clock::{Clock, SystemClock};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use crate::object::Object;

/// An event that comes again within this time counts on; later it is a new one. Longer than the longest back-off and
/// resync, so that a condition that stays is one event; shorter than the hour for which API servers keep events.
const SERIES_LASTS: Duration = Duration::from_mins(35);

/// How often what is over is taken out of the book.
const TIDIED: Duration = Duration::from_mins(1);

/// How often the count of a series is written.
const SERIES_WRITTEN: Duration = Duration::from_secs(30);

/// New events of one object: so many at once, and one more each `REFILL`.
const BURST: u32 = 25;
const REFILL: Duration = Duration::from_mins(5);

/// The longest note that the API server takes.
const NOTE_BYTES: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    Normal,
    Warning,
}

impl EventType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Publishes events. Cheap to clone.
#[derive(Clone)]
pub struct Events {
    client: Client,
    controller: Arc<str>,
    instance: Arc<str>,
    clock: Arc<dyn Clock>,
    book: Arc<Mutex<Book>>,
    changed: Arc<Notify>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Id {
    uid: String,
    kind: EventType,
    reason: String,
    action: String,
    note: String,
}

#[derive(Debug)]
struct Series {
    regarding: ObjectReference,
    /// Its name, once the server has it.
    name: Option<String>,
    first: Timestamp,
    last: Timestamp,
    last_seen: Instant,
    count: i32,
    written_count: i32,
    due: Instant,
}

#[derive(Debug)]
struct Budget {
    left: u32,
    since: Instant,
}

#[derive(Debug, Default)]
struct Book {
    series: HashMap<Id, Series>,
    budgets: HashMap<String, Budget>,
    number: u64,
    tidied: Option<Instant>,
}

impl Book {
    fn allow(&mut self, uid: &str, now: Instant) -> bool {
        let budget =
            self.budgets.entry(uid.to_owned()).or_insert(Budget { left: BURST, since: now });
        while budget.left < BURST && now.duration_since(budget.since) >= REFILL {
            budget.left += 1;
            budget.since += REFILL;
        }
        if budget.left == BURST {
            budget.since = now;
        }
        let is_allowed = budget.left > 0;
        budget.left = budget.left.saturating_sub(1);
        is_allowed
    }

    fn tidy(&mut self, now: Instant) {
        if self.tidied.is_some_and(|tidied| now.duration_since(tidied) < TIDIED) {
            return;
        }
        self.tidied = Some(now);
        self.series.retain(|_, series| {
            series.count > series.written_count
                || now.duration_since(series.last_seen) < SERIES_LASTS
        });
        self.budgets.retain(|_, budget| now.duration_since(budget.since) < REFILL * BURST);
    }
}

impl Events {
    pub fn new(client: Client, controller: &str) -> Self {
        let instance = std::env::var("POD_NAME").or_else(|_| std::env::var("HOSTNAME"));
        let instance = instance.unwrap_or_else(|_| controller.to_owned());
        Self {
            client,
            controller: controller.into(),
            instance: format!("{controller}-{instance}").into(),
            clock: Arc::new(SystemClock),
            book: Arc::default(),
            changed: Arc::default(),
        }
    }

    pub(crate) fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    pub fn normal<K: Object<DynamicType: Default>>(&self, object: &K, reason: &str, note: &str) {
        self.publish(
            object.object_ref(&K::DynamicType::default()),
            EventType::Normal,
            reason,
            reason,
            note,
        );
    }

    pub fn warning<K: Object<DynamicType: Default>>(&self, object: &K, reason: &str, note: &str) {
        self.publish(
            object.object_ref(&K::DynamicType::default()),
            EventType::Warning,
            reason,
            reason,
            note,
        );
    }

    pub fn publish(
        &self,
        regarding: ObjectReference,
        kind: EventType,
        reason: &str,
        action: &str,
        note: &str,
    ) {
        let note = truncated(note);
        let uid = regarding.uid.clone().unwrap_or_default();
        let (reason, action) = (reason.to_owned(), action.to_owned());
        let id = Id { uid: uid.clone(), kind, reason, action, note };
        let (now, time) = (Instant::now(), self.clock.now());
        let mut book = self.book();
        book.tidy(now);
        if let Some(series) = book.series.get_mut(&id) {
            (series.count, series.last, series.last_seen) =
                (series.count.saturating_add(1), time, now);
        } else if book.allow(&uid, now) {
            let series = Series {
                regarding,
                name: None,
                first: time,
                last: time,
                last_seen: now,
                count: 1,
                written_count: 0,
                due: now,
            };
            book.series.insert(id, series);
        } else {
            debug!(reason = %id.reason, "too many events of one object, one is not published");
        }
        drop(book);
        self.changed.notify_one();
    }

    /// Writes events until it is dropped.
    pub(crate) async fn run(&self) {
        loop {
            let next = self.write_due(Instant::now()).await;
            tokio::select! {
                () = self.changed.notified() => {}
                () = async {
                    match next {
                        Some(due) => sleep_until(due).await,
                        None => std::future::pending().await,
                    }
                } => {}
            }
        }
    }

    /// Writes what is not written yet, whatever is due.
    pub(crate) async fn flush(&self) {
        let _ = tokio::time::timeout(
            Duration::from_secs(2),
            self.write_due(Instant::now() + SERIES_WRITTEN),
        )
        .await;
    }

    /// When the next one is due.
    async fn write_due(&self, now: Instant) -> Option<Instant> {
        let due: Vec<Id> = {
            let book = self.book();
            let is_due = |series: &Series| series.count > series.written_count && series.due <= now;
            let due = book.series.iter().filter(|(_, series)| is_due(series));
            let mut due: Vec<_> = due.map(|(id, series)| (series.first, id.clone())).collect();
            due.sort_by_key(|(first, _)| *first);
            due.into_iter().map(|(_, id)| id).collect()
        };
        for id in due {
            self.write(&id).await;
        }
        let book = self.book();
        let open = book.series.values().filter(|series| series.count > series.written_count);
        open.map(|series| series.due).min()
    }

    async fn write(&self, id: &Id) {
        let Some((regarding, name, first, last, count)) =
            self.book().series.get(id).map(|series| {
                let Series { regarding, name, first, last, count, .. } = series;
                (regarding.clone(), name.clone(), *first, *last, *count)
            })
        else {
            return;
        };
        let namespace = regarding.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        let series = EventSeries { count, last_observed_time: MicroTime(last) };
        let answer = if let Some(name) = name {
            let patch = Patch::Merge(json!({ "series": series }));
            api.patch(&name, &PatchParams::default(), &patch).await
        } else {
            let series = (count > 1).then_some(series);
            let event = self.event(id, &regarding, &namespace, first, series);
            api.create(&PostParams::default(), &event).await
        };
        let mut book = self.book();
        let Some(series) = book.series.get_mut(id) else { return };
        series.due = Instant::now() + SERIES_WRITTEN;
        match answer {
            Ok(event) => {
                series.name = event.metadata.name;
                series.written_count = count;
            }
            // The event was deleted, or never came to be: the next count makes it anew.
            Err(kube::Error::Api(status)) if status.is_not_found() => series.name = None,
            Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => {
                debug!(%status, "an event was refused");
                series.written_count = count;
            }
            Err(error) => debug!(%error, "an event could not be written, it is tried again"),
        }
    }

    fn event(
        &self,
        id: &Id,
        regarding: &ObjectReference,
        namespace: &str,
        first: Timestamp,
        series: Option<EventSeries>,
    ) -> Event {
        let number = {
            let mut book = self.book();
            book.number += 1;
            book.number
        };
        let object = regarding.name.as_deref().unwrap_or("object");
        // Unique among restarts by the time, and within one time by the number.
        let name = format!("{object}.{:x}{number:04x}", first.as_nanosecond());
        Event {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(first)),
            reporting_controller: Some(self.controller.to_string()),
            reporting_instance: Some(self.instance.to_string()),
            action: Some(id.action.clone()),
            reason: Some(id.reason.clone()),
            type_: Some(id.kind.as_str().to_owned()),
            note: Some(id.note.clone()),
            regarding: Some(regarding.clone()),
            series,
            ..Event::default()
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn truncated(note: &str) -> String {
    let mut end = note.len().min(NOTE_BYTES);
    while !note.is_char_boundary(end) {
        end -= 1;
    }
    note[..end].to_owned()
}

impl std::fmt::Debug for Events {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Events")
            .field("controller", &self.controller)
            .finish_non_exhaustive()
    }
}
