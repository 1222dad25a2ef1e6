#![doc = include_str!("../README.md")]

mod address;
mod close_up;
mod cow_map;
mod fleet;
mod freshness;
mod gate;
mod guard;
mod ids;
mod journal;
mod ledger;
mod machines;
mod mirror;
mod phase;
mod time;

pub use address::{
    AddressCell, AddressCounts, AddressPlan, AddressRanges, AddressState, ComesFreeBy, Forecast,
    Network, Problem,
};
pub use close_up::{CLOSE_UP_PATHS, CloseUp, Detail, NotClaimed};
pub use fleet::{Fleet, FleetRules, FleetSettings, OpenError, SharedLedger};
pub use freshness::{Freshness, Unfit};
pub use gate::{Gate, Limit, Measure};
pub use guard::{
    Basis, BasisRules, Beyond, Candidate, Evidence, Freeze, Guard, GuardRules, Outcome, Resume,
    Share, Sighting, Verdict,
};
pub use ids::{DoorName, PoolId, RequestId, VmId};
pub use journal::{Decided, Decision, Draft, Journal, JournalSize, NextLook, Query, Subject};
pub use ledger::{
    AddressGrant, AddressNeed, Amounts, Ask, Counts, Holding, Ledger, LedgerGate, LedgerTimes,
    LedgerUse, Limits, Machine, PoolRoom, Quota, Refusal, Reservation, Reserve,
};
pub use machines::{
    DiskPlace, DiskSource, FromDisks, Hold, Identity, Label, LinkedTrial, MachineError, Machines,
    MakeBy, NewMachine, NotMade, Owner, Pauses, Rewrite, Started,
};
pub use mirror::{
    Check, Claim, Connection, Guest, GuestNic, Marks, Mirror, Need, Note, Notes, Pool, PoolAmount,
    PoolUsage, Power, Recognise, Snapshot, StreamState, Tools, Vm, VmChange, WaitError, Wrote,
    condition,
};
pub use phase::{
    Ended, Phase, PhaseDeadlines, PhaseError, PhaseHook, PhasePart, PhaseSpec, PhaseTimer, Step,
    Timeline, Timelines,
};
