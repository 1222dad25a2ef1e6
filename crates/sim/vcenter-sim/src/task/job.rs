use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_vim_wire::{MoRef, Value};

use crate::call::Failure;
use crate::task::Hold;
use crate::world::{Handle, World};

/// What a task is to do.
pub(crate) struct Job {
    /// The wire name of the method, which is also the task's.
    pub method: &'static str,
    pub entity: MoRef,
    /// What it works on, and whether others may work on it at the same time.
    pub holds: Vec<(MoRef, Hold)>,
    pub is_cancelable: bool,
    /// Whether it waits for a place among the concurrent clones.
    pub is_clone: bool,
    pub(super) steps: VecDeque<Step>,
    pub(super) undo: Option<Undo>,
}

type Work = Box<dyn FnOnce(&mut World, &Run<'_>) -> Result<Option<Value>, Failure> + Send>;
type Undo = Box<dyn FnOnce(&mut World) + Send>;

pub(crate) struct Step {
    pub takes: Duration,
    pub work: Work,
}

/// The circumstances of one step.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub handle: &'a Handle,
    pub task: MoRef,
    pub user: Arc<str>,
    /// Of the events that the work posts.
    pub chain: i32,
    pub now: Timestamp,
}

impl Job {
    /// A job on one object that nobody else may work on meanwhile.
    pub(crate) fn on(method: &'static str, entity: &MoRef) -> Self {
        Self {
            method,
            entity: entity.clone(),
            holds: vec![(entity.clone(), Hold::Exclusive)],
            is_cancelable: false,
            is_clone: false,
            steps: VecDeque::new(),
            undo: None,
        }
    }

    /// A job that changes nothing on its object.
    pub(crate) fn without_hold(mut self) -> Self {
        self.holds.clear();
        self
    }

    pub(crate) fn cancelable(mut self) -> Self {
        self.is_cancelable = true;
        self
    }

    /// Work that is done when the task starts to run.
    pub(crate) fn first(
        self,
        work: impl FnOnce(&mut World, &Run<'_>) -> Result<(), Failure> + Send + 'static,
    ) -> Self {
        self.then(Duration::ZERO, move |world, run| work(world, run).map(|()| None))
    }

    /// Work that is done after `takes`. The last value that a step gives is the task's result.
    pub(crate) fn then(
        mut self,
        takes: Duration,
        work: impl FnOnce(&mut World, &Run<'_>) -> Result<Option<Value>, Failure> + Send + 'static,
    ) -> Self {
        self.steps.push_back(Step { takes, work: Box::new(work) });
        self
    }

    /// What is given back if the task fails or is cancelled.
    pub(crate) fn undo(mut self, undo: impl FnOnce(&mut World) + Send + 'static) -> Self {
        self.undo = Some(Box::new(undo));
        self
    }

    pub(super) fn total(&self) -> Duration {
        self.steps.iter().map(|step| step.takes).sum()
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = self.steps.len();
        f.debug_struct("Job")
            .field("method", &self.method)
            .field("entity", &self.entity)
            .field("steps", &steps)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step").field("takes", &self.takes).finish_non_exhaustive()
    }
}
