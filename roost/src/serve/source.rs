//! Joins the hatchery, which shows plain values, to the console, which shows views and knows no hatchery.

mod deletions;
mod words;

use std::fmt;
use std::sync::Arc;

use prometheus_client::registry::Registry;
use roost_cds::Protocol;
use roost_console::views::{
    AddressState, AddressView, AddressesView, CallsView, CapacityView, CheckView, DecisionQuery,
    DecisionView, DeletionsDetail, DeletionsView, FaultView, GaugeView, Health, JobDetail,
    JobState, JobView, LaneView, LevelView, LinkDetail, LinkMinute, LinkView, MethodView,
    MonitoringLineView, MonitoringView, Overview, PoolView, QueueView, Spawning, SteeringView,
    StepView, VersionView, VmDetail, VmKind, VmView,
};
use roost_console::{Answered, Feed, Source, Subscription};
use roost_fleet::{AddressCell, Decision, Query, Subject, VmId};
use roost_hatchery::door::HATCHERY;
use roost_hatchery::metrics::{self, Metrics};
use roost_hatchery::run::view::{self, Check};
use roost_hatchery::run::{Hold, News, Window};
use serde_json::Value;

use self::words::{decision, limit, step};

/// Beyond it nobody looks at them one by one.
const MOST_ADDRESSES: u64 = 4_096;

/// A running hatchery as the console sees it.
pub(crate) struct HatcherySource {
    window: Window,
    registry: Registry,
    metrics: Arc<Metrics>,
    feed: Feed,
}

impl HatcherySource {
    /// Begins to tell of changes; needs a runtime.
    pub(crate) fn new(window: Window, registry: Registry, metrics: Arc<Metrics>) -> Arc<Self> {
        let source = Arc::new(Self { window, registry, metrics, feed: Feed::default() });
        let (told, mut changes) = (Arc::downgrade(&source), source.window.changes());
        tokio::spawn(async move {
            while let Some(news) = changes.next().await {
                let Some(source) = told.upgrade() else { return };
                match news {
                    News::Decided(decided) if source.feed.has_listeners() => {
                        source.feed.decided(source.decision(&decided));
                    }
                    News::Decided(_) | News::Changed => source.feed.touch(),
                }
            }
        });
        source
    }

    fn decision(&self, decided: &Decision) -> DecisionView {
        decision(decided, |vm| self.window.vm_name(vm).map(|name| name.to_string()))
    }

    /// Without its gates, where it stands beside something else.
    fn brief(&self, decided: &Decision) -> DecisionView {
        DecisionView { gates: Vec::new(), ..self.decision(decided) }
    }

    fn job_view(&self, job: &view::Job) -> JobView {
        JobView {
            id: job.id.to_string(),
            protocol: match job.protocol() {
                Protocol::V1 => roost_console::views::Protocol::V1,
                Protocol::V2 => roost_console::views::Protocol::V2,
            },
            project: job.project.clone(),
            workflow: job.workflow.clone(),
            state: match job.state {
                view::JobState::Waiting => JobState::Waiting,
                view::JobState::Starting => JobState::Starting,
                view::JobState::Running => JobState::Running,
                view::JobState::Ended => JobState::Ended,
            },
            queued: job.queued,
            waited_secs: job.waited_secs,
            model: job.model.clone(),
            flavor: job.flavor.clone(),
            vm: job.worker.as_ref().map(ToString::to_string),
            verdict: job.verdict.as_deref().map(|decided| self.brief(decided)),
        }
    }

    fn vm_detail(&self, detail: &view::VmDetail) -> VmDetail {
        VmDetail {
            vm: vm_view(&detail.vm),
            annotation: Some(detail.annotation.clone()),
            timeline: detail.timeline.iter().map(step).collect(),
            decisions: detail.decisions.iter().map(|decided| self.decision(decided)).collect(),
        }
    }

    fn vm_words(&self, vm: &VmId) -> String {
        self.window.vm_name(vm).map_or_else(|| vm.to_string(), |name| name.to_string())
    }

    /// A subject by id or name, of whatever kind it is.
    fn subjects(&self, text: &str) -> [Subject; 3] {
        let vm = self.window.vm_named(text).unwrap_or_else(|| VmId::new(text));
        [HATCHERY.about_request(text), Subject::Vm { id: vm }, HATCHERY.about_pool(text)]
    }
}

impl fmt::Debug for HatcherySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HatcherySource").field(&self.window.name()).finish()
    }
}

impl Source for HatcherySource {
    fn status(&self) -> MonitoringView {
        let status = self.window.status();
        let lines = status.lines.into_iter().flatten().map(|line| MonitoringLineView {
            status: match line.status {
                roost_cds::Level::Ok => LevelView::Ok,
                roost_cds::Level::Warn => LevelView::Warn,
                roost_cds::Level::Alert => LevelView::Alert,
            },
            component: line.component,
            value: line.value,
            service_type: line.service_type,
            service: line.service,
            hostname: line.hostname,
            session: line.session,
            consumer: line.consumer,
        });
        MonitoringView { now: status.now.unwrap_or_default(), lines: lines.collect() }
    }

    fn version(&self) -> VersionView {
        VersionView {
            version: self.window.version().to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            os: std::env::consts::OS.to_owned(),
            ..VersionView::default()
        }
    }

    fn workers(&self) -> Value {
        self.window.workers()
    }

    fn metrics(&self) -> String {
        // Writing to a string does not fail.
        metrics::exposition(&self.registry).unwrap_or_default()
    }

    fn metrics_described(&self) -> Value {
        serde_json::to_value(metrics::describe()).unwrap_or_default()
    }

    fn liveness(&self) -> Health {
        health(self.window.liveness())
    }

    fn readiness(&self) -> Health {
        health(self.window.readiness())
    }

    fn overview(&self) -> Overview {
        let seen = self.window.overview();
        Overview {
            service: seen.service,
            version: seen.version,
            now: seen.now,
            started: seen.started,
            ready: seen.is_open,
            what_binds: seen.what_binds.map(|decided| decided.reason.to_string()),
            queue: QueueView {
                waiting: seen.queue.waiting,
                oldest_waiting_secs: seen.queue.oldest_waiting_secs,
                starting: seen.queue.starting,
            },
            workers: seen.lanes.iter().map(lane).collect(),
            pools: seen.pools.into_iter().map(pool).collect(),
            capacity: capacity(seen.capacity),
            addresses: seen.addresses.map(|seen| AddressesView {
                total: seen.total,
                free: seen.free,
                used: seen.used,
                reserved: seen.reserved,
                quarantined: seen.resting,
                forecast: seen.forecast.map(|forecast| forecast.outlook()),
            }),
            deletions: DeletionsView {
                frozen: seen.deletions.frozen.map(|freeze| freeze.to_string()),
                last_minute: seen.deletions.last_minute,
            },
            link: link(seen.link),
            recent: seen.recent.iter().map(|decided| self.brief(decided)).collect(),
        }
    }

    fn jobs(&self) -> Vec<JobView> {
        self.window.jobs().iter().map(|job| self.job_view(job)).collect()
    }

    fn job(&self, id: &str) -> Option<JobDetail> {
        let detail = self.window.explain(id)?;
        Some(JobDetail {
            job: self.job_view(&detail.job),
            decisions: detail.decisions.iter().map(|decided| self.decision(decided)).collect(),
            vm: detail.vm.as_ref().map(|vm| self.vm_detail(vm)),
        })
    }

    fn vms(&self) -> Vec<VmView> {
        self.window.vms().iter().map(vm_view).collect()
    }

    fn vm(&self, name_or_id: &str) -> Option<VmDetail> {
        self.window.vm(name_or_id).map(|detail| self.vm_detail(&detail))
    }

    fn pools(&self) -> Vec<PoolView> {
        self.window.pools().into_iter().map(pool).collect()
    }

    fn decisions(&self, query: &DecisionQuery) -> Vec<DecisionView> {
        let verdict = match &query.verdict {
            None => None,
            Some(text) => match roost_fleet::Decided::ALL.iter().find(|v| v.as_str() == text) {
                Some(verdict) => Some(*verdict),
                // Nothing was ever decided by that word.
                None => return Vec::new(),
            },
        };
        let wanted = |subject| Query {
            subject,
            verdict,
            bound_by: query.bound_by.clone(),
            after: query.after,
            limit: query.limit,
        };
        let journal = self.window.journal();
        let found = match &query.subject {
            None => journal.find(&wanted(None)),
            Some(text) => {
                let mut found: Vec<_> = self
                    .subjects(text)
                    .into_iter()
                    .flat_map(|subject| journal.find(&wanted(Some(subject))))
                    .collect();
                found.sort_by_key(|decided| decided.seq);
                found
            }
        };
        found.iter().map(|decided| self.decision(decided)).collect()
    }

    fn addresses(&self) -> Vec<AddressView> {
        let cells = self.window.addresses(MOST_ADDRESSES).into_iter();
        cells.map(|cell| address(&cell, |vm| self.vm_words(vm))).collect()
    }

    fn deletions(&self) -> DeletionsDetail {
        deletions::detail(&self.window, |decided| self.decision(decided), |vm| self.vm_words(vm))
    }

    fn link(&self) -> LinkDetail {
        let past = self.window.calls_past();
        LinkDetail {
            link: link(self.window.overview().link),
            minutes: past.minutes.into_iter().map(link_minute).collect(),
            methods: past.methods.iter().map(method).collect(),
            faults: past.faults.iter().map(fault).collect(),
        }
    }

    fn steering(&self) -> SteeringView {
        let held = self.window.spawning_held();
        SteeringView {
            spawning: match held.as_ref().map(|held| held.how) {
                None | Some(Hold::Frozen) => Spawning::Open,
                Some(Hold::Paused) => Spawning::Paused,
                Some(Hold::Draining) => Spawning::Draining,
            },
            held: held.map(|held| held.to_string()),
            frozen: self.window.deleting_held().map(|held| held.to_string()),
        }
    }

    fn timeline(&self, vm: &str) -> Vec<StepView> {
        self.window.timeline(vm).iter().map(step).collect()
    }

    fn config(&self) -> Option<Value> {
        Some(self.window.config())
    }

    fn subscribe(&self) -> Subscription {
        self.feed.subscribe()
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

fn health(checks: Vec<Check>) -> Health {
    let view = |Check { name, ok, words }| CheckView { name: name.to_owned(), ok, words };
    Health { checks: checks.into_iter().map(view).collect() }
}

fn lane(lane: &view::Lane) -> LaneView {
    LaneView {
        phase: lane.stage.as_str().to_owned(),
        words: lane.stage.words().to_owned(),
        count: lane.workers.len() as u64,
        names: lane.workers.iter().take(LaneView::NAMES).map(ToString::to_string).collect(),
    }
}

fn pool(pool: view::Pool) -> PoolView {
    PoolView {
        model: pool.model,
        template: Some(pool.template),
        flavor: pool.flavor,
        wanted: pool.wanted,
        ready: pool.ready,
        coming: pool.coming,
        in_use: pool.in_use,
        missing: pool.missing,
        waiting: pool.waiting,
    }
}

fn capacity(seen: view::Capacity) -> CapacityView {
    let gauge = |gauge: view::Gauge| GaugeView {
        used: gauge.used,
        reserved: gauge.reserved,
        limit: limit(gauge.limit),
    };
    CapacityView {
        workers: gauge(seen.workers),
        pending: gauge(seen.pending),
        registering: gauge(seen.registering),
        cpus: gauge(seen.cpus),
        memory_mb: gauge(seen.memory_mb),
    }
}

fn link(seen: view::Link) -> LinkView {
    let view::Calls { logins, calls, last_minute, faults, latency_ms } = seen.calls;
    LinkView {
        connected: seen.is_connected,
        synced: seen.is_synced,
        last_contact: seen.last_contact,
        resyncs: seen.resyncs,
        trouble: seen.trouble,
        vms_seen: seen.vms,
        calls: Some(CallsView { logins, calls, last_minute, faults, latency_ms }),
    }
}

fn address(cell: &AddressCell, name: impl Fn(&VmId) -> String) -> AddressView {
    let (state, vm, until) = match &cell.state {
        roost_fleet::AddressState::Free => (AddressState::Free, None, None),
        roost_fleet::AddressState::Used(vm) => (AddressState::Used, Some(name(vm)), None),
        roost_fleet::AddressState::Promised => (AddressState::Reserved, None, None),
        roost_fleet::AddressState::Resting(until) => {
            (AddressState::Quarantined, None, Some(*until))
        }
    };
    AddressView { address: cell.address.to_string(), state, vm, until }
}

fn link_minute(seen: view::CallMinute) -> LinkMinute {
    let view::CallMinute { began, calls, faults, logins } = seen;
    LinkMinute { began, calls, faults, logins }
}

fn method(seen: &view::MethodCalls) -> MethodView {
    let view::MethodCalls { method, calls, faults, latency_ms } = *seen;
    MethodView { method: method.to_owned(), calls, faults, latency_ms }
}

fn fault(seen: &view::Fault) -> FaultView {
    FaultView { at: seen.at, method: seen.method.to_owned(), kind: seen.kind.to_owned() }
}

fn vm_view(vm: &view::Vm) -> VmView {
    VmView {
        id: vm.id.to_string(),
        name: vm.name.to_string(),
        kind: match vm.kind {
            view::VmKind::Worker => VmKind::Worker,
            view::VmKind::Spare => VmKind::Spare,
            view::VmKind::Registering => VmKind::Registering,
            view::VmKind::Building => VmKind::Building,
            view::VmKind::Template => VmKind::Template,
            view::VmKind::Leaving => VmKind::Leaving,
        },
        power: match vm.power {
            roost_fleet::Power::On => "on",
            roost_fleet::Power::Off => "off",
            roost_fleet::Power::Suspended => "suspended",
            roost_fleet::Power::Unknown => "unknown",
        }
        .to_owned(),
        phase: vm.stage.map(|stage| stage.words().to_owned()),
        phase_since: vm.stage_since,
        job: vm.job.as_ref().map(ToString::to_string),
        model: vm.model.clone(),
        template: vm.template.clone(),
        flavor: vm.flavor.clone(),
        cpus: Some(vm.cpus.into()),
        memory_mb: Some(vm.memory_mb),
        address: vm.address.map(|address| address.to_string()),
        created: vm.created,
        started: vm.started,
        worker_status: vm.worker_status.map(|status| format!("{status:?}")),
        fate: Some(vm.fate.clone()),
    }
}
