//! A request: why it is as it is, and what it waited for until its VM did what it is for.

use askama::Template;
use jiff::Timestamp;
use roost_door::{DoorWords, House, Links};
use roost_views::words::{Style, secs, short_id, title};
use roost_views::{DecisionView, OutcomeView, RequestDetail, RequestView};

use super::block::{Block, Html, Row, Table, fixed};
use super::foreign::{Name, Words, part};
use super::shown::{Button, Copy, DecisionRow, Fact, Gates, Ways, When, vm_href};
use super::{outlook, waterfall};

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
    let door = house.doors.iter().find(|door| door.words() == *words);
    let pauses = door.is_some_and(|door| door.pauses_requests());
    let subject = Subject::new(house, words, detail, last, pauses);
    // What came of it may have been said without gates; then those before it tell how it got there.
    let weighed = detail.decisions.iter().rev().find(|decision| !decision.gates.is_empty());
    Ok(vec![
        Block::whole("subject", subject.render()?),
        Block::whole("outlook", outlook::render(detail.outlook.as_ref(), &Ways::of(house))?),
        Block::whole("gates", Explained::new(weighed, &house.links).render()?),
        Block::whole("waterfall", waterfall::of_request(&steps, detail.request.queued, now)?),
        decisions(&detail.decisions, &Ways::of(house))?,
    ])
}

#[derive(Template)]
#[template(path = "request.html")]
struct Subject<'a> {
    noun: String,
    name: Name<'a>,
    /// HTML.
    whole_id: String,
    state: &'static str,
    mood: &'static str,
    last: Option<Last<'a>>,
    facts: Vec<Fact>,
    buttons: Vec<Button>,
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
    fn new(
        house: &House,
        words: &DoorWords,
        detail: &'a RequestDetail,
        last: Option<&'a DecisionView>,
        pauses: bool,
    ) -> Self {
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
            request
                .outcome
                .as_ref()
                .and_then(|it| it.ended)
                .map(|at| Fact::new("Ended", &When::at(at))),
            request.outcome.as_ref().and_then(ran),
            Fact::text(title(words.group), request.project.as_deref()),
            Fact::elsewhere("Elsewhere", outside(house, request), "Open where it comes from"),
        ];
        let vm = request.vm.as_deref().map(|vm| Fact::link("VM", &vm_href(vm), vm));
        let facts = facts.into_iter().flatten().chain(Fact::of_door(&request.facts)).chain(vm);
        let standing = request.state;
        Self {
            noun: title(words.noun),
            name: Name(short_id(id)),
            whole_id: format!("{} {}", Words(id), Copy(id)),
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
            buttons: buttons(words, id, pauses),
        }
    }
}

fn buttons(words: &DoorWords, id: &str, pauses: bool) -> Vec<Button> {
    let button = |action: &str, called: &'static str, confirm: String| Button {
        post: format!("/api/v1/{}/{}/{action}", words.path(), part(id)),
        words: called.into(),
        confirm,
        with: "{}",
        is_grave: false,
    };
    let noun = words.noun;
    let again = format!("Look at {noun} {id} anew and forget how often it was tried?");
    let mut all = vec![button("recheck", "Look again now", again)];
    if pauses {
        let pause = format!("Leave {noun} {id} and its VM as they are?");
        all.push(button("pause", "Pause", pause));
        all.push(button("resume", "Resume", format!("Work at {noun} {id} again?")));
    }
    all
}

fn ran(outcome: &OutcomeView) -> Option<Fact> {
    let ran = outcome.ran_secs.map(|ran| format!("{}, ", secs(ran, Style::Long)));
    let words = format!("{}{}", ran.unwrap_or_default(), outcome.result);
    Fact::text("Ran", Some(&words))
}

/// Where the request comes from, by the template of the configuration.
fn outside(house: &House, request: &RequestView) -> Option<String> {
    Links::fill(house.links.requests.get(&request.id.door), |name| match name {
        "id" => Some(request.id.id.clone()),
        "project" => request.project.clone(),
        other => request.facts.get(other).map(str::to_owned),
    })
}

#[derive(Template)]
#[template(path = "explained.html")]
struct Explained<'a> {
    gates: Option<Gates<'a>>,
    at: Option<When>,
}

impl<'a> Explained<'a> {
    fn new(weighed: Option<&'a DecisionView>, links: &Links) -> Self {
        Self {
            gates: weighed.map(|decision| Gates::new(&decision.gates).explained(links)),
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
