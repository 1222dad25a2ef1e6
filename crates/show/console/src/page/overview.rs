//! The whole picture: understood in ten seconds by somebody who has never seen it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use askama::Template;

use super::address::AddressMap;
use super::block::{Block, Row, Table};
use super::foreign::{Name, Words};
use super::jobs::is_refused;
use super::shown::{Bar, Button, DecisionRow, When, job_href, part_of, vm_href};
use super::words::{count, memory};
use crate::Source;
use crate::views::{
    CapacityView, DecisionView, GaugeView, JobState, JobView, LaneView, LimitView, Overview,
    PoolView, Spawning, SteeringView,
};

/// Decisions on this page; the journal has more.
const DECISIONS: usize = 12;
/// Gates that are named; hardly ever are there more.
const BINDING: usize = 3;
/// Names in one lane; the list of VMs has all.
const NAMES: usize = 12;

pub(super) fn blocks(source: &dyn Source, seen: &Overview) -> Result<Vec<Block>, askama::Error> {
    let jobs = source.jobs();
    let oldest = jobs.iter().find(|job| waits_for_us(job));
    let steering = source.steering();
    Ok(vec![
        Block::whole("headline", Headline::new(seen, oldest, &jobs).render()?),
        Block::whole("lanes", Lanes::new(&seen.workers).render()?),
        Block::whole("state", State { seen, steering: &steering }.render()?),
        Block::whole("steering", SteeringPanel::new(seen, &steering).render()?),
        Block::whole("pools", Pools::new(&seen.pools).render()?),
        Block::whole("capacity", Capacity::new(&seen.capacity).render()?),
        Block::whole("addresses", AddressMap::new(seen, &source.addresses()).render()?),
        decisions(seen)?,
    ])
}

/// One that was refused waits for a person, and one that was skipped for somebody else.
fn waits_for_us(job: &JobView) -> bool {
    let last = job.verdict.as_ref().map(|decision| decision.verdict.as_str());
    job.state == JobState::Waiting && !matches!(last, Some("refused" | "skipped"))
}

/// What somebody must know on whatever page they are.
pub(super) fn banners(source: &dyn Source, seen: &Overview) -> Result<Block, askama::Error> {
    let steering = source.steering();
    let html = Banners { seen, steering: &steering }.render()?;
    Ok(Block::whole("banners", html.trim().to_owned()))
}

#[derive(Template)]
#[template(path = "banners.html")]
struct Banners<'a> {
    seen: &'a Overview,
    steering: &'a SteeringView,
}

#[derive(Template)]
#[template(path = "headline.html")]
struct Headline<'a> {
    tiles: Vec<Tile>,
    oldest: Option<Oldest<'a>>,
    binding: Vec<Binding<'a>>,
    what_binds: Option<Words<'a>>,
    is_idle: bool,
}

struct Tile {
    number: u64,
    words: &'static str,
    href: &'static str,
    mood: &'static str,
}

/// A gate that keeps jobs waiting.
struct Binding<'a> {
    href: String,
    name: Name<'a>,
    jobs: String,
}

/// Those that keep the most jobs first.
fn binding<'a>(jobs: impl Iterator<Item = &'a JobView>) -> Vec<Binding<'a>> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for gate in jobs.filter_map(|job| job.verdict.as_ref()?.bound_by.as_deref()) {
        *counts.entry(gate).or_default() += 1;
    }
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(gate, jobs)| (Reverse(*jobs), *gate));
    let shown = counts.into_iter().take(BINDING).map(|(gate, jobs)| Binding {
        href: format!("/decisions?bound_by={}", part_of(gate)),
        name: Name(gate),
        jobs: count(jobs, "job", "jobs"),
    });
    shown.collect()
}

struct Oldest<'a> {
    href: String,
    name: Name<'a>,
    project: Option<Name<'a>>,
    since: Option<When>,
}

impl<'a> Headline<'a> {
    fn new(seen: &'a Overview, oldest: Option<&'a JobView>, jobs: &'a [JobView]) -> Self {
        let working = |phase: &str| {
            let lanes = seen.workers.iter().filter(|lane| lane.phase == phase);
            lanes.map(|lane| lane.count).sum::<u64>()
        };
        let refused = jobs.iter().filter(|job| is_refused(job)).count() as u64;
        let ended = jobs.iter().filter(|job| job.state == JobState::Ended).count() as u64;
        let spares = seen.pools.iter().map(|pool| pool.ready).sum();
        let tile = |number, words, href, mood: &'static str| Tile {
            number,
            words,
            href,
            mood: if number == 0 { "quiet" } else { mood },
        };
        let mut tiles = vec![
            tile(seen.queue.waiting, "jobs waiting", "/jobs?state=waiting", "wait"),
            tile(seen.queue.starting, "workers starting", "/jobs?state=starting", "busy"),
            tile(working("working"), "workers at work", "/vms?kind=worker", "good"),
            tile(ended, "jobs ended", "/jobs?state=ended", "quiet"),
            tile(spares, "spares ready", "/vms?kind=spare", "good"),
        ];
        if refused > 0 {
            tiles.insert(1, tile(refused, "jobs refused", "/jobs?state=waiting", "bad"));
        }
        Self {
            tiles,
            oldest: oldest.filter(|_| seen.queue.waiting > 0).map(|job| Oldest {
                href: job_href(&job.id),
                name: Name(super::words::short_id(&job.id)),
                project: job.project.as_deref().map(Name),
                since: job.queued.map(When::ago),
            }),
            binding: binding(jobs.iter().filter(|job| waits_for_us(job))),
            what_binds: seen.what_binds.as_deref().map(Words),
            is_idle: seen.queue.waiting == 0,
        }
    }
}

/// Lanes side by side, in the order in which a worker goes through them.
#[derive(Template)]
#[template(path = "lanes.html")]
struct Lanes<'a> {
    stretches: Vec<Stretch<'a>>,
}

/// Phases that belong together, so that the picture keeps its shape while workers move.
struct Stretch<'a> {
    words: &'static str,
    mood: &'static str,
    count: u64,
    lanes: Vec<Lane<'a>>,
}

struct Lane<'a> {
    words: &'a str,
    count: u64,
    names: Vec<(String, Name<'a>)>,
    more: u64,
}

impl<'a> Lanes<'a> {
    fn new(lanes: &'a [LaneView]) -> Self {
        let stretch = |words, mood, index| {
            let lanes: Vec<Lane<'a>> = lanes
                .iter()
                .filter(|lane| lane.count > 0 && stretch_of(&lane.phase) == index)
                .map(Lane::new)
                .collect();
            Stretch { words, mood, count: lanes.iter().map(|lane| lane.count).sum(), lanes }
        };
        Self {
            stretches: vec![
                stretch("Being made", "busy", 0),
                stretch("Starting up", "busy", 1),
                stretch("Joining CDS", "busy", 2),
                stretch("Working", "good", 3),
                stretch("Leaving", "quiet", 4),
            ],
        }
    }
}

/// Whatever is not known is on its way up: something new goes through it before it works.
fn stretch_of(phase: &str) -> usize {
    match phase {
        "ordered" | "claiming" | "cloning" | "creating" | "uploading" => 0,
        "launching" | "registering" => 2,
        "working" => 3,
        "leaving" | "shutting-down" | "powering-off" | "destroying" | "templating" => 4,
        _ => 1,
    }
}

impl<'a> Lane<'a> {
    fn new(lane: &'a LaneView) -> Self {
        let names = lane.names.iter().take(NAMES);
        let names: Vec<_> = names.map(|name| (vm_href(name), Name(name.as_str()))).collect();
        let more = lane.count.saturating_sub(names.len() as u64);
        Self { words: &lane.words, count: lane.count, names, more }
    }
}

#[derive(Template)]
#[template(path = "pools.html")]
struct Pools<'a> {
    pools: Vec<Pool<'a>>,
}

struct Pool<'a> {
    name: Name<'a>,
    flavor: Option<Name<'a>>,
    view: &'a PoolView,
    bar: Bar,
    waiting: Option<Words<'a>>,
    refill: Button,
}

impl<'a> Pools<'a> {
    fn new(pools: &'a [PoolView]) -> Self {
        let pool = |view: &'a PoolView| Pool {
            name: Name(view.template.as_deref().unwrap_or(&view.model)),
            flavor: view.flavor.as_deref().map(Name),
            bar: Bar {
                whole: view.wanted.max(view.ready + view.coming + view.in_use),
                parts: vec![("ready", view.ready), ("coming", view.coming), ("inuse", view.in_use)],
                label: format!(
                    "{} ready, {} being made, {} in use, of {} wanted",
                    view.ready, view.coming, view.in_use, view.wanted
                ),
            },
            waiting: view.waiting.as_deref().map(Words),
            refill: Button {
                post: format!("/api/v1/pools/{}/refill", part_of(&view.model)),
                words: "Refill now",
                confirm: format!(
                    "Make what is missing of pool {} now, however often it failed before?",
                    view.model
                ),
                with: "{}",
                is_grave: false,
            },
            view,
        };
        Self { pools: pools.iter().map(pool).collect() }
    }
}

#[derive(Template)]
#[template(path = "capacity.html")]
struct Capacity {
    gauges: Vec<Gauge>,
}

struct Gauge {
    words: &'static str,
    bar: Bar,
    used: String,
    reserved: Option<String>,
    limit: String,
    is_full: bool,
}

impl Capacity {
    fn new(seen: &CapacityView) -> Self {
        let plain = |amount: u64| amount.to_string();
        Self {
            gauges: vec![
                Gauge::new("Workers", seen.workers, plain),
                Gauge::new("Not yet registered", seen.pending, plain),
                Gauge::new("Registering a model", seen.registering, plain),
                Gauge::new("CPUs", seen.cpus, plain),
                Gauge::new("Memory", seen.memory_mb, memory),
            ],
        }
    }
}

impl Gauge {
    fn new(words: &'static str, seen: GaugeView, amount: fn(u64) -> String) -> Self {
        let GaugeView { used, reserved, limit } = seen;
        let taken = used.saturating_add(reserved);
        let is_full = limit.at().is_some_and(|limit| taken >= limit && limit > 0);
        let limit_words = match limit {
            LimitView::At(limit) => amount(limit),
            LimitView::Unlimited | LimitView::Unknown => limit.to_string(),
        };
        Self {
            words,
            bar: Bar {
                whole: limit.at().unwrap_or(taken.saturating_mul(2)).max(1),
                parts: vec![
                    (if is_full { "used full" } else { "used" }, used),
                    ("reserved", reserved),
                ],
                label: format!("{used} used, {reserved} reserved, limit {limit}"),
            },
            used: amount(used),
            reserved: (reserved > 0).then(|| amount(reserved)),
            limit: limit_words,
            is_full,
        }
    }
}

#[derive(Template)]
#[template(path = "state.html")]
struct State<'a> {
    seen: &'a Overview,
    steering: &'a SteeringView,
}

#[derive(Template)]
#[template(path = "steering.html")]
struct SteeringPanel {
    buttons: Vec<Button>,
}

impl SteeringPanel {
    fn new(seen: &Overview, steering: &SteeringView) -> Self {
        let button = |name: &str, words, confirm: &str, is_grave| Button {
            post: format!("/api/v1/actions/{name}"),
            words,
            confirm: confirm.to_owned(),
            with: "{}",
            is_grave,
        };
        let mut buttons = Vec::new();
        if steering.spawning == Spawning::Open {
            buttons.push(button(
                "pause",
                "Pause spawning",
                "Start no new workers and spares until somebody resumes? What is under way goes on.",
                true,
            ));
            buttons.push(button(
                "drain",
                "Drain",
                "Start no new workers and wait until those that run have ended?",
                true,
            ));
        } else {
            buttons.push(button(
                "resume",
                "Resume spawning",
                "Start workers and spares again?",
                false,
            ));
        }
        if seen.deletions.frozen.is_none() && steering.frozen.is_none() {
            buttons.push(button(
                "freeze",
                "Freeze deletions",
                "Delete nothing until somebody resumes?",
                true,
            ));
        } else {
            buttons.push(super::deletions::thaw());
        }
        Self { buttons }
    }
}

fn decisions(seen: &Overview) -> Result<Block, askama::Error> {
    let newest: Vec<&DecisionView> = seen.recent.iter().rev().collect();
    // The same word on many jobs, one after the other, is one line.
    let alike = newest.chunk_by(|a, b| {
        (a.subject_kind, &a.verdict, &a.reason) == (b.subject_kind, &b.verdict, &b.reason)
    });
    let rows = alike.take(DECISIONS).map(|alike| {
        let subjects: BTreeSet<&str> = alike.iter().map(|it| it.subject.as_str()).collect();
        let html = DecisionRow::new(alike[0]).with_more(subjects.len() - 1).render()?;
        Ok(Row { key: alike[0].seq.to_string(), html })
    });
    Ok(Block::table(
        "decisions",
        Table {
            above: "<h2>Last decisions</h2>".to_owned(),
            columns: DecisionRow::COLUMNS,
            rows: rows.collect::<Result<_, askama::Error>>()?,
            below: "<a href=\"/decisions\">All decisions</a>".to_owned(),
        },
    ))
}
