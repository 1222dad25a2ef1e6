//! The simulation, seen from threads that live in real time.

use std::sync::Arc;

use roost_console::views::{
    DecisionQuery, DecisionView, Health, JobDetail, JobView, MonitoringView, Overview, PoolView,
    VersionView, VmDetail, VmView,
};
use roost_console::{Answered, Source, Subscription};
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

    fn subscribe(&self) -> Subscription {
        self.source.subscribe()
    }

    fn http_answered(&self, answered: &Answered) {
        self.ask(|source| source.http_answered(answered));
    }
}
