//! How a flow ends, and what that asks of the queue.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use roost_controller::{Next, Remedial, Remedy, WriteError, remedy_of};

use crate::planted::{self, Bug};

/// The way through a flowchart: on to the next box, or to an end.
pub(crate) type Flow<T = ()> = Result<T, Halt>;

/// Why a flow ends before its last box.
#[derive(Debug)]
pub(crate) enum Halt {
    /// Something was changed or started. Its end, or the change that it makes, brings the key back.
    Done(Done),
    /// Nothing helps until somebody changes something.
    NoRequeue(String),
    Requeue(Duration),
    RequeueAt(Timestamp),
    /// A VM is being made for this object.
    ReconcileInProgress,
    TooManyCreates,
    /// The image is being copied; the cache object will say when it is there.
    CacheNotReady,
    Failed(Failure),
}

/// What a pass did. One change of a VM per pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Done {
    CreateStarted,
    Reconfigured,
    UpgradedHardwareVersion,
    Customized,
    PowerStateUpdated,
    Restarted,
    SnapshotStarted,
    RevertStarted,
    PromotionStarted,
    DeleteStarted,
    /// Our marks were taken off the VM.
    CleanedUp,
    HasOutstandingTask,
    /// What is to be looked at closely has not been shown yet.
    NotSeenYet,
}

/// Something that went wrong and is tried again, each time later.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) what: String,
    pub(crate) source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl StdError for Failure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl Halt {
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::Failed(Failure::new(what))
    }

    pub(crate) fn because<E: StdError + Send + Sync + 'static>(
        what: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::Failed(Failure { what, source: Some(Box::new(source)) })
    }
}

/// Why a pass failed.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    #[error("{}", joined(.0))]
    Failed(Vec<String>),
    #[error("{0}")]
    NeedsPerson(String),
    #[error("writing the object")]
    Write(#[from] WriteError),
    #[error("asking the API server to {what}")]
    Api { what: String, source: Box<kube::Error> },
}

impl PassError {
    pub(crate) fn api(what: String) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Api { what, source: Box::new(source) }
    }
}

impl Remedial for PassError {
    fn remedy(&self) -> Remedy {
        match self {
            Self::Failed(_) => Remedy::Backoff,
            Self::NeedsPerson(_) => Remedy::Person,
            Self::Write(error) => error.remedy(),
            Self::Api { source, .. } => remedy_of(source),
        }
    }
}

fn joined(all: &[String]) -> String {
    all.join("; ")
}

/// When no event may come, keys are looked at by time.
const WITHOUT_SIGNALS: Duration = Duration::from_secs(5);

/// Until a VM that has not been shown closely is asked for once more; that it is shown brings its key back earlier.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// What the end of a flow asks for.
pub(crate) struct Delays {
    pub(crate) create_requeue: Duration,
    /// Whether changes of VMs are told.
    pub(crate) has_signals: bool,
}

/// The table of how ends of flows become requeues. A requeue wins over "nothing helps".
pub(crate) fn result_of(ended: Flow<Next>, delays: &Delays) -> Result<Next, PassError> {
    let halt = match ended {
        Ok(next) => return Ok(next),
        Err(halt) => halt,
    };
    match halt {
        // A close-up that was asked for while the VM was not there is not told: it has to be asked for again.
        Halt::Done(Done::NotSeenYet) if delays.has_signals => Ok(Next::After(ASK_AGAIN)),
        Halt::Done(done) => {
            tracing::debug!(?done, "the pass ends");
            let is_told = delays.has_signals;
            Ok(if is_told { Next::AwaitChange } else { Next::After(WITHOUT_SIGNALS) })
        }
        Halt::CacheNotReady => Ok(Next::AwaitChange),
        Halt::NoRequeue(why) => Err(PassError::NeedsPerson(why)),
        Halt::Requeue(Duration::ZERO) => Ok(Next::Now),
        Halt::Requeue(after) => Ok(Next::After(after)),
        Halt::RequeueAt(at) => Ok(Next::At(at)),
        Halt::ReconcileInProgress | Halt::TooManyCreates => Ok(Next::After(delays.create_requeue)),
        Halt::Failed(_) if planted::is(Bug::ForgetsErrors) => Ok(Next::AwaitChange),
        Halt::Failed(failure) => {
            Err(PassError::Failed(vec![roost_supervise::Chain(&failure).to_string()]))
        }
    }
}

/// Collects what went wrong in steps that do not stop the ones after them.
#[derive(Debug, Default)]
pub(crate) struct Aggregate(Vec<String>);

impl Aggregate {
    /// The rule of every step of an update: what is retried is collected, everything else ends the flow, but for what was collected before.
    pub(crate) fn step(&mut self, name: &str, ended: Flow) -> Flow {
        match ended {
            Ok(()) => Ok(()),
            Err(Halt::Failed(failure)) => {
                let why = roost_supervise::Chain(&failure);
                self.0.push(format!("failed to reconcile {name}: {why}"));
                Ok(())
            }
            Err(halt) => Err(self.take().map_or(halt, Halt::Failed)),
        }
    }

    /// All that was collected, as one failure.
    pub(crate) fn end(mut self) -> Flow {
        self.take().map_or(Ok(()), |failure| Err(Halt::Failed(failure)))
    }

    pub(crate) fn fail(&mut self) -> Halt {
        Halt::Failed(self.take().unwrap_or_else(|| Failure::new("nothing was collected")))
    }

    fn take(&mut self) -> Option<Failure> {
        let all = std::mem::take(&mut self.0);
        (!all.is_empty()).then(|| Failure::new(joined(&all)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn each_end_of_a_flow_asks_for_its_own_requeue() {
        let (with, without) = (true, false);
        let ten = Duration::from_secs(10);
        let at = Timestamp::UNIX_EPOCH;
        for (case, signals, ended, want) in [
            ("through", with, Ok(Next::AwaitChange), Some(Next::AwaitChange)),
            ("changed", with, Err(Halt::Done(Done::Reconfigured)), Some(Next::AwaitChange)),
            (
                "changed, nobody tells",
                without,
                Err(Halt::Done(Done::Reconfigured)),
                Some(Next::After(5 * SECOND)),
            ),
            (
                "not seen yet",
                with,
                Err(Halt::Done(Done::NotSeenYet)),
                Some(Next::After(30 * SECOND)),
            ),
            ("requeue", with, Err(Halt::Requeue(SECOND)), Some(Next::After(SECOND))),
            ("requeue at once", with, Err(Halt::Requeue(Duration::ZERO)), Some(Next::Now)),
            ("requeue at a time", with, Err(Halt::RequeueAt(at)), Some(Next::At(at))),
            ("in progress", with, Err(Halt::ReconcileInProgress), Some(Next::After(ten))),
            ("too many creates", with, Err(Halt::TooManyCreates), Some(Next::After(ten))),
            ("cache", with, Err(Halt::CacheNotReady), Some(Next::AwaitChange)),
            ("no requeue", with, Err(Halt::NoRequeue("x".into())), None),
            ("failed", with, Err(Halt::failed("x")), None),
        ] {
            let delays = Delays { create_requeue: ten, has_signals: signals };
            assert_eq!(result_of(ended, &delays).ok(), want, "{case}");
        }
        let delays = Delays { create_requeue: ten, has_signals: true };
        let person = result_of(Err(Halt::NoRequeue("x".into())), &delays).unwrap_err();
        assert_eq!(person.remedy(), Remedy::Person);
        let failed = result_of(Err(Halt::failed("x")), &delays).unwrap_err();
        assert_eq!(failed.remedy(), Remedy::Backoff);
    }

    #[test]
    fn a_failing_step_still_gets_its_retry_when_a_later_one_ends_the_pass() {
        let mut all = Aggregate::default();
        assert!(all.step("status", Err(Halt::failed("no host"))).is_ok());
        let ended = all.step("backup", Err(Halt::NoRequeue("paused".into())));
        let Err(Halt::Failed(failure)) = ended else { panic!("the failure comes first") };
        assert_eq!(failure.to_string(), "failed to reconcile status: no host");
        let mut none = Aggregate::default();
        let ended = none.step("backup", Err(Halt::Done(Done::Reconfigured)));
        assert!(matches!(ended, Err(Halt::Done(Done::Reconfigured))));
        assert!(none.end().is_ok());
        let mut two = Aggregate::default();
        let _ = two.step("a", Err(Halt::failed("1")));
        let _ = two.step("b", Err(Halt::failed("2")));
        let Err(Halt::Failed(failure)) = two.end() else { panic!() };
        assert_eq!(failure.to_string(), "failed to reconcile a: 1; failed to reconcile b: 2");
    }
}
