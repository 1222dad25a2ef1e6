//! The whole picture: understood in ten seconds by somebody who has never seen it.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use roost_door::House;
use roost_views::words::{Style, count, short_id};
use roost_views::{
    DecisionView, DoorView, GaugeView, Gauges, LaneView, LimitView, Mood, Overview, Part, PoolView,
    RequestView, Spawning, Standing, SteeringView,
};

use super::address::AddressMap;
use super::block::{Block, Row, Table, fixed};
use super::foreign::{Name, Words};
use super::shown::{Bar, Button, DecisionRow, Ways, When, part_of, request_href, vm_href};

/// Decisions on this page; the journal has more.
const DECISIONS: usize = 12;
/// Gates that are named; hardly ever are there more.
const BINDING: usize = 3;
/// Names in one lane; the list of VMs has all.
const NAMES: usize = 12;

pub(super) fn blocks(house: &House, seen: &Overview) -> Result<Vec<Block>, askama::Error> {
    let requests = house.requests();
    let steering = house.steering();
    Ok(vec![
        Block::whole("headline", Headline::new(seen, &requests).render()?),
        Block::whole("lanes", Lanes::new(&seen.lanes).render()?),
        Block::whole("state", State { seen, steering: &steering }.render()?),
        Block::whole("steering", SteeringPanel::new(seen, &steering).render()?),
        Block::whole("pools", Pools::new(&seen.pools).render()?),
        Block::whole("capacity", Capacity::new(&seen.capacity).render()?),
        Block::whole("addresses", AddressMap::new(seen, &house.addresses()).render()?),
        decisions(seen, &Ways::of(house))?,
    ])
}

/// What somebody must know on whatever page they are.
pub(super) fn banners(house: &House, seen: &Overview) -> Result<Block, askama::Error> {
    let steering = house.steering();
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
    tiles: Vec<Tile<'a>>,
    doors: Vec<Door<'a>>,
}

struct Tile<'a> {
    number: u64,
    words: Cow<'a, str>,
    href: Cow<'a, str>,
    mood: &'static str,
}

/// What a door says of itself in words.
struct Door<'a> {
    noun: &'a str,
    nouns: &'a str,
    /// Named where there is more than one.
    title: Option<Name<'a>>,
    about: Words<'a>,
    oldest: Option<Oldest<'a>>,
    binding: Vec<Binding<'a>>,
    what_binds: Option<Words<'a>>,
    is_idle: bool,
}

/// A gate that keeps requests waiting.
struct Binding<'a> {
    href: String,
    name: Name<'a>,
    requests: String,
}

/// Those that keep the most requests first.
fn binding<'a>(
    waiting: impl Iterator<Item = &'a RequestView>,
    door: &DoorView,
) -> Vec<Binding<'a>> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for gate in waiting.filter_map(|request| request.verdict.as_ref()?.bound_by.as_deref()) {
        *counts.entry(gate).or_default() += 1;
    }
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(gate, requests)| (Reverse(*requests), *gate));
    let shown = counts.into_iter().take(BINDING).map(|(gate, requests)| Binding {
        href: format!("/decisions?bound_by={}", part_of(gate)),
        name: Name(gate),
        requests: count(requests, &door.noun, &door.nouns),
    });
    shown.collect()
}

struct Oldest<'a> {
    href: String,
    name: Name<'a>,
    project: Option<Name<'a>>,
    since: Option<When>,
}

impl<'a> Tile<'a> {
    fn new(
        number: u64,
        words: impl Into<Cow<'a, str>>,
        href: impl Into<Cow<'a, str>>,
        mood: Mood,
    ) -> Self {
        let mood = if number == 0 { Mood::Quiet } else { mood };
        Self { number, words: words.into(), href: href.into(), mood: mood.as_str() }
    }
}

impl<'a> Headline<'a> {
    fn new(seen: &'a Overview, requests: &'a [RequestView]) -> Self {
        let working = seen.lanes.iter().filter(|lane| lane.part == Part::Working);
        let working = working.map(|lane| lane.count).sum();
        let spares = seen.pools.iter().map(|pool| pool.ready).sum();
        let of = |door: &'a DoorView| requests.iter().filter(|it| it.id.door == door.name);
        let mut tiles: Vec<Tile<'a>> =
            seen.doors.iter().flat_map(|door| on_their_way(door, of(door))).collect();
        tiles.push(Tile::new(working, "VMs at work", "/vms", Mood::Good));
        tiles.extend(seen.doors.iter().map(|door| ended(door, of(door))));
        tiles.push(Tile::new(spares, "spares ready", "/vms?kind=spare", Mood::Good));
        let own = seen.doors.iter().flat_map(|door| &door.tiles);
        tiles.extend(own.map(|tile| Tile::new(tile.number, &*tile.words, &*tile.href, tile.mood)));
        let is_one = seen.doors.len() == 1;
        Self {
            tiles,
            doors: seen.doors.iter().map(|door| Door::new(door, is_one, of(door))).collect(),
        }
    }
}

fn standing(door: &DoorView, number: u64, standing: Standing) -> Tile<'static> {
    let words = format!("{} {}", door.nouns, standing.as_str());
    // Where it leads is what it counts.
    let href = format!("/{}?state={}", door.nouns, standing.as_str());
    Tile::new(number, words, href, standing.mood())
}

fn on_their_way<'a>(
    door: &'a DoorView,
    requests: impl Iterator<Item = &'a RequestView>,
) -> Vec<Tile<'a>> {
    let refused = requests.filter(|it| it.standing() == Standing::Refused).count() as u64;
    let mut tiles = vec![
        standing(door, door.queue.waiting, Standing::Waiting),
        standing(door, door.queue.starting, Standing::Starting),
    ];
    if refused > 0 {
        tiles.insert(1, standing(door, refused, Standing::Refused));
    }
    tiles
}

fn ended<'a>(door: &'a DoorView, requests: impl Iterator<Item = &'a RequestView>) -> Tile<'a> {
    let ended = requests.filter(|it| it.standing() == Standing::Ended).count() as u64;
    standing(door, ended, Standing::Ended)
}

impl<'a> Door<'a> {
    fn new(
        door: &'a DoorView,
        is_one: bool,
        requests: impl Iterator<Item = &'a RequestView> + Clone,
    ) -> Self {
        // One that was refused waits for a person, and one that was skipped for somebody else.
        let waiting = requests.filter(|request| request.standing() == Standing::Waiting);
        let oldest = waiting.clone().next().filter(|_| door.queue.waiting > 0);
        Self {
            noun: &door.noun,
            nouns: &door.nouns,
            title: (!is_one).then_some(Name(&door.title)),
            about: Words(&door.about),
            oldest: oldest.map(|request| Oldest {
                href: request_href(&door.nouns, &request.id.id),
                name: Name(short_id(&request.id.id)),
                project: request.project.as_deref().map(Name),
                since: request.queued.map(When::ago),
            }),
            binding: binding(waiting, door),
            what_binds: door.what_binds.as_deref().map(Words),
            is_idle: door.queue.waiting == 0,
        }
    }
}

/// Lanes side by side, in the order in which a VM goes through them.
#[derive(Template)]
#[template(path = "lanes.html")]
struct Lanes<'a> {
    stretches: Vec<Stretch<'a>>,
}

/// Phases that belong together, so that the picture keeps its shape while VMs move.
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
                .filter(|lane| lane.count > 0 && stretch_of(lane.part) == index)
                .map(Lane::new)
                .collect();
            Stretch { words, mood, count: lanes.iter().map(|lane| lane.count).sum(), lanes }
        };
        Self {
            stretches: vec![
                stretch("Being made", "busy", 0),
                stretch("Starting up", "busy", 1),
                stretch("Joining", "busy", 2),
                stretch("Working", "good", 3),
                stretch("Leaving", "quiet", 4),
            ],
        }
    }
}

fn stretch_of(part: Part) -> usize {
    match part {
        Part::Claiming | Part::Making => 0,
        Part::Starting => 1,
        Part::Launching | Part::Joining => 2,
        Part::Working => 3,
        Part::Leaving => 4,
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
    size: Option<Name<'a>>,
    view: &'a PoolView,
    bar: Bar,
    waiting: Option<Words<'a>>,
    refill: Button,
}

impl<'a> Pools<'a> {
    fn new(pools: &'a [PoolView]) -> Self {
        let pool = |view: &'a PoolView| Pool {
            name: Name(view.template.as_deref().unwrap_or(&view.name)),
            size: view.size.as_deref().map(Name),
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
                post: format!("/api/v1/pools/{}/refill", part_of(&view.name)),
                words: "Refill now",
                confirm: format!(
                    "Make what is missing of pool {} now, however often it failed before?",
                    view.name
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
struct Capacity<'a> {
    gauges: Vec<Gauge<'a>>,
}

struct Gauge<'a> {
    words: Words<'a>,
    bar: Bar,
    used: String,
    reserved: Option<String>,
    limit: String,
    is_full: bool,
}

impl<'a> Capacity<'a> {
    fn new(seen: &'a Gauges) -> Self {
        Self { gauges: seen.iter().map(Gauge::new).collect() }
    }
}

impl<'a> Gauge<'a> {
    fn new(seen: &'a GaugeView) -> Self {
        let GaugeView { used, reserved, limit, .. } = *seen;
        let amount = |amount| seen.unit.amount(amount, Style::Long);
        let taken = used.saturating_add(reserved);
        let is_full = seen.is_full() && limit != LimitView::At(0);
        let limit_words = match limit {
            LimitView::At(limit) => amount(limit),
            LimitView::Unlimited | LimitView::Unknown => limit.to_string(),
        };
        Self {
            words: Words(&seen.words),
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
                "Start no new VMs and spares until somebody resumes? What is under way goes on.",
                true,
            ));
            buttons.push(button(
                "drain",
                "Drain",
                "Start no new VMs and wait until those that run have ended?",
                true,
            ));
        } else {
            buttons.push(button("resume", "Resume spawning", "Start VMs and spares again?", false));
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

fn decisions(seen: &Overview, ways: &Ways) -> Result<Block, askama::Error> {
    let newest: Vec<&DecisionView> = seen.recent.iter().rev().collect();
    // The same word on many requests, one after the other, is one line.
    let alike = newest.chunk_by(|a, b| {
        (&a.subject_kind, a.verdict, &a.reason) == (&b.subject_kind, b.verdict, &b.reason)
    });
    let rows = alike.take(DECISIONS).map(|alike| {
        let subjects: BTreeSet<&str> = alike.iter().map(|it| it.subject.as_str()).collect();
        let html = DecisionRow::new(alike[0], ways).with_more(subjects.len() - 1).render()?;
        Ok(Row { key: alike[0].seq.to_string(), html })
    });
    Ok(Block::table(
        "decisions",
        Table {
            above: "<h2>Last decisions</h2>".to_owned(),
            columns: fixed(DecisionRow::COLUMNS),
            rows: rows.collect::<Result<_, askama::Error>>()?,
            below: "<a href=\"/decisions\">All decisions</a>".to_owned(),
        },
    ))
}
