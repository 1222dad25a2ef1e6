//! The jobs of the demo: what they ask for and when they arrive. All of it follows from the seed.

use std::time::Duration;

use roost_cds::JobId;
use roost_cds_sim::{CdsApi, V1Demand, V2Demand};
use roost_clock::Random;
use tokio::time::{Instant, sleep_until};

use super::config::{DEBIAN, FLAVORS, REGION, UBUNTU};
use super::world::{MISSING_TEMPLATE, model_name};

/// The pools are full by then, so that the first jobs find spares.
const FIRST_WAVE: Duration = Duration::from_secs(100);
const BETWEEN_WAVES: (Duration, Duration) = (Duration::from_mins(1), Duration::from_secs(150));
const WORK: (Duration, Duration) = (Duration::from_secs(30), Duration::from_mins(3));
/// One job in so many cannot be served, and there is at least one of each kind, unless there are hardly any jobs.
const IMPOSSIBLE_ONE_IN: usize = 15;
const FEW: usize = 6;
/// The wave that comes as a rush holds this part of all jobs: more than the limits allow at once. A larger one would wait for hours, and CDS gives up
/// jobs that wait for one.
const RUSH_PART: usize = 4;
const LARGEST_RUSH: usize = 24;
const LARGEST_WAVE: usize = 7;
const UNKNOWN_FLAVOR: &str = "gigantic";

/// What stands in a job's way for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Impossible {
    Flavor,
    Template,
}

#[derive(Debug, Clone, PartialEq)]
struct Request {
    is_v1: bool,
    project: &'static str,
    template: &'static str,
    flavor: Option<&'static str>,
    takes: Duration,
    impossible: Option<Impossible>,
}

impl Impossible {
    /// The gate that such a job fails at.
    pub(super) fn gate(self) -> &'static str {
        match self {
            Self::Flavor => "unknown-flavor",
            Self::Template => "no-template",
        }
    }

    /// What is wrong, which the decision must name.
    pub(super) fn obstacle(self) -> &'static str {
        match self {
            Self::Flavor => UNKNOWN_FLAVOR,
            Self::Template => MISSING_TEMPLATE,
        }
    }
}

/// A job that was queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queued {
    pub(super) id: JobId,
    pub(super) impossible: Option<Impossible>,
}

/// Jobs that arrive together.
#[derive(Debug, Clone, PartialEq)]
struct Wave {
    at: Duration,
    requests: Vec<Request>,
}

/// Everything that will be asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Demand {
    waves: Vec<Wave>,
}

impl Demand {
    pub(super) fn draw(jobs: usize, random: &mut Random) -> Self {
        let mut requests: Vec<Request> = (0..jobs).map(|_| request(random)).collect();
        for number in 0..impossible_among(jobs) {
            let kind = [Impossible::Flavor, Impossible::Template][number % 2];
            let mut at = index(random, jobs);
            while requests[at].impossible.is_some() {
                at = (at + 1) % jobs;
            }
            requests[at] = impossible(&requests[at], kind);
        }
        let mut waves = Vec::new();
        let mut at = FIRST_WAVE;
        let (rush, mut left) =
            ((jobs / RUSH_PART).clamp(1, LARGEST_RUSH), requests.into_iter().peekable());
        while left.peek().is_some() {
            let size = match waves.len() {
                // After the first, when there is something to compare it with.
                2 => rush,
                _ => 1 + index(random, LARGEST_WAVE.min(jobs.div_ceil(RUSH_PART))),
            };
            waves.push(Wave { at, requests: left.by_ref().take(size).collect() });
            at += random.duration(BETWEEN_WAVES.0, BETWEEN_WAVES.1);
        }
        Self { waves }
    }

    /// Without waves: everybody comes now.
    pub(super) fn at_once(mut self) -> Self {
        self.waves.iter_mut().for_each(|wave| wave.at = Duration::ZERO);
        self
    }

    pub(super) fn jobs(&self) -> usize {
        self.waves.iter().map(|wave| wave.requests.len()).sum()
    }

    /// Queues all jobs at their time, each told to `queued`.
    pub(super) async fn arrive(self, cds: CdsApi, mut queued: impl FnMut(Queued)) {
        let began = Instant::now();
        for wave in self.waves {
            sleep_until(began + wave.at).await;
            for request in wave.requests {
                if let Some(id) = request.queue(&cds) {
                    queued(Queued { id, impossible: request.impossible });
                }
            }
        }
    }
}

impl Request {
    /// `None` if CDS does not know the model, which it does.
    fn queue(&self, cds: &CdsApi) -> Option<JobId> {
        let model = model_name(self.template);
        if self.is_v1 {
            let demand = V1Demand::new().project(1, self.project).model(&model).region(REGION);
            let demand = demand.takes(self.takes);
            let id = cds.add_v1_job(match self.flavor {
                Some(flavor) => demand.flavor(flavor),
                None => demand,
            });
            return Some(JobId::V1(id));
        }
        let demand = V2Demand::new(&model).project(self.project).region(REGION).takes(self.takes);
        let id = cds.add_v2_job(match self.flavor {
            Some(flavor) => demand.flavor(flavor),
            None => demand,
        });
        id.map(JobId::V2)
    }
}

fn request(random: &mut Random) -> Request {
    const PROJECTS: [&str; 5] = ["SHOP", "PAYMENTS", "SEARCH", "MOBILE", "INFRA"];
    Request {
        is_v1: random.chance(0.2),
        project: random.pick(&PROJECTS).copied().unwrap_or(PROJECTS[0]),
        template: if random.chance(0.65) { DEBIAN } else { UBUNTU },
        // Most jobs are small, and some do not say.
        flavor: match random.below(10) {
            0 => None,
            1..=5 => Some(FLAVORS[0]),
            6..=8 => Some(FLAVORS[1]),
            _ => Some(FLAVORS[2]),
        },
        takes: random.duration(WORK.0, WORK.1),
        impossible: None,
    }
}

fn impossible_among(jobs: usize) -> usize {
    if jobs < FEW { 0 } else { (jobs / IMPOSSIBLE_ONE_IN).max(2) }
}

fn impossible(request: &Request, kind: Impossible) -> Request {
    let request = Request { impossible: Some(kind), ..request.clone() };
    match kind {
        Impossible::Flavor => Request { flavor: Some(UNKNOWN_FLAVOR), template: DEBIAN, ..request },
        Impossible::Template => Request { template: MISSING_TEMPLATE, ..request },
    }
}

/// A number below `limit`, which is not 0.
fn index(random: &mut Random, limit: usize) -> usize {
    usize::try_from(random.below(limit as u64)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(jobs: usize, seed: u64) -> Demand {
        Demand::draw(jobs, &mut Random::from_seed(seed))
    }

    #[test]
    fn a_seed_is_a_demand() {
        assert_eq!(drawn(60, 7), drawn(60, 7));
        assert_ne!(drawn(60, 7), drawn(60, 8));
    }

    #[test]
    fn there_are_as_many_jobs_as_asked_for_in_several_waves_and_some_cannot_be_served() {
        for seed in 0..50 {
            for jobs in [1, 2, 3, 4, 20, 60, 500] {
                let demand = drawn(jobs, seed);
                assert_eq!(demand.jobs(), jobs);
                let all = || demand.waves.iter().flat_map(|wave| &wave.requests);
                let is_of = |kind| all().any(|request| request.impossible == Some(kind));
                if jobs >= 20 {
                    assert!(demand.waves.len() >= 4, "{jobs} jobs, seed {seed}");
                    assert!(is_of(Impossible::Flavor) && is_of(Impossible::Template));
                }
                let served = all().filter(|request| request.impossible.is_none()).count();
                assert!(served * 2 > jobs, "{jobs} jobs, seed {seed}");
                let times: Vec<_> = demand.waves.iter().map(|wave| wave.at).collect();
                assert!(
                    times.is_sorted() && demand.waves.iter().all(|wave| !wave.requests.is_empty())
                );
            }
        }
    }
}
