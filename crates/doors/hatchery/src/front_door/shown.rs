//! Jobs, VMs and pools as everybody sees them.

use std::sync::Arc;

use roost_door::Summary;
use roost_door::fleet::{limit, part, power, step, verdict};
use roost_fleet::{Decided, Decision};
use roost_views::{
    CheckView, DecisionView, Facts, GaugeView, Gauges, LaneView, Mood, OutcomeView, Part, PoolView,
    QueueView, RequestState, RequestView, Served, TileView, Unit, VmDetail, VmKind, VmPhase,
    VmView,
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
            joining: seen.queue.joining,
            working: seen.queue.working,
            leaving: seen.queue.leaving,
        },
        what_binds: seen.what_binds.as_ref().map(|decided| decided.reason.to_string()),
        oldest: seen.what_binds.as_ref().and_then(|decided| match &decided.subject {
            roost_fleet::Subject::Request(request) => Some(WORDS.request(&*request.id)),
            _ => None,
        }),
        tiles: seen.other_process.iter().map(|_| other_process()).collect(),
        lanes: seen.lanes.iter().map(lane).collect(),
        gauges,
    }
}

/// What the other one is and which of them goes on stands in the decisions and in `/mon/status`.
fn other_process() -> TileView {
    TileView {
        number: 1,
        words: "other process of this name".to_owned(),
        href: "/decisions?bound_by=other-process".to_owned(),
        mood: Mood::Bad,
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
        group: WORDS.group.to_owned(),
        state: RequestState::of(
            served(job.state),
            job.verdict.as_ref().map(|decided| verdict(decided.verdict)),
        ),
        queued: job.queued,
        waited_secs: job.waited_secs,
        vm: job.worker.as_ref().map(ToString::to_string),
        project: job.project.clone(),
        wants,
        outcome: outcome(job),
        verdict: job.verdict.as_deref().map(brief),
        facts: Facts::default()
            .listed("model", "Model", job.model.clone())
            .listed("flavor", "Flavor", job.flavor.clone())
            .listed("workflow", "Workflow", job.workflow.clone())
            .with("protocol", "CDS queue", Some(protocol)),
    }
}

fn served(state: view::JobState) -> Served {
    match state {
        view::JobState::Waiting => Served::Nothing,
        view::JobState::Starting => Served::By(Part::Starting),
        view::JobState::Joining => Served::By(Part::Joining),
        view::JobState::Running => Served::By(Part::Working),
        view::JobState::Leaving => Served::By(Part::Leaving),
        view::JobState::Ended => Served::Over,
    }
}

/// What CDS makes of it stands in CDS; here is what became of its worker.
fn outcome(job: &view::Job) -> Option<OutcomeView> {
    if !matches!(job.state, view::JobState::Leaving | view::JobState::Ended) {
        return None;
    }
    let last = job.verdict.as_deref();
    let result = match last.map(|decided| decided.verdict) {
        Some(Decided::Spawned | Decided::Adopted | Decided::Finished) | None => "done",
        Some(Decided::Failed) => "failed",
        Some(Decided::Released) => "given back",
        Some(Decided::Refused) => "refused",
        Some(Decided::Skipped) => "taken by others",
        Some(_) => "over",
    };
    Some(OutcomeView {
        ended: job.ended.or(last.map(|decided| decided.since)),
        ran_secs: job.ran_secs,
        result: result.to_owned(),
    })
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
