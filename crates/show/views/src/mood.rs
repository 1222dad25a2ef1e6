use serde::{Deserialize, Serialize};

/// What a colour says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mood {
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
    /// Nothing in particular.
    Plain,
}

impl Mood {
    /// The name of its class in a style sheet.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Busy => "busy",
            Self::Waiting => "wait",
            Self::Bad => "bad",
            Self::Quiet => "quiet",
            Self::Plain => "plain",
        }
    }
}
