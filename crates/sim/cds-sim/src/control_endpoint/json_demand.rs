//! A job to be queued: `{"protocol": "v2", "model": "P/vcs/org/repo/m", "flavor": "small", "takes_ms": 500, "outcome": "fail"}`.

use std::time::Duration;

use roost_cds::JobId;
use serde::Deserialize;

use crate::api::CdsApi;
use crate::demand::{Outcome, V1Demand, V2Demand, Work};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JsonDemand {
    protocol: JsonProtocol,
    model: Option<String>,
    flavor: Option<String>,
    /// That of the first hatchery if not given. A V1 job has none then.
    region: Option<String>,
    project: Option<String>,
    /// V1: programs that its worker must have.
    #[serde(default)]
    binaries: Vec<String>,
    takes_ms: Option<u64>,
    outcome: Option<JsonOutcome>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JsonProtocol {
    V1,
    V2,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JsonOutcome {
    Success,
    Fail,
    Crash,
    Leave,
    Hang,
}

impl From<JsonOutcome> for Outcome {
    fn from(json: JsonOutcome) -> Self {
        match json {
            JsonOutcome::Success => Self::Success,
            JsonOutcome::Fail => Self::Fail,
            JsonOutcome::Crash => Self::Crash,
            JsonOutcome::Leave => Self::Leave,
            JsonOutcome::Hang => Self::Hang,
        }
    }
}

impl JsonDemand {
    pub(super) fn queue(self, api: &CdsApi) -> Result<JobId, String> {
        match self.protocol {
            JsonProtocol::V1 => Ok(JobId::V1(api.add_v1_job(self.v1()))),
            JsonProtocol::V2 => {
                let model = self.model.clone().ok_or("a V2 job names a model")?;
                let demand = self.v2(&model, api)?;
                let id = api.add_v2_job(demand).ok_or(format!("there is no model {model}"))?;
                Ok(JobId::V2(id))
            }
        }
    }

    fn work(&self) -> Work {
        let usual = Work::default();
        Work {
            duration: self.takes_ms.map_or(usual.duration, Duration::from_millis),
            outcome: self.outcome.map_or(usual.outcome, Outcome::from),
        }
    }

    fn v1(self) -> V1Demand {
        let Work { duration, outcome } = self.work();
        let mut demand = V1Demand::new().takes(duration).ends(outcome);
        if let Some(model) = self.model {
            demand = demand.model(&model);
        }
        if let Some(flavor) = self.flavor {
            demand = demand.flavor(&flavor);
        }
        if let Some(region) = self.region {
            demand = demand.region(&region);
        }
        if let Some(project) = self.project {
            demand = demand.project(1, &project);
        }
        self.binaries.iter().fold(demand, |demand, binary| demand.binary(binary))
    }

    fn v2(self, model: &str, api: &CdsApi) -> Result<V2Demand, String> {
        if !self.binaries.is_empty() {
            return Err("a V2 job has no binaries".to_owned());
        }
        let Work { duration, outcome } = self.work();
        let mut demand = V2Demand::new(model).takes(duration).ends(outcome);
        let of_hatchery = || api.lock().options.hatcheries.first()?.region.clone();
        if let Some(region) = self.region.or_else(of_hatchery) {
            demand = demand.region(&region);
        }
        if let Some(flavor) = self.flavor {
            demand = demand.flavor(&flavor);
        }
        if let Some(project) = self.project {
            demand = demand.project(&project);
        }
        Ok(demand)
    }
}
