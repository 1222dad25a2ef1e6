//! What is shown, in one form for the JSON API, the commands that ask a running service, and the terminal view.
//!
//! Names are snake_case in JSON and times are RFC 3339. A view holds plain values and words for people; what it was made from is the business
//! of whoever implements [`Source`](crate::Source).

mod address;
mod decision;
mod deletion;
mod job;
mod limit;
mod link;
mod mon;
mod overview;
mod steering;
mod vm;

pub use address::{AddressState, AddressView};
pub use decision::{DecisionQuery, DecisionView, GateView, SubjectKind};
pub use deletion::{BudgetView, CandidateView, DeletionsDetail, FreezeView};
pub use job::{JobDetail, JobState, JobView, Protocol};
pub use limit::LimitView;
pub use link::{FaultView, LinkDetail, LinkMinute, MethodView};
pub use mon::{CheckView, Health, LevelView, MonitoringLineView, MonitoringView, VersionView};
pub use overview::{
    AddressesView, CallsView, CapacityView, DeletionsView, GaugeView, LaneView, LinkView, Overview,
    PoolView, QueueView,
};
pub use steering::{Spawning, SteeringView};
pub use vm::{StepView, VmDetail, VmKind, VmView};
