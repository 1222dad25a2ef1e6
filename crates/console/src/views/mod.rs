//! What is shown, in one form for the JSON API, the commands that ask a running service, and the terminal view.
//!
//! Names are snake_case in JSON and times are RFC 3339. A view holds plain values and words for people; what it was made from is the business
//! of whoever implements [`Source`](crate::Source).

mod decision;
mod job;
mod limit;
mod mon;
mod overview;
mod vm;

pub use decision::{DecisionQuery, DecisionView, GateView, SubjectKind};
pub use job::{JobDetail, JobState, JobView, Protocol};
pub use limit::LimitView;
pub use mon::{CheckView, Health, LevelView, MonitoringLineView, MonitoringView, VersionView};
pub use overview::{
    AddressesView, CallsView, CapacityView, DeletionsView, GaugeView, LaneView, LinkView, Overview,
    PoolView, QueueView,
};
pub use vm::{StepView, VmDetail, VmKind, VmView};
