//! What a worker needs to start: a name, a token, a configuration and a script.

mod config;
mod name;
mod script;
mod template;
mod token;
mod words;

pub use config::{ConfigError, InjectedVariables, LogOptions, WorkerConfig};
pub use name::{NamesExhausted, WorkerNames, slug};
pub use script::{Commands, LaunchScript, OsArch, Purpose};
pub use template::ScriptError;
pub use token::{ClaimedModel, V1Worker, V2Worker, WorkerClaims};
