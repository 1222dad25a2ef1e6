//! `vmservice_vm_*`: what dashboards of this API read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::ResourceExt as _;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::api::VirtualMachine;
use crate::api::vm::PowerState;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VmLabels {
    vm_name: String,
    vm_namespace: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConditionLabels {
    vm_name: String,
    vm_namespace: String,
    condition_type: String,
    condition_reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    vm_name: String,
    vm_namespace: String,
    phase: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PowerLabels {
    vm_name: String,
    vm_namespace: String,
    spec: String,
    status: String,
}

type Gauges<L> = Family<L, Gauge<i64, AtomicI64>>;

/// A handle; clones share it.
#[derive(Clone, Default)]
pub(crate) struct VmMetrics {
    conditions: Gauges<ConditionLabels>,
    phase: Gauges<PhaseLabels>,
    power: Gauges<PowerLabels>,
    address: Gauges<VmLabels>,
    signals: Gauge<i64, AtomicI64>,
    /// The series of each VM, to take them away when they are not true any more.
    shown: Arc<Mutex<BTreeMap<(String, String), Shown>>>,
}

#[derive(Default, PartialEq)]
struct Shown {
    conditions: Vec<(ConditionLabels, i64)>,
    phase: Option<PhaseLabels>,
    power: Option<PowerLabels>,
    address: i64,
}

impl fmt::Debug for VmMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VmMetrics").finish_non_exhaustive()
    }
}

impl VmMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let own = Self::default();
        let help = "Conditions of a VM: 1 is true, 0 false, -1 unknown";
        registry.register("vmservice_vm_status_condition_status", help, own.conditions.clone());
        let help = "The phase that a VM is in";
        registry.register("vmservice_vm_status_phase", help, own.phase.clone());
        let help = "The power state that is wanted of a VM, and the one that it has";
        registry.register("vmservice_vm_powerstate", help, own.power.clone());
        let help = "Whether a VM has a primary address";
        registry.register("vmservice_vm_status_ip", help, own.address.clone());
        let help =
            "Whether vCenter tells changes of VMs; while it does not, VMs are looked at by time";
        registry.register("vmservice_vm_watcher_up", help, own.signals.clone());
        own
    }

    fn shown(&self) -> MutexGuard<'_, BTreeMap<(String, String), Shown>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_signals(&self, are_told: bool) {
        self.signals.set(i64::from(are_told));
    }

    /// What is true of the VM now; series that no longer are go.
    pub(crate) fn record(&self, vm: &VirtualMachine) {
        let (name, namespace) = (vm.name_any(), vm.namespace().unwrap_or_default());
        let now = shown_of(vm, &name, &namespace);
        let mut shown = self.shown();
        let key = (namespace.clone(), name.clone());
        if shown.get(&key) == Some(&now) {
            return;
        }
        if let Some(before) = shown.remove(&key) {
            self.remove(&before, &namespace, &name);
        }
        for (labels, value) in &now.conditions {
            self.conditions.get_or_create(labels).set(*value);
        }
        if let Some(labels) = &now.phase {
            self.phase.get_or_create(labels).set(1);
        }
        if let Some(labels) = &now.power {
            self.power.get_or_create(labels).set(1);
        }
        let labels = VmLabels { vm_name: name, vm_namespace: namespace };
        self.address.get_or_create(&labels).set(now.address);
        shown.insert(key, now);
    }

    pub(crate) fn forget(&self, namespace: &str, name: &str) {
        let shown = self.shown().remove(&(namespace.to_owned(), name.to_owned()));
        if let Some(shown) = shown {
            self.remove(&shown, namespace, name);
        }
    }

    fn remove(&self, shown: &Shown, namespace: &str, name: &str) {
        for (labels, _) in &shown.conditions {
            self.conditions.remove(labels);
        }
        if let Some(labels) = &shown.phase {
            self.phase.remove(labels);
        }
        if let Some(labels) = &shown.power {
            self.power.remove(labels);
        }
        let labels = VmLabels { vm_name: name.to_owned(), vm_namespace: namespace.to_owned() };
        self.address.remove(&labels);
    }
}

fn shown_of(vm: &VirtualMachine, name: &str, namespace: &str) -> Shown {
    let (vm_name, vm_namespace) = (name.to_owned(), namespace.to_owned());
    let conditions = vm.conditions().iter().map(|condition| {
        let value = match condition.status.as_str() {
            "True" => 1,
            "False" => 0,
            _ => -1,
        };
        let labels = ConditionLabels {
            vm_name: vm_name.clone(),
            vm_namespace: vm_namespace.clone(),
            condition_type: condition.type_.clone(),
            condition_reason: condition.reason.clone(),
        };
        (labels, value)
    });
    let text = |state: Option<PowerState>| state.map_or_else(String::new, |of| of.to_string());
    let phase = if vm.is_created() { "Created" } else { "Creating" };
    Shown {
        conditions: conditions.collect(),
        phase: Some(PhaseLabels {
            vm_name: vm_name.clone(),
            vm_namespace: vm_namespace.clone(),
            phase: phase.to_owned(),
        }),
        power: Some(PowerLabels {
            vm_name: vm_name.clone(),
            vm_namespace: vm_namespace.clone(),
            spec: text(vm.spec.power_state),
            status: text(vm.current_power_state()),
        }),
        address: i64::from(vm.has_primary_ip()),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use prometheus_client::encoding::text::encode;

    use super::*;
    use crate::api::condition::{ConditionType, Reason, mark_false, mark_true};

    #[test]
    fn a_series_that_is_no_longer_true_goes() {
        let mut registry = Registry::default();
        let metrics = VmMetrics::register(&mut registry);
        let text = |registry: &Registry| {
            let mut text = String::new();
            encode(&mut text, registry).unwrap();
            text
        };
        let mut vm = VirtualMachine::default();
        vm.metadata.name = Some("web-0".into());
        vm.metadata.namespace = Some("team-a".into());
        let (kind, now) = (ConditionType::Created, Timestamp::UNIX_EPOCH);
        mark_false(&mut vm.status_mut().conditions, kind, Reason::Error, "", now);
        metrics.record(&vm);
        assert!(text(&registry).contains(r#"condition_reason="Error"} 0"#));
        mark_true(&mut vm.status_mut().conditions, kind, now);
        metrics.record(&vm);
        let shown = text(&registry);
        assert!(shown.contains(r#"condition_reason="True"} 1"#) && !shown.contains("Error"));
        assert!(shown.contains(r#"phase="Created"} 1"#) && !shown.contains("Creating"), "{shown}");
        metrics.forget("team-a", "web-0");
        assert!(!text(&registry).contains("web-0"));
    }
}
