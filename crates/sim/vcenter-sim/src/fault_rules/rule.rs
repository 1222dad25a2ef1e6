use std::fmt;
use std::time::Duration;

use roost_vim_wire::{Fault, LocalizedMethodFault};

/// Which calls something happens to, and what.
///
/// ```
/// use roost_vcenter_sim::{Action, Rule, When};
///
/// let _ = Rule::new("CloneVM_Task", Action::fault("NoDiskSpace", "the datastore is full")).object("worker-*").when(When::Nth(2));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// A glob over wire names such as `CloneVM_Task`; transfers are called `PUT /folder`, `GET /guestFile` and so on.
    pub method: String,
    /// A glob over id and name of the object that is called, of the VM that a guest operation is about, and of the name that
    /// is to be given.
    pub object: String,
    pub when: When,
    /// Acts at most this often.
    pub times: Option<u64>,
    pub action: Action,
}

/// Which of the fitting calls.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum When {
    #[default]
    Always,
    /// The nth only, counted from 1.
    Nth(u64),
    EveryNth(u64),
    /// Each with this probability, from the seed.
    Chance(f64),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// The call is refused.
    Fault(LocalizedMethodFault),
    /// The answer is this HTTP status with no vim25 body.
    Status(u16),
    /// No answer comes until the client goes; the call is not carried out.
    Hang,
    /// The connection is cut before the call is carried out.
    CutBefore,
    /// The call is carried out, and its answer lost.
    CutAfter,
    /// The call is carried out this much later.
    Delay(Duration),
    /// The call is carried out at once, and answered this much later.
    LateAnswer(Duration),
    /// The caller's session ends first.
    LoseSession,
    /// The server restarts: sessions and all that lives in them are gone, connections are cut, the inventory stays.
    Restart(Outage),
    /// A property read answers from the inventory as it was when the rule was made.
    StaleList,
    /// A property read finds no objects.
    EmptyList,
    /// A task that the call starts ends with this error.
    FailTask(LocalizedMethodFault),
    /// A task that the call starts never ends.
    HangTask,
    DelayTask(Duration),
}

/// How long a server that restarts is not there, and how that shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outage {
    pub lasts: Duration,
    /// Connections are refused, and not answered with 503.
    pub refuses: bool,
}

impl Rule {
    /// Every call of these methods, on any object.
    pub fn new(method: impl Into<String>, action: Action) -> Self {
        Self { method: method.into(), object: "*".into(), when: When::Always, times: None, action }
    }

    #[must_use]
    pub fn object(mut self, glob: impl Into<String>) -> Self {
        self.object = glob.into();
        self
    }

    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Acts on the first fitting call only.
    #[must_use]
    pub fn once(self) -> Self {
        self.times(1)
    }
}

impl Action {
    /// A fault without fields.
    pub fn fault(class: &str, message: impl Into<String>) -> Self {
        Self::Fault(LocalizedMethodFault::new(Fault::of(class), message))
    }

    /// A task error without fields.
    pub fn fail_task(class: &str, message: impl Into<String>) -> Self {
        Self::FailTask(LocalizedMethodFault::new(Fault::of(class), message))
    }

    pub(crate) fn is_for_tasks(&self) -> bool {
        matches!(self, Self::FailTask(_) | Self::HangTask | Self::DelayTask(_))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u64);

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A rule and what it has done.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleReport {
    pub id: RuleId,
    pub rule: Rule,
    pub matched: u64,
    pub fired: u64,
}
