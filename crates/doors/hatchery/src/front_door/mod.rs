//! The hatchery as a front door of the house: its views, its actions, and the paths that CDS's operators know.

mod core;
mod mon;
mod needs;
mod shown;
mod steer;

use std::fmt;
use std::sync::Arc;

use prometheus_client::registry::Registry;
use roost_door::{Answered, DoorWords, Feed, FrontDoor, Route, Steer, Summary};
use roost_fleet::{Decision, VmId};
use roost_views::{
    CheckView, DecisionView, NeedView, OutageView, PoolView, RequestDetail, RequestId, RequestView,
    SteeringView, VmDetail, VmView,
};
use serde_json::Value;

use crate::metrics::{self, Metrics};
use crate::run::{Controls, News, Window, view};

/// What the hatchery and its requests are called.
pub const WORDS: DoorWords = DoorWords {
    name: "hatchery",
    noun: "job",
    nouns: "jobs",
    group: "project",
    about: "Each queued CI job gets a VM of its own: a fresh clone of a template, or a spare that waits in a warm pool. It starts up, joins CDS, does its job, and is deleted.",
};

/// What `/mon/version` says of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Build {
    pub git_hash: String,
    pub build_time: String,
}

/// A running hatchery as the house sees it.
pub struct HatcheryDoor {
    window: Window,
    /// `None`: it can only be looked at.
    controls: Option<Controls>,
    registry: Registry,
    metrics: Arc<Metrics>,
    build: Build,
}

impl HatcheryDoor {
    /// Begins to tell of changes on the feed; needs a runtime.
    pub fn new(
        window: Window,
        controls: Option<Controls>,
        registry: Registry,
        metrics: Arc<Metrics>,
        build: Build,
        feed: &Feed,
    ) -> Arc<Self> {
        let door = Arc::new(Self { window, controls, registry, metrics, build });
        let (told, mut changes) = (Arc::downgrade(&door), door.window.changes());
        let feed = feed.clone();
        tokio::spawn(async move {
            while let Some(news) = changes.next().await {
                let Some(door) = told.upgrade() else { return };
                match news {
                    News::Decided(decided) if feed.has_listeners() => {
                        feed.decided(door.decision(&decided));
                    }
                    News::Decided(_) | News::Changed => feed.touch(),
                }
            }
        });
        door
    }

    fn decision(&self, decided: &Decision) -> DecisionView {
        let name = |vm: &VmId| self.window.vm_name(vm).map(|name| name.to_string());
        roost_door::fleet::decision(decided, &WORDS, name)
    }

    fn decisions(&self, all: &[Arc<Decision>]) -> Vec<DecisionView> {
        all.iter().map(|decided| self.decision(decided)).collect()
    }

    fn vm_words(&self, vm: &VmId) -> String {
        self.window.vm_name(vm).map_or_else(|| vm.to_string(), |name| name.to_string())
    }
}

impl fmt::Debug for HatcheryDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HatcheryDoor").field(&self.window.name()).finish()
    }
}

impl FrontDoor for HatcheryDoor {
    fn words(&self) -> DoorWords {
        WORDS
    }

    fn title(&self) -> String {
        self.window.name().to_owned()
    }

    fn liveness(&self) -> Vec<CheckView> {
        self.window.liveness().into_iter().map(shown::check).collect()
    }

    fn readiness(&self) -> Vec<CheckView> {
        let checks = self.window.readiness().into_iter();
        // Whoever only looks needs the inventory alone.
        let matters = |check: &view::Check| self.controls.is_some() || check.name == "inventory";
        checks.filter(matters).map(shown::check).collect()
    }

    fn summary(&self) -> Summary {
        shown::summary(&self.window.overview())
    }

    fn requests(&self) -> Vec<RequestView> {
        let view = |job| shown::job(job, |decided| self.decision(decided).brief());
        self.window.jobs().iter().map(view).collect()
    }

    fn request(&self, id: &str) -> Option<RequestDetail> {
        let detail = self.window.explain(id)?;
        Some(RequestDetail::new(
            shown::job(&detail.job, |decided| self.decision(decided).brief()),
            self.decisions(&detail.decisions),
            detail.vm.as_ref().map(|vm| shown::vm_detail(vm, |all| self.decisions(all))),
        ))
    }

    fn vms(&self) -> Vec<VmView> {
        self.window.vms().iter().map(shown::vm).collect()
    }

    fn vm(&self, name_or_id: &str) -> Option<VmDetail> {
        let detail = self.window.vm(name_or_id)?;
        Some(shown::vm_detail(&detail, |all| self.decisions(all)))
    }

    fn pools(&self) -> Vec<PoolView> {
        self.window.pools().into_iter().map(shown::pool).collect()
    }

    fn stuck(&self) -> Vec<RequestView> {
        let view = |job| shown::job(job, |decided| self.decision(decided).brief());
        self.window.refused_jobs().iter().map(view).collect()
    }

    fn advice(&self, gate: &str) -> Option<&'static str> {
        needs::advice(gate)
    }

    fn runbook(&self) -> Option<&'static str> {
        Some("jobs-wait-without-workers")
    }

    fn needs(&self) -> Vec<NeedView> {
        needs::needs(&self.window)
    }

    fn outages(&self) -> Vec<OutageView> {
        needs::outages(&self.window)
    }

    fn line(&self) -> Vec<RequestId> {
        self.window.line().iter().map(|job| WORDS.request(job.to_string())).collect()
    }

    fn steering(&self) -> SteeringView {
        steer::steering(&self.window)
    }

    fn steer(&self) -> Option<&dyn Steer> {
        self.controls.as_ref().map(|controls| controls as &dyn Steer)
    }

    fn routes(self: Arc<Self>) -> Vec<Route> {
        mon::routes(&self)
    }

    fn metrics(&self) -> String {
        // Writing to a string does not fail.
        metrics::exposition(&self.registry).unwrap_or_default()
    }

    fn config(&self) -> Option<Value> {
        Some(self.window.config())
    }

    fn http_answered(&self, answered: &Answered) {
        self.metrics.http.answered(
            answered.handler,
            answered.request_bytes,
            answered.response_bytes,
            answered.took,
        );
    }
}
