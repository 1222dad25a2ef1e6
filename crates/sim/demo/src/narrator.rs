//! The demo as lines of text, for where there is no terminal. It runs in the simulation itself, so a seed says the same lines every time.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use roost_views::{DecisionQuery, DecisionView, Verdict};
use tokio::time::{Instant, sleep};

use super::stage::{Stage, Tally};
use roost_client::say;
use roost_client::terminal::{clock_time, shortened, subject_words};

const LOOK: Duration = Duration::from_secs(1);
const PROGRESS_EVERY: Duration = Duration::from_mins(1);
/// The gist of a decision; `roost explain` and the web page have all of it.
const LONGEST: usize = 150;

/// Tells every notable decision, and how far it is from time to time.
pub(super) async fn narrate(stage: Stage) {
    let (mut told, mut progress) = (Told::default(), Instant::now());
    loop {
        let query = DecisionQuery { after: Some(told.last), ..DecisionQuery::default() };
        for decision in stage.house.decisions(&query) {
            if told.is_news(&decision) {
                say(&format!("{}\n", shortened(&Line(&decision).to_string(), LONGEST)));
            }
        }
        if progress.elapsed() >= PROGRESS_EVERY {
            progress = Instant::now();
            let now = stage.house.now();
            say(&format!("{}\n", Progress(now, stage.tally())));
        }
        sleep(LOOK).await;
    }
}

/// What was said before.
#[derive(Debug, Default)]
struct Told {
    last: u64,
    /// Who waits, and for what.
    waits: BTreeSet<(String, Option<String>)>,
}

impl Told {
    /// What is decided again and again was told the first time; that something stays as it is is no news, and a job whose VM is gone was told of with its
    /// VM.
    fn is_news(&mut self, decision: &DecisionView) -> bool {
        self.last = self.last.max(decision.seq);
        match decision.verdict {
            Verdict::Kept | Verdict::Skipped | Verdict::Finished => false,
            Verdict::Deferred => {
                let wait = (decision.subject.clone(), decision.bound_by.clone());
                self.waits.insert(wait)
            }
            _ => decision.times == 1,
        }
    }
}

struct Line<'a>(&'a DecisionView);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decision = self.0;
        write!(f, "{}  {:<9} ", clock_time(decision.at), decision.verdict.as_str())?;
        write!(
            f,
            "{} {}: {}",
            decision.subject_kind.as_str(),
            subject_words(decision),
            decision.reason
        )
    }
}

struct Progress(Timestamp, Tally);

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { to_come, waiting, starting, running, done, failed, refused } = self.1;
        write!(
            f,
            "{}  --        {done} done, {running} running, {starting} starting, {waiting} waiting, {refused} refused, {failed} failed, {to_come} to come",
            clock_time(self.0)
        )
    }
}

#[cfg(test)]
mod tests {
    use roost_views::SubjectKind;

    use super::*;

    fn decision(verdict: Verdict, times: u32) -> DecisionView {
        let at: Timestamp = "2026-01-01T10:02:03Z".parse().unwrap();
        DecisionView {
            seq: 1,
            at,
            door: "hatchery".into(),
            subject_kind: SubjectKind::Request("job".into()),
            subject: "42".into(),
            subject_name: None,
            verdict,
            reason: "flavor gigantic is not known".into(),
            bound_by: None,
            gates: vec![],
            next_look: None,
            vm: None,
            times,
            since: at,
        }
    }

    #[test]
    fn a_decision_is_one_line_and_said_once() {
        let refused = decision(Verdict::Refused, 1);
        let line = "10:02:03  refused   job 42: flavor gigantic is not known";
        assert_eq!(Line(&refused).to_string(), line);
        let mut told = Told::default();
        assert!(told.is_news(&refused));
        assert!(
            !told.is_news(&decision(Verdict::Refused, 2))
                && !told.is_news(&decision(Verdict::Kept, 1))
        );
        assert!(told.is_news(&decision(Verdict::Deferred, 1)), "why it waits");
        assert!(
            !told.is_news(&decision(Verdict::Deferred, 1)),
            "it waits for the same thing again"
        );
    }

    #[test]
    fn progress_names_every_place_that_a_job_can_be_in() {
        let tally = Tally {
            to_come: 1,
            waiting: 2,
            starting: 3,
            running: 4,
            done: 5,
            failed: 6,
            refused: 7,
        };
        let said = Progress("2026-01-01T10:02:03Z".parse().unwrap(), tally).to_string();
        let wanted = "10:02:03  --        5 done, 4 running, 3 starting, 2 waiting, 7 refused, 6 failed, 1 to come";
        assert_eq!(said, wanted);
    }
}
