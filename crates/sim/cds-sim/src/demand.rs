use std::time::Duration;

use roost_cds::v1::{Requirement, RequirementType};

/// What the simulated worker does with a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    pub duration: Duration,
    pub outcome: Outcome,
}

/// How the work on a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Success,
    Fail,
    /// The worker dies without a word.
    Crash,
    /// The worker signs out without a result.
    Leave,
    /// It never ends; the worker keeps beating.
    Hang,
}

impl Default for Work {
    fn default() -> Self {
        Self { duration: Duration::from_secs(30), outcome: Outcome::Success }
    }
}

impl Work {
    /// The script of the job's only step, which the simulated worker understands.
    pub(crate) fn script(self) -> String {
        let end = match self.outcome {
            Outcome::Success => "exit 0",
            Outcome::Fail => "exit 1",
            Outcome::Crash => "kill -9 $PPID",
            Outcome::Leave => "kill -15 $PPID",
            Outcome::Hang => "sleep infinity",
        };
        format!("sleep {}\n{end}", self.duration.as_secs_f64())
    }
}

/// A V1 job to be queued.
#[derive(Debug, Clone)]
pub struct V1Demand {
    pub(crate) project_id: i64,
    pub(crate) project_key: String,
    pub(crate) name: String,
    pub(crate) requirements: Vec<Requirement>,
    pub(crate) groups: Vec<String>,
    pub(crate) work: Work,
}

impl Default for V1Demand {
    fn default() -> Self {
        Self {
            project_id: 1,
            project_key: "PROJ".to_owned(),
            name: "build".to_owned(),
            requirements: Vec::new(),
            groups: Vec::new(),
            work: Work::default(),
        }
    }
}

impl V1Demand {
    pub fn new() -> Self {
        Self::default()
    }

    /// `name`, `group/name`, or the path of a model as code.
    #[must_use]
    pub fn model(self, model: &str) -> Self {
        self.requirement(RequirementType::Model, model)
    }

    #[must_use]
    pub fn flavor(self, flavor: &str) -> Self {
        self.requirement(RequirementType::Flavor, flavor)
    }

    #[must_use]
    pub fn region(self, region: &str) -> Self {
        self.requirement(RequirementType::Region, region)
    }

    #[must_use]
    pub fn binary(self, binary: &str) -> Self {
        self.requirement(RequirementType::Binary, binary)
    }

    #[must_use]
    pub fn requirement(mut self, kind: RequirementType, value: &str) -> Self {
        let id = 1 + i64::try_from(self.requirements.len()).unwrap_or(0);
        let (name, value) = (value.to_owned(), value.to_owned());
        self.requirements.push(Requirement { id, action_id: 6, name, kind, value });
        self
    }

    #[must_use]
    pub fn project(mut self, id: i64, key: &str) -> Self {
        (self.project_id, self.project_key) = (id, key.to_owned());
        self
    }

    /// Groups that may execute it, besides `shared.infra`.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.groups.push(group.to_owned());
        self
    }

    #[must_use]
    pub fn takes(mut self, duration: Duration) -> Self {
        self.work.duration = duration;
        self
    }

    #[must_use]
    pub fn ends(mut self, outcome: Outcome) -> Self {
        self.work.outcome = outcome;
        self
    }
}

/// A V2 job to be queued.
#[derive(Debug, Clone)]
pub struct V2Demand {
    pub(crate) project_key: String,
    pub(crate) workflow: String,
    pub(crate) job: String,
    pub(crate) model: String,
    pub(crate) flavor: String,
    pub(crate) memory: String,
    pub(crate) region: String,
    pub(crate) work: Work,
}

impl V2Demand {
    /// `model` is the path of a model that the simulator has.
    pub fn new(model: &str) -> Self {
        Self {
            project_key: "PROJ".to_owned(),
            workflow: "w".to_owned(),
            job: "build".to_owned(),
            model: model.to_owned(),
            flavor: String::new(),
            memory: String::new(),
            region: "default".to_owned(),
            work: Work::default(),
        }
    }

    #[must_use]
    pub fn flavor(mut self, flavor: &str) -> Self {
        flavor.clone_into(&mut self.flavor);
        self
    }

    #[must_use]
    pub fn memory(mut self, memory: &str) -> Self {
        memory.clone_into(&mut self.memory);
        self
    }

    #[must_use]
    pub fn region(mut self, region: &str) -> Self {
        region.clone_into(&mut self.region);
        self
    }

    #[must_use]
    pub fn project(mut self, key: &str) -> Self {
        key.clone_into(&mut self.project_key);
        self
    }

    #[must_use]
    pub fn takes(mut self, duration: Duration) -> Self {
        self.work.duration = duration;
        self
    }

    #[must_use]
    pub fn ends(mut self, outcome: Outcome) -> Self {
        self.work.outcome = outcome;
        self
    }
}
