//! Jobs, VMs and pools as everybody sees them.

use std::sync::Arc;

use roost_door::Summary;
use roost_door::fleet::{limit, part, power, step};
use roost_fleet::Decision;
use roost_views::{
    CheckView, DecisionView, Facts, GaugeView, Gauges, LaneView, Part, PoolView, QueueView,
    RequestState, RequestView, Unit, VmDetail, VmKind, VmPhase, VmView,
};

use super::WORDS;
use crate::run::view::{self, Stage};

pub(super) fn check(check: view::Check) -> CheckView {
    CheckView::new(check.name, check.ok, check.words)
}

pub(super) fn summary(seen: &view::Overview) -> Summary {
    let mut gauges = Gauges::default();
    let counted = [
        ("workers", "Workers", "workers", seen.capacity.workers),
        ("pending", "Not yet registered", "starting", seen.capacity.pending),
        ("registering", "Registering a model", "models", seen.capacity.registering),
    ];
    for (name, words, brief, amounts) in counted {
        gauges.add(name, gauge(words, brief, Unit::Pieces, amounts));
    }
    Summary {
        ready: seen.is_open,
        queue: QueueView {
            waiting: seen.queue.waiting,
            oldest_waiting_secs: seen.queue.oldest_waiting_secs,
            starting: seen.queue.starting,
            refused: seen.queue.refused,
        },
        what_binds: seen.what_binds.as_ref().map(|decided| decided.reason.to_string()),
        oldest: seen.what_binds.as_ref().and_then(|decided| match &decided.subject {
            roost_fleet::Subject::Request(request) => Some(WORDS.request(&*request.id)),
            _ => None,
        }),
        tiles: Vec::new(),
        lanes: seen.lanes.iter().map(lane).collect(),
        gauges,
    }
}

pub(super) fn gauge(words: &str, brief: &str, unit: Unit, seen: view::Gauge) -> GaugeView {
    GaugeView {
        words: words.to_owned(),
        brief: brief.to_owned(),
        unit,
        used: seen.used,
        reserved: seen.reserved,
        limit: limit(seen.limit),
    }
}

fn lane(lane: &view::Lane) -> LaneView {
    LaneView {
        phase: lane.stage.as_str().to_owned(),
        words: lane.stage.words().to_owned(),
        part: part_of(lane.stage),
        count: lane.workers.len() as u64,
        names: lane.workers.iter().take(LaneView::NAMES).map(ToString::to_string).collect(),
    }
}

fn part_of(stage: Stage) -> Part {
    match stage {
        Stage::Ordered => Part::Making,
        Stage::In(phase) => part(phase),
        Stage::Leaving => Part::Leaving,
    }
}

/// `brief` makes a decision that stands beside something else.
pub(super) fn job(job: &view::Job, brief: impl Fn(&Decision) -> DecisionView) -> RequestView {
    let protocol = match job.protocol() {
        roost_cds::Protocol::V1 => "v1",
        roost_cds::Protocol::V2 => "v2",
    };
    let model = job.model.as_deref().and_then(|model| model.rsplit('/').next());
    let wants = model.map(|model| match &job.flavor {
        Some(flavor) => format!("{model}/{flavor}"),
        None => model.to_owned(),
    });
    RequestView {
        id: WORDS.request(job.id.to_string()),
        noun: WORDS.noun.to_owned(),
        state: match job.state {
            view::JobState::Waiting => RequestState::Waiting,
            view::JobState::Starting => RequestState::Starting,
            view::JobState::Running => RequestState::Running,
            view::JobState::Ended => RequestState::Ended,
        },
        queued: job.queued,
        waited_secs: job.waited_secs,
        vm: job.worker.as_ref().map(ToString::to_string),
        project: job.project.clone(),
        wants,
        verdict: job.verdict.as_deref().map(brief),
        facts: Facts::default()
            .listed("model", "Model", job.model.clone())
            .listed("flavor", "Flavor", job.flavor.clone())
            .listed("workflow", "Workflow", job.workflow.clone())
            .with("protocol", "CDS queue", Some(protocol)),
    }
}

pub(super) fn vm(vm: &view::Vm) -> VmView {
    VmView {
        id: vm.id.to_string(),
        name: vm.name.to_string(),
        door: WORDS.name.to_owned(),
        kind: match vm.kind {
            view::VmKind::Worker => VmKind::Worker,
            view::VmKind::Spare => VmKind::Spare,
            view::VmKind::Registering => VmKind::Registering,
            view::VmKind::Building => VmKind::Building,
            view::VmKind::Template => VmKind::Template,
            view::VmKind::Leaving => VmKind::Leaving,
        },
        power: power(vm.power),
        phase: vm.stage.map(|stage| VmPhase {
            words: stage.words().to_owned(),
            label: stage.as_str().to_owned(),
            part: part_of(stage),
            since: vm.stage_since,
        }),
        request: vm.job.as_ref().map(|job| WORDS.request(&**job)),
        template: vm.template.clone(),
        cpus: Some(vm.cpus.into()),
        memory_mb: Some(vm.memory_mb),
        address: vm.address.map(|address| address.to_string()),
        created: vm.created,
        started: vm.started,
        fate: Some(vm.fate.clone()),
        facts: Facts::default()
            .silent("job", vm.job.as_deref())
            .listed("model", "Model", vm.model.clone())
            .listed("flavor", "Flavor", vm.flavor.clone())
            .with(
                "worker_status",
                "CDS says",
                vm.worker_status.map(|status| format!("{status:?}")),
            ),
    }
}

pub(super) fn vm_detail(
    detail: &view::VmDetail,
    decisions: impl Fn(&[Arc<Decision>]) -> Vec<DecisionView>,
) -> VmDetail {
    VmDetail {
        vm: vm(&detail.vm),
        annotation: Some(detail.annotation.clone()),
        timeline: detail.timeline.iter().map(step).collect(),
        decisions: decisions(&detail.decisions),
    }
}

pub(super) fn pool(pool: view::Pool) -> PoolView {
    PoolView {
        door: WORDS.name.to_owned(),
        name: pool.model.clone(),
        template: Some(pool.template),
        wanted: pool.wanted,
        ready: pool.ready,
        coming: pool.coming,
        in_use: pool.in_use,
        missing: pool.missing,
        waiting: pool.waiting,
        size: pool.flavor.clone(),
        facts: Facts::default().silent("model", Some(pool.model)).listed(
            "flavor",
            "Flavor",
            pool.flavor,
        ),
    }
}
