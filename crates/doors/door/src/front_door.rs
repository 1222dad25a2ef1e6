use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use axum::routing::MethodRouter;
use roost_views::{
    CheckView, Gauges, LaneView, NeedView, OutageView, PoolView, QueueView, RequestDetail,
    RequestId, RequestState, RequestView, SteeringView, TileView, VmDetail, VmView,
};
use serde_json::Value;

use crate::Steer;

/// What a door and its requests are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoorWords {
    /// As it stands in every [`RequestId`] and in metric labels: short, lower case.
    pub name: &'static str,
    /// One request, as its users write it: `pod`, `VirtualMachine`.
    pub noun: &'static str,
    /// Several of them: `pods`, `VirtualMachines`.
    pub nouns: &'static str,
    /// What its requests belong to: `project`, `namespace`.
    pub group: &'static str,
    /// What it makes of a request, in a sentence for somebody who sees it for the first time.
    pub about: &'static str,
}

impl DoorWords {
    /// Where its requests are in the API and on the page: `virtualmachines`.
    pub fn path(&self) -> String {
        self.nouns.to_ascii_lowercase()
    }

    pub fn request(&self, id: impl Into<String>) -> RequestId {
        RequestId::new(self.name, id)
    }
}

/// What every door is to the house. Cheap: reads memory, never calls another server, and changes nothing.
///
/// Nothing that it returns holds a secret: all of it may be shown to whoever may read.
pub trait FrontDoor: Debug + Send + Sync + 'static {
    fn words(&self) -> DoorWords;
    /// What this one is called where it runs, such as the name in its configuration.
    fn title(&self) -> String;

    /// Whether its loops make progress. If not, a restart is what helps.
    fn liveness(&self) -> Vec<CheckView>;
    /// Whether what it sees is good enough to act on.
    fn readiness(&self) -> Vec<CheckView>;

    fn summary(&self) -> Summary;
    /// Those that wait first, the oldest of them first.
    fn requests(&self) -> Vec<RequestView>;
    /// One, with every decision on it. Does not build the others.
    fn request(&self, id: &str) -> Option<RequestDetail>;
    /// Its own, not all that the datacenter has.
    fn vms(&self) -> Vec<VmView>;
    fn vm(&self, name_or_id: &str) -> Option<VmDetail>;

    /// Its warm pools, in the order of the configuration.
    fn pools(&self) -> Vec<PoolView> {
        Vec::new()
    }

    /// Requests with which nothing goes on until a person has done something. Doors with many requests make only these.
    fn stuck(&self) -> Vec<RequestView> {
        self.requests().into_iter().filter(RequestView::needs_person).collect()
    }

    /// What a person can do about requests that this gate turns away.
    fn advice(&self, _gate: &str) -> Option<&'static str> {
        None
    }

    /// The page of `docs/runbooks` on requests that do not get a VM, without its ending.
    fn runbook(&self) -> Option<&'static str> {
        None
    }

    /// What else does not go on until a person has looked. Requests that are [`stuck`](Self::stuck) and servers that cannot be reached are added by
    /// the house.
    fn needs(&self) -> Vec<NeedView> {
        Vec::new()
    }

    /// Servers of its own that it cannot reach. The vCenter is the core's.
    fn outages(&self) -> Vec<OutageView> {
        Vec::new()
    }

    /// The requests that wait, in the order in which they get their turn.
    fn line(&self) -> Vec<RequestId> {
        let waiting = self.requests().into_iter().filter(|it| it.state == RequestState::Waiting);
        waiting.map(|request| request.id).collect()
    }

    /// What persons have told it.
    fn steering(&self) -> SteeringView {
        SteeringView::default()
    }

    /// How persons steer it. `None`: it can only be looked at.
    fn steer(&self) -> Option<&dyn Steer> {
        None
    }

    /// Whether one of its requests can be paused, by [`Action::PauseRequest`](crate::Action::PauseRequest).
    fn pauses_requests(&self) -> bool {
        false
    }

    /// Its requests go from the list as soon as they are over, so that the house remembers the last of them.
    fn forgets_ended(&self) -> bool {
        false
    }

    /// What it answers beside what every door does, such as paths that the program had from which it takes over.
    fn routes(self: Arc<Self>) -> Vec<Route> {
        Vec::new()
    }

    /// Prometheus text, format 0.0.4. No two doors have a family in common.
    fn metrics(&self) -> String {
        String::new()
    }

    /// The running configuration, as it may be shown.
    fn config(&self) -> Option<Value> {
        None
    }

    /// A request to the HTTP server was answered, for those whose metrics count that.
    fn http_answered(&self, _: &Answered) {}
}

/// A door in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Decisions are made.
    pub ready: bool,
    pub queue: QueueView,
    /// What keeps the oldest waiting request waiting, in words.
    pub what_binds: Option<String>,
    /// The oldest that waits for us.
    pub oldest: Option<RequestId>,
    /// The first thing that is seen of it, in the order in which it is read.
    pub tiles: Vec<TileView>,
    /// In the order in which a VM goes through them. Without spares.
    pub lanes: Vec<LaneView>,
    /// What the door limits by itself. What doors share is shown by the core.
    pub gauges: Gauges,
}

/// A path of a door's own.
#[derive(Clone)]
pub struct Route {
    /// Also a metric label.
    pub path: &'static str,
    pub methods: MethodRouter,
    /// Anybody who reaches the port may ask, as for `/metrics`.
    pub is_open: bool,
}

impl Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("path", &self.path)
            .field("is_open", &self.is_open)
            .finish_non_exhaustive()
    }
}

/// A request to the HTTP server that was answered, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// The route, such as `/api/v1/vms/{id}`, or `other`: a closed set, whatever clients ask for.
    pub handler: &'static str,
    pub status: u16,
    /// Of the bodies; 0 for a stream of events, which is told of when it begins.
    pub request_bytes: u64,
    pub response_bytes: u64,
    pub took: Duration,
}
