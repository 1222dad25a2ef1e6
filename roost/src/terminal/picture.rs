use roost_console::views::{DecisionView, Overview};

/// Everything that one frame shows.
#[derive(Debug, Clone)]
pub(crate) struct Picture {
    /// What is being shown, such as `roost demo`.
    pub(crate) title: String,
    /// More about it, the most important first; what does not fit is left out.
    pub(crate) facts: Vec<String>,
    /// Where the jobs are.
    pub(crate) jobs: Vec<Count>,
    pub(crate) overview: Overview,
    /// The last ones, newest last: at least as many as any screen has lines for, if there are so many.
    pub(crate) decisions: Vec<DecisionView>,
    /// What can be done, such as `q ends`.
    pub(crate) hint: String,
}

impl Picture {
    /// More lines than a screen has.
    pub(crate) const DECISIONS: usize = 100;
}

/// So many of something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) name: &'static str,
    pub(crate) number: u64,
    pub(crate) mood: Mood,
}

/// What a colour says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// As it should be.
    Good,
    /// On its way.
    Busy,
    /// Has to wait.
    Waiting,
    /// Somebody should look.
    Bad,
    /// Of no importance now.
    Quiet,
}
