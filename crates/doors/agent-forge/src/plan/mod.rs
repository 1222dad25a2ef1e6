//! What a pool has, wants and does next. Everything here is a function of what is seen and the time.
//!
//! ```text
//!             create                 Agent matched             Agent bound
//!  (none) ─────────────► Provisioning ─────────► Available ──────────────► Bound
//!                          │ timeout               │ Agent gone              │ Machine deleting
//!                          ▼                       ▼                         ▼
//!                       Orphaned ◄──────────── Orphaned             Released/MachineDeleting
//!                          │ no demand                                       │ Machine gone
//!                          ▼                                                 ▼
//!                        delete                                    Released/MachineDeleted ─► delete
//!  Bound ── Agent free, Machine not seen deleting ──► Released/AgentReleased ── Machine gone for a while ─► delete
//!  Available ── nobody wants an Agent ──► delete
//! ```

mod capacity;
mod demand;
mod hostnames;
mod matching;
mod merge;
mod phases;
mod spread;
mod taker;

#[cfg(test)]
mod tests;

pub use capacity::{CapacityPlan, DeleteWhy, Deletion, PlanInput, build_plan, grace_left};
pub use demand::{Demand, count_demand, pools_of};
pub use hostnames::{assign_hostnames, hostname_of};
pub use matching::{Claims, matching_agents, settle_identities};
pub use merge::{Record, merge};
pub use phases::{Paired, PhaseInput, machine_of, refresh};
pub(crate) use phases::{since_then, whole_seconds};
pub use spread::{DomainUse, choose_domain};
pub use taker::taker;
