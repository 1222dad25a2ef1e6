use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roost_clock::Random;
use roost_workqueue::{Add, Ageing, Backoff, Order, Settings, Workqueue};
use tokio::time::{Instant, timeout};

fn queue() -> Workqueue<&'static str> {
    Workqueue::new(&Settings::default())
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[tokio::test(start_paused = true)]
async fn q24_a_worker_that_waits_is_given_a_new_key_at_once() {
    let queue = queue();
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { (queue.get().await.map(|taken| *taken.key()), Instant::now()) }
    });
    tokio::task::yield_now().await;
    let added = Instant::now();
    queue.add("a");
    assert_eq!(worker.await.unwrap(), (Some("a"), added));
}

#[tokio::test]
async fn q25_shutting_down_drops_what_is_queued_and_sends_workers_home() {
    let queue = queue();
    let taken = {
        queue.add("t");
        queue.get().await.unwrap()
    };
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.is_none() }
    });
    tokio::task::yield_now().await;
    queue.add_with(Add::at(0).after(secs(9)), ["later"]);
    queue.shut_down();
    assert!(worker.await.unwrap());
    queue.add("b");
    assert!(queue.get().await.is_none());
    assert_eq!(queue.len(), 0);
    taken.requeue(Add::default());
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_worker_sleeps_until_the_next_delay_ends_and_not_longer() {
    let queue = queue();
    let start = Instant::now();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let taken = queue.get().await.unwrap();
                (*taken.key(), start.elapsed())
            })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.add_with(Add::default().after(secs(60)), ["late"]);
    tokio::task::yield_now().await;
    // Nearer than what all three sleep by, and two at one time.
    queue.add_with(Add::default().after(secs(5)), ["soon", "too"]);
    let mut seen = Vec::new();
    for worker in workers {
        seen.push(worker.await.unwrap());
    }
    seen.sort_by_key(|(key, at)| (*at, *key));
    assert_eq!(seen, [("soon", secs(5)), ("too", secs(5)), ("late", secs(60))]);
}

#[tokio::test(start_paused = true)]
async fn keys_that_wait_or_age_have_no_tasks() {
    let ageing = Some(Ageing { after: secs(1), ceiling: i32::MAX });
    let queue = Workqueue::new(&Settings { ageing, ..Settings::default() });
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { while queue.get().await.is_some() {} }
    });
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    for number in 0..10_000_u64 {
        queue.add_with(Add::at(-1).after(secs(60 + number)), [number]);
        queue.add_with(Add::at(-1).rate_limited(), [10_000 + number]);
        queue.add_with(Add::at(0), [20_000 + number]);
    }
    assert_eq!(alive(), before);
    tokio::time::sleep(secs(60 + 10_000)).await;
    assert_eq!(queue.len(), 0, "all have come");
    assert_eq!(alive(), before);
    queue.shut_down();
    worker.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_loses_no_key() {
    let queue = queue();
    for _ in 0..10 {
        assert!(timeout(secs(1), queue.get()).await.is_err());
    }
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.map(|taken| *taken.key()) }
    });
    tokio::task::yield_now().await;
    let mut dropped = Box::pin(queue.get());
    assert!(timeout(secs(1), dropped.as_mut()).await.is_err());
    queue.add("a");
    drop(dropped);
    assert_eq!(waiting.await.unwrap(), Some("a"));
}

#[tokio::test]
async fn a_worker_that_panics_gives_its_key_back() {
    let queue = queue();
    queue.add("a");
    let taken = queue.get().await.unwrap();
    queue.add("a");
    let outcome = catch_unwind(AssertUnwindSafe(move || {
        let _taken = taken;
        panic!("the reconciler has a bug");
    }));
    assert!(outcome.is_err());
    assert_eq!(*queue.get().await.unwrap().key(), "a");
}

/// Q28: ten producers and a hundred workers on four threads. No key is in two hands at once, and each comes with a priority that
/// somebody asked for. That it is the highest one is shown below, where adding and handing out are counted in one order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn q28_no_key_is_handed_out_twice_before_it_is_done() {
    const KEYS: u64 = 40;
    /// Per key: is it taken, and every priority that was asked for.
    type Ledger = Arc<Mutex<BTreeMap<u64, (bool, BTreeSet<i32>)>>>;
    let settings = Settings {
        backoff: Backoff { base: Duration::from_micros(10), cap: Duration::from_micros(500) },
        ..Settings::default()
    };
    let queue: Workqueue<u64> = Workqueue::new(&settings);
    let ledger = Ledger::default();
    let random = Random::from_seed(28);
    let workers: Vec<_> = (0..100)
        .map(|number| {
            let (queue, ledger) = (queue.clone(), Arc::clone(&ledger));
            let order = if number % 10 == 0 { Order::Age } else { Order::Priority };
            tokio::spawn(async move {
                let mut served = 0_u32;
                while let Some(taken) = queue.get_by(order).await {
                    {
                        let mut ledger = ledger.lock().unwrap();
                        let (is_taken, asked) = ledger.entry(*taken.key()).or_default();
                        assert!(!*is_taken, "{} is in two hands", taken.key());
                        assert!(asked.contains(&taken.priority()), "{asked:?}");
                        *is_taken = true;
                    }
                    tokio::task::yield_now().await;
                    ledger.lock().unwrap().get_mut(taken.key()).unwrap().0 = false;
                    served += 1;
                }
                served
            })
        })
        .collect();
    let producers: Vec<_> = (0..10)
        .map(|number| {
            let (queue, ledger) = (queue.clone(), Arc::clone(&ledger));
            let mut random = random.fork(&number.to_string());
            tokio::spawn(async move {
                for _ in 0..2000 {
                    let key = random.below(KEYS);
                    let priority = i32::try_from(random.below(7)).unwrap() - 3;
                    let mut add = Add::at(priority);
                    if random.chance(0.2) {
                        add = add.after(Duration::from_micros(random.below(500)));
                    }
                    if random.chance(0.1) {
                        add = add.rate_limited();
                    }
                    if random.chance(0.05) {
                        queue.forget(&key);
                    }
                    ledger.lock().unwrap().entry(key).or_default().1.insert(priority);
                    queue.add_with(add, [key]);
                    if random.chance(0.1) {
                        tokio::task::yield_now().await;
                    }
                }
            })
        })
        .collect();
    for producer in producers {
        producer.await.unwrap();
    }
    let all_served = async {
        while ledger.lock().unwrap().values().any(|(is_taken, _)| *is_taken) || !queue.is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // Longer than any delay above.
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    all_served.await;
    assert!(queue.is_empty());
    queue.shut_down();
    let mut served = 0;
    for worker in workers {
        served += worker.await.unwrap();
    }
    assert!(served >= u32::try_from(KEYS).unwrap());
    let ledger = ledger.lock().unwrap();
    assert!(ledger.values().all(|(is_taken, _)| !is_taken));
}

/// Q28, the priority: of all that was asked for since the key was last handed out, the highest. Whoever adds or takes holds the book
/// while it does, so that "since" has a meaning; keys are finished, ripen and age beside it.
#[test]
fn q28_a_key_comes_with_the_highest_priority_since_it_was_last_handed_out() {
    const KEYS: u64 = 40;
    const ADDS: u32 = 20_000;
    let settings = Settings {
        backoff: Backoff { base: Duration::from_micros(10), cap: Duration::from_micros(500) },
        ..Settings::default()
    };
    let queue: Workqueue<u64> = Workqueue::new(&settings);
    let highest: Mutex<BTreeMap<u64, i32>> = Mutex::default();
    let producing = AtomicUsize::new(3);
    let random = Random::from_seed(28);
    std::thread::scope(|scope| {
        for number in 0..3 {
            let mut random = random.fork(&format!("producer {number}"));
            let (queue, highest, producing) = (&queue, &highest, &producing);
            scope.spawn(move || {
                for _ in 0..ADDS {
                    let key = random.below(KEYS);
                    let priority = i32::try_from(random.below(7)).unwrap() - 3;
                    let mut add = Add::at(priority);
                    if random.chance(0.2) {
                        add = add.after(Duration::from_micros(random.below(500)));
                    }
                    if random.chance(0.1) {
                        add = add.rate_limited();
                    }
                    let mut highest = highest.lock().unwrap();
                    let known = highest.entry(key).or_insert(priority);
                    *known = priority.max(*known);
                    queue.add_with(add, [key]);
                }
                producing.fetch_sub(1, Ordering::Relaxed);
            });
        }
        for number in 0..3 {
            let order = if number == 0 { Order::Age } else { Order::Priority };
            let (queue, highest, producing) = (&queue, &highest, &producing);
            scope.spawn(move || {
                loop {
                    let mut book = highest.lock().unwrap();
                    let taken = queue.try_get(order);
                    if let Some(taken) = &taken {
                        let asked = book.remove(taken.key());
                        assert_eq!(Some(taken.priority()), asked, "{}", taken.key());
                    }
                    let is_over = book.is_empty() && producing.load(Ordering::Relaxed) == 0;
                    drop(book);
                    std::thread::yield_now();
                    drop(taken);
                    if is_over {
                        return;
                    }
                }
            });
        }
    });
    assert!(queue.is_empty());
}
