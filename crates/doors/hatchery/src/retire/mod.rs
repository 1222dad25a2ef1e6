//! When a worker's VM has served: a table without I/O, from what is known about a VM to what becomes of it.
//!
//! A verdict to delete is a proposal: the fleet's guard still wants it seen twice, on whole and fresh views, within its budgets.

mod events;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use roost_cds::v1::ModelPath;
use roost_cds::{JobId, WorkerStatus};
use roost_fleet::{Basis, Power};

pub use events::{EventKind, EventTimes};

use crate::annotation::Annotation;
use crate::config::Lifetimes;
use crate::names::VmName;
use crate::time::later;

/// A VM and what is known about it.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    pub name: &'a str,
    pub annotation: &'a Annotation,
    pub is_template: bool,
    pub power: Power,
    /// Whether the server reaches it; otherwise what we know may be old.
    pub is_connected: bool,
    pub worker: WorkerSeen,
    /// The server's `config.createDate`.
    pub created: Option<Timestamp>,
    /// Whether a step of ours is at work on it: a spawn, a build, a deletion.
    pub is_busy: bool,
    pub events: Events,
}

/// The worker of the VM's name, on the CDS side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerSeen {
    /// The list of workers could not be read, or not all of it.
    Unknown,
    Absent,
    /// `job` is the V2 job that CDS says it is at work on.
    Registered {
        status: WorkerStatus,
        job: Option<JobId>,
    },
}

/// The VM's events. They are asked for only when a verdict needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    NotAsked,
    Known(EventTimes),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Keep(Keep),
    /// Until then, if nothing changes; then it is deleted.
    Until(Timestamp, Reason),
    /// Only its events can tell. A VM that a CDS hatchery before 0.57 made a worker of says nowhere else when it did so.
    AskEvents,
    Delete(Reason),
}

/// Why a VM stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Another hatchery's, or nobody's.
    Foreign,
    Busy,
    /// The planner of spares looks after it.
    Spare,
    Template,
    /// An empty, partial or failed list never deletes anything.
    WorkersUnknown,
    /// The server cannot say how it is.
    Unreachable,
    /// Neither annotation nor server nor events say since when it is there.
    NoTimes,
}

/// Why a VM goes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("marked for deletion: {why}")]
    Marked { why: String },
    /// Marked, with nothing that could still run in it.
    #[error("marked for deletion and off: {why}")]
    PutDown { why: String },
    #[error("CDS disabled its worker")]
    Disabled,
    #[error("its worker has powered off")]
    PoweredOff,
    #[error("its worker has finished: powered off and not known to CDS")]
    Finished,
    #[error("its worker has lived longer than workerTTL")]
    TooOld,
    #[error("its worker has not registered within workerRegistrationTTL")]
    NeverRegistered,
    #[error("it was claimed and never started")]
    NeverStarted,
    #[error("the build of the template was abandoned")]
    BuildAbandoned,
}

impl Reason {
    /// What the deletion rests on, which decides how much the guard asks of it.
    pub fn basis(&self) -> Basis {
        match self {
            Self::Marked { .. } | Self::Disabled => Basis::Marked,
            Self::PutDown { .. } | Self::PoweredOff | Self::Finished => Basis::Finished,
            Self::TooOld | Self::BuildAbandoned => Basis::Expired,
            Self::NeverRegistered | Self::NeverStarted => Basis::Absent,
        }
    }

    /// From a closed set: it becomes a metric label.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Marked { .. } => "marked",
            Self::PutDown { .. } => "put-down",
            Self::Disabled => "disabled",
            Self::PoweredOff => "powered-off",
            Self::Finished => "finished",
            Self::TooOld => "too-old",
            Self::NeverRegistered => "never-registered",
            Self::NeverStarted => "never-started",
            Self::BuildAbandoned => "build-abandoned",
        }
    }
}

/// What is owed to the CDS side once the VM is gone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Aftermath {
    /// A V2 job that its worker still holds: without a release CDS stops it for good. Only if it is still Scheduling or Building (D23).
    pub release: Option<JobId>,
    /// A V1 model whose registration this was: if it is still not registered, its owner is told.
    pub report: Option<ModelPath>,
}

/// How long a V1 template may take to build: CDS's own limit, and as much again.
const BUILD_LIMIT: Duration = Duration::from_mins(30);

/// Row by row, the first that fits: of others, busy, marked, spare, template; then by what CDS says of its worker, by its power and by its age.
pub fn judge(
    subject: &Subject<'_>,
    hatchery: &str,
    lifetimes: &Lifetimes,
    now: Timestamp,
) -> Verdict {
    let annotation = subject.annotation;
    if !annotation.is_of(hatchery) {
        return Verdict::Keep(Keep::Foreign);
    }
    if subject.is_busy {
        return Verdict::Keep(Keep::Busy);
    }
    if let Some(doom) = &annotation.doomed {
        let why = doom.reason.clone();
        let reason =
            if is_put_down(subject) { Reason::PutDown { why } } else { Reason::Marked { why } };
        return match start(subject) {
            // Our own mark rests on what we believed when we made it. CDS says now that its worker is at work.
            Some(start) if !doom.by_person && is_at_work(subject) => {
                expire(later(start, lifetimes.worker), reason, now)
            }
            _ => Verdict::Delete(reason),
        };
    }
    let name = VmName::of(subject.name);
    if name.is_spare() {
        return Verdict::Keep(Keep::Spare);
    }
    if annotation.model || subject.is_template {
        return match (name, subject.is_template, birth(subject)) {
            (VmName::Building { .. }, false, Some(birth)) => {
                expire(later(birth, BUILD_LIMIT), Reason::BuildAbandoned, now)
            }
            _ => Verdict::Keep(Keep::Template),
        };
    }
    let registered = match &subject.worker {
        WorkerSeen::Unknown => return Verdict::Keep(Keep::WorkersUnknown),
        WorkerSeen::Registered { status: WorkerStatus::Disabled, .. } => {
            return Verdict::Delete(Reason::Disabled);
        }
        WorkerSeen::Registered { .. } => true,
        WorkerSeen::Absent => false,
    };
    if !subject.is_connected || subject.power == Power::Unknown {
        return Verdict::Keep(Keep::Unreachable);
    }
    if let Some(start) = start(subject) {
        return by_power(subject.power, registered, start, lifetimes, now);
    }
    match subject.events {
        Events::NotAsked => Verdict::AskEvents,
        Events::Known(times) => times.judge(registered, lifetimes, now).unwrap_or_else(|| {
            // Events age out of the server; the VM's birth is then the best that is left (W22).
            match birth(subject) {
                Some(birth) => by_power(subject.power, registered, birth, lifetimes, now),
                None => Verdict::Keep(Keep::NoTimes),
            }
        }),
    }
}

/// Whether the VM runs and CDS counts on its worker.
fn is_at_work(subject: &Subject<'_>) -> bool {
    let is_counted_on = match &subject.worker {
        WorkerSeen::Registered { status, .. } => *status != WorkerStatus::Disabled,
        WorkerSeen::Unknown | WorkerSeen::Absent => false,
    };
    is_counted_on && subject.power != Power::Off
}

/// A worker's VM that is off has nothing left to lose. A spare is off all its life, so that its mark is all that speaks against it.
fn is_put_down(subject: &Subject<'_>) -> bool {
    let is_worker = VmName::of(subject.name) == VmName::Worker
        && !subject.is_template
        && !subject.annotation.model;
    is_worker && subject.is_connected && subject.power == Power::Off
}

/// The four rows of D21.
fn by_power(
    power: Power,
    registered: bool,
    start: Timestamp,
    lifetimes: &Lifetimes,
    now: Timestamp,
) -> Verdict {
    match (power == Power::Off, registered) {
        (true, true) => Verdict::Delete(Reason::PoweredOff),
        (true, false) => expire(later(start, lifetimes.finished_grace), Reason::Finished, now),
        (false, true) => expire(later(start, lifetimes.worker), Reason::TooOld, now),
        // Whether it is missing from the workers or not, it has had its time: that needs no list, which may be empty for good reason.
        (false, false) if now >= later(start, lifetimes.worker.max(lifetimes.registration)) => {
            Verdict::Delete(Reason::TooOld)
        }
        (false, false) => {
            expire(later(start, lifetimes.registration), Reason::NeverRegistered, now)
        }
    }
}

fn expire(at: Timestamp, reason: Reason, now: Timestamp) -> Verdict {
    if now >= at { Verdict::Delete(reason) } else { Verdict::Until(at, reason) }
}

/// When the VM became a worker, if that can be known without its events.
///
/// A worker that still says it is a spare was claimed by a CDS hatchery before 0.57, which told nobody: its birth is the spare's, long before.
fn start(subject: &Subject<'_>) -> Option<Timestamp> {
    let claimed_silently = subject.annotation.provisioning;
    subject
        .annotation
        .worker_start_time
        .get()
        .or_else(|| birth(subject).filter(|_| !claimed_silently))
}

fn birth(subject: &Subject<'_>) -> Option<Timestamp> {
    subject.created.or(subject.annotation.created.get())
}

/// What is owed once this VM is gone.
pub fn aftermath(subject: &Subject<'_>) -> Aftermath {
    let release = match &subject.worker {
        WorkerSeen::Registered { job: Some(job @ JobId::V2(_)), .. } => Some(job.clone()),
        _ => None,
    };
    let path = &subject.annotation.worker_model_path;
    let registers =
        VmName::of(subject.name) == VmName::Registering || subject.annotation.register_only;
    let report = (registers && !path.is_empty()).then(|| ModelPath::parse(path));
    Aftermath { release, report }
}
