//! One request against every gate.

use super::book::Book;
use super::{AddressNeed, Amounts, Ask, LedgerGate, Limits, Machine};
use crate::{Gate, Limit, VmId};

/// How a request came out, and what it would get.
#[derive(Debug)]
pub(super) struct Weighed {
    pub(super) gates: Vec<Gate>,
    pub(super) bound_by: Option<LedgerGate>,
    pub(super) spare: Option<VmId>,
    pub(super) needs_address: bool,
}

impl Weighed {
    fn gate(&mut self, gate: LedgerGate, need: u64, have: u64, limit: Limit) {
        let weighed = Gate::measured(gate.as_str(), need, have, limit);
        if !weighed.passed {
            self.bound_by.get_or_insert(gate);
        }
        self.gates.push(weighed);
    }
}

/// `elsewhere` is what the other doors were promised of the resource pool.
pub(super) fn weigh(ask: &Ask, book: &Book, limits: &Limits, elsewhere: &Amounts) -> Weighed {
    let mut weighed = Weighed {
        gates: Vec::with_capacity(LedgerGate::COMMON.len() + limits.quotas.len()),
        bound_by: None,
        spare: None,
        needs_address: false,
    };
    let need = &ask.amounts;
    let have = book.taken_by_vms().plus(book.promised());
    weighed.gate(LedgerGate::Request, 1, book.machines_of(&ask.request.id), Limit::At(1));
    for (quota, limit) in &limits.quotas {
        weighed.gate(LedgerGate::Quota(*quota), need.of(*quota), have.of(*quota), *limit);
    }
    weigh_pool(&mut weighed, ask, book, limits, elsewhere);
    weighed.gate(LedgerGate::Cpus, need.cpus, have.cpus, limits.cpus);
    weighed.gate(LedgerGate::Memory, need.memory_mb, have.memory_mb, limits.memory_mb);
    if let Some(reserve) = limits.reserve.filter(|reserve| reserve.count > 0) {
        let left = |own: u64, small: u64| own.saturating_add(reserve.count.saturating_mul(small));
        if matches!(limits.cpus, Limit::At(_)) && need.cpus > reserve.cpus {
            let need = left(need.cpus, reserve.cpus);
            weighed.gate(LedgerGate::CpuReserve, need, have.cpus, limits.cpus);
        }
        if matches!(limits.memory_mb, Limit::At(_)) && need.memory_mb > reserve.memory_mb {
            let need = left(need.memory_mb, reserve.memory_mb);
            weighed.gate(LedgerGate::MemoryReserve, need, have.memory_mb, limits.memory_mb);
        }
    }
    match &ask.machine {
        Machine::Spare { candidates } => {
            weigh_spares(&mut weighed, book, candidates);
        }
        Machine::Fresh { address } => weigh_address(&mut weighed, book, *address),
        Machine::SpareOrFresh { candidates, address } => {
            weighed.spare = free_spare(book, candidates);
            if weighed.spare.is_some() {
                weigh_spares(&mut weighed, book, candidates);
            } else {
                weigh_address(&mut weighed, book, *address);
            }
        }
    }
    weighed
}

fn weigh_pool(weighed: &mut Weighed, ask: &Ask, book: &Book, limits: &Limits, elsewhere: &Amounts) {
    let Some(pool) = &ask.pool else { return };
    let (room, promised) = book.pool(pool);
    let promised = promised.plus(elsewhere);
    let limit = |room: Option<u64>| room.map_or(Limit::Unknown, Limit::At);
    let mhz = limit(room.map(|room| room.cpu_mhz));
    match limits.mhz_per_cpu {
        Some(each) => {
            let (need, have) =
                (ask.amounts.cpus.saturating_mul(each), promised.cpus.saturating_mul(each));
            weighed.gate(LedgerGate::PoolCpu, need, have, mhz);
        }
        None => weighed.gate(LedgerGate::PoolCpu, 1, 0, mhz),
    }
    let mb = limit(room.map(|room| room.memory_mb));
    weighed.gate(LedgerGate::PoolMemory, ask.amounts.memory_mb, promised.memory_mb, mb);
}

fn weigh_address(weighed: &mut Weighed, book: &Book, need: AddressNeed) {
    if need == AddressNeed::Dhcp {
        return;
    }
    let counts = book.addresses.counts();
    weighed.gate(LedgerGate::Address, 1, counts.total - counts.free, Limit::At(counts.total));
    weighed.needs_address = true;
}

fn weigh_spares(weighed: &mut Weighed, book: &Book, candidates: &[VmId]) {
    let promised = candidates.iter().filter(|vm| book.is_promised(vm)).count() as u64;
    weighed.gate(LedgerGate::Spare, 1, promised, Limit::At(candidates.len() as u64));
    weighed.spare = free_spare(book, candidates);
}

fn free_spare(book: &Book, candidates: &[VmId]) -> Option<VmId> {
    candidates.iter().find(|vm| !book.is_promised(vm)).cloned()
}
