//! The simulation, seen from threads that live in real time.

use std::sync::Arc;

use roost_console::views::{
    AddressView, DecisionQuery, DecisionView, DeletionsDetail, Health, JobDetail, JobView,
    LinkDetail, MonitoringView, Overview, PoolView, SteeringView, StepView, VersionView, VmDetail,
    VmView,
};
use roost_console::{Acting, Answered, Order, Refused, Source, Steer, Subscription};
use serde_json::Value;
use tokio::runtime::Handle;

/// A [`Source`] whose clock is that of another runtime: whoever asks it, and from whatever thread, asks at the simulation's time.
#[derive(Debug)]
pub(super) struct LookingIn {
    source: Arc<dyn Source>,
    simulation: Handle,
}

impl LookingIn {
    pub(super) fn new(source: Arc<dyn Source>, simulation: Handle) -> Arc<Self> {
        Arc::new(Self { source, simulation })
    }

    fn ask<T>(&self, question: impl FnOnce(&dyn Source) -> T) -> T {
        let _time = self.simulation.enter();
        question(&*self.source)
    }
}

impl Source for LookingIn {
    fn status(&self) -> MonitoringView {
        self.ask(Source::status)
    }

    fn version(&self) -> VersionView {
        self.ask(Source::version)
    }

    fn workers(&self) -> Value {
        self.ask(Source::workers)
    }

    fn metrics(&self) -> String {
        self.ask(Source::metrics)
    }

    fn metrics_described(&self) -> Value {
        self.ask(Source::metrics_described)
    }

    fn liveness(&self) -> Health {
        self.ask(Source::liveness)
    }

    fn readiness(&self) -> Health {
        self.ask(Source::readiness)
    }

    fn overview(&self) -> Overview {
        self.ask(Source::overview)
    }

    fn jobs(&self) -> Vec<JobView> {
        self.ask(Source::jobs)
    }

    fn job(&self, id: &str) -> Option<JobDetail> {
        self.ask(|source| source.job(id))
    }

    fn vms(&self) -> Vec<VmView> {
        self.ask(Source::vms)
    }

    fn vm(&self, name_or_id: &str) -> Option<VmDetail> {
        self.ask(|source| source.vm(name_or_id))
    }

    fn pools(&self) -> Vec<PoolView> {
        self.ask(Source::pools)
    }

    fn decisions(&self, query: &DecisionQuery) -> Vec<DecisionView> {
        self.ask(|source| source.decisions(query))
    }

    fn addresses(&self) -> Vec<AddressView> {
        self.ask(Source::addresses)
    }

    fn deletions(&self) -> DeletionsDetail {
        self.ask(Source::deletions)
    }

    fn link(&self) -> LinkDetail {
        self.ask(Source::link)
    }

    fn steering(&self) -> SteeringView {
        self.ask(Source::steering)
    }

    fn timeline(&self, vm: &str) -> Vec<StepView> {
        self.ask(|source| source.timeline(vm))
    }

    fn config(&self) -> Option<Value> {
        self.ask(Source::config)
    }

    fn subscribe(&self) -> Subscription {
        self.source.subscribe()
    }

    fn http_answered(&self, answered: &Answered) {
        self.ask(|source| source.http_answered(answered));
    }
}

/// Carries out orders in the simulation, at its time.
#[derive(Debug)]
pub(super) struct ReachingIn {
    steer: Arc<dyn Steer>,
    simulation: Handle,
}

impl ReachingIn {
    pub(super) fn new(steer: Arc<dyn Steer>, simulation: Handle) -> Arc<Self> {
        Arc::new(Self { steer, simulation })
    }
}

impl Steer for ReachingIn {
    fn act(&self, order: Order) -> Acting<'_> {
        let steer = Arc::clone(&self.steer);
        let acting = self.simulation.spawn(async move { steer.act(order).await });
        Box::pin(async {
            acting
                .await
                .unwrap_or_else(|_| Err(Refused::NotNow { why: "the demo has ended".into() }))
        })
    }
}
