use roost_cds::v1::{EventFilter, EventMessage};
use roost_cds::v2::JobQueued;
use roost_cds::{JobStatus, SocketClosed, json, v1};
use roost_clock::Random;
use tokio::sync::mpsc;

use super::{Who, World};
use crate::faults::EventEffect;

pub(crate) type SocketId = u64;
type Sender = mpsc::Sender<Result<String, SocketClosed>>;

/// A job waits, and hatcheries may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    V1(i64),
    V2(String),
}

/// All open websockets.
#[derive(Debug)]
pub(crate) struct Sockets {
    random: Random,
    next: SocketId,
    rows: Vec<SocketRow>,
}

#[derive(Debug)]
struct SocketRow {
    id: SocketId,
    who: Who,
    /// Empty until a V1 client has said what it wants to hear.
    filters: Vec<EventFilter>,
    sender: Sender,
}

/// One frame for one websocket, and what a fault does to it.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) socket: SocketId,
    pub(crate) frame: String,
    pub(crate) effect: Option<EventEffect>,
}

impl Sockets {
    pub(crate) fn new(random: Random) -> Self {
        Self { random, next: 0, rows: Vec::new() }
    }

    pub(crate) fn open(&mut self, who: Who, sender: Sender) -> SocketId {
        self.next += 1;
        self.rows.push(SocketRow { id: self.next, who, filters: Vec::new(), sender });
        self.next
    }

    pub(crate) fn count(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn gone(&mut self, id: SocketId) {
        self.rows.retain(|row| row.id != id);
    }

    /// A text frame of a client: its filters, as a list or as a single one.
    pub(crate) fn filter(&mut self, id: SocketId, text: &str) {
        let filters = json::decode::<Vec<EventFilter>>(text.as_bytes())
            .or_else(|_| json::decode(text.as_bytes()).map(|filter| vec![filter]));
        let Some(row) = self.rows.iter_mut().find(|row| row.id == id) else { return };
        match filters {
            Ok(filters)
                if filters.iter().all(|filter| filter.filter_type == EventFilter::QUEUE) =>
            {
                row.filters = filters;
            }
            _ => {
                let refused = EventMessage {
                    status: "KO".to_owned(),
                    error: "invalid filter".to_owned(),
                    ..EventMessage::default()
                };
                self.send(id, &text_of(&refused));
            }
        }
    }

    /// A reader that is so slow that its channel is full loses its websocket.
    pub(crate) fn send(&mut self, id: SocketId, frame: &str) {
        let failed =
            |row: &SocketRow| row.id == id && row.sender.try_send(Ok(frame.to_owned())).is_err();
        self.rows.retain(|row| !failed(row));
    }

    pub(crate) fn close(&mut self, id: SocketId, code: u16) {
        let Some(at) = self.rows.iter().position(|row| row.id == id) else { return };
        let closed = SocketClosed { code, reason: String::new() };
        // A full channel ends all the same when its sender is dropped with the row.
        let _ = self.rows.swap_remove(at).sender.try_send(Err(closed));
    }

    pub(crate) fn close_all(&mut self, code: u16) {
        for id in self.rows.iter().map(|row| row.id).collect::<Vec<_>>() {
            self.close(id, code);
        }
    }
}

impl World {
    /// Who gets this event, in no particular order but always the same for a seed.
    pub(crate) fn deliveries(&mut self, event: &Event) -> Vec<Delivery> {
        let Some(frame) = self.frame(event) else { return Vec::new() };
        let hears = |row: &&SocketRow| self.hears(row, event);
        let mut sockets: Vec<_> =
            self.sockets.rows.iter().filter(hears).map(|row| row.id).collect();
        for last in (1..sockets.len()).rev() {
            let other = self.sockets.random.below(last as u64 + 1);
            sockets.swap(last, usize::try_from(other).unwrap_or(last));
        }
        let rules = &mut self.rules;
        sockets
            .into_iter()
            .map(|socket| Delivery { socket, frame: frame.clone(), effect: rules.for_event() })
            .collect()
    }

    fn frame(&self, event: &Event) -> Option<String> {
        match event {
            Event::V1(id) => {
                let job = &self.v1_jobs.get(id)?.job;
                let payload =
                    v1::EventPayload { id: *id, status: Some(job.status), start: -62_135_596_800 };
                let event = v1::Event {
                    type_event: v1::Event::JOB.to_owned(),
                    project_key: job.project_key().to_owned(),
                    workflow_name: job.header.get("X-Workflow").cloned().unwrap_or_default(),
                    status: Some(job.status),
                    region: job.region.clone().unwrap_or_default(),
                    model_type: job.model_type.clone(),
                    payload,
                };
                let (status, error) = ("OK".to_owned(), String::new());
                Some(text_of(&EventMessage { status, error, event }))
            }
            Event::V2(id) => {
                let job = &self.v2_jobs.get(id)?.job;
                Some(text_of(&JobQueued {
                    job_run_id: id.clone(),
                    region: job.region.clone(),
                    model_type: job.model_type.clone(),
                    model_os_arch: job.model_os_arch.clone(),
                    project_key: job.project_key.clone(),
                    workflow_name: job.workflow_name.clone(),
                    job_id: job.job_id.clone(),
                    run_number: job.run_number,
                }))
            }
        }
    }

    /// The server's own filter.
    fn hears(&self, row: &SocketRow, event: &Event) -> bool {
        match event {
            Event::V1(id) => {
                let (Ok(service), Ok(job)) = (self.access.service_of(&row.who), self.v1_job(*id))
                else {
                    return false;
                };
                let job = &job.job;
                let is_ours = |filter: &EventFilter| {
                    job.model_type.is_empty() || job.model_type == filter.hatchery_type
                };
                let region = job.region.as_deref().unwrap_or_default();
                let ignores = service.service.ignore_job_with_no_region == Some(true);
                let here = match region {
                    "" => !ignores,
                    region => service.service.region.as_deref() == Some(region),
                };
                job.status == JobStatus::Waiting
                    && row.filters.iter().any(is_ours)
                    && here
                    && service.sees(&job.exec_groups)
            }
            Event::V2(id) => {
                let (Ok(hatchery), Some(row)) =
                    (self.access.hatchery_of(&row.who), self.v2_jobs.get(id))
                else {
                    return false;
                };
                hatchery.region.as_deref() == Some(&row.job.region)
                    && hatchery.hatchery.model_type == row.job.model_type
                    && hatchery.os_arch().contains(&row.job.model_os_arch.as_str())
            }
        }
    }
}

fn text_of<T: serde::Serialize>(value: &T) -> String {
    String::from_utf8_lossy(&json::encode(value)).into_owned()
}
