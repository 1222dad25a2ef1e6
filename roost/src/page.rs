//! The page's port, kept open whatever becomes of what answers on it.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use roost_console::Port;
use roost_supervise::Tasks;
use tokio::sync::watch;

/// Answers on the port, and keeps what its curves are drawn from, until `ended` says so. `panicked` is told of each that begins anew.
pub(crate) fn keep_open(
    port: &Port,
    ended: watch::Receiver<bool>,
    panicked: impl Fn(&'static str) + Send + Sync + 'static,
) -> Tasks {
    let tasks = Tasks::new(panicked);
    let serving = port.clone();
    tasks.supervise("console", move || {
        let (port, mut ended) = (serving.clone(), ended.clone());
        async move {
            let closed = async {
                let _ = ended.wait_for(|ended| *ended).await;
            };
            port.serve(closed).await;
        }
    });
    let kept = port.clone();
    tasks.supervise("console-history", move || {
        let port = kept.clone();
        async move { port.keep_history().await }
    });
    tasks
}

/// Whether each of them runs.
pub(crate) fn all_run(tasks: &Tasks) -> bool {
    tasks.health().iter().all(|task| task.is_running)
}

/// What a service without a hatchery counts of itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnMetrics {
    dropped_log_lines: Counter,
    task_restarts: Family<ByTask, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByTask {
    task: &'static str,
}

impl OwnMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let own = Self::default();
        let help = "log lines that could not be written and were dropped";
        registry.register("roost_log_lines_dropped", help, own.dropped_log_lines.clone());
        let help = "background tasks that failed and were started again";
        registry.register("roost_task_restarts", help, own.task_restarts.clone());
        own
    }

    /// Told of each line that was lost.
    pub(crate) fn log_line_dropped(&self) -> impl Fn() + Send + Sync + 'static {
        let dropped = self.dropped_log_lines.clone();
        move || {
            dropped.inc();
        }
    }

    /// Told of each task that begins anew.
    pub(crate) fn task_restarted(&self) -> impl Fn(&'static str) + Send + Sync + 'static {
        let restarts = self.task_restarts.clone();
        move |task| {
            restarts.get_or_create(&ByTask { task }).inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use roost_clock::{Clock as _, SystemClock};
    use roost_console::{Console, Settings, Starter};
    use roost_door::{DoorWords, Feed, FrontDoor, History, House, Links, Summary};
    use roost_views::{CheckView, OutageView, RequestDetail, RequestView, VmDetail, VmView};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Panics when it is first asked what it cannot reach.
    #[derive(Debug, Default)]
    struct PanicsOnce(AtomicU64);

    impl FrontDoor for PanicsOnce {
        fn words(&self) -> DoorWords {
            DoorWords { name: "d", noun: "job", nouns: "jobs", group: "project", about: "" }
        }

        fn title(&self) -> String {
            "d".to_owned()
        }

        fn liveness(&self) -> Vec<CheckView> {
            Vec::new()
        }

        fn readiness(&self) -> Vec<CheckView> {
            Vec::new()
        }

        fn summary(&self) -> Summary {
            Summary::default()
        }

        fn requests(&self) -> Vec<RequestView> {
            Vec::new()
        }

        fn request(&self, _: &str) -> Option<RequestDetail> {
            None
        }

        fn vms(&self) -> Vec<VmView> {
            Vec::new()
        }

        fn vm(&self, _: &str) -> Option<VmDetail> {
            None
        }

        fn outages(&self) -> Vec<OutageView> {
            assert!(self.0.fetch_add(1, Ordering::SeqCst) > 0, "the first time");
            Vec::new()
        }
    }

    async fn livez(address: std::net::SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn a_panic_behind_the_page_is_counted_and_begun_anew_and_the_port_answers() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let clock = Arc::new(SystemClock);
        let starter = Starter {
            service: "s".to_owned(),
            service_type: "roost".to_owned(),
            hostname: String::new(),
            clock: clock.clone(),
        };
        let (port, mut registry) = (Port::new(listener, None, starter), Registry::default());
        let own = OwnMetrics::register(&mut registry);
        let (end, ended) = watch::channel(false);
        let tasks = keep_open(&port, ended, own.task_restarted());
        let door = Arc::new(PanicsOnce::default());
        let house = House {
            name: "s".to_owned(),
            version: "0.1.0".to_owned(),
            started: clock.now(),
            clock,
            observes_only: false,
            doors: vec![Arc::clone(&door) as Arc<dyn FrontDoor>],
            core: None,
            feed: Feed::default(),
            history: History::default(),
            links: Links::default(),
            demonstration: None,
        };
        assert!(all_run(&tasks));
        port.show(Console { house: Arc::new(house), settings: Settings::default() });
        let (mut paused, mut answered) = (false, false);
        while door.0.load(Ordering::SeqCst) < 3 {
            paused |= !all_run(&tasks);
            answered |= livez(address).await.starts_with("HTTP/1.1 200");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(paused, "what does not run is seen in the pause");
        assert!(answered && all_run(&tasks), "{tasks:?}");
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let line = "roost_task_restarts_total{task=\"console-history\"} 1\n";
        assert!(text.contains(line), "{text}");
        end.send_replace(true);
        tasks.finished().await;
        assert!(TcpStream::connect(address).await.is_err() || tasks.health().is_empty());
    }
}
