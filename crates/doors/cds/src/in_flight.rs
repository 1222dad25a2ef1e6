use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::JobId;

/// The jobs that somebody is at work on, so that the same job from websocket and poll is looked at once.
///
/// A job is in here exactly as long as its [`InFlightGuard`] lives: however the work on it ends, by success, error,
/// cancellation or panic, the job can be looked at again, and the set cannot grow beyond what is at work.
#[derive(Debug, Clone, Default)]
pub struct InFlight {
    jobs: Arc<Mutex<HashSet<JobId>>>,
}

impl InFlight {
    /// `None` when somebody is at work on this job.
    pub fn enter(&self, job: JobId) -> Option<InFlightGuard> {
        self.lock().insert(job.clone()).then(|| InFlightGuard { all: self.clone(), job })
    }

    pub fn contains(&self, job: &JobId) -> bool {
        self.lock().contains(job)
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<JobId>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a job in its [`InFlight`].
#[derive(Debug)]
pub struct InFlightGuard {
    all: InFlight,
    job: JobId,
}

impl InFlightGuard {
    pub fn job(&self) -> &JobId {
        &self.job
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.all.lock().remove(&self.job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_can_be_looked_at_again_however_the_first_look_ended() {
        let jobs = InFlight::default();
        let guard = jobs.enter(JobId::V1(1)).unwrap();
        assert!(jobs.enter(JobId::V1(1)).is_none());
        assert!(jobs.enter(JobId::V2("1".into())).is_some(), "another job");
        drop(guard);
        let again = jobs.enter(JobId::V1(1));
        assert!(again.is_some() && jobs.len() == 1);
        let panicking = std::thread::spawn(move || {
            let _guard = again;
            panic!("the work failed");
        });
        assert!(panicking.join().is_err());
        assert!(jobs.is_empty());
    }
}
