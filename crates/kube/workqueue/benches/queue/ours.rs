use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use roost_workqueue::{Add, Settings, Workqueue};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};
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
    let mut steps = vec![("add", bench.fill())];
    let grown = resident_bytes().saturating_sub(before);
    steps.push(("add known", bench.fill()));
    steps.push(("get+done", bench.drain()));
    steps.push(("add+get+done", bench.fill().and(bench.drain())));
    bench.fill();
    steps.push(("turn at full queue", bench.turn()));
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let bytes_per_key = grown as f64 / bench.keys.len() as f64;
    steps.push(("memory", Cost { wall: 0.0, cpu: 0.0, bytes_per_key }));
    steps.into_iter().map(|(step, cost)| (step.to_owned(), cost)).collect()
}

impl Bench {
    fn add(&self, dice: &mut Dice, key: Key) {
        let priority = PRIORITIES[dice.below(PRIORITIES.len())];
        self.queue.add_with(Add::at(priority), [key]);
    }

    /// Adds every key once.
    fn fill(&self) -> Cost {
        self.each(self.keys.len(), |worker, _| {
            let mut dice = Dice::new(worker);
            for key in self.keys.iter().skip(worker).step_by(self.workers) {
                self.add(&mut dice, key.clone());
            }
        })
    }

    /// Takes and finishes as many keys as there are.
    fn drain(&self) -> Cost {
        let left = AtomicUsize::new(self.keys.len());
        let has_left = || {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
        };
        self.each(self.keys.len(), |_, runtime| {
            runtime.block_on(async {
                while has_left() {
                    drop(self.queue.get().await);
                }
            });
        })
    }

    /// Takes a key, finishes it and adds it again; the queue stays full.
    fn turn(&self) -> Cost {
        self.each(TURNS, |worker, runtime| {
            let mut dice = Dice::new(worker);
            runtime.block_on(async {
                for _ in (worker..TURNS).step_by(self.workers) {
                    let Some(taken) = self.queue.get().await else { return };
                    let key = taken.key().clone();
                    taken.done();
                    self.add(&mut dice, key);
                }
            });
        })
    }

    /// What one of `operations` costs that all workers do together. Threads and runtimes are there before the clock starts and go
    /// after it stopped: a controller has them for as long as it runs.
    fn each(&self, operations: usize, work: impl Fn(usize, &Runtime) + Sync) -> Cost {
        let stage = Barrier::new(self.workers + 1);
        let run = |worker| {
            let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
            stage.wait();
            stage.wait();
            work(worker, &runtime);
            let ended = Instant::now();
            stage.wait();
            stage.wait();
            ended
        };
        let (wall, cpu) = thread::scope(|scope| {
            let run = &run;
            let workers: Vec<_> =
                (0..self.workers).map(|worker| scope.spawn(move || run(worker))).collect();
            stage.wait();
            let (cpu, began) = (cpu_nanos(), Instant::now());
            stage.wait();
            stage.wait();
            let cpu = cpu_nanos() - cpu;
            stage.wait();
            let ended = workers.into_iter().filter_map(|worker| worker.join().ok()).max();
            (ended.expect("at least one worker").duration_since(began).as_nanos(), cpu)
        });
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let per = |nanos: u128| nanos as f64 / operations as f64;
        Cost { wall: per(wall), cpu: per(cpu), bytes_per_key: 0.0 }
    }
}

impl Cost {
    /// Of one operation after another.
    fn and(self, then: Self) -> Self {
        Self { wall: self.wall + then.wall, cpu: self.cpu + then.cpu, ..self }
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
