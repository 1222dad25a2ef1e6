//! Commands that ask a running service and print what it says.

mod args;
mod client;
mod decisions;
mod explain;
mod pick;
mod pools;
mod requests;
mod status;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod trust;
mod vm;
mod vms;
mod watch;
mod waterfall;
mod words;

use std::io::{IsTerminal as _, stdout};

use anyhow::Context as _;
use roost_hatchery::config::SystemSurroundings;
use roost_views::foreign::escaped_json;
use roost_views::{
    DecisionQuery, DecisionView, PoolView, RequestDetail, RequestView, VmDetail, VmView,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use self::args::{Ask, Reach};
pub(crate) use self::client::{AskError, Client, Told};
pub(crate) use self::explain::{gates, render as explain_request};
pub(crate) use self::pick::Row;
pub(crate) use self::vm::render as explain_vm;
pub(crate) use self::words::{clean, memory, span};

use self::args::{Asking, Decisions, Picking};
use self::pick::table;
use self::target::Target;
use crate::output::deliver;

/// In the place of a door's name: whichever knows the request.
pub(crate) const ANY_DOOR: &str = "-";

pub(crate) async fn run(ask: Ask) -> anyhow::Result<()> {
    let client = Client::find(&ask.asking().reach)?;
    if let Some(every) = ask.asking().watch {
        return watch::run(every, async || answer(&ask, &client).await).await;
    }
    match answer(&ask, &client).await? {
        Answer::Json(json) => {
            let text = serde_json::to_string_pretty(&json).context("writing JSON")?;
            deliver(&format!("{}\n", escaped_json(&text)))?;
        }
        Answer::Page(page) => deliver(&words::page(&page.lines))?,
    }
    Ok(())
}

impl Client {
    /// Of the service that the command line and the surroundings name.
    pub(crate) fn find(reach: &Reach) -> anyhow::Result<Self> {
        Ok(Self::new(Target::find(reach, &SystemSurroundings)?)?)
    }

    /// What is there, read.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&'static str, String)],
    ) -> Result<T, AskError> {
        read(self.get(path, query).await?)
    }
}

/// What a service said, as it was asked for.
#[derive(Debug)]
enum Answer {
    Json(Value),
    Page(Page),
}

/// Lines for people.
#[derive(Debug)]
struct Page {
    lines: Vec<String>,
    /// What is new is in the last line, and of more than a screen that end is kept.
    ends_with_news: bool,
}

impl Page {
    fn new(lines: Vec<String>) -> Self {
        Self { lines, ends_with_news: false }
    }

    /// As many of them as there is room for, with a word on those that are left out. The first line stays: it has the titles.
    fn fitted(&self, room: usize) -> Vec<String> {
        let lines = &self.lines;
        if lines.len() <= room {
            return lines.clone();
        }
        if self.ends_with_news && room >= 3 {
            let kept = room - 2;
            let left_out = format!("... {} earlier lines", lines.len() - 1 - kept);
            let newest = lines[lines.len() - kept..].iter().cloned();
            return lines[..1].iter().cloned().chain([left_out]).chain(newest).collect();
        }
        let kept = room.saturating_sub(1);
        let left_out = format!("... and {} more lines", lines.len() - kept);
        lines[..kept].iter().cloned().chain([left_out]).collect()
    }
}

async fn answer(ask: &Ask, client: &Client) -> Result<Answer, AskError> {
    let asking = ask.asking();
    match ask {
        Ask::Status(_) => {
            let overview = client.get(&["overview"], &[]).await?;
            if asking.json {
                return Ok(Answer::Json(overview));
            }
            let steering = client.read(&["steering"], &[]).await?;
            Ok(Answer::Page(Page::new(status::render(&read(overview)?, &steering, width()))))
        }
        Ask::Jobs(args) => {
            let told = client.get_at(&["requests"], &[]).await?;
            list(told, asking, &args.picking, |job: &RequestView| args.wants(job))
        }
        Ask::Vms(args) => {
            let told = client.get_at(&["vms"], &[]).await?;
            list(told, asking, &args.picking, |vm: &VmView| args.wants(vm))
        }
        Ask::Pools(args) => {
            let told = client.get_at(&["pools"], &[]).await?;
            list(told, asking, &args.picking, |pool: &PoolView| args.wants(pool))
        }
        Ask::Decisions(args) => {
            let told = client.get_at(&["decisions"], &query(args)).await?;
            list(told, asking, &args.picking, |decision: &DecisionView| args.wants(decision))
        }
        Ask::Explain(args) => explain(client, &args.subject, asking).await,
    }
}

/// Of all that the service has, the rows that are wanted in the order that is wanted.
fn list<T: Row>(
    told: Told,
    asking: &Asking,
    picking: &Picking,
    wants: impl Fn(&T) -> bool,
) -> Result<Answer, AskError> {
    let now = told.now();
    let mut rows = pick::read::<T>(told.said)?;
    if !asking.json {
        rows.sort_by(|(a, _), (b, _)| a.usual(b));
    }
    rows.retain(|(row, _)| wants(row));
    let rows = picking.pick(rows, now)?;
    Ok(if asking.json {
        Answer::Json(rows.into_iter().map(|(_, said)| said).collect())
    } else {
        let lines = table(rows.iter().map(|(row, _)| row), now, width());
        Answer::Page(Page { lines, ends_with_news: T::IS_LATEST_LAST && picking.sort.is_none() })
    })
}

/// A request of any door by its id, or else a VM by its name or id.
async fn explain(client: &Client, subject: &str, asking: &Asking) -> Result<Answer, AskError> {
    let told = match client.get_at(&["requests", ANY_DOOR, subject], &[]).await {
        Err(no_request @ AskError::Refused { .. }) => {
            let vm = client.get_at(&["vms", subject], &[]).await;
            let Ok(told) = vm else { return Err(no_request) };
            if asking.json {
                return Ok(Answer::Json(told.said));
            }
            let now = told.now();
            let detail = read::<VmDetail>(told.said)?;
            return Ok(Answer::Page(Page::new(vm::render(&detail, now, width()))));
        }
        told => told?,
    };
    if asking.json {
        return Ok(Answer::Json(told.said));
    }
    let now = told.now();
    let detail = read::<RequestDetail>(told.said)?;
    Ok(Answer::Page(Page::new(explain::render(&detail, now, width()))))
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, AskError> {
    serde_json::from_value(answer).map_err(|source| AskError::Unreadable { source })
}

fn query(decisions: &Decisions) -> Vec<(&'static str, String)> {
    let DecisionQuery { subject, verdict, bound_by, after, limit } = decisions.query();
    let given = [
        ("subject", subject),
        ("verdict", verdict),
        ("bound_by", bound_by),
        ("after", after.map(|after| after.to_string())),
        ("limit", limit.map(|limit| limit.to_string())),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// How wide a line may be; `None` where nobody looks at the screen, such as a file or another program.
fn width() -> Option<usize> {
    if !stdout().is_terminal() {
        return None;
    }
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or_else(|| Some(terminal_size::terminal_size()?.0.0.into())).filter(|width| *width > 0)
}
