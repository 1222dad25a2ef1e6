use roost_cds::{CallError, ErrorKind, KeyError, ScriptError};
use roost_fleet::MachineError;
use roost_vim::EnvironmentError;

use crate::run::machine::LoginError;
use crate::run::spawn::LaunchSpecError;

/// Why a model was not registered.
#[derive(Debug, thiserror::Error)]
pub(super) enum RegisterError {
    #[error("logging in to guests")]
    Login { source: LoginError },
    #[error("signing the worker's token")]
    Token { source: KeyError },
    #[error("the worker's configuration")]
    Config { source: LaunchSpecError },
    #[error("the script that registers")]
    Script { source: ScriptError },
    #[error("the script that registers")]
    Program { source: EnvironmentError },
    #[error("booking the model")]
    Book { source: CallError },
    #[error("building the template")]
    Build { source: MachineError },
    #[error("putting the template in its place")]
    Install { source: MachineError },
    #[error("starting the worker that registers")]
    Show { source: MachineError },
}

impl RegisterError {
    /// From a closed set: it becomes a metric label.
    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::Login { .. } => "guest-login",
            Self::Token { .. } => "worker-token",
            Self::Config { .. } => "worker-config",
            Self::Script { .. } | Self::Program { .. } => "launch-script",
            Self::Book { .. } => "booking",
            Self::Build { source } | Self::Install { source } | Self::Show { source } => {
                source.phase().as_str()
            }
        }
    }

    /// Another hatchery registers the model.
    pub(super) fn is_booked(&self) -> bool {
        match self {
            Self::Book { source } => source.kind() == Some(ErrorKind::ModelAlreadyBooked),
            _ => false,
        }
    }

    /// Whether the model's owner is told. A few such errors take a model out of service, so what is only the server's bad moment is not among
    /// them, and what CDS does not know to have begun neither.
    pub(super) fn is_the_models(&self) -> bool {
        match self {
            Self::Book { .. } => false,
            Self::Build { source } | Self::Install { source } | Self::Show { source } => {
                !(source.nothing_made() && source.may_pass())
            }
            Self::Login { .. }
            | Self::Token { .. }
            | Self::Config { .. }
            | Self::Script { .. }
            | Self::Program { .. } => true,
        }
    }
}
