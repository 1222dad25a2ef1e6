//! The demo in a terminal.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use roost_console::views::DecisionQuery;
use tokio::sync::watch;

use super::report::Report;
use super::stage::{Stage, Tally};
use crate::terminal::{Count, Mood, Picture, Screen, Seen, clock_time, duration_words};

/// What does not change while it runs.
#[derive(Debug, Clone)]
pub(super) struct Bill {
    pub(super) seed: u64,
    pub(super) speed: String,
    pub(super) url: String,
    pub(super) chaos: bool,
    pub(super) keep: bool,
}

/// Shows the demo until it ends or somebody has seen enough. Blocks.
pub(super) fn watch(
    stage: &Stage,
    bill: &Bill,
    report: &watch::Receiver<Option<Arc<Report>>>,
    closing: &watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let mut screen = Screen::take().context("taking the terminal")?;
    loop {
        let is_over = report.borrow().is_some();
        let has_died = !is_over && report.has_changed().is_err();
        if *closing.borrow() || has_died || (is_over && !bill.keep) {
            return Ok(());
        }
        if screen.show(&bill.picture(stage, is_over)).context("drawing")? == Seen::Enough {
            return Ok(());
        }
    }
}

impl Bill {
    fn picture(&self, stage: &Stage, is_over: bool) -> Picture {
        let overview = stage.source.overview();
        let newest = DecisionQuery { limit: Some(Picture::DECISIONS), ..DecisionQuery::default() };
        let since = overview.now.duration_since(overview.started);
        let since = duration_words(Duration::try_from(since).unwrap_or_default());
        let mut facts = vec![
            format!("{} simulated", clock_time(overview.now)),
            self.url.clone(),
            format!("seed {}", self.seed),
            self.speed.clone(),
        ];
        if self.chaos {
            facts.push("chaos".to_owned());
        }
        facts.push(format!("{since} so far"));
        let hint = match (is_over, self.keep) {
            (true, _) => "all jobs are done; q ends it and prints the summary",
            (false, true) => "q ends it; it stays after the last job",
            (false, false) => "q ends it",
        };
        Picture {
            title: "roost demo".to_owned(),
            facts,
            jobs: counts(stage.tally()),
            overview,
            decisions: stage.source.decisions(&newest),
            hint: hint.to_owned(),
        }
    }
}

fn counts(tally: Tally) -> Vec<Count> {
    let count = |name, number, mood| Count { name, number, mood };
    vec![
        count("done", tally.done, Mood::Good),
        count("running", tally.running, Mood::Busy),
        count("starting", tally.starting, Mood::Busy),
        count("waiting", tally.waiting, Mood::Waiting),
        count("refused", tally.refused, Mood::Bad),
        count("failed", tally.failed, Mood::Bad),
        count("to come", tally.to_come, Mood::Quiet),
    ]
}
