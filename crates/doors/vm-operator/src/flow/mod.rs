//! The flowcharts: each is a module, its boxes are functions with the box's name, in the box's order.

mod bootstrap;
mod config;
mod create;
mod create_or_update;
mod defaults;
mod delete;
mod fast_deploy;
mod image_cache;
mod location;
mod normal;
mod outcome;
pub(crate) mod power_state;
mod promotion;
mod reconcile;
mod snapshot;
mod status;
mod update;
mod v_app;
mod volumes;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_controller::{Events, Writer};

pub use self::outcome::PassError;
pub(crate) use self::outcome::{Delays, Done, Flow, Halt, result_of};
pub(crate) use self::reconcile::reconcile;
pub(crate) use self::snapshot::of_object as named_snapshot;
use crate::front_door::trail::Passes;
use crate::provider::{Provider, Stores};
use crate::run::{Probes, VmMetrics};
use crate::webhook::AdmissionSettings;

/// What a pass works with.
pub(crate) struct Context {
    pub(crate) provider: Arc<Provider>,
    pub(crate) stores: Stores,
    pub(crate) writer: Writer,
    pub(crate) events: Events,
    pub(crate) settings: FlowSettings,
    pub(crate) admission: Arc<AdmissionSettings>,
    pub(crate) metrics: VmMetrics,
    pub(crate) probes: Probes,
    /// What people are shown of passes.
    pub(crate) passes: Passes,
}

/// Delays, by upstream's names of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSettings {
    /// `CREATE_VM_REQUEUE_DELAY`.
    pub create_requeue: Duration,
    /// `POWERED_ON_VM_HAS_IP_REQUEUE_DELAY`: only while nobody tells of changes.
    pub address_requeue: Duration,
    /// `SYNC_IMAGE_REQUEUE_DELAY`: when image sources that could not be read are read again.
    pub image_retry: Duration,
    /// Whether changes of VMs are followed.
    pub async_signal: bool,
    /// vCenter's own id, for the annotation.
    pub manager_id: String,
    /// The namespace of the manager itself, in which cache objects are.
    pub pod_namespace: String,
}

impl Default for FlowSettings {
    fn default() -> Self {
        Self {
            create_requeue: Duration::from_secs(10),
            address_requeue: Duration::from_secs(10),
            image_retry: Duration::from_secs(10),
            async_signal: true,
            manager_id: String::new(),
            pod_namespace: "vmware-system-vmop".to_owned(),
        }
    }
}

impl Context {
    pub(crate) fn now(&self) -> Timestamp {
        self.provider.now()
    }

    /// Whether the change that a step makes will be told.
    pub(crate) fn has_signals(&self) -> bool {
        self.settings.async_signal && self.provider.has_signals()
    }
}
