use std::time::Duration;

/// What kind of call it is, for its deadline and its metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallClass {
    Login,
    /// Looks at something, or makes or ends a view, filter or collector.
    Read,
    /// Changes something or starts a task that will.
    Submit,
    /// From the start of waiting for a task to its end.
    TaskWait,
    /// Reaches into a guest.
    Guest,
    /// Moves a file. The deadline is for silence, not for the whole: a large file may take hours.
    Upload,
}

impl CallClass {
    pub const ALL: [Self; 6] =
        [Self::Login, Self::Read, Self::Submit, Self::TaskWait, Self::Guest, Self::Upload];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Read => "read",
            Self::Submit => "submit",
            Self::TaskWait => "task wait",
            Self::Guest => "guest",
            Self::Upload => "upload",
        }
    }
}

/// How long each class of call may take, its own retries included. Waiting for a login that other callers share is
/// counted as login, not as part of the call that needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlines {
    /// Single sign-on behind a vCenter may ask a slow directory.
    pub login: Duration,
    /// A vCenter that answers at all answers an ordinary call in this time.
    pub read: Duration,
    /// Longer than a read: a busy vCenter takes its time to queue a task, and giving up leaves its fate unknown.
    pub submit: Duration,
    /// The upstream limit for clones, power-offs and deletions.
    pub task_wait: Duration,
    /// The first guest command after boot is slow.
    pub guest: Duration,
    /// Silence on a transfer.
    pub upload: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            login: Duration::from_secs(30),
            read: Duration::from_secs(15),
            submit: Duration::from_secs(30),
            task_wait: Duration::from_mins(10),
            guest: Duration::from_mins(1),
            upload: Duration::from_mins(1),
        }
    }
}

impl Deadlines {
    pub fn of(&self, class: CallClass) -> Duration {
        match class {
            CallClass::Login => self.login,
            CallClass::Read => self.read,
            CallClass::Submit => self.submit,
            CallClass::TaskWait => self.task_wait,
            CallClass::Guest => self.guest,
            CallClass::Upload => self.upload,
        }
    }
}
