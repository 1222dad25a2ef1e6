use roost_vim_wire::{Fault, MoRef};

use crate::{CallError, Faulted, Remedy};

/// Why events could not be read.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    #[error("reading the events of {entity}")]
    Query { entity: MoRef, source: CallError },
    #[error("following the events of {entity}")]
    Tail { entity: MoRef, source: CallError },
}

impl EventError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Query { source, .. } | Self::Tail { source, .. } => source.remedy(),
        }
    }
}

impl Faulted for EventError {
    fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Query { source, .. } | Self::Tail { source, .. } => source.fault(),
        }
    }
}
