//! Is the guest there? Frequent looks until it answers, rare ones after.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use roost_microvm::{IcmpPinger, Runtime};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::checks::{Check, Checks, Streak, taken};
use super::host::Host;
use super::table::{PodTable, Tracked};
use roost_controller::{Key, Trigger};

const WITHIN: Duration = Duration::from_secs(3);
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
const STEADY: Duration = Duration::from_secs(5);
/// Failures in a row until a guest that was there counts as away.
const PATIENCE: u32 = 3;

/// How guests without a port are asked.
pub trait Pinger: Send + Sync + std::fmt::Debug {
    fn ping(&self, address: IpAddr) -> BoxFuture<'_, Result<(), String>>;
}

impl Pinger for IcmpPinger {
    fn ping(&self, address: IpAddr) -> BoxFuture<'_, Result<(), String>> {
        async move { IcmpPinger::ping(self, address, WITHIN).await.map_err(|error| error.to_string()) }.boxed()
    }
}

/// Where no ping may be sent, an address is taken for an answer. It is said once, at the start.
#[derive(Debug)]
pub struct NoPinger;

impl Pinger for NoPinger {
    fn ping(&self, _: IpAddr) -> BoxFuture<'_, Result<(), String>> {
        async { Ok(()) }.boxed()
    }
}

/// Readiness with patience: one success makes ready, some failures in a row unready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Debounced {
    ready: bool,
    failures: u32,
    pause: Duration,
}

impl Debounced {
    fn new(ready: bool) -> Self {
        Self { ready, failures: 0, pause: FIRST }
    }

    fn note(self, answered: bool) -> Self {
        if answered {
            return Self { ready: true, failures: 0, pause: STEADY };
        }
        let failures = self.failures.saturating_add(1);
        let ready = self.ready && failures < PATIENCE;
        let pause = match (ready, self.ready) {
            (true, _) => STEADY,
            (false, true) => FIRST,
            (false, false) => self.pause.mul_f32(1.5).clamp(FIRST, LONGEST),
        };
        Self { ready, failures, pause }
    }
}

/// The guest of a pod, and what is needed to ask how it is.
pub(crate) struct Guest {
    pub(crate) host: Arc<Host>,
    pub(crate) pinger: Arc<dyn Pinger>,
    pub(crate) table: PodTable,
    pub(crate) key: Key,
    /// Its id: another VM of the pod is another guest.
    pub(crate) vm: String,
    pub(crate) trigger: Trigger,
}

/// Probes one VM until it is replaced or gone.
pub(crate) async fn probe(guest: Guest) {
    let mut adopted = guest.pod().and_then(|pod| pod.adopted);
    while let Some(pod) = guest.pod() {
        let mut checks = pod.checks.as_deref().cloned().unwrap_or_default();
        if pod.spec.is_some_and(|spec| !spec.managed) {
            // Somebody else's VM is looked at, never started anew.
            (checks.startup, checks.liveness) = (None, None);
        }
        let failed = guest.live(&checks, adopted.take()).await;
        let Some(why) = failed else { return };
        guest.change(|pod| (pod.ready, pod.unhealthy) = (false, Some(why)));
        // A VM that was started anew is the same VM and begins anew.
        while guest.pod().is_some_and(|pod| pod.unhealthy.is_some()) {
            sleep(LONGEST).await;
        }
    }
}

impl Guest {
    fn pod(&self) -> Option<Tracked> {
        self.table.get(&self.key).filter(|pod| self.is_of(pod))
    }

    fn is_of(&self, pod: &Tracked) -> bool {
        pod.vm.as_ref().is_some_and(|vm| vm.id == self.vm)
    }

    /// Changes what is known, and has the pod looked at.
    fn change(&self, change: impl FnOnce(&mut Tracked)) {
        let changed = self.table.change(&self.key, |pod| {
            let is_ours = self.is_of(pod);
            if is_ours {
                change(pod);
            }
            is_ours
        });
        if changed == Some(true) {
            self.trigger.signal(self.key.clone());
        }
    }

    /// From its boot until it is gone, or until a probe says that it must be started anew.
    /// `adopted`: it runs since then, and the kubelet before this one has probed it.
    async fn live(&self, checks: &Checks, adopted: Option<Timestamp>) -> Option<String> {
        let was_ready = adopted.is_some() && self.pod().is_some_and(|pod| pod.ready);
        if let Some(startup) = checks.startup.as_ref().filter(|_| !was_ready) {
            let began = |result: &Looked| {
                self.show(false, result.why.clone());
                (result.streak.is_good || result.has_failed).then_some(result.has_failed)
            };
            if let Some(why) = self.ask(startup, false, adopted, began).await? {
                return Some(format!("startup probe failed: {why}"));
            }
        }
        let ready = async {
            match &checks.readiness {
                None => self.answering().await,
                Some(readiness) => {
                    let show = |result: &Looked| {
                        self.show(result.streak.is_good, result.why.clone());
                        None
                    };
                    self.ask(readiness, was_ready, adopted, show).await;
                }
            }
        };
        let Some(liveness) = &checks.liveness else {
            ready.await;
            return None;
        };
        let alive = self.ask(liveness, true, adopted, |result| result.has_failed.then_some(true));
        tokio::select! {
            () = ready => None,
            asked = alive => asked.flatten().map(|why| format!("liveness probe failed: {why}")),
        }
    }

    /// Asks again and again until `note` says how it ended: whether it failed. The answer is why, if it did; `None` if the guest is gone.
    async fn ask(
        &self,
        check: &Check,
        is_good: bool,
        adopted: Option<Timestamp>,
        mut note: impl FnMut(&Looked) -> Option<bool>,
    ) -> Option<Option<String>> {
        let mut looked =
            Looked { streak: Streak::new(is_good), why: String::new(), has_failed: false };
        let mut failures = 0;
        // Of a guest that was there before this process, the delay counts from its own start.
        let age = adopted.map(|since| self.host.clock.now().duration_since(since));
        let age = age.and_then(|age| Duration::try_from(age).ok()).unwrap_or_default();
        sleep(check.delay.saturating_sub(age)).await;
        loop {
            let pod = self.pod()?;
            let began = self.host.clock.now();
            let address = pod.address.or_else(|| address_of(&self.host, &pod, began));
            let result = check.look(self.host.runtime.as_ref(), &self.vm, address).await;
            self.host.metrics.probe_took(self.host.clock.now().duration_since(began));
            if address != pod.address {
                self.change(|pod| pod.address = address);
            }
            failures = if result.is_ok() { 0 } else { failures + 1 };
            looked = Looked {
                streak: looked.streak.note(result.is_ok(), check),
                why: result.err().unwrap_or_default(),
                has_failed: failures >= check.failures,
            };
            if let Some(has_failed) = note(&looked) {
                return Some(has_failed.then_some(looked.why));
            }
            sleep(check.period).await;
        }
    }

    fn show(&self, is_ready: bool, words: String) {
        let before = self.pod().map(|pod| (pod.ready, pod.probed));
        if before.is_some_and(|before| before != (is_ready, words.clone())) {
            self.change(|pod| (pod.ready, pod.probed) = (is_ready, words));
        }
    }

    /// Whether it answers at all: by the port of its annotation, else by ping. Until it is gone.
    async fn answering(&self) {
        let mut state = Debounced::new(self.pod().is_some_and(|pod| pod.ready));
        while let Some(pod) = self.pod() {
            let began = self.host.clock.now();
            let (answered, words, address) =
                look(&self.host, self.pinger.as_ref(), &pod, began).await;
            self.host.metrics.probe_took(self.host.clock.now().duration_since(began));
            state = state.note(answered);
            let changed = self.table.change(&self.key, |pod| {
                if !self.is_of(pod) {
                    return false;
                }
                let changed = pod.ready != state.ready || pod.address != address.or(pod.address);
                pod.ready = state.ready;
                pod.address = address.or(pod.address);
                pod.probed = words;
                changed
            });
            if changed == Some(true) {
                self.trigger.signal(self.key.clone());
            }
            sleep(state.pause).await;
        }
    }
}

/// The result of one look, and what it makes of those before.
struct Looked {
    streak: Streak,
    /// Empty if it was good.
    why: String,
    /// So many in a row were bad that the check has failed.
    has_failed: bool,
}

async fn look(
    host: &Host,
    pinger: &dyn Pinger,
    pod: &Tracked,
    now: Timestamp,
) -> (bool, String, Option<IpAddr>) {
    let Some(address) = pod.address.or_else(|| address_of(host, pod, now)) else {
        return (false, "waiting for dhcp lease".to_owned(), None);
    };
    let port = pod.spec.as_ref().and_then(|spec| spec.probe_port);
    let vm = pod.vm.as_ref().map(|vm| vm.id.as_str()).unwrap_or_default();
    let runtime = host.runtime.as_ref();
    let asked = async {
        match (port, runtime.ping(vm)) {
            (Some(port), _) => dial(runtime, vm, SocketAddr::new(address, port))
                .await
                .map_err(|error| format!("tcp probe {port}: {error}")),
            (None, Some(guest)) => guest.await.map_err(|error| format!("ping failed: {error}")),
            (None, None) => {
                pinger.ping(address).await.map_err(|error| format!("ping failed: {error}"))
            }
        }
    };
    let late = |_| Err(format!("no answer within {WITHIN:?}"));
    let answered = timeout(WITHIN, asked).await.unwrap_or_else(late);
    match answered {
        Ok(()) => {
            (true, if port.is_some() { "tcp ok" } else { "ping ok" }.to_owned(), Some(address))
        }
        Err(words) => (false, words, Some(address)),
    }
}

async fn dial(runtime: &dyn Runtime, vm: &str, to: SocketAddr) -> Result<(), String> {
    runtime.reach(vm, to.port()).await.map_err(|error| error.to_string())?;
    let stream = TcpStream::connect(to).await.map_err(|error| error.to_string())?;
    taken(runtime, vm, to.port(), &stream).await
}

/// The static address of the record, else the lease of its first card.
pub(crate) fn address_of(host: &Host, pod: &Tracked, now: Timestamp) -> Option<IpAddr> {
    let vm = pod.vm.as_ref()?;
    if let Some(address) = vm.address() {
        return address.parse().ok();
    }
    host.leases.address(vm.mac()?, now).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_answer_is_enough_and_three_failures_are_needed() {
        let mut state = Debounced::new(false);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            state = state.note(false);
            pauses.push(state.pause.as_millis());
        }
        assert!(
            pauses.windows(2).all(|pair| pair[0] <= pair[1]) && *pauses.last().unwrap() == 1000,
            "{pauses:?}"
        );
        state = state.note(true);
        assert_eq!((state.ready, state.pause), (true, STEADY));
        state = state.note(false).note(false);
        assert!(state.ready, "two failures are a hiccup");
        state = state.note(false);
        assert_eq!((state.ready, state.pause), (false, FIRST));
    }
}
