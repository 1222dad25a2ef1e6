use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use roost_clock::Clock;
use serde::Serialize;
use tokio::time::{Instant, timeout};

use super::Phase;

/// Machines whose timelines are kept.
const TIMELINES: usize = 1_024;

/// Steps that are kept of each: a machine has some ten; a loop that repeats one must not grow without end.
const STEPS: usize = 64;

/// How a phase ended. A closed set, because it becomes a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    Done,
    Failed,
    /// Its deadline passed.
    Overdue,
    /// Whoever waited has gone away.
    Abandoned,
}

impl Ended {
    pub const ALL: [Self; 4] = [Self::Done, Self::Failed, Self::Overdue, Self::Abandoned];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Overdue => "overdue",
            Self::Abandoned => "abandoned",
        }
    }
}

/// Why a phase did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PhaseError<E> {
    #[error("{phase} took longer than {after:?}")]
    Overdue { phase: Phase, after: Duration },
    #[error("{phase}")]
    Failed { phase: Phase, source: E },
}

/// Hears of every phase that ends, for histograms.
pub trait PhaseHook: Debug + Send + Sync + 'static {
    fn ended(&self, phase: Phase, ended: Ended, took: Duration);
}

/// What a machine went through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Timeline {
    pub machine: Arc<str>,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    #[serde(skip)]
    id: u64,
    pub phase: Phase,
    pub began: Timestamp,
    pub deadline_ms: u64,
    /// `None` while it lasts.
    pub took_ms: Option<u64>,
    pub ended: Option<Ended>,
}

/// The timelines of the last machines. A handle; clones share them.
#[derive(Debug, Clone)]
pub struct Timelines {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    kept: Mutex<Kept>,
    hook: Option<Arc<dyn PhaseHook>>,
    clock: Arc<dyn Clock>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first.
    timelines: VecDeque<Timeline>,
    last_step: u64,
}

impl Kept {
    fn of(&mut self, machine: &str) -> Option<&mut Timeline> {
        self.timelines.iter_mut().rev().find(|timeline| *timeline.machine == *machine)
    }

    fn step(&mut self, id: u64) -> Option<&mut Step> {
        let steps =
            self.timelines.iter_mut().rev().flat_map(|timeline| timeline.steps.iter_mut().rev());
        steps.into_iter().find(|step| step.id == id)
    }
}

impl Timelines {
    pub fn new(clock: Arc<dyn Clock>, hook: Option<Arc<dyn PhaseHook>>) -> Self {
        Self { inner: Arc::new(Inner { kept: Mutex::default(), hook, clock }) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.inner.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a phase of a machine, known by its name. Dropping the timer before it is told how the phase ended means that it
    /// was abandoned.
    pub fn begin(&self, machine: &str, phase: Phase, deadline: Duration) -> PhaseTimer {
        let mut kept = self.kept();
        kept.last_step += 1;
        let id = kept.last_step;
        let began = self.inner.clock.now();
        let step =
            Step { id, phase, began, deadline_ms: millis(deadline), took_ms: None, ended: None };
        if let Some(timeline) = kept.of(machine) {
            if timeline.steps.len() == STEPS {
                timeline.steps.remove(0);
            }
            timeline.steps.push(step);
        } else {
            if kept.timelines.len() == TIMELINES {
                kept.timelines.pop_front();
            }
            kept.timelines.push_back(Timeline { machine: machine.into(), steps: vec![step] });
        }
        PhaseTimer { timelines: self.clone(), step: id, phase, since: Instant::now(), ended: false }
    }

    /// Does `work` as a phase of a machine, within a deadline of its own.
    pub async fn run<T, E>(
        &self,
        machine: &str,
        phase: Phase,
        deadline: Duration,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, PhaseError<E>> {
        let timer = self.begin(machine, phase, deadline);
        match timeout(deadline, work).await {
            Ok(Ok(done)) => {
                timer.end(Ended::Done);
                Ok(done)
            }
            Ok(Err(source)) => {
                timer.end(Ended::Failed);
                Err(PhaseError::Failed { phase, source })
            }
            Err(_) => {
                timer.end(Ended::Overdue);
                Err(PhaseError::Overdue { phase, after: deadline })
            }
        }
    }

    pub fn of(&self, machine: &str) -> Option<Timeline> {
        self.kept().of(machine).cloned()
    }

    /// Oldest first.
    pub fn all(&self) -> Vec<Timeline> {
        self.kept().timelines.iter().cloned().collect()
    }

    /// A spare that was claimed has a new name, and goes on with what it went through.
    pub fn rename(&self, from: &str, to: &str) {
        if let Some(timeline) = self.kept().of(from) {
            timeline.machine = to.into();
        }
    }
}

/// A phase that lasts.
#[derive(Debug)]
pub struct PhaseTimer {
    timelines: Timelines,
    step: u64,
    phase: Phase,
    since: Instant,
    ended: bool,
}

impl PhaseTimer {
    /// Returns how long it took.
    pub fn end(mut self, ended: Ended) -> Duration {
        self.finish(ended)
    }

    fn finish(&mut self, ended: Ended) -> Duration {
        let took = self.since.elapsed();
        if std::mem::replace(&mut self.ended, true) {
            return took;
        }
        // Its timeline may be gone.
        if let Some(step) = self.timelines.kept().step(self.step) {
            (step.took_ms, step.ended) = (Some(millis(took)), Some(ended));
        }
        if let Some(hook) = &self.timelines.inner.hook {
            hook.ended(self.phase, ended, took);
        }
        took
    }
}

impl Drop for PhaseTimer {
    fn drop(&mut self) {
        self.finish(Ended::Abandoned);
    }
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}
