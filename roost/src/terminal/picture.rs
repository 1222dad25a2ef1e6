use jiff::Timestamp;
use roost_views::{DecisionView, Mood, Overview, SteeringView};

/// The picture of a service as a whole.
#[derive(Debug, Clone)]
pub(crate) struct Picture {
    /// What is being shown, such as `roost demo`.
    pub(crate) title: String,
    /// More about it, the most important first; what does not fit is left out.
    pub(crate) facts: Vec<String>,
    /// Where the jobs are.
    pub(crate) jobs: Vec<Count>,
    pub(crate) overview: Overview,
    /// What persons have told it.
    pub(crate) steering: SteeringView,
    /// The last ones, newest last: at least as many as any screen has lines for, if there are so many.
    pub(crate) decisions: Vec<DecisionView>,
    /// What `q` does, such as `q ends it`.
    pub(crate) hint: String,
    /// The service cannot be heard, and everything is as it was when it last was.
    pub(crate) lost: Option<Lost>,
}

impl Picture {
    /// More lines than a screen has.
    pub(crate) const DECISIONS: usize = 100;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lost {
    /// On the service's clock.
    pub(crate) since: Timestamp,
    pub(crate) for_secs: u64,
    pub(crate) why: String,
}

/// So many of something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) name: &'static str,
    pub(crate) number: u64,
    pub(crate) mood: Mood,
}
