use serde::{Deserialize, Serialize};

/// What persons have told the service.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SteeringView {
    pub spawning: Spawning,
    /// Who held spawning back and since when, in words.
    pub held: Option<String>,
    /// Who froze deletions and since when, in words. What the guard froze is not here.
    pub frozen: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Spawning {
    #[default]
    Open,
    /// No new workers.
    Paused,
    /// No new workers, and somebody waits for those that run to end.
    Draining,
}

impl Spawning {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Paused => "paused",
            Self::Draining => "draining",
        }
    }
}
