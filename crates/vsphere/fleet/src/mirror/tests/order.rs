//! Whatever the order in which a late stream, our own changes, those of others and single reads come in: what is shown is
//! never older than what we know, and in the end it is the truth.

use proptest::prelude::*;

use super::*;

const VM: u32 = 1;

/// The VM on the server. CPU counts only grow, so each says when it was; power comes back to what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    cpus: u32,
    on: bool,
    exists: bool,
}

#[derive(Debug, Clone, Copy)]
enum Op {
    /// A change of ours, and whether it moves the power. It is known to have succeeded with the next `Learn`.
    Own {
        power: bool,
    },
    Learn,
    Foreign {
        power: bool,
    },
    Destroy,
    /// The server works out its next answer; then it is under way.
    Answer,
    /// The answer arrives and is applied; then it is counted.
    Deliver,
    Count,
    /// Doubtful VMs are read; then the read arrives.
    Look,
    Read,
    Wait,
    /// The stream is lost and begins anew.
    Reconnect,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => prop::bool::weighted(0.7).prop_map(|power| Op::Own { power }),
        6 => Just(Op::Learn),
        1 => any::<bool>().prop_map(|power| Op::Foreign { power }),
        1 => Just(Op::Destroy),
        4 => Just(Op::Answer),
        4 => Just(Op::Deliver),
        4 => Just(Op::Count),
        3 => Just(Op::Look),
        3 => Just(Op::Read),
        2 => Just(Op::Wait),
        1 => Just(Op::Reconnect),
    ]
}

/// A change of ours.
#[derive(Debug, Clone, Copy)]
enum Done {
    Cpus(u32),
    Power(bool),
    Destroyed,
}

struct World {
    core: Core,
    now: u64,
    /// Every state that the server has had.
    states: Vec<State>,
    /// The state that our last change made, and what it was.
    unlearned: Option<(usize, Done)>,
    /// The last states of which we know first hand how many CPUs and what power they have.
    known_cpus: usize,
    known_power: usize,
    destroyed: bool,
    /// What the stream has told so far.
    told: Option<State>,
    under_way: Option<State>,
    uncounted: bool,
    read: Option<usize>,
    looked: bool,
    /// Whether the server announces CPUs; vcsim does not.
    announces_cpus: bool,
}

impl World {
    fn new(announces_cpus: bool) -> Self {
        let first = State { cpus: 1, on: false, exists: true };
        let mut world = Self {
            core: core(),
            now: 0,
            states: vec![first],
            unlearned: None,
            known_cpus: 0,
            known_power: 0,
            destroyed: false,
            told: None,
            under_way: None,
            uncounted: false,
            read: None,
            looked: false,
            announces_cpus,
        };
        world.core.begin_load(1);
        world.under_way = Some(first);
        world.step(Op::Deliver);
        world
    }

    fn last(&self) -> State {
        self.states[self.states.len() - 1]
    }

    fn change(&mut self, power: bool) -> Done {
        let last = self.last();
        let cpus = u32::try_from(self.states.len()).unwrap() + 1;
        let (next, done) = if power {
            (State { on: !last.on, ..last }, Done::Power(!last.on))
        } else {
            (State { cpus, ..last }, Done::Cpus(cpus))
        };
        self.states.push(next);
        done
    }

    fn learn(&mut self, state: usize, done: Done) {
        let now = at(self.now);
        match done {
            Done::Destroyed => {
                self.core.destroyed(&vm_id(VM), now);
                self.destroyed = true;
            }
            Done::Cpus(cpus) => {
                self.core.wrote(&vm_id(VM), Wrote::new().cpus(cpus), now);
                self.known_cpus = state;
            }
            Done::Power(on) => {
                let power = if on { Power::On } else { Power::Off };
                self.core.wrote(&vm_id(VM), Wrote::new().power(power), now);
                self.known_power = state;
            }
        }
    }

    fn step(&mut self, op: Op) {
        self.now += 10;
        let now = at(self.now);
        match op {
            Op::Own { power } if self.last().exists && self.unlearned.is_none() => {
                let done = self.change(power);
                self.unlearned = Some((self.states.len() - 1, done));
            }
            Op::Destroy if self.last().exists && self.unlearned.is_none() => {
                self.states.push(State { exists: false, ..self.last() });
                self.unlearned = Some((self.states.len() - 1, Done::Destroyed));
            }
            Op::Foreign { power } if self.last().exists => {
                self.change(power);
            }
            Op::Learn => {
                if let Some((state, done)) = self.unlearned.take() {
                    self.learn(state, done);
                }
            }
            Op::Answer if self.under_way.is_none() => self.under_way = Some(self.last()),
            Op::Deliver => self.deliver(),
            Op::Count if std::mem::take(&mut self.uncounted) => {
                self.core.answered(now);
            }
            Op::Look if !self.looked => {
                self.looked = !self.core.take_doubts(now).is_empty();
                self.read = self.looked.then(|| self.states.len() - 1);
            }
            Op::Read => self.read_arrives(),
            Op::Wait => self.now += 2_500,
            Op::Reconnect => {
                (self.told, self.under_way, self.uncounted) = (None, None, false);
                (self.looked, self.read) = (false, None);
                self.core.begin_load(1);
            }
            _ => {}
        }
        self.check();
    }

    fn deliver(&mut self) {
        let Some(state) = self.under_way.take() else { return };
        let updates = match (self.told, state.exists) {
            (None, true) => vec![enter(
                VM,
                state.changes(State { cpus: 0, on: !state.on, exists: false }, true),
            )],
            (Some(told), true) => vec![modify(VM, state.changes(told, self.announces_cpus))],
            (Some(_), false) => vec![leave(VM)],
            (None, false) => vec![],
        };
        self.core.apply(0, &updates, true, false, at(self.now));
        self.told = state.exists.then_some(state);
        self.uncounted = true;
    }

    fn read_arrives(&mut self) {
        let Some(index) = self.read.take() else { return };
        self.looked = false;
        let state = self.states[index];
        let found =
            properties(state.changes(State { cpus: 0, on: !state.on, exists: false }, true));
        self.core.read(&vm_id(VM), state.exists.then_some(&found), at(self.now));
    }

    fn check(&self) {
        let Some(vm) = self.core.tables.vm(&vm_id(VM)) else {
            assert!(self.states.iter().any(|state| !state.exists), "a VM that is there was hidden");
            return;
        };
        assert!(!self.destroyed, "a VM that we destroyed is shown");
        let cpus = &self.states[self.known_cpus..];
        assert!(
            cpus.iter().any(|state| state.cpus == vm.cpus),
            "{} CPUs are older than {cpus:?}",
            vm.cpus
        );
        let power = &self.states[self.known_power..];
        assert!(
            power.iter().any(|state| state.on == vm.is_on()),
            "{:?} is older than {power:?}",
            vm.power
        );
    }

    /// Nothing happens any more; the stream and the reads catch up.
    fn settle(mut self) {
        self.step(Op::Learn);
        for _ in 0..20 {
            for op in [Op::Answer, Op::Deliver, Op::Count, Op::Wait, Op::Look, Op::Read] {
                self.step(op);
            }
            self.now += 60_000;
        }
        let last = self.last();
        match self.core.tables.vm(&vm_id(VM)) {
            None => assert!(!last.exists),
            Some(vm) => {
                assert!(last.exists, "a VM that is gone is shown");
                assert_eq!(vm.power == Power::On, last.on);
                if self.announces_cpus {
                    assert_eq!(vm.cpus, last.cpus);
                }
            }
        }
        assert_eq!(
            self.core.take_doubts(at(self.now + 600_000)),
            [],
            "and nothing is read any more"
        );
    }
}

impl State {
    fn changes(self, before: Self, announces_cpus: bool) -> Vec<PropertyChange> {
        let mut changes = Vec::new();
        if self.cpus != before.cpus && announces_cpus {
            changes.push(set("summary.config.numCpu", Value::Int(self.cpus.cast_signed())));
        }
        if self.on != before.on {
            changes.push(power(if self.on { "poweredOn" } else { "poweredOff" }));
        }
        changes
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, ..ProptestConfig::default() })]

    #[test]
    fn what_is_shown_is_never_older_than_what_we_know(
        ops in prop::collection::vec(op(), 0..120),
        announces_cpus in prop::bool::weighted(0.7),
    ) {
        let mut world = World::new(announces_cpus);
        for op in ops {
            world.step(op);
        }
        world.settle();
    }
}
