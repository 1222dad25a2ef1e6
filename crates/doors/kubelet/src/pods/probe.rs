//! Is the guest there? Frequent looks until it answers, rare ones after.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use roost_microvm::IcmpPinger;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

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

/// Probes one VM until it is replaced or gone.
pub(crate) async fn probe(
    host: Arc<Host>,
    pinger: Arc<dyn Pinger>,
    table: PodTable,
    key: Key,
    vm: String,
    trigger: Trigger,
) {
    let is_ready = table.get(&key).is_some_and(|pod| pod.ready);
    let mut state = Debounced::new(is_ready);
    loop {
        let Some(pod) =
            table.get(&key).filter(|pod| pod.vm.as_ref().is_some_and(|seen| seen.id == vm))
        else {
            return;
        };
        let began = host.clock.now();
        let (answered, words, address) = look(&host, pinger.as_ref(), &pod, began).await;
        host.metrics.probe_took(host.clock.now().duration_since(began));
        state = state.note(answered);
        let changed = table.change(&key, |pod| {
            let is_same_vm = pod.vm.as_ref().is_some_and(|seen| seen.id == vm);
            if !is_same_vm {
                return false;
            }
            let changed = pod.ready != state.ready || pod.address != address.or(pod.address);
            pod.ready = state.ready;
            pod.address = address.or(pod.address);
            pod.probed = words;
            changed
        });
        if changed == Some(true) {
            trigger.signal(key.clone());
        }
        sleep(state.pause).await;
    }
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
    let answered = match port {
        Some(port) => {
            match timeout(WITHIN, TcpStream::connect(SocketAddr::new(address, port))).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(format!("tcp probe {port}: {error}")),
                Err(_) => Err(format!("tcp probe {port}: no answer within {WITHIN:?}")),
            }
        }
        None => pinger.ping(address).await.map_err(|error| format!("ping failed: {error}")),
    };
    match answered {
        Ok(()) => {
            (true, if port.is_some() { "tcp ok" } else { "ping ok" }.to_owned(), Some(address))
        }
        Err(words) => (false, words, Some(address)),
    }
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
