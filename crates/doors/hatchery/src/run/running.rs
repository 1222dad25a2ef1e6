//! A hatchery at work, for whoever has it.

use std::sync::Arc;

use roost_fleet::Fleet;
use roost_supervise::Tasks;

use super::lifecycle::Lifecycle;
use super::observe::StateReader;
use super::steer::Steerer;

/// A running hatchery with its tasks. The tasks end when it is dropped, wherever they are: what they leave behind is found by the next one.
#[derive(Debug)]
pub(crate) struct Running {
    pub(super) reader: Arc<StateReader>,
    pub(super) steerer: Arc<Steerer>,
    pub(super) lifecycle: Arc<Lifecycle>,
    pub(super) fleet: Fleet,
    pub(super) cds: roost_cds::Client,
    pub(super) tasks: Arc<Tasks>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tasks.end();
    }
}
