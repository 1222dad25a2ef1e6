use std::fmt::Debug;
use std::time::Duration;

use serde_json::Value;

use crate::feed::Subscription;
use crate::views::{
    AddressView, DecisionQuery, DecisionView, DeletionsDetail, Health, JobDetail, JobView,
    LinkDetail, MonitoringView, Overview, PoolView, SteeringView, StepView, VersionView, VmDetail,
    VmView,
};

/// What a running service shows. Cheap: reads memory, never calls another server, and changes nothing.
///
/// Nothing that it returns holds a secret: all of it may be shown to whoever may read.
pub trait Source: Debug + Send + Sync + 'static {
    /// The lines of `/mon/status`.
    fn status(&self) -> MonitoringView;
    fn version(&self) -> VersionView;
    /// The array of `/mon/workers`, in the form of CDS.
    fn workers(&self) -> Value;
    /// Prometheus text, format 0.0.4.
    fn metrics(&self) -> String;
    /// The list of `/mon/metrics/all`, in the form of CDS.
    fn metrics_described(&self) -> Value;

    /// Whether the loops make progress. If not, a restart is what helps.
    fn liveness(&self) -> Health;
    /// Whether the views of both sides are good enough to act on.
    fn readiness(&self) -> Health;

    fn overview(&self) -> Overview;
    /// Those that wait first, the oldest of them first.
    fn jobs(&self) -> Vec<JobView>;
    fn job(&self, id: &str) -> Option<JobDetail>;
    /// Our own, not all that the datacenter has.
    fn vms(&self) -> Vec<VmView>;
    fn vm(&self, name_or_id: &str) -> Option<VmDetail>;
    fn pools(&self) -> Vec<PoolView>;
    /// Oldest first.
    fn decisions(&self, query: &DecisionQuery) -> Vec<DecisionView>;

    /// Every address of the configured ranges, in their order. Empty if addresses are not ours to give.
    fn addresses(&self) -> Vec<AddressView> {
        Vec::new()
    }

    fn deletions(&self) -> DeletionsDetail {
        DeletionsDetail::default()
    }

    fn link(&self) -> LinkDetail {
        LinkDetail { link: self.overview().link, ..LinkDetail::default() }
    }

    fn steering(&self) -> SteeringView {
        SteeringView::default()
    }

    /// What a VM of this name went through, oldest first, also if it is gone.
    fn timeline(&self, vm: &str) -> Vec<StepView> {
        self.vm(vm).map(|detail| detail.timeline).unwrap_or_default()
    }

    /// The running configuration, as it may be shown.
    fn config(&self) -> Option<Value> {
        None
    }

    /// Tells of changes from here on; a [`Feed`](crate::Feed) does it.
    fn subscribe(&self) -> Subscription;

    /// A request was answered.
    fn http_answered(&self, _: &Answered) {}
}

/// A request that was answered, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// The route, such as `/api/v1/jobs/{id}`, or `other`: a closed set, whatever clients ask for.
    pub handler: &'static str,
    pub status: u16,
    /// Of the bodies; 0 for a stream of events, which is told of when it begins.
    pub request_bytes: u64,
    pub response_bytes: u64,
    pub took: Duration,
}
