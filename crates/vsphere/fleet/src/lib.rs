#![doc = include_str!("../README.md")]

mod address;
mod cow_map;
mod freshness;
mod gate;
mod guard;
mod ids;
mod journal;
mod ledger;
mod mirror;
mod phase;
mod time;

pub use address::{
    AddressCell, AddressCounts, AddressFile, AddressPlan, AddressState, ComesFreeBy, Forecast,
    Network, NetworkFile, Problem,
};
pub use freshness::{Freshness, Unfit};
pub use gate::{Gate, Limit, Measure};
pub use guard::{
    Basis, BasisRules, Beyond, Candidate, Evidence, Freeze, Guard, GuardRules, Outcome, Resume,
    Share, Sighting, Verdict,
};
pub use ids::{PoolId, VmId};
pub use journal::{Decided, Decision, Draft, Journal, JournalSize, NextLook, Query, Subject};
pub use ledger::{
    AddressGrant, AddressNeed, Amounts, Ask, Holding, Holds, Ledger, LedgerGate, LedgerUse, Limits,
    Machine, PoolRoom, Refusal, Reservation, Reserve,
};
pub use mirror::{
    Check, Connection, Guest, GuestNic, Identity, Mirror, Pool, PoolAmount, PoolUsage, Power,
    ReadIdentity, Snapshot, StreamState, Tools, Vm, VmChange, WaitError, Wrote, condition,
};
pub use phase::{
    Ended, Phase, PhaseDeadlines, PhaseError, PhaseHook, PhaseTimer, Step, Timeline, Timelines,
};
