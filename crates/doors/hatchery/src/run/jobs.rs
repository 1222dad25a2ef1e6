//! The jobs that are known to wait, in the order in which they get their turn.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::{JobId, Protocol};

use crate::job::Job;
use crate::plan::{Candidate, Choice};
use crate::time::{is_ahead, is_recent};

/// A job that two polls in a row did not list waits no more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(45);
/// A model that could not be used is asked for again after this long: somebody may have corrected it.
const ASKED_ANEW_AFTER: Duration = Duration::from_mins(1);
/// No job is put off for longer after a failure of ours.
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// Beyond it the newest are left to later polls.
const MOST_JOBS: usize = 10_000;
/// Jobs that got a worker, for those who ask later.
const REMEMBERED: usize = 4_096;

/// Jobs by id. A job is in it once, however often it is named (W5).
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    known: BTreeMap<JobId, Entry>,
    served: VecDeque<Served>,
}

/// A job that a worker was ordered for.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) job: Arc<Job>,
    pub(crate) worker: Arc<str>,
    pub(crate) model: String,
    pub(crate) flavor: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) state: State,
    /// When it was last named by the queue.
    heard: Timestamp,
    /// When CDS last said what it is.
    answered: Option<Timestamp>,
    /// Not before this time; after a failure of ours.
    pub(crate) not_before: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub(crate) enum State {
    /// Named by the queue; what it is was not asked yet.
    Named,
    /// Somebody asks CDS what it is.
    Asked,
    Waiting(Arc<Candidate>),
    /// A worker is on its way.
    Starting {
        candidate: Arc<Candidate>,
        worker: Arc<str>,
    },
}

impl Entry {
    fn named(now: Timestamp) -> Self {
        Self { state: State::Named, heard: now, answered: None, not_before: None }
    }

    fn is_worth_asking_again(&self, now: Timestamp) -> bool {
        let State::Waiting(candidate) = &self.state else { return false };
        matches!(candidate.model, Choice::Refused(_))
            && self.answered.is_none_or(|at| !is_recent(at, now, ASKED_ANEW_AFTER))
    }
}

impl Jobs {
    /// Notes that the queue named a job. Returns whether somebody should ask what it is.
    pub(crate) fn heard(&mut self, id: &JobId, now: Timestamp) -> bool {
        if let Some(entry) = self.known.get_mut(id) {
            entry.heard = now;
            if entry.is_worth_asking_again(now) {
                entry.state = State::Named;
            }
            return matches!(entry.state, State::Named);
        }
        if self.known.len() >= MOST_JOBS {
            return false;
        }
        self.known.insert(id.clone(), Entry::named(now));
        true
    }

    /// A whole list of what waits: jobs that are not in it, and were not named lately either, wait no more.
    pub(crate) fn polled(&mut self, protocol: Protocol, now: Timestamp) {
        self.known.retain(|id, entry| {
            id.protocol() != protocol
                || matches!(entry.state, State::Asked | State::Starting { .. })
                || is_recent(entry.heard, now, FORGOTTEN_AFTER)
        });
    }

    /// Takes a named job to ask about it; `false` if somebody does already.
    pub(crate) fn ask(&mut self, id: &JobId) -> bool {
        match self.known.get_mut(id) {
            Some(entry) if matches!(entry.state, State::Named) => {
                entry.state = State::Asked;
                true
            }
            _ => false,
        }
    }

    /// Forgets what is known of a job that is not being started, so that it is asked about anew.
    pub(crate) fn ask_again(&mut self, id: &JobId, now: Timestamp) {
        let is_under_way =
            |entry: &Entry| matches!(entry.state, State::Asked | State::Starting { .. });
        if self.known.get(id).is_none_or(|entry| !is_under_way(entry)) {
            self.known.insert(id.clone(), Entry::named(now));
        }
    }

    pub(crate) fn answered(&mut self, id: &JobId, candidate: Candidate, now: Timestamp) {
        if let Some(entry) = self.known.get_mut(id)
            && matches!(entry.state, State::Asked)
        {
            entry.state = State::Waiting(Arc::new(candidate));
            entry.answered = Some(now);
        }
    }

    /// The question was not answered: it is asked again when the queue names the job again.
    pub(crate) fn unanswered(&mut self, id: &JobId) {
        if let Some(entry) = self.known.get_mut(id)
            && matches!(entry.state, State::Asked)
        {
            entry.state = State::Named;
        }
    }

    pub(crate) fn begin(&mut self, id: &JobId, served: Served) {
        if let Some(entry) = self.known.get_mut(id)
            && let State::Waiting(candidate) = &entry.state
        {
            let candidate = Arc::clone(candidate);
            entry.state = State::Starting { candidate, worker: Arc::clone(&served.worker) };
        }
        if self.served.len() >= REMEMBERED {
            self.served.pop_front();
        }
        self.served.push_back(served);
    }

    /// It has its worker, is somebody else's, or is gone. If it still waits, the queue will say so.
    pub(crate) fn remove(&mut self, id: &JobId) {
        self.known.remove(id);
    }

    /// It waits on, and is not tried again before that time.
    pub(crate) fn back_to_wait(&mut self, id: &JobId, not_before: Timestamp) {
        if let Some(entry) = self.known.get_mut(id) {
            if let State::Starting { candidate, .. } = &entry.state {
                entry.state = State::Waiting(Arc::clone(candidate));
            }
            entry.not_before = Some(not_before);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&JobId, &Entry)> {
        self.known.iter()
    }

    /// Newest last.
    pub(crate) fn served(&self) -> impl DoubleEndedIterator<Item = &Served> {
        self.served.iter()
    }

    /// Those that wait and may be tried now, in the order of their turns: the first job of each project, then the second of each, and so on.
    /// Within a turn the project goes first that was served longest ago, then the job that waits longest. A project with a thousand jobs
    /// holds up nobody, and is not held up for ever either.
    pub(crate) fn turns(&self, now: Timestamp) -> Vec<Arc<Candidate>> {
        let mut waiting: Vec<&Arc<Candidate>> = self
            .known
            .values()
            .filter(|entry| !entry.not_before.is_some_and(|at| is_ahead(at, now, LONGEST_WAIT)))
            .filter_map(|entry| match &entry.state {
                State::Waiting(candidate) => Some(candidate),
                State::Named | State::Asked | State::Starting { .. } => None,
            })
            .collect();
        let age = |candidate: &Candidate| candidate.job.queued.unwrap_or(Timestamp::MAX);
        waiting.sort_by_key(|candidate| age(candidate));
        let mut last_served: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, served) in self.served.iter().enumerate() {
            last_served.insert(&served.job.project, at + 1);
        }
        let mut of_project: BTreeMap<&str, usize> = BTreeMap::new();
        let mut turns: Vec<(usize, &Arc<Candidate>)> = waiting
            .into_iter()
            .map(|candidate| {
                let turn = of_project.entry(&candidate.job.project).or_default();
                *turn += 1;
                (*turn, candidate)
            })
            .collect();
        // Stable: what is equal stays in the order of age.
        turns.sort_by_key(|(turn, candidate)| {
            (*turn, last_served.get(&*candidate.job.project).copied().unwrap_or(0))
        });
        turns.into_iter().map(|(_, candidate)| Arc::clone(candidate)).collect()
    }

    /// When the next job that was put off may be tried.
    pub(crate) fn next_time(&self, now: Timestamp) -> Option<Timestamp> {
        self.known.values().filter_map(|entry| entry.not_before).filter(|at| *at > now).min()
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Arc<Candidate>> {
        self.known.values().filter_map(|entry| match &entry.state {
            State::Waiting(candidate) => Some(candidate),
            State::Named | State::Asked | State::Starting { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::ModelRequest;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + secs).unwrap()
    }

    fn candidate(id: i64, project: &str) -> Candidate {
        let job = Job {
            id: JobId::V1(id),
            queued: Some(at(id)),
            project: project.into(),
            workflow: String::new(),
            region: None,
            requirements: Vec::new(),
            model: ModelRequest::Any,
            flavor: None,
            groups: Vec::new(),
        };
        Candidate { job: Arc::new(job), model: Choice::AnyV1 }
    }

    fn waiting(jobs: &mut Jobs, id: i64, project: &str) {
        let id = JobId::V1(id);
        assert!(jobs.heard(&id, at(0)) && jobs.ask(&id));
        let JobId::V1(number) = id else { unreachable!() };
        jobs.answered(&id, candidate(number, project), at(0));
    }

    fn turns(jobs: &Jobs, now: Timestamp) -> Vec<i64> {
        let number = |candidate: Arc<Candidate>| match candidate.job.id {
            JobId::V1(number) => number,
            JobId::V2(_) => unreachable!(),
        };
        jobs.turns(now).into_iter().map(number).collect()
    }

    #[test]
    fn a_project_with_many_jobs_holds_up_nobody_and_is_not_held_up_for_ever() {
        let mut jobs = Jobs::default();
        for id in 1..=4 {
            waiting(&mut jobs, id, "busy");
        }
        waiting(&mut jobs, 5, "small");
        waiting(&mut jobs, 6, "tiny");
        assert_eq!(turns(&jobs, at(10)), [1, 5, 6, 2, 3, 4]);
    }

    #[test]
    fn whoever_was_served_last_lets_the_others_go_first() {
        let mut jobs = Jobs::default();
        for (id, project) in [(1, "busy"), (2, "busy"), (3, "small")] {
            waiting(&mut jobs, id, project);
        }
        let served = Served {
            job: candidate(1, "busy").job,
            worker: "w".into(),
            model: String::new(),
            flavor: None,
        };
        jobs.begin(&JobId::V1(1), served);
        assert_eq!(turns(&jobs, at(10)), [3, 2], "though it is the younger one");
    }

    #[test]
    fn a_job_that_could_not_be_asked_about_is_asked_about_again() {
        let (mut jobs, id) = (Jobs::default(), JobId::V1(7));
        assert!(jobs.heard(&id, at(0)));
        assert!(jobs.ask(&id) && !jobs.ask(&id), "by one at a time");
        assert!(!jobs.heard(&id, at(1)));
        jobs.unanswered(&id);
        assert!(jobs.heard(&id, at(2)), "the next word of the queue leads to the next question");
    }

    #[test]
    fn a_job_waits_no_more_when_two_polls_did_not_list_it() {
        let mut jobs = Jobs::default();
        waiting(&mut jobs, 1, "p");
        jobs.polled(Protocol::V1, at(20));
        jobs.polled(Protocol::V2, at(100));
        assert_eq!(turns(&jobs, at(100)), [1], "one poll may have been a moment too early");
        jobs.polled(Protocol::V1, at(100));
        assert!(turns(&jobs, at(100)).is_empty());
    }

    #[test]
    fn a_job_that_was_put_off_has_no_turn_before_its_time() {
        let mut jobs = Jobs::default();
        waiting(&mut jobs, 1, "p");
        jobs.back_to_wait(&JobId::V1(1), at(30));
        assert!(turns(&jobs, at(29)).is_empty());
        assert_eq!(jobs.next_time(at(29)), Some(at(30)));
        assert_eq!(turns(&jobs, at(30)), [1]);
    }
}
