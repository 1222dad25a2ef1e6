use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use roost_workqueue::{Metrics, PriorityLabels, Settings, Workqueue};
use tokio::time::advance;

use crate::script::Script;

struct Scrape {
    registry: Registry,
    script: Script,
}

impl Scrape {
    fn new(settings: &Settings) -> Self {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let script = Script::on(Workqueue::measured(settings, "vm", &metrics));
        Self { registry, script }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        text
    }

    /// The value of a series of the queue; `None` if there is none.
    fn value(&self, metric: &str, more: &str) -> Option<f64> {
        let series = format!("{metric}{{name=\"vm\",controller=\"vm\"{more}}} ");
        let text = self.text();
        text.lines().find_map(|line| line.strip_prefix(&series)?.parse().ok())
    }

    fn depth(&self, priority: i32) -> Option<f64> {
        self.value("workqueue_depth", &format!(",priority=\"{priority}\""))
    }
}

#[tokio::test(start_paused = true)]
async fn an_add_counts_when_the_key_becomes_ready() {
    let mut scrape = Scrape::new(&Settings::default());
    scrape.script.run("a@1 b@1 a@1").await;
    assert_eq!(scrape.value("workqueue_adds_total", ""), Some(2.0), "Q3");

    let mut scrape = Scrape::new(&Settings::default());
    scrape.script.run("a+60 b c+60 d").await;
    assert_eq!(scrape.depth(0), Some(2.0), "Q26");
    assert_eq!(scrape.value("workqueue_adds_total", ""), Some(2.0));
    assert_eq!(scrape.value("workqueue_retries_total", ""), Some(2.0));
    advance(Duration::from_mins(1)).await;
    assert_eq!(scrape.depth(0), Some(4.0), "a scrape sees delays that are over");

    let mut scrape = Scrape::new(&Settings::default());
    scrape.script.run("a+3600 a@1").await;
    assert_eq!((scrape.depth(1), scrape.depth(0)), (Some(1.0), Some(0.0)), "Q27");
    assert_eq!(scrape.value("workqueue_adds_total", ""), Some(1.0), "Q27");
}

#[tokio::test(start_paused = true)]
async fn depth_follows_raises_takes_and_shutdown() {
    let mut scrape = Scrape::new(&Settings::default());
    scrape.script.run("a b c b@5").await;
    assert_eq!((scrape.depth(0), scrape.depth(5)), (Some(2.0), Some(1.0)));
    scrape.script.run(">b b@7").await;
    assert_eq!((scrape.depth(5), scrape.depth(7)), (Some(0.0), Some(1.0)), "taken keys count");
    scrape.script.queue.shut_down();
    assert_eq!((scrape.depth(0), scrape.depth(7)), (Some(0.0), Some(0.0)));
}

#[tokio::test(start_paused = true)]
async fn q29_thirty_priorities_make_at_most_twenty_six_series() {
    let mut scrape = Scrape::new(&Settings::default());
    for priority in 0..30 {
        scrape.script.run(&format!("k{priority}@{priority}")).await;
    }
    let text = scrape.text();
    assert_eq!(text.lines().filter(|line| line.starts_with("workqueue_depth{")).count(), 26);
    let beyond = ",priority=\"exceeded_cardinality_limit\"";
    assert_eq!(scrape.value("workqueue_depth", beyond), Some(5.0));
}

#[tokio::test(start_paused = true)]
async fn labels_can_be_names() {
    let name = |priority| if priority >= 96 { "urgent" } else { "routine" };
    let labels = PriorityLabels::Named(name);
    let mut scrape = Scrape::new(&Settings { labels, ..Settings::default() });
    scrape.script.run("a@100 b@-4 c@97 d@12345").await;
    assert_eq!(scrape.value("workqueue_depth", ",priority=\"urgent\""), Some(3.0));
    assert_eq!(scrape.value("workqueue_depth", ",priority=\"routine\""), Some(1.0));
}

#[tokio::test(start_paused = true)]
async fn durations_are_those_of_waiting_and_of_work() {
    let mut scrape = Scrape::new(&Settings::default());
    scrape.script.run("a tick=2 >a b >b tick=3").await;
    assert_eq!(scrape.value("workqueue_queue_duration_seconds_sum", ""), Some(2.0));
    assert_eq!(scrape.value("workqueue_queue_duration_seconds_count", ""), Some(2.0));
    assert_eq!(scrape.value("workqueue_unfinished_work_seconds", ""), Some(6.0));
    assert_eq!(scrape.value("workqueue_longest_running_processor_seconds", ""), Some(3.0));
    scrape.script.run("!a tick=1 !b").await;
    assert_eq!(scrape.value("workqueue_work_duration_seconds_sum", ""), Some(7.0));
    assert_eq!(scrape.value("workqueue_unfinished_work_seconds", ""), Some(0.0));
    let text = scrape.text();
    let buckets =
        text.lines().filter(|line| line.starts_with("workqueue_work_duration_seconds_bucket"));
    let bounds: Vec<_> = buckets.filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(bounds.len(), 13, "{bounds:?}");
    assert_eq!(bounds.last(), Some(&"+Inf"));
}

#[tokio::test(start_paused = true)]
async fn two_queues_share_each_metric_and_a_dropped_one_is_gone() {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let one = Workqueue::measured(&Settings::default(), "one", &metrics);
    let two = Workqueue::measured(&Settings::default(), "two", &metrics);
    one.add(1);
    two.add("x");
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    assert_eq!(text.matches("# TYPE workqueue_adds counter").count(), 1, "{text}");
    assert!(text.contains("workqueue_adds_total{name=\"one\",controller=\"one\"} 1"), "{text}");
    assert!(text.contains("workqueue_adds_total{name=\"two\",controller=\"two\"} 1"), "{text}");
    drop(one);
    text.clear();
    encode(&mut text, &registry).unwrap();
    assert!(!text.contains("\"one\""), "{text}");
}
