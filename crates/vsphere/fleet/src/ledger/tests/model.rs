//! Against a small world in which VMs appear, start and go when they like, and the ledger hears of it late.

use std::collections::BTreeSet;
use std::net::IpAddr;

use proptest::prelude::*;

use super::*;

const MOST: u64 = 4;
const CPUS: u64 = 10;
const SAFETY: u64 = 300;
const REST: u64 = 120;

#[derive(Debug, Clone, Copy)]
enum Op {
    Reserve { request: u8, cpus: u64, warm: bool },
    Submit(usize),
    Bind(usize),
    Commit(usize),
    Drop(usize),
    Release(usize),
    Appear(usize),
    PowerOn(usize),
    Vanish(usize),
    See(usize),
    Wait(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let machine = 0..40_usize;
    prop_oneof![
        4 => (0..12_u8, 1..6_u64, prop::bool::weighted(0.3))
            .prop_map(|(request, cpus, warm)| Op::Reserve { request, cpus, warm }),
        2 => machine.clone().prop_map(Op::Submit),
        1 => machine.clone().prop_map(Op::Bind),
        2 => machine.clone().prop_map(Op::Commit),
        1 => machine.clone().prop_map(Op::Drop),
        1 => machine.clone().prop_map(Op::Release),
        3 => machine.clone().prop_map(Op::Appear),
        3 => machine.clone().prop_map(Op::PowerOn),
        2 => machine.clone().prop_map(Op::Vanish),
        4 => machine.prop_map(Op::See),
        2 => (1..150_u64).prop_map(Op::Wait),
    ]
}

#[derive(Debug)]
struct Machine {
    id: VmId,
    request: String,
    cpus: u64,
    address: Option<IpAddr>,
    held: Option<Reservation>,
    submitted: bool,
    /// Until when a VM may still appear or start although nobody holds the reservation.
    until: u64,
    exists: bool,
    on: bool,
    /// A spare exists before it serves anyone.
    claimed: bool,
    gone: bool,
    /// The ledger has been shown it. What comes and goes between two looks can leave no trace.
    shown: bool,
}

struct World {
    ledger: Ledger,
    now: u64,
    machines: Vec<Machine>,
    /// Addresses that rest, and until when.
    resting: Vec<(IpAddr, u64)>,
}

impl World {
    fn new() -> Self {
        let limits = Limits { cpus: Limit::At(CPUS), ..Limits::default() };
        let limits = limits.quota(WORKERS, Limit::At(MOST));
        let mut world =
            Self { ledger: ledger(limits), now: 1_000, machines: Vec::new(), resting: Vec::new() };
        for number in 0..2 {
            world.machines.push(Machine {
                id: VmId::new(format!("vm-{number}")),
                request: String::new(),
                cpus: 0,
                address: Some([10, 0, 0, 5 + number].into()),
                held: None,
                submitted: false,
                until: 0,
                exists: true,
                on: false,
                claimed: false,
                gone: false,
                shown: false,
            });
            world.see(usize::from(number));
        }
        world
    }

    fn now(&self) -> Timestamp {
        at(self.now)
    }

    fn spares(&self) -> Vec<VmId> {
        let idle =
            |machine: &&Machine| machine.exists && !machine.claimed && machine.request.is_empty();
        self.machines.iter().filter(idle).map(|machine| machine.id.clone()).collect()
    }

    fn see(&mut self, index: usize) {
        let now = self.now();
        let index = index % self.machines.len();
        let machine = &self.machines[index];
        if machine.gone {
            self.ledger.see_addresses(&machine.id, Vec::new(), now);
            self.ledger.vanish(DOOR, &machine.id, now);
        } else if machine.exists {
            let amounts = match (machine.claimed, machine.on) {
                (false, _) => Amounts::default(),
                (true, false) => Amounts::default().count(WORKERS, 1),
                (true, true) => size(machine.cpus, 0).count(WORKERS, 1),
            };
            let holding = Holding {
                own: true,
                request: machine.claimed.then(|| machine.request.as_str().into()),
                amounts,
                ends: None,
            };
            self.ledger.see_addresses(&machine.id, machine.address.into_iter().collect(), now);
            self.ledger.see(DOOR, &machine.id, &name_of(index), holding, now);
            self.machines[index].shown = true;
        }
    }

    fn reserve(&mut self, request: u8, cpus: u64, warm: bool) {
        let index = self.machines.len();
        let asked = Ask {
            name: Some(name_of(index).into()),
            amounts: size(cpus, 0).count(WORKERS, 1),
            machine: if warm {
                super::Machine::Spare { candidates: self.spares() }
            } else {
                super::Machine::Fresh { address: AddressNeed::FromPlan }
            },
            ..ask(&request.to_string(), cpus)
        };
        let Ok(held) = self.ledger.reserve(asked, self.now()) else { return };
        let address: Option<IpAddr> = held.address().map(|grant| grant.address.into());
        if let Some(address) = address {
            assert!(
                !self.resting.iter().any(|(rests, until)| *rests == address && *until > self.now)
            );
        }
        if let Some(spare) = held.spare().cloned() {
            let machine = self.machines.iter_mut().find(|machine| machine.id == spare).unwrap();
            assert!(machine.held.is_none() && machine.request.is_empty(), "a spare has one taker");
            machine.request = request.to_string();
            machine.cpus = cpus;
            machine.held = Some(held);
        } else {
            self.machines.push(Machine {
                id: VmId::new(format!("vm-{index}")),
                request: request.to_string(),
                cpus,
                address,
                held: Some(held),
                submitted: false,
                until: 0,
                exists: false,
                on: false,
                claimed: false,
                gone: false,
                shown: false,
            });
        }
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Reserve { request, cpus, warm } => self.reserve(request, cpus, warm),
            Op::Wait(secs) => {
                // The mirror is late, but not for minutes.
                (0..self.machines.len()).for_each(|index| self.see(index));
                self.now += secs;
            }
            Op::See(index) => self.see(index),
            Op::Submit(index) => self.with(index, |machine, _| {
                if let Some(held) = &mut machine.held {
                    held.submitted();
                    machine.submitted = true;
                }
            }),
            Op::Bind(index) => self.with(index, |machine, _| {
                let id = machine.id.clone();
                if let Some(held) = machine.held.as_mut().filter(|_| machine.exists) {
                    held.bind(&id);
                }
            }),
            Op::Commit(index) => self.with(index, |machine, now| {
                if let Some(held) = machine.held.take_if(|_| machine.claimed) {
                    held.commit();
                    machine.until = now + SAFETY;
                }
            }),
            Op::Drop(index) => self.with(index, |machine, now| {
                if machine.held.take().is_some() {
                    machine.until = if machine.submitted { now + SAFETY } else { 0 };
                    machine.give_up_spare();
                }
            }),
            Op::Release(index) => self.with(index, |machine, _| {
                if let Some(held) = machine.held.take_if(|_| !machine.claimed) {
                    held.release();
                    machine.until = 0;
                    machine.give_up_spare();
                }
            }),
            Op::Appear(index) => self.with(index, |machine, now| {
                if machine.submitted
                    && !machine.gone
                    && (machine.held.is_some() || machine.until > now)
                {
                    machine.exists = true;
                    machine.claimed = true;
                }
            }),
            Op::PowerOn(index) => self.with(index, |machine, now| {
                machine.on |= machine.claimed
                    && !machine.gone
                    && (machine.held.is_some() || machine.until > now);
            }),
            Op::Vanish(index) => {
                let now = self.now;
                let mut rested = None;
                self.with(index, |machine, _| {
                    if machine.claimed && !machine.gone {
                        (machine.gone, machine.on) = (true, false);
                        let address = machine.address.filter(|_| machine.shown);
                        rested = address.map(|address| (address, now + REST));
                    }
                });
                self.resting.extend(rested);
            }
        }
        self.check();
    }

    fn with(&mut self, index: usize, act: impl FnOnce(&mut Machine, u64)) {
        let (now, count) = (self.now, self.machines.len());
        act(&mut self.machines[index % count], now);
    }

    /// What must hold of the world itself, whatever the ledger believes.
    fn check(&self) {
        let live = || self.machines.iter().filter(|machine| machine.claimed && !machine.gone);
        assert!(live().count() as u64 <= MOST, "too many workers");
        let cpus: u64 = live().filter(|machine| machine.on).map(|machine| machine.cpus).sum();
        assert!(cpus <= CPUS, "too many CPUs: {cpus}");
        let requests: BTreeSet<&str> = live().map(|machine| machine.request.as_str()).collect();
        assert_eq!(requests.len(), live().count(), "a request has two machines");
        let addresses: Vec<IpAddr> = self
            .machines
            .iter()
            .filter(|machine| !machine.gone && (machine.exists || machine.held.is_some()))
            .filter_map(|machine| machine.address)
            .collect();
        let distinct: BTreeSet<&IpAddr> = addresses.iter().collect();
        assert_eq!(distinct.len(), addresses.len(), "an address is used twice");
    }

    /// Everybody lets go and everything is seen: nothing may be left over.
    fn settle(mut self) {
        for machine in &mut self.machines {
            machine.held = None;
        }
        self.now += 2 * SAFETY;
        (0..self.machines.len()).for_each(|index| self.see(index));
        self.now += 2 * SAFETY;
        let now = self.now();
        let taken = self.ledger.taken(DOOR, now);
        assert_eq!(taken.promised, Amounts::default());
        assert_eq!(taken.reservations, 0);
        let live = self.machines.iter().filter(|machine| machine.claimed && !machine.gone);
        assert_eq!(taken.by_vms.of(WORKERS), live.count() as u64);
        let used = self.machines.iter().filter(|machine| machine.exists && !machine.gone);
        assert_eq!(
            taken.addresses.used,
            used.filter(|machine| machine.address.is_some()).count() as u64
        );
        assert_eq!(taken.addresses.promised + taken.addresses.resting, 0);
    }
}

impl Machine {
    /// A spare that was not asked for anything is a spare again.
    fn give_up_spare(&mut self) {
        if self.exists && !self.claimed && !self.submitted {
            self.request.clear();
        }
    }
}

fn name_of(index: usize) -> String {
    format!("worker-{index}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn no_limit_is_ever_exceeded_and_nothing_is_given_twice(ops in prop::collection::vec(op(), 0..250)) {
        let mut world = World::new();
        for op in ops {
            world.step(op);
        }
        world.settle();
    }
}
