use roost_console::views::Overview;

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
    /// What can be done, such as `q ends`.
    pub(crate) hint: String,
}

/// So many of something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) name: &'static str,
    pub(crate) count: u64,
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
