//! What is asked before anything is done.

use roost_door::{Action, Found};
use roost_views::RequestId;

use super::{Look, Opened};

/// Shall this be done? Where there are several ways, one of them is chosen first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) ways: Vec<Action>,
    pub(super) chosen: usize,
}

impl Question {
    pub(super) fn new(action: Action) -> Self {
        Self { ways: vec![action], chosen: 0 }
    }

    pub(super) fn thaw() -> Self {
        let way = |found| Action::ResumeDeletions { found };
        Self { ways: vec![way(Found::StartOver), way(Found::Approve)], chosen: 0 }
    }

    /// Any pool, beginning with one that misses something. `None` if there are none.
    pub(super) fn refill(look: &Look) -> Option<Self> {
        let pools = &look.picture.overview.pools;
        let chosen = pools.iter().position(|pool| pool.missing > 0).unwrap_or_default();
        let way = |pool: &String| Action::RefillPool { pool: pool.clone() };
        let ways: Vec<_> = pools.iter().map(|pool| way(&pool.name)).collect();
        (!ways.is_empty()).then_some(Self { ways, chosen })
    }

    pub(super) fn choose_next(&mut self) {
        self.chosen = (self.chosen + 1) % self.ways.len().max(1);
    }

    pub(super) fn action(&self) -> Option<&Action> {
        self.ways.get(self.chosen)
    }
}

/// What an action is and what it does, for somebody who is about to say yes.
pub(super) fn words(action: &Action) -> (String, &'static str) {
    match action {
        Action::PauseSpawning => {
            ("Pause spawning?".into(), "No new VMs and spares. What is under way goes on.")
        }
        Action::ResumeSpawning => ("Resume spawning?".into(), "Ends a pause or a drain."),
        Action::Drain => ("Drain?".into(), "No new VMs; those that run come to their end."),
        Action::FreezeDeletions => {
            ("Freeze deletions?".into(), "No VM is deleted until somebody thaws them.")
        }
        Action::ResumeDeletions { found: Found::StartOver } => (
            "Thaw deletions, and look at everything anew?".into(),
            "What goes has to be seen as deletable twice again.",
        ),
        Action::ResumeDeletions { found: Found::Approve } => (
            "Thaw deletions, and let go what the freeze names?".into(),
            "The VMs for which deletions were frozen are deleted.",
        ),
        Action::DeleteVm { vm } => (
            format!("Delete VM {vm}?"),
            "It is marked and goes through the guard, with what runs in it.",
        ),
        Action::RefillPool { pool } => (
            format!("Refill pool {pool}?"),
            "What is missing is made now, however often that failed before.",
        ),
        Action::Recheck { request } => {
            (format!("Look at {request} now?"), "It is asked about anew, and weighed.")
        }
        Action::PauseRequest { request } => {
            (format!("Pause {request}?"), "It and its VM stay as they are.")
        }
        Action::ResumeRequest { request } => {
            (format!("Resume {request}?"), "It is worked at again.")
        }
    }
}

/// The request that is opened or marked.
pub(super) fn request_at_hand(
    opened: Option<&Opened>,
    marked: Option<RequestId>,
) -> Option<RequestId> {
    match opened {
        Some(Opened::Request(request)) => Some(request.clone()),
        Some(Opened::Vm(_) | Opened::Decision(_) | Opened::Needs) => None,
        None => marked,
    }
}

/// The VM that is opened or marked; of a request that is opened, its VM.
pub(super) fn vm_at_hand(
    opened: Option<&Opened>,
    look: &Look,
    marked: Option<String>,
) -> Option<String> {
    match opened {
        Some(Opened::Vm(vm)) => Some(vm.clone()),
        Some(Opened::Request(id)) => {
            look.requests.iter().find(|it| it.id == *id).and_then(|it| it.vm.clone())
        }
        Some(Opened::Decision(_) | Opened::Needs) => None,
        None => marked,
    }
}
