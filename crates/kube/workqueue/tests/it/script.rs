//! A small language for the tables: one word per step, run on paused time.
//!
//! | Word | Means |
//! | --- | --- |
//! | `a`, `a@7`, `a+3`, `a@7+3` | add a, at priority 7, after 3 seconds |
//! | `a~`, `a+10~` | the same, rate limited; a negative delay is a time that has passed |
//! | `>a`, `>a@7` | the next key is a (handed out with priority 7) and is kept |
//! | `>-` | no key is ready |
//! | `!a` | a is done |
//! | `tick=1.5` | time passes, in seconds |
//! | `len=2`, `fails:a=2`, `forget:a` | as they say |

use std::collections::BTreeMap;
use std::time::Duration;

use roost_workqueue::{Add, Order, Settings, Taken, Workqueue};
use tokio::time::{Instant, advance};

pub(crate) type Key = String;

pub(crate) struct Script {
    pub(crate) queue: Workqueue<Key>,
    pub(crate) order: Order,
    taken: BTreeMap<Key, Taken<Key>>,
}

impl Script {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self::on(Workqueue::new(settings))
    }

    pub(crate) fn on(queue: Workqueue<Key>) -> Self {
        Self { queue, order: Order::Priority, taken: BTreeMap::new() }
    }

    pub(crate) async fn run(&mut self, script: &str) {
        for word in script.split_whitespace() {
            self.step(word).await.unwrap_or_else(|why| panic!("{word} in {script:?}: {why}"));
        }
    }

    async fn step(&mut self, word: &str) -> Result<(), String> {
        if let Some(expected) = word.strip_prefix('>') {
            return self.take(expected);
        }
        if let Some(key) = word.strip_prefix('!') {
            return self.taken.remove(key).map(Taken::done).ok_or("is not taken".into());
        }
        if let Some(seconds) = word.strip_prefix("tick=") {
            // Rounded up to a millisecond, which is how exact tokio's timers are.
            advance(Duration::from_secs_f64(seconds.parse().unwrap())).await;
            return Ok(());
        }
        if let Some(len) = word.strip_prefix("len=") {
            let is = self.queue.len();
            return (is.to_string() == len).then_some(()).ok_or(format!("is {is}"));
        }
        if let Some(key) = word.strip_prefix("forget:") {
            self.queue.forget(&key.to_owned());
            return Ok(());
        }
        if let Some((key, count)) =
            word.strip_prefix("fails:").and_then(|word| word.split_once('='))
        {
            let is = self.queue.failures(&key.to_owned());
            return (is.to_string() == count).then_some(()).ok_or(format!("is {is}"));
        }
        self.add(word);
        Ok(())
    }

    fn take(&mut self, expected: &str) -> Result<(), String> {
        let taken = self.queue.try_get(self.order);
        let shown = taken.as_ref().map_or("-".to_owned(), |taken| {
            if expected.contains('@') {
                format!("{}@{}", taken.key(), taken.priority())
            } else {
                taken.key().clone()
            }
        });
        if let Some(taken) = taken {
            let doubled = self.taken.insert(taken.key().clone(), taken);
            assert!(doubled.is_none(), "{shown} was handed out twice");
        }
        (shown == expected).then_some(()).ok_or(format!("got {shown}"))
    }

    fn add(&self, word: &str) {
        let (word, is_limited) = match word.strip_suffix('~') {
            Some(word) => (word, true),
            None => (word, false),
        };
        let (word, seconds) = word.split_once('+').unwrap_or((word, "0"));
        let (key, priority) = word.split_once('@').unwrap_or((word, "0"));
        let mut add = Add::at(priority.parse().unwrap());
        let seconds: f64 = seconds.parse().unwrap();
        if seconds < 0.0 {
            add = add.until(Instant::now() - Duration::from_secs_f64(-seconds));
        } else {
            add = add.after(Duration::from_secs_f64(seconds));
        }
        if is_limited {
            add = add.rate_limited();
        }
        self.queue.add_with(add, [key.to_owned()]);
    }
}
