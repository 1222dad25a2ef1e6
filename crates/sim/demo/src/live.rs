//! The demo in a terminal.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use roost_door::{Action, Order, Person, Shown};
use roost_views::{DecisionQuery, Overview};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::report::Report;
use super::stage::{Stage, Tally};
use roost_client::terminal::{
    self, Audience, Count, Detail, Look, Mood, Opened, Origin, Picture, Said, clock_time,
    duration_words,
};

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
    let is_over = || report.borrow().is_some();
    let has_ended = |audience| {
        let has_died = !is_over() && report.has_changed().is_err();
        // Nothing is taken away from somebody who is reading it.
        let may_go = !bill.keep && audience == Audience::LooksOn && !stage.is_looked_at();
        *closing.borrow() || has_died || (is_over() && may_go)
    };
    let mut onstage =
        Onstage { stage, bill, report, runtime: Handle::current(), said: Arc::default() };
    terminal::watch(&mut onstage, has_ended).context("the terminal")
}

/// The demo, which is in this process: nobody is waited for.
struct Onstage<'a> {
    stage: &'a Stage,
    bill: &'a Bill,
    report: &'a watch::Receiver<Option<Arc<Report>>>,
    runtime: Handle,
    said: Arc<Mutex<Option<Said>>>,
}

impl Origin for Onstage<'_> {
    fn look(&mut self, opened: Option<&Opened>) -> Look {
        let house = &self.stage.house;
        let detail = opened.and_then(|opened| match opened {
            Opened::Request(id) => Some(house.request(id).map_or_else(
                || Detail::Nothing(format!("{id} is not known")),
                |request| Detail::Request(Box::new(request)),
            )),
            Opened::Vm(name) => Some(house.vm(name).map_or_else(
                || Detail::Nothing(format!("VM {name} is gone")),
                |vm| Detail::Vm(Box::new(vm)),
            )),
            Opened::Decision(_) | Opened::Needs => None,
        });
        Look {
            picture: self.bill.picture(self.stage, self.report.borrow().is_some()),
            requests: house.requests(),
            vms: house.vms(),
            detail,
            said: self.said.lock().unwrap_or_else(PoisonError::into_inner).take(),
        }
    }

    fn may_act(&self) -> Result<(), String> {
        Ok(())
    }

    fn order(&mut self, action: Action) {
        // Whoever sits here could read the token from the first line that the demo said.
        let by = Person { shown: Shown::Token, from: Ipv4Addr::LOCALHOST.into() };
        let order = Order { action, by, reason: None };
        let (house, said) = (Arc::clone(&self.stage.house), Arc::clone(&self.said));
        self.runtime.spawn(async move {
            let came = match house.act(order).await {
                Ok(words) => Said { is_done: true, words },
                Err(refused) => Said { is_done: false, words: refused.to_string() },
            };
            *said.lock().unwrap_or_else(PoisonError::into_inner) = Some(came);
        });
    }
}

impl Bill {
    fn picture(&self, stage: &Stage, is_over: bool) -> Picture {
        let overview = stage.house.overview();
        let newest = DecisionQuery { limit: Some(Picture::DECISIONS), ..DecisionQuery::default() };
        let since = overview.now.duration_since(overview.started);
        let since = duration_words(Duration::try_from(since).unwrap_or_default());
        let demo = stage.house.demonstration.as_ref();
        let mut facts = vec![
            clock_time(overview.now),
            self.url.clone(),
            demo.map_or_else(|| self.speed.clone(), |demo| demo.pace()),
            demo.map_or_else(String::new, |demo| format!("token {}", demo.token())),
            format!("seed {}", self.seed),
        ];
        if self.chaos {
            facts.push("chaos".to_owned());
        }
        facts.push(format!("{since} so far"));
        let hint = match (is_over, self.keep) {
            (true, _) => "all jobs are done; q ends it",
            (false, true) => "q ends it; it stays after the last job",
            (false, false) => "q ends it",
        };
        Picture {
            title: "roost demo".to_owned(),
            facts,
            counts: counts(&overview, stage.tally()),
            overview,
            steering: stage.house.steering(),
            decisions: stage.house.decisions(&newest),
            ends_with_view: !is_over,
            history: stage.house.history.view(60),
            hint: hint.to_owned(),
            lost: None,
        }
    }
}

/// As on the page, and what CDS makes of the jobs.
fn counts(overview: &Overview, tally: Tally) -> Vec<Count> {
    let count = |name, number, mood| Count { name, number, mood };
    let standing = overview.queue.in_order().into_iter();
    let mut counts: Vec<Count> =
        standing.map(|(state, number)| count(state.as_str(), number, state.mood())).collect();
    counts.push(count("done", tally.done, Mood::Good));
    if tally.failed > 0 {
        counts.push(count("failed", tally.failed, Mood::Bad));
    }
    counts.push(count("to come", tally.to_come, Mood::Quiet));
    counts
}
