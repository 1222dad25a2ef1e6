use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use roost_workqueue::{Add, Settings, Workqueue};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

use crate::{Cost, PRIORITIES, TURNS};

/// Namespace and name, as a controller has them.
type Key = (Arc<str>, Arc<str>);

struct Bench {
    keys: Vec<Key>,
    workers: usize,
    queue: Workqueue<Key>,
}

pub(crate) fn round(keys: usize, workers: usize) -> Vec<(String, Cost)> {
    let namespaces: Vec<Arc<str>> = (0..50).map(|number| format!("ns-{number}").into()).collect();
    let key = |number| (Arc::clone(&namespaces[number % 50]), format!("agent-{number:07}").into());
    let keys: Vec<Key> = (0..keys).map(key).collect();
    let bench = Bench { workers, queue: Workqueue::new(&Settings::default()), keys };
    let before = resident_bytes();
    let count = bench.keys.len();
    let mut steps = vec![("add", measure(count, || bench.fill()))];
    let grown = resident_bytes().saturating_sub(before);
    steps.push(("add known", measure(count, || bench.fill())));
    steps.push(("get+done", measure(count, || bench.drain())));
    steps.push((
        "add+get+done",
        measure(count, || {
            bench.fill();
            bench.drain();
        }),
    ));
    bench.fill();
    steps.push(("turn at full queue", measure(TURNS, || bench.turn())));
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let bytes_per_key = grown as f64 / count as f64;
    steps.push(("memory", Cost { wall: 0.0, cpu: 0.0, bytes_per_key }));
    steps.into_iter().map(|(step, cost)| (step.to_owned(), cost)).collect()
}

impl Bench {
    fn add(&self, dice: &mut Dice, key: Key) {
        let priority = PRIORITIES[dice.below(PRIORITIES.len())];
        self.queue.add_with(Add::at(priority), [key]);
    }

    /// Adds every key once.
    fn fill(&self) {
        self.each(|worker| {
            let mut dice = Dice::new(worker);
            for key in self.keys.iter().skip(worker).step_by(self.workers) {
                self.add(&mut dice, key.clone());
            }
        });
    }

    /// Takes and finishes as many keys as there are.
    fn drain(&self) {
        let left = AtomicUsize::new(self.keys.len());
        let has_left = || {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
        };
        self.each(|_| {
            block_on(async {
                while has_left() {
                    drop(self.queue.get().await);
                }
            });
        });
    }

    /// Takes a key, finishes it and adds it again; the queue stays full.
    fn turn(&self) {
        self.each(|worker| {
            let mut dice = Dice::new(worker);
            block_on(async {
                for _ in (worker..TURNS).step_by(self.workers) {
                    let Some(taken) = self.queue.get().await else { return };
                    let key = taken.key().clone();
                    taken.done();
                    self.add(&mut dice, key);
                }
            });
        });
    }

    fn each(&self, work: impl Fn(usize) + Sync) {
        thread::scope(|scope| {
            for worker in 0..self.workers {
                let work = &work;
                scope.spawn(move || work(worker));
            }
        });
    }
}

/// As cheap as the other side's: a step of PCG. What is measured is the queue.
struct Dice(u64);

impl Dice {
    fn new(seed: usize) -> Self {
        Self(seed as u64 ^ 0x9e37_79b9_7f4a_7c15)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 40).unwrap_or(0) % limit
    }
}

fn block_on(future: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().build().expect("a runtime").block_on(future);
}

fn measure(operations: usize, step: impl FnOnce()) -> Cost {
    let (cpu, wall) = (cpu_nanos(), Instant::now());
    step();
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let per = |nanos: u128| nanos as f64 / operations as f64;
    let (wall, cpu) = (wall.elapsed().as_nanos(), cpu_nanos() - cpu);
    Cost { wall: per(wall), cpu: per(cpu), bytes_per_key: 0.0 }
}

fn cpu_nanos() -> u128 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    u128::try_from(nanos).unwrap_or_default()
}

fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}
