//! What is recorded of jobs that do not start now, and told to those who wait for them.

use std::sync::Arc;
use std::time::Duration;

use roost_cds::{JobId, v2};
use roost_fleet::{Draft, NextLook, Subject};
use roost_supervise::{Chain, Tasks};

use super::about::About;
use super::recorder::Recorder;
use crate::door::HATCHERY;
use crate::planted::{self, Bug};
use crate::refusal::Refusal;
use crate::time::elapsed;

/// The same refusal is written again after this long.
const REPEATED: Duration = Duration::from_secs(20);

pub(super) fn subject(id: &JobId) -> Subject {
    HATCHERY.about_request(id.to_string())
}

/// Says of jobs why they wait.
#[derive(Debug)]
pub(in crate::run) struct Verdicts {
    pub(in crate::run) about: Arc<About>,
    pub(in crate::run) cds: roost_cds::Client,
    pub(in crate::run) recorder: Arc<Recorder>,
}

impl Verdicts {
    pub(super) fn record_refusal(self: &Arc<Self>, tasks: &Tasks, id: &JobId, refusal: &Refusal) {
        let draft = Draft::new(subject(id), refusal.decided(), refusal.to_string())
            .gates(vec![refusal.gate()])
            .next_look(NextLook::OnChange);
        if self.note(id, draft, refusal.reason())
            && refusal.is_worth_telling()
            && let JobId::V2(uuid) = id
        {
            let (this, uuid, words) = (Arc::clone(self), uuid.clone(), refusal.to_string());
            tasks.errand("job-message", async move { this.warn_waiting(&uuid, &words).await });
        }
    }

    /// Tells those who wait for a V2 job what only they can change. V1 has no such message.
    async fn warn_waiting(&self, job: &str, words: &str) {
        let Some(client) = self.cds.v2() else { return };
        let message =
            format!("Hatchery {:?} does not start a worker: {words}", self.about.hatchery());
        if let Err(error) = client.add_info(job, v2::InfoLevel::Warning, &message).await {
            tracing::debug!(job, "a message to the job was lost: {}", Chain(&error));
        }
    }

    /// Records a decision, unless it says what was said moments ago. Returns whether it is news.
    pub(super) fn note(&self, id: &JobId, draft: Draft, label: &'static str) -> bool {
        if planted::is(Bug::DecidesSilently) {
            return false;
        }
        let subject = subject(id);
        let before = self.recorder.journal.latest(&subject);
        if let Some(before) = &before
            && draft.says_the_same(before)
            && elapsed(before.at, self.about.now()) < REPEATED
        {
            return false;
        }
        let decision = self.recorder.decide(draft, label);
        decision.times == 1
    }
}
