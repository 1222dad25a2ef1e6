use clap::ValueEnum;

/// A front door that serves kinds of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoorWithKinds {
    VmOperator,
    AgentForge,
}

impl DoorWithKinds {
    pub(crate) const ALL: [Self; 2] = [Self::VmOperator, Self::AgentForge];
}
