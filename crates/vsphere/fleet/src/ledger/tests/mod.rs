mod gates;
mod handover;
mod model;

use std::time::Duration;

use super::*;
use crate::Limit;
use crate::time::later;

const DOOR: DoorName = DoorName::new("lab");
const WORKERS: Quota = Quota::lasting("workers");
const PENDING: Quota = Quota::passing("pending");
const REGISTERING: Quota = Quota::passing("registering");

fn at(secs: u64) -> Timestamp {
    later(Timestamp::UNIX_EPOCH, Duration::from_secs(secs))
}

fn plan(iprange: &str) -> AddressPlan {
    AddressPlan::of_range(iprange.parse().unwrap()).unwrap()
}

fn ledger(limits: Limits) -> Ledger {
    Ledger::default().with_account(DOOR, limits, plan("10.0.0.0/29"))
}

fn worker(cpus: u64, memory_mb: u64) -> Amounts {
    size(cpus, memory_mb).count(WORKERS, 1).count(PENDING, 1)
}

fn size(cpus: u64, memory_mb: u64) -> Amounts {
    Amounts { cpus, memory_mb, ..Amounts::default() }
}

/// Quotas in the order of the gates.
fn quotas(workers: Limit, pending: Limit, registering: Limit) -> Limits {
    Limits::default()
        .quota(WORKERS, workers)
        .quota(PENDING, pending)
        .quota(REGISTERING, registering)
}

fn ask(request: &str, cpus: u64) -> Ask {
    Ask {
        request: DOOR.request(request),
        name: Some(format!("vm-of-{request}").into()),
        amounts: worker(cpus, cpus * 1024),
        pool: None,
        machine: Machine::Fresh { address: AddressNeed::FromPlan },
    }
}

fn holding(request: &str, amounts: Amounts) -> Holding {
    Holding { own: true, request: Some(request.into()), amounts, ..Holding::default() }
}

fn bound(ledger: &mut Ledger, ask: Ask, now: Timestamp) -> LedgerGate {
    ledger.reserve(ask, now).unwrap_err().bound_by
}
