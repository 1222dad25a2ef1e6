use jiff::Timestamp;
use roost_views::{DecisionView, HistoryView, Mood, Overview, SteeringView};

/// The picture of a service as a whole.
#[derive(Debug, Clone)]
pub struct Picture {
    /// What is being shown, such as `roost demo`.
    pub title: String,
    /// More about it, the most important first; what does not fit is left out.
    pub facts: Vec<String>,
    /// How many requests stand how.
    pub counts: Vec<Count>,
    pub overview: Overview,
    /// What persons have told it.
    pub steering: SteeringView,
    /// The last ones, newest last: at least as many as any screen has lines for, if there are so many.
    pub decisions: Vec<DecisionView>,
    /// What is shown ends with the view: that is asked before.
    pub ends_with_view: bool,
    /// The last minutes, for curves.
    pub history: HistoryView,
    /// What `q` does, such as `q ends it`.
    pub hint: String,
    /// The service cannot be heard, and everything is as it was when it last was.
    pub lost: Option<Lost>,
}

impl Picture {
    /// More lines than a screen has.
    pub const DECISIONS: usize = 100;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// On the service's clock.
    pub since: Timestamp,
    pub for_secs: u64,
    pub why: String,
}

/// So many of something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    pub name: &'static str,
    pub number: u64,
    pub mood: Mood,
}
