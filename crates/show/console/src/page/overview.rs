//! The whole picture: understood in ten seconds by somebody who has never seen it.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use roost_door::{House, Trick};
use roost_views::words::{Style, count, short_id};
use roost_views::{
    DecisionQuery, DecisionView, DoorView, GaugeView, Gauges, HistoryView, LaneView, LimitView,
    Mood, Overview, PoolView, RequestState, RequestView, Served, Spawning, SteeringView,
};

use super::Asked;
use super::address::AddressMap;
use super::band::{self, Spark};
use super::block::{Block, Html, Row, Table, fixed};
use super::foreign::{Name, Words};
use super::needs;
use super::shown::{Bar, Button, DecisionRow, Fact, Ways, When, part_of, request_href, vm_href};

/// Decisions on this page; the journal has more.
const DECISIONS: usize = 12;
/// Looked at where what waits is shown as well: many of them are one line.
const ALL: usize = 100;
/// Of the history: a day.
const SHOWN_MINUTES: usize = 24 * 60;
/// Gates that are named; hardly ever are there more.
const BINDING: usize = 3;
/// Names in one lane; the list of VMs has all.
const NAMES: usize = 12;

pub(super) fn blocks(
    house: &House,
    seen: &Overview,
    asked: &Asked,
) -> Result<Vec<Block>, askama::Error> {
    let requests = house.requests();
    let steering = house.steering();
    let history = house.history.view(SHOWN_MINUTES);
    Ok(vec![
        Block::whole("needs", needs::render(seen, &house.links)?),
        Block::whole("headline", Headline::new(seen, &requests, &history).render()?),
        Block::whole("band", band::render(&history)?),
        Block::whole("lanes", Lanes::new(&seen.lanes).render()?),
        Block::whole("state", State { seen, steering: &steering }.render()?),
        Block::whole("steering", SteeringPanel::new(seen, &steering).render()?),
        Block::whole("pools", Pools::new(&seen.pools).render()?),
        Block::whole("capacity", Capacity::new(&seen.capacity).render()?),
        Block::whole("addresses", AddressMap::new(seen, &house.addresses()).render()?),
        Block::whole("break", Break::of(house).render()?.trim().to_owned()),
        decisions(house, seen, asked)?,
    ])
}

/// What somebody must know on whatever page they are.
pub(super) fn banners(
    house: &House,
    seen: &Overview,
    is_overview: bool,
) -> Result<Block, askama::Error> {
    let steering = house.steering();
    // What needs a person stands on the overview itself.
    let outages = if is_overview { Vec::new() } else { needs::outages(seen, &house.links) };
    let html = Banners { seen, steering: &steering, outages, is_overview }.render()?;
    Ok(Block::whole("banners", html.trim().to_owned()))
}

#[derive(Template)]
#[template(path = "banners.html")]
struct Banners<'a> {
    seen: &'a Overview,
    steering: &'a SteeringView,
    outages: Vec<needs::Outage<'a>>,
    is_overview: bool,
}

#[derive(Template)]
#[template(path = "headline.html")]
struct Headline<'a> {
    /// Of the only door, and what is common to several.
    tiles: Vec<Tile<'a>>,
    states: Vec<&'static str>,
    /// One row for each of several doors, with a number for each state.
    rows: Vec<(Place<'a>, Vec<Tile<'a>>)>,
    doors: Vec<Door<'a>>,
}

/// Several doors in a table.
struct Place<'a> {
    href: String,
    title: Name<'a>,
    nouns: &'a str,
}

struct Tile<'a> {
    number: u64,
    words: Cow<'a, str>,
    href: Cow<'a, str>,
    mood: &'static str,
    spark: Option<Spark>,
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
        Self { number, words: words.into(), href: href.into(), mood: mood.as_str(), spark: None }
    }

    fn with(mut self, spark: Option<Spark>) -> Self {
        self.spark = spark;
        self
    }
}

impl<'a> Headline<'a> {
    fn new(seen: &'a Overview, requests: &'a [RequestView], history: &HistoryView) -> Self {
        let spares = seen.pools.iter().map(|pool| pool.ready).sum();
        let of = |door: &'a DoorView| requests.iter().filter(|it| it.id.door == door.name);
        let is_one = seen.doors.len() == 1;
        let spark = |door: &DoorView, state| {
            if is_one {
                Spark::of(history, state)
            } else {
                Spark::of_door(history, &door.name, state)
            }
        };
        let standings = |door: &'a DoorView| -> Vec<Tile<'a>> {
            let all = door.queue.in_order().into_iter();
            let tile = |(state, number)| standing(door, number, state).with(spark(door, state));
            all.map(tile).collect()
        };
        let (mut tiles, rows) = match seen.doors.as_slice() {
            [door] => (standings(door), Vec::new()),
            doors => {
                let row = |door| (Place::new(door), standings(door));
                (Vec::new(), doors.iter().map(row).collect())
            }
        };
        let own = seen.doors.iter().flat_map(|door| &door.tiles);
        tiles.extend(own.map(|it| Tile::new(it.number, &*it.words, &*it.href, it.mood)));
        if !seen.pools.is_empty() {
            tiles.push(Tile::new(spares, "spares ready", "/vms?kind=spare", Mood::Good));
        }
        let states = seen.queue.in_order().into_iter().map(|(state, _)| state.as_str());
        Self {
            tiles,
            states: states.collect(),
            rows,
            doors: seen.doors.iter().map(|door| Door::new(door, is_one, of(door))).collect(),
        }
    }
}

impl<'a> Place<'a> {
    fn new(door: &'a DoorView) -> Self {
        Self { href: format!("/{}", door.path), title: Name(&door.title), nouns: &door.nouns }
    }
}

fn standing(door: &DoorView, number: u64, state: RequestState) -> Tile<'static> {
    let words = format!("{} {}", door.nouns, state.as_str());
    // Where it leads is what it counts.
    let href = format!("/{}?state={}", door.path, state.as_str());
    Tile::new(number, words, href, state.mood())
}

impl<'a> Door<'a> {
    fn new(
        door: &'a DoorView,
        is_one: bool,
        requests: impl Iterator<Item = &'a RequestView> + Clone,
    ) -> Self {
        // One that was refused waits for a person, and one that was skipped for somebody else.
        let waiting = requests.filter(|request| request.state == RequestState::Waiting);
        let oldest = waiting.clone().next().filter(|_| door.queue.waiting > 0);
        Self {
            noun: &door.noun,
            nouns: &door.nouns,
            title: (!is_one).then_some(Name(&door.title)),
            about: Words(&door.about),
            oldest: oldest.map(|request| Oldest {
                href: request_href(&door.path, &request.id.id),
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
        // A VM stands where its request does: the same function decides both.
        let stretch = |words, mood, state| {
            let lanes: Vec<Lane<'a>> = lanes
                .iter()
                .filter(|lane| {
                    lane.count > 0 && RequestState::of(Served::By(lane.part), None) == state
                })
                .map(Lane::new)
                .collect();
            Stretch { words, mood, count: lanes.iter().map(|lane| lane.count).sum(), lanes }
        };
        Self {
            stretches: vec![
                stretch("Starting", "busy", RequestState::Starting),
                stretch("Joining", "busy", RequestState::Joining),
                stretch("Working", "good", RequestState::Working),
                stretch("Leaving", "quiet", RequestState::Leaving),
            ],
        }
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
    /// What the door knows of it, without what stands beside its name.
    facts: Vec<Fact>,
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
            facts: (view.facts.known())
                .filter(|(_, value)| Some(*value) != view.size.as_deref())
                .filter_map(|(label, value)| {
                    Fact::text(super::plain(label).into_owned(), Some(value))
                })
                .collect(),
            refill: Button {
                post: format!("/api/v1/pools/{}/refill", part_of(&view.name)),
                words: "Refill now".into(),
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
    /// `None` where there is nothing to be full of.
    bar: Option<Bar>,
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
        let is_full = seen.is_full() && limit != LimitView::At(0);
        let limit_words = match limit {
            LimitView::At(limit) => amount(limit),
            LimitView::Unlimited | LimitView::Unknown => limit.to_string(),
        };
        Self {
            words: Words(&seen.words),
            bar: limit.at().map(|whole| Bar {
                whole: whole.max(1),
                parts: vec![
                    (if is_full { "used full" } else { "used" }, used),
                    ("reserved", reserved),
                ],
                label: format!("{used} used, {reserved} reserved, limit {limit}"),
            }),
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
            words: Cow::Borrowed(words),
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

/// What can be done to the world of a demo.
#[derive(Template)]
#[template(path = "break.html")]
struct Break {
    pace: Option<String>,
    token: String,
    buttons: Vec<(Button, &'static str)>,
}

impl Break {
    fn of(house: &House) -> Self {
        let Some(demo) = &house.demonstration else {
            return Self { pace: None, token: String::new(), buttons: Vec::new() };
        };
        let button = |trick: Trick| {
            let button = Button {
                post: format!("/api/v1/demo/{}", trick.name),
                words: trick.words.into(),
                // A simulation: whoever presses it wants to see it.
                confirm: String::new(),
                with: "{}",
                is_grave: false,
            };
            (button, trick.about)
        };
        Self {
            pace: Some(demo.pace()),
            token: demo.token(),
            buttons: demo.tricks().into_iter().map(button).collect(),
        }
    }
}

fn decisions(house: &House, seen: &Overview, asked: &Asked) -> Result<Block, askama::Error> {
    let ways = &Ways::of(house);
    let with_all = !asked.all.is_empty();
    let all = with_all.then(|| {
        let query = DecisionQuery { limit: Some(ALL), ..DecisionQuery::default() };
        house.decisions(&query)
    });
    let newest: Vec<&DecisionView> = all.as_ref().unwrap_or(&seen.recent).iter().rev().collect();
    // The same word on many requests, one after the other, is one line.
    let alike = newest.chunk_by(|a, b| {
        (&a.subject_kind, a.verdict, &a.reason) == (&b.subject_kind, b.verdict, &b.reason)
    });
    let rows = alike.take(DECISIONS).map(|alike| {
        let subjects: BTreeSet<&str> = alike.iter().map(|it| it.subject.as_str()).collect();
        let html = DecisionRow::new(alike[0], ways).with_more(subjects.len() - 1).render()?;
        Ok(Row { key: alike[0].seq.to_string(), html })
    });
    let switch = if with_all {
        "<a href=\"/\">Only what has happened</a>"
    } else {
        "<a href=\"/?all=1\">Also what waits</a>"
    };
    Ok(Block::table(
        "decisions",
        Table {
            above: "<h2>Last decisions</h2>".to_owned(),
            columns: fixed(DecisionRow::COLUMNS),
            rows: rows.collect::<Result<_, askama::Error>>()?,
            below: format!("<a href=\"/decisions\">All decisions</a> {switch}"),
        },
    ))
}
