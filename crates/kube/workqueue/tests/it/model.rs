//! Random operations on the queue and on a model that is too slow and too simple to be wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use roost_workqueue::{Add, Ageing, Order, Settings, Taken, Workqueue};
use tokio::time::advance;

#[derive(Debug, Clone)]
enum Op {
    Add { key: u8, priority: i32, after: u64, is_limited: bool },
    Forget { key: u8 },
    Tick { millis: u64 },
    Take,
    Done { nth: usize },
}

fn op() -> impl Strategy<Value = Op> {
    let add = (0..8_u8, -2..3_i32, prop_oneof![Just(0), 1..20_u64], prop::bool::weighted(0.2));
    prop_oneof![
        5 => add.prop_map(|(key, priority, after, is_limited)| Op::Add { key, priority, after, is_limited }),
        1 => (0..8_u8).prop_map(|key| Op::Forget { key }),
        2 => (1..10_u64).prop_map(|millis| Op::Tick { millis }),
        4 => Just(Op::Take),
        3 => (0..8_usize).prop_map(|nth| Op::Done { nth }),
    ]
}

#[derive(Debug)]
struct Entry {
    key: u8,
    priority: i32,
    seq: u64,
    /// `None` is ready.
    due: Option<u64>,
}

#[derive(Debug, Default)]
struct Model {
    now: u64,
    seq: u64,
    queued: Vec<Entry>,
    taken: BTreeSet<u8>,
    failures: BTreeMap<u8, u32>,
}

impl Model {
    fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    fn add(&mut self, key: u8, priority: i32, after: u64, is_limited: bool) {
        let mut after = after;
        if is_limited {
            let failures = self.failures.entry(key).or_default();
            let limit = 5 * 2_u64.pow((*failures).min(20));
            *failures += 1;
            after = if after == 0 { limit } else { after.min(limit) };
        }
        let due = (after > 0).then_some(self.now + after);
        let seq = self.next_seq();
        match self.queued.iter_mut().find(|entry| entry.key == key) {
            None => self.queued.push(Entry { key, priority, seq, due }),
            Some(entry) => {
                entry.due = entry.due.zip(due).map(|(one, other)| one.min(other));
                if priority > entry.priority {
                    (entry.priority, entry.seq) = (priority, seq);
                }
            }
        }
    }

    fn tick(&mut self, millis: u64) {
        self.now += millis;
        self.ripen();
    }

    fn ripen(&mut self) {
        let now = self.now;
        let mut ripe: Vec<_> = (0..self.queued.len())
            .filter(|index| self.queued[*index].due.is_some_and(|due| due <= now))
            .collect();
        ripe.sort_by_key(|index| {
            let entry = &self.queued[*index];
            (entry.due, -entry.priority, entry.seq)
        });
        for index in ripe {
            let seq = self.next_seq();
            let entry = &mut self.queued[index];
            (entry.due, entry.seq) = (None, seq);
        }
    }

    fn take(&mut self) -> Option<(u8, i32)> {
        let can_be_taken = |entry: &&Entry| entry.due.is_none() && !self.taken.contains(&entry.key);
        let best = self
            .queued
            .iter()
            .filter(can_be_taken)
            .min_by_key(|entry| (-entry.priority, entry.seq))?;
        let (key, priority) = (best.key, best.priority);
        self.queued.retain(|entry| entry.key != key);
        self.taken.insert(key);
        Some((key, priority))
    }

    fn len(&self) -> usize {
        self.queued.iter().filter(|entry| entry.due.is_none()).count()
    }
}

async fn agree(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let queue = Workqueue::new(&Settings { ageing: None, ..Settings::default() });
    let mut model = Model::default();
    let mut taken: Vec<Taken<u8>> = Vec::new();
    for op in ops {
        match op {
            Op::Add { key, priority, after, is_limited } => {
                let mut add = Add::at(priority).after(Duration::from_millis(after));
                if is_limited {
                    add = add.rate_limited();
                }
                queue.add_with(add, [key]);
                model.add(key, priority, after, is_limited);
            }
            Op::Forget { key } => {
                queue.forget(&key);
                model.failures.remove(&key);
            }
            Op::Tick { millis } => {
                advance(Duration::from_millis(millis)).await;
                model.tick(millis);
            }
            Op::Take => {
                let got = queue.try_get(Order::Priority);
                prop_assert_eq!(got.as_ref().map(|got| (*got.key(), got.priority())), model.take());
                taken.extend(got);
            }
            Op::Done { nth } if !taken.is_empty() => {
                let done = taken.remove(nth % taken.len());
                model.taken.remove(done.key());
                done.done();
            }
            Op::Done { .. } => {}
        }
        prop_assert_eq!(queue.len(), model.len());
    }
    Ok(())
}

/// What holds whatever rises: a key is in one hand only, comes with the highest priority that was asked for, and comes.
async fn hold(ops: Vec<Op>, order: Order) -> Result<(), TestCaseError> {
    let ageing = Some(Ageing { after: Duration::from_millis(7), ceiling: i32::MAX });
    let queue = Workqueue::new(&Settings { ageing, ..Settings::default() });
    let mut asked: BTreeMap<u8, i32> = BTreeMap::new();
    let mut taken: BTreeMap<u8, Taken<u8>> = BTreeMap::new();
    let receive =
        |got: Taken<u8>, asked: &mut BTreeMap<u8, i32>, taken: &mut BTreeMap<u8, Taken<u8>>| {
            prop_assert_eq!(asked.remove(got.key()), Some(got.priority()));
            prop_assert!(taken.insert(*got.key(), got).is_none());
            Ok(())
        };
    for op in ops {
        match op {
            Op::Add { key, priority, after, .. } => {
                queue.add_with(Add::at(priority).after(Duration::from_millis(after)), [key]);
                let known = asked.entry(key).or_insert(priority);
                *known = priority.max(*known);
            }
            Op::Forget { .. } => {}
            Op::Tick { millis } => advance(Duration::from_millis(millis)).await,
            Op::Take => {
                if let Some(got) = queue.try_get(order) {
                    receive(got, &mut asked, &mut taken)?;
                }
            }
            Op::Done { nth } => {
                let key = taken.keys().nth(nth % taken.len().max(1)).copied();
                key.and_then(|key| taken.remove(&key));
            }
        }
    }
    taken.clear();
    advance(Duration::from_secs(1)).await;
    while let Some(got) = queue.try_get(order) {
        receive(got, &mut asked, &mut taken)?;
    }
    prop_assert!(asked.is_empty(), "never handed out: {:?}", asked);
    Ok(())
}

fn on_paused_time<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap().block_on(future)
}

proptest! {
    #[test]
    fn the_queue_and_the_model_agree(ops in vec(op(), 0..200)) {
        on_paused_time(agree(ops))?;
    }

    #[test]
    fn with_ageing_every_key_comes_once_and_with_its_priority(ops in vec(op(), 0..200)) {
        on_paused_time(hold(ops.clone(), Order::Priority))?;
        on_paused_time(hold(ops, Order::Age))?;
    }
}
