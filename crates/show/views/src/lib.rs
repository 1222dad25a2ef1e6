#![doc = include_str!("../README.md")]

mod address;
mod decision;
mod deletion;
mod fact;
pub mod foreign;
mod gate;
mod gauge;
mod health;
mod limit;
mod link;
mod mood;
mod overview;
mod phase;
mod pool;
mod request;
mod steering;
mod vm;
mod waterfall;
pub mod words;

pub use address::{AddressState, AddressView, AddressesView};
pub use decision::{DecisionQuery, DecisionView, SubjectKind, Verdict};
pub use deletion::{BudgetView, CandidateView, DeletionsDetail, DeletionsView, FreezeView};
pub use fact::{Fact, Facts};
pub use gate::GateView;
pub use gauge::{GaugeView, Gauges, Unit};
pub use health::{CheckView, Health};
pub use limit::LimitView;
pub use link::{CallsView, FaultView, LinkDetail, LinkMinute, LinkView, MethodView};
pub use mood::Mood;
pub use overview::{DoorView, LaneView, Overview, QueueView, TileView};
pub use phase::{Ended, Part, StepView, VmPhase};
pub use pool::PoolView;
pub use request::{RequestDetail, RequestId, RequestState, RequestView, Standing};
pub use steering::{Spawning, SteeringView};
pub use vm::{Power, VmDetail, VmKind, VmView};
pub use waterfall::{Bar, BarKind, Waterfall};
