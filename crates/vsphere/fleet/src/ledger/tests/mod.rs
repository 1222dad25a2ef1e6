mod gates;
mod handover;
mod model;

use std::time::Duration;

use super::*;
use crate::AddressFile;
use crate::time::later;

fn at(secs: u64) -> Timestamp {
    later(Timestamp::UNIX_EPOCH, Duration::from_secs(secs))
}

fn plan(iprange: &str) -> AddressPlan {
    AddressPlan::parse(&AddressFile { iprange: iprange.into(), ..AddressFile::default() }).unwrap()
}

fn ledger(limits: Limits) -> Ledger {
    Ledger::new(limits, plan("10.0.0.0/29"), Holds::default())
}

fn worker(cpus: u64, memory_mb: u64) -> Amounts {
    Amounts { workers: 1, pending: 1, registering: 0, cpus, memory_mb }
}

fn ask(request: &str, cpus: u64) -> Ask {
    Ask {
        request: request.into(),
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
