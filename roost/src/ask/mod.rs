//! Commands that ask a running service and print what it says.

mod args;
mod client;
mod decisions;
mod explain;
mod jobs;
mod pools;
mod status;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod vms;
mod waterfall;
mod words;

use std::io::{IsTerminal as _, stdout};

use anyhow::Context as _;
use roost_console::views::{DecisionQuery, JobDetail, Overview};
use roost_hatchery::config::SystemSurroundings;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use self::args::Ask;
pub(crate) use self::words::clean;

use self::client::{AskError, Client};
use self::target::Target;
use crate::output::say;

pub(crate) async fn run(ask: Ask) -> anyhow::Result<()> {
    let target = Target::find(ask.asking(), &SystemSurroundings)?;
    let client = Client::new(target)?;
    let answer = client.get(&path(&ask), &query(&ask)).await?;
    if ask.asking().json {
        let mut text = serde_json::to_string_pretty(&answer).context("writing JSON")?;
        text.push('\n');
        say(&text);
        return Ok(());
    }
    let width = width();
    let now = async || client.get(&["overview"], &[]).await.and_then(read::<Overview>);
    let lines = match ask {
        Ask::Status(_) => status::render(&read(answer)?, width),
        Ask::Jobs(_) => jobs::render(read(answer)?, width),
        Ask::Vms(_) => vms::render(read(answer)?, now().await?.now, width),
        Ask::Pools(_) => pools::render(read(answer)?, width),
        Ask::Decisions(_) => decisions::render(&read::<Vec<_>>(answer)?, now().await?.now, width),
        Ask::Explain(_) => explain::render(&read::<JobDetail>(answer)?, now().await?.now, width),
    };
    say(&words::page(&lines));
    Ok(())
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, AskError> {
    serde_json::from_value(answer).map_err(|source| AskError::Unreadable { source })
}

/// Below `/api/v1`.
fn path(ask: &Ask) -> Vec<&str> {
    match ask {
        Ask::Status(_) => vec!["overview"],
        Ask::Jobs(_) => vec!["jobs"],
        Ask::Vms(_) => vec!["vms"],
        Ask::Pools(_) => vec!["pools"],
        Ask::Decisions(_) => vec!["decisions"],
        Ask::Explain(explain) => vec!["jobs", &explain.job],
    }
}

fn query(ask: &Ask) -> Vec<(&'static str, String)> {
    let Ask::Decisions(decisions) = ask else { return Vec::new() };
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
