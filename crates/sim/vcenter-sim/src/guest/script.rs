//! What a program in a scripted guest does: what the test says, or what the built-in rules make of it.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A program that somebody started in a guest.
#[derive(Clone, PartialEq, Eq)]
pub struct GuestProgram {
    /// The VM's name.
    pub vm: String,
    pub user: String,
    pub path: String,
    /// One string, as it came; a shell takes it apart.
    pub arguments: String,
    pub directory: Option<String>,
    /// The whole environment, each as `NAME=value`.
    pub environment: Vec<String>,
}

impl GuestProgram {
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }
}

/// Without the values of the environment, which may hold secrets.
impl Debug for GuestProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> =
            self.environment.iter().filter_map(|pair| Some(pair.split_once('=')?.0)).collect();
        f.debug_struct("GuestProgram")
            .field("vm", &self.vm)
            .field("user", &self.user)
            .field("path", &self.path)
            .field("arguments", &self.arguments)
            .field("directory", &self.directory)
            .field("environment", &names)
            .finish()
    }
}

/// What a program does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GuestRun {
    pub exit_code: i32,
    pub takes: Duration,
    pub output: String,
    /// What is true in the guest when it has ended.
    pub effects: Vec<GuestEffect>,
    /// It never ends by itself.
    pub hangs: bool,
}

impl GuestRun {
    pub fn exits(exit_code: i32) -> Self {
        Self { exit_code, ..Self::default() }
    }

    #[must_use]
    pub fn after(mut self, takes: Duration) -> Self {
        self.takes = takes;
        self
    }

    #[must_use]
    pub fn printing(mut self, output: impl Into<String>) -> Self {
        self.output = output.into();
        self
    }

    #[must_use]
    pub fn then(mut self, effect: GuestEffect) -> Self {
        self.effects.push(effect);
        self
    }

    pub fn hangs() -> Self {
        Self { hangs: true, ..Self::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestEffect {
    /// The guest shuts itself down.
    PowerOff,
    Reboot,
    WriteFile {
        path: String,
        content: String,
    },
}

/// A test's answer to a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestReply {
    Runs(GuestRun),
    /// It runs until its work is done.
    Works(GuestWork),
    /// There is no such program.
    NotFound,
    /// The user may not run it.
    Denied,
}

impl From<GuestRun> for GuestReply {
    fn from(run: GuestRun) -> Self {
        Self::Runs(run)
    }
}

impl From<GuestWork> for GuestReply {
    fn from(work: GuestWork) -> Self {
        Self::Works(work)
    }
}

type Working = Pin<Box<dyn Future<Output = GuestRun> + Send>>;

/// A program that nobody can say beforehand how long it takes or how it ends: it talks to others, say. It is a task from the
/// moment the program starts, and dropped wherever it is when its VM goes down or the program is terminated.
#[derive(Clone)]
pub struct GuestWork(Arc<dyn Fn() -> Working + Send + Sync>);

impl GuestWork {
    pub fn new<F>(work: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = GuestRun> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(work())))
    }

    pub(super) fn begin(&self) -> Working {
        (self.0)()
    }
}

impl Debug for GuestWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GuestWork")
    }
}

/// The very same work.
impl PartialEq for GuestWork {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for GuestWork {}

/// Decides what programs do. `None` leaves a program to the built-in rules: `echo`, `env`, `true`, `false`, `sleep N`, `exit N`,
/// `cat`, `hostname`, `shutdown`, `poweroff`, `reboot`, with `;`, `&&`, `||` and redirections between them; any other
/// program is believed to succeed at once. It runs with the world locked, so it must not call the simulator.
pub trait GuestScript: Send + Sync {
    fn run(&self, program: &GuestProgram) -> Option<GuestReply>;
}

impl<F: Fn(&GuestProgram) -> Option<GuestReply> + Send + Sync> GuestScript for F {
    fn run(&self, program: &GuestProgram) -> Option<GuestReply> {
        self(program)
    }
}
