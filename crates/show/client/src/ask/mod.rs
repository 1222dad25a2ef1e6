//! Commands that ask a running service and print what it says.

mod args;
mod client;
mod colour;
mod decisions;
mod explain;
mod pick;
mod pools;
mod requests;
mod status;
mod table;
mod target;
mod targets;
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
use roost_views::foreign::escaped_json;
use roost_views::{
    DecisionQuery, DecisionView, Overview, PoolView, RequestDetail, RequestView, VmDetail, VmView,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::args::{Ask, Reach};
pub(crate) use self::client::{AskError, Client, Told};
pub(crate) use self::explain::{gates, render as explain_request};
pub(crate) use self::pick::Row;
pub(crate) use self::status::needs;
pub use self::target::{ServiceAddress, Surroundings};
pub(crate) use self::vm::render as explain_vm;

pub(crate) use self::words::{clean, memory, span};

use self::args::{Asking, Decisions, Output, Picking};
use self::pick::table;
use self::target::Target;
use crate::output::deliver;

/// In the place of a door's name: whichever knows the request.
pub(crate) const ANY_DOOR: &str = "-";

pub async fn run(ask: Ask, surroundings: &dyn Surroundings) -> anyhow::Result<()> {
    if let Ask::Status(status) = &ask
        && status.all
    {
        let all = targets::status(surroundings, &status.asking).await?;
        return say(all, status.asking.output());
    }
    let client = Client::find(&ask.asking().reach, surroundings)?;
    if let Some(every) = ask.asking().watch {
        return watch::run(every, async || answer(&ask, &client).await).await;
    }
    say(answer(&ask, &client).await?, ask.asking().output())
}

fn say(answer: Answer, output: Output) -> anyhow::Result<()> {
    match answer {
        Answer::Data(data) if output == Output::Yaml => {
            // What is not printable is escaped as in JSON, which is YAML as well.
            let text = serde_saphyr::to_string(&data).context("writing YAML")?;
            deliver(&format!("{}\n", crate::output::printable(text.trim_end())))?;
        }
        Answer::Data(json) => {
            let text = serde_json::to_string_pretty(&json).context("writing JSON")?;
            deliver(&format!("{}\n", escaped_json(&text)))?;
        }
        Answer::Page(page) => deliver(&colour::page(&page.lines))?,
    }
    Ok(())
}

impl Client {
    /// Of the service that the command line and the surroundings name.
    pub(crate) fn find(reach: &Reach, surroundings: &dyn Surroundings) -> anyhow::Result<Self> {
        Ok(Self::new(Target::find(reach, surroundings)?)?)
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
    Data(Value),
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
            if asking.is_data() {
                return Ok(Answer::Data(overview));
            }
            if asking.output() == Output::Name {
                let overview: Overview = read(overview)?;
                return Ok(Answer::Page(Page::new(vec![overview.service])));
            }
            let steering = client.read(&["steering"], &[]).await?;
            Ok(Answer::Page(Page::new(status::render(&read(overview)?, &steering, width(asking)))))
        }
        Ask::Requests(args) => {
            let told = client.get_at(&["requests"], &[]).await?;
            list(told, asking, &args.picking, |request: &RequestView| args.wants(request))
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
        Ask::Explain(args) => explain(client, args.meant(), asking).await,
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
    if !asking.is_data() {
        rows.sort_by(|(a, _), (b, _)| a.usual(b));
    }
    rows.retain(|(row, _)| wants(row));
    let rows = picking.pick(rows, now)?;
    Ok(match asking.output() {
        Output::Json | Output::Yaml => {
            Answer::Data(rows.into_iter().map(|(_, said)| said).collect())
        }
        Output::Name => Answer::Page(Page::new(rows.iter().map(|(row, _)| row.name()).collect())),
        Output::Table | Output::Wide => {
            let mut lines = table(rows.iter().map(|(row, _)| row), now, width(asking));
            if asking.no_headers {
                // Without rows, what stands there is said to people.
                lines.remove(0);
            }
            let ends_with_news = T::IS_LATEST_LAST && picking.sort.is_none();
            Answer::Page(Page { lines, ends_with_news })
        }
    })
}

/// A request of any door by its id, or else a VM by its name or id; with a kind, only what is of it.
async fn explain(
    client: &Client,
    (subject, nouns): (&str, Option<String>),
    asking: &Asking,
) -> Result<Answer, AskError> {
    let told = match nouns.as_deref() {
        Some("vms") => return of_vm(client.get_at(&["vms", subject], &[]).await?, asking),
        Some(nouns) => client.get_at(&[nouns, subject], &[]).await?,
        None => match client.get_at(&["requests", ANY_DOOR, subject], &[]).await {
            Err(no_request @ AskError::Refused { .. }) => {
                let vm = client.get_at(&["vms", subject], &[]).await;
                return of_vm(vm.map_err(|_| no_request)?, asking);
            }
            told => told?,
        },
    };
    if asking.is_data() {
        return Ok(Answer::Data(told.said));
    }
    let now = told.now();
    let detail = read::<RequestDetail>(told.said)?;
    if asking.output() == Output::Name {
        return Ok(Answer::Page(Page::new(vec![detail.request.id.id])));
    }
    Ok(Answer::Page(Page::new(explain::render(&detail, now, width(asking)))))
}

fn of_vm(told: Told, asking: &Asking) -> Result<Answer, AskError> {
    if asking.is_data() {
        return Ok(Answer::Data(told.said));
    }
    let now = told.now();
    let detail = read::<VmDetail>(told.said)?;
    if asking.output() == Output::Name {
        return Ok(Answer::Page(Page::new(vec![detail.vm.name])));
    }
    Ok(Answer::Page(Page::new(vm::render(&detail, now, width(asking)))))
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, AskError> {
    serde_json::from_value(answer).map_err(|source| AskError::Unreadable { source })
}

fn query(decisions: &Decisions) -> Vec<(&'static str, String)> {
    let DecisionQuery { subject, verdict, bound_by, events, after, limit } = decisions.query();
    let given = [
        ("subject", subject),
        ("verdict", verdict),
        ("bound_by", bound_by),
        ("events", events.then(|| "true".to_owned())),
        ("after", after.map(|after| after.to_string())),
        ("limit", limit.map(|limit| limit.to_string())),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// How wide a line may be; `None` where nobody looks at the screen, such as a file or another program.
fn width(asking: &Asking) -> Option<usize> {
    if asking.output() == Output::Wide || !stdout().is_terminal() {
        return None;
    }
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or_else(|| Some(terminal_size::terminal_size()?.0.0.into())).filter(|width| *width > 0)
}
