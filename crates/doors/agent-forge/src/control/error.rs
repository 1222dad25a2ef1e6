use roost_controller::{Remedial, Remedy, WriteError, remedy_of};

/// Why a pass did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForgeError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("{what}")]
    Kube { what: String, source: Box<kube::Error> },
    #[error("AgentMachine {machine} is served by more than one pool: {pools}")]
    SeveralPools { machine: String, pools: String },
    #[error("VsphereAgents {name} and {alternate} both belong to others")]
    NamesTaken { name: String, alternate: String },
}

impl ForgeError {
    pub(crate) fn kube(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Kube { what, source: Box::new(source) }
    }
}

impl Remedial for ForgeError {
    fn remedy(&self) -> Remedy {
        match self {
            Self::Write(error) => error.remedy(),
            Self::Kube { source, .. } => remedy_of(source),
            // A change of either pool comes back here.
            Self::SeveralPools { .. } | Self::NamesTaken { .. } => Remedy::Backoff,
        }
    }
}
