//! A request: why it is as it is, and what it waited for until its VM did what it is for.

use askama::Template;
use jiff::Timestamp;
use roost_door::{DoorWords, House};
use roost_views::words::{Style, secs, short_id};
use roost_views::{DecisionView, RequestDetail};

use super::block::{Block, Html, Row, Table, fixed};
use super::foreign::{Name, Words, part};
use super::shown::{Button, DecisionRow, Fact, Gates, Ways, When, vm_href};
use super::waterfall;

pub(super) fn blocks(
    house: &House,
    words: &DoorWords,
    detail: &RequestDetail,
    now: Timestamp,
) -> Result<Vec<Block>, askama::Error> {
    let steps = match (&detail.vm, &detail.request.vm) {
        (Some(vm), _) => vm.timeline.clone(),
        (None, Some(name)) => house.timeline(name),
        (None, None) => Vec::new(),
    };
    let last = detail.decisions.last();
    // What came of it may have been said without gates; then those before it tell how it got there.
    let weighed = detail.decisions.iter().rev().find(|decision| !decision.gates.is_empty());
    Ok(vec![
        Block::whole("subject", Subject::new(words, detail, last).render()?),
        Block::whole("gates", Explained::new(weighed).render()?),
        Block::whole("waterfall", waterfall::of_request(&steps, detail.request.queued, now)?),
        decisions(&detail.decisions, &Ways::of(house))?,
    ])
}

#[derive(Template)]
#[template(path = "request.html")]
struct Subject<'a> {
    noun: String,
    name: Name<'a>,
    whole_id: Words<'a>,
    state: &'static str,
    mood: &'static str,
    last: Option<Last<'a>>,
    facts: Vec<Fact>,
    recheck: Button,
}

struct Last<'a> {
    verdict: &'static str,
    mood: &'static str,
    reason: Words<'a>,
    bound_by: Option<Name<'a>>,
    next_look: Option<Words<'a>>,
    since: When,
    times: u32,
}

impl<'a> Subject<'a> {
    fn new(words: &DoorWords, detail: &'a RequestDetail, last: Option<&'a DecisionView>) -> Self {
        let request = &detail.request;
        let id = &request.id.id;
        let waits = request.queued.filter(|_| request.is_open());
        let waits = waits.map(|queued| Fact::new("Waits for", &When::ago(queued)));
        let waited = request.waited_secs;
        let waited =
            waits.or_else(|| waited.map(|waited| Fact::new("Waited", &secs(waited, Style::Long))));
        let facts = [
            request.queued.map(|at| Fact::new("Queued", &When::at(at))),
            waited,
            Fact::text("Project", request.project.as_deref()),
        ];
        let vm = request.vm.as_deref().map(|vm| Fact::link("VM", &vm_href(vm), vm));
        let facts = facts.into_iter().flatten().chain(Fact::of_door(&request.facts)).chain(vm);
        let standing = request.standing();
        Self {
            noun: roost_views::words::title(words.noun),
            name: Name(short_id(id)),
            whole_id: Words(id),
            state: standing.as_str(),
            mood: standing.mood().as_str(),
            last: last.map(|decision| Last {
                verdict: decision.verdict.as_str(),
                mood: decision.verdict.mood().as_str(),
                reason: Words(&decision.reason),
                bound_by: decision.bound_by.as_deref().map(Name),
                next_look: decision.next_look.as_deref().map(Words),
                since: When::at(decision.since),
                times: decision.times,
            }),
            facts: facts.collect(),
            recheck: Button {
                post: format!("/api/v1/{}/{}/recheck", words.nouns, part(id)),
                words: "Look again now",
                confirm: format!(
                    "Look at {} {id} anew and forget how often it was tried?",
                    words.noun
                ),
                with: "{}",
                is_grave: false,
            },
        }
    }
}

#[derive(Template)]
#[template(path = "explained.html")]
struct Explained<'a> {
    gates: Option<Gates<'a>>,
    at: Option<When>,
}

impl<'a> Explained<'a> {
    fn new(weighed: Option<&'a DecisionView>) -> Self {
        Self {
            gates: weighed.map(|decision| Gates::new(&decision.gates)),
            at: weighed.map(|decision| When::at(decision.at)),
        }
    }
}

/// Newest first, as on every page.
pub(super) fn decisions(all: &[DecisionView], ways: &Ways) -> Result<Block, askama::Error> {
    const SHOWN: usize = 50;
    let newest = all.iter().rev().take(SHOWN);
    let rows = newest.map(|decision| {
        Ok(Row { key: decision.seq.to_string(), html: DecisionRow::new(decision, ways).render()? })
    });
    let below = if all.len() > SHOWN {
        format!("the last {SHOWN} of {}", all.len())
    } else {
        roost_views::words::count(all.len() as u64, "decision", "decisions")
    };
    Ok(Block::table(
        "decisions",
        Table {
            above: "<h2>Decisions</h2>".to_owned(),
            columns: fixed(DecisionRow::COLUMNS),
            rows: rows.collect::<Result<_, askama::Error>>()?,
            below,
        },
    ))
}
