use std::time::Duration;

use roost_clock::Random;
use tokio::time;

use crate::api::CdsApi;
use crate::demand::{V1Demand, V2Demand};

/// A wave is at most this part of all jobs, so that there are several.
const FEWEST_WAVES: usize = 5;
const LARGEST_WAVE: usize = 10;

/// Demand that arrives by itself, in waves whose sizes and jobs follow from the API's seed.
#[derive(Debug, Clone)]
pub struct Arrivals {
    /// In all.
    pub jobs: usize,
    /// From one wave to the next. The first comes at once.
    pub every: Duration,
    /// Paths of models as code. Each job names one of them; without any there are no jobs.
    pub models: Vec<String>,
    /// Each job asks for one of them, or for none if there are none.
    pub flavors: Vec<String>,
    pub region: String,
    /// The work of a job takes between half of this and one and a half times this.
    pub takes: Duration,
    /// How likely a job is one of V1, on the same models.
    pub v1_share: f64,
}

impl CdsApi {
    /// Queues all jobs, wave by wave. Ends when the last one is queued.
    pub async fn run_arrivals(&self, arrivals: Arrivals) {
        let mut random = Random::from_seed(self.lock().options.seed).fork("arrivals");
        let mut left = arrivals.jobs;
        loop {
            for _ in 0..arrivals.wave(left, &mut random) {
                left -= 1;
                arrivals.queue_one(self, &mut random);
            }
            if left == 0 {
                return;
            }
            time::sleep(arrivals.every).await;
        }
    }
}

impl Arrivals {
    fn wave(&self, left: usize, random: &mut Random) -> usize {
        let largest = (self.jobs / FEWEST_WAVES).clamp(1, LARGEST_WAVE);
        let drawn = usize::try_from(random.below(largest as u64)).unwrap_or(0) + 1;
        drawn.min(left)
    }

    fn queue_one(&self, api: &CdsApi, random: &mut Random) {
        let Some(model) = random.pick(&self.models) else { return };
        let flavor = random.pick(&self.flavors);
        let takes = random.duration(self.takes / 2, self.takes + self.takes / 2);
        if random.chance(self.v1_share) {
            let demand = V1Demand::new().model(model).region(&self.region).takes(takes);
            api.add_v1_job(match flavor {
                Some(flavor) => demand.flavor(flavor),
                None => demand,
            });
        } else {
            let demand = V2Demand::new(model).region(&self.region).takes(takes);
            api.add_v2_job(match flavor {
                Some(flavor) => demand.flavor(flavor),
                None => demand,
            });
        }
    }
}
