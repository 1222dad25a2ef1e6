//! A job: why it is as it is, and what it waited for until its script started.

use askama::Template;
use jiff::Timestamp;

use super::block::{Block, Html, Row, Table};
use super::foreign::{Name, Words, part};
use super::jobs::{state_mood, state_words};
use super::shown::{Button, DecisionRow, Fact, Gates, When, mood, vm_href};
use super::waterfall::Waterfall;
use super::words::{secs, short_id};
use crate::Source;
use crate::views::{DecisionView, JobDetail, JobState};

pub(super) fn blocks(
    source: &dyn Source,
    detail: &JobDetail,
    now: Timestamp,
) -> Result<Vec<Block>, askama::Error> {
    let steps = match (&detail.vm, &detail.job.vm) {
        (Some(vm), _) => vm.timeline.clone(),
        (None, Some(name)) => source.timeline(name),
        (None, None) => Vec::new(),
    };
    let waterfall = Waterfall::of_job(&steps, detail.job.queued, now);
    let last = detail.decisions.last();
    // What came of it may have been said without gates; then those before it tell how it got there.
    let weighed = detail.decisions.iter().rev().find(|decision| !decision.gates.is_empty());
    Ok(vec![
        Block::whole("subject", Subject::new(detail, last).render()?),
        Block::whole("gates", Explained::new(weighed).render()?),
        Block::whole("waterfall", waterfall.map(|it| it.render()).transpose()?.unwrap_or_default()),
        decisions(&detail.decisions)?,
    ])
}

#[derive(Template)]
#[template(path = "job.html")]
struct Subject<'a> {
    name: Name<'a>,
    whole_id: Words<'a>,
    state: &'static str,
    mood: &'static str,
    last: Option<Last<'a>>,
    facts: Vec<Fact>,
    recheck: Button,
}

struct Last<'a> {
    verdict: &'a str,
    mood: &'static str,
    reason: Words<'a>,
    bound_by: Option<Name<'a>>,
    next_look: Option<Words<'a>>,
    since: When,
    times: u32,
}

impl<'a> Subject<'a> {
    fn new(detail: &'a JobDetail, last: Option<&'a DecisionView>) -> Self {
        let job = &detail.job;
        let is_open = matches!(job.state, JobState::Waiting | JobState::Starting);
        let waited = match (job.queued, is_open) {
            (Some(queued), true) => Some(Fact::new("Waits for", &When::ago(queued))),
            _ => job.waited_secs.map(|waited| Fact::new("Waited", &secs(waited))),
        };
        let facts = [
            job.queued.map(|at| Fact::new("Queued", &When::at(at))),
            waited,
            Fact::text("Project", job.project.as_deref()),
            Fact::text("Workflow", job.workflow.as_deref()),
            Fact::text("Model", job.model.as_deref()),
            Fact::text("Flavor", job.flavor.as_deref()),
            job.vm.as_deref().map(|vm| Fact::link("VM", &vm_href(vm), vm)),
            Some(Fact::new("CDS queue", &job.protocol.as_str())),
        ];
        Self {
            name: Name(short_id(&job.id)),
            whole_id: Words(&job.id),
            state: state_words(job),
            mood: state_mood(job),
            last: last.map(|decision| Last {
                verdict: &decision.verdict,
                mood: mood(&decision.verdict),
                reason: Words(&decision.reason),
                bound_by: decision.bound_by.as_deref().map(Name),
                next_look: decision.next_look.as_deref().map(Words),
                since: When::at(decision.since),
                times: decision.times,
            }),
            facts: facts.into_iter().flatten().collect(),
            recheck: Button {
                post: format!("/api/v1/jobs/{}/recheck", part(&job.id)),
                words: "Look again now",
                confirm: format!(
                    "Ask CDS about job {} anew and forget how often it was tried?",
                    job.id
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
pub(super) fn decisions(all: &[DecisionView]) -> Result<Block, askama::Error> {
    const SHOWN: usize = 50;
    let newest = all.iter().rev().take(SHOWN);
    let rows = newest.map(|decision| {
        Ok(Row { key: decision.seq.to_string(), html: DecisionRow::new(decision).render()? })
    });
    let below = if all.len() > SHOWN {
        format!("the last {SHOWN} of {}", all.len())
    } else {
        super::words::count(all.len() as u64, "decision", "decisions")
    };
    Ok(Block::table(
        "decisions",
        Table {
            above: "<h2>Decisions</h2>".to_owned(),
            columns: DecisionRow::COLUMNS,
            rows: rows.collect::<Result<_, askama::Error>>()?,
            below,
        },
    ))
}
