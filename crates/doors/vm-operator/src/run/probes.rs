//! Readiness by a socket: tried in its own time, told to the key when the answer changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use roost_controller::{Key, Trigger};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::api::VirtualMachine;
use crate::api::vm::ReadinessProbe;
use crate::provider::Probed;

/// When a probe says nothing of it.
const USUAL: Duration = Duration::from_secs(10);

/// A handle; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Probes {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<BTreeMap<Key, Running>>,
    trigger: OnceLock<Trigger>,
}

#[derive(Debug)]
struct Running {
    target: Target,
    result: Option<Probed>,
    task: AbortHandle,
}

/// What is tried, and how often. Another one is another probe.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    address: Option<(String, u16)>,
    is_on: bool,
    period: Duration,
    within: Duration,
}

impl Target {
    fn of(probe: &ReadinessProbe, vm: &VirtualMachine) -> Option<Self> {
        let socket = probe.tcp_socket.as_ref()?;
        let port = match &socket.port {
            IntOrString::Int(port) => u16::try_from(*port).ok(),
            IntOrString::String(text) => text.parse().ok(),
        };
        let network = vm.status.as_ref().and_then(|status| status.network.as_ref());
        let primary = network.map(|network| {
            let (v4, v6) = (&network.primary_ip4, &network.primary_ip6);
            if v4.is_empty() { v6.clone() } else { v4.clone() }
        });
        let host = if socket.host.is_empty() { primary } else { Some(socket.host.clone()) };
        let address = host.filter(|host| !host.is_empty()).zip(port);
        let seconds = |of: i32| u64::try_from(of).ok().filter(|of| *of > 0);
        let or_usual = |of: i32| seconds(of).map_or(USUAL, Duration::from_secs);
        Some(Self {
            address,
            is_on: vm.current_power_state() == Some(crate::api::PowerState::PoweredOn),
            period: or_usual(probe.period_seconds),
            within: or_usual(probe.timeout_seconds),
        })
    }

    async fn probe(&self) -> Probed {
        if !self.is_on {
            return Probed::NotReady("not powered on".to_owned());
        }
        let Some((host, port)) = &self.address else {
            return Probed::NotReady("there is no address to try".to_owned());
        };
        match timeout(self.within, TcpStream::connect((host.as_str(), *port))).await {
            Ok(Ok(_)) => Probed::Ready,
            Ok(Err(error)) => Probed::NotReady(format!("{host}:{port}: {error}")),
            Err(_) => Probed::NotReady(format!("{host}:{port}: no answer in {:?}", self.within)),
        }
    }
}

impl Probes {
    fn state(&self) -> MutexGuard<'_, BTreeMap<Key, Running>> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn call(&self, trigger: Trigger) {
        let _ = self.shared.trigger.set(trigger);
    }

    /// Keeps a VM probed. The same probe goes on as it was.
    pub(crate) fn set(&self, key: &Key, probe: &ReadinessProbe, vm: &VirtualMachine) {
        let Some(target) = Target::of(probe, vm) else { return self.remove(key) };
        let mut state = self.state();
        if state.get(key).is_some_and(|running| running.target == target) {
            return;
        }
        let result = state.get(key).and_then(|running| running.result.clone());
        if let Some(before) = state.remove(key) {
            before.task.abort();
        }
        let (probes, own, tried) = (self.clone(), key.clone(), target.clone());
        let task = tokio::spawn(async move {
            loop {
                let result = tried.probe().await;
                probes.note(&own, result);
                sleep(tried.period).await;
            }
        });
        let task = task.abort_handle();
        state.insert(key.clone(), Running { target, result, task });
    }

    fn note(&self, key: &Key, result: Probed) {
        let is_news = match self.state().get_mut(key) {
            Some(running) if running.result.as_ref() != Some(&result) => {
                running.result = Some(result);
                true
            }
            _ => false,
        };
        if is_news && let Some(trigger) = self.shared.trigger.get() {
            trigger.signal(key.clone());
        }
    }

    pub(crate) fn result(&self, key: &Key) -> Option<Probed> {
        self.state().get(key)?.result.clone()
    }

    pub(crate) fn remove(&self, key: &Key) {
        if let Some(running) = self.state().remove(key) {
            running.task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::vm::TcpSocketProbe;

    fn probe(port: i32) -> ReadinessProbe {
        let tcp_socket = Some(TcpSocketProbe { port: IntOrString::Int(port), host: String::new() });
        ReadinessProbe { tcp_socket, ..ReadinessProbe::default() }
    }

    fn on(address: &str) -> VirtualMachine {
        let mut vm = VirtualMachine::default();
        let status = vm.status_mut();
        status.power_state = Some(crate::api::PowerState::PoweredOn);
        status.network.get_or_insert_default().primary_ip4 = address.into();
        vm
    }

    #[tokio::test]
    async fn a_socket_that_listens_is_ready_and_an_unchanged_probe_goes_on() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = i32::from(listener.local_addr().unwrap().port());
        let (probes, key) = (Probes::default(), Key::new("a", "b"));
        probes.set(&key, &probe(port), &on("127.0.0.1"));
        while probes.result(&key).is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!(probes.result(&key), Some(Probed::Ready));
        let before = probes.state()[&key].task.id();
        probes.set(&key, &probe(port), &on("127.0.0.1"));
        assert_eq!(probes.state()[&key].task.id(), before, "not begun anew");
        probes.remove(&key);
        assert_eq!(probes.result(&key), None);
    }

    #[tokio::test]
    async fn a_vm_that_is_off_or_without_an_address_is_not_ready() {
        let off = VirtualMachine::default();
        let target = Target::of(&probe(80), &off).unwrap();
        assert_eq!(target.probe().await, Probed::NotReady("not powered on".into()));
        let target = Target::of(&probe(80), &on("")).unwrap();
        assert_eq!(target.probe().await, Probed::NotReady("there is no address to try".into()));
    }
}
