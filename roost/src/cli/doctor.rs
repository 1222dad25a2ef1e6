use std::path::PathBuf;

use clap::{Parser, ValueEnum};

#[derive(Debug, Parser)]
pub(crate) struct Doctor {
    /// Examine this door as its own command would run it here, by the environment; without it every door of the file
    #[arg(
        value_enum,
        value_name = "DOOR",
        conflicts_with = "config",
        required_unless_present = "config"
    )]
    pub(crate) door: Option<DoctorDoor>,

    /// The configuration file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Also sign in to CDS as the hatchery does, V1 and V2
    ///
    /// Writes the address, configuration and public key of this file into the hatchery's record in CDS. If a hatchery of the same name is at
    /// work with another key, its workers are refused from then on, until it signs in again. Without this, V1 tokens are tried in a way that
    /// changes nothing, and V2 tokens, for which there is none, are not.
    #[arg(long)]
    pub(crate) sign_in: bool,
}

/// A door that has a command of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoctorDoor {
    VmOperator,
    AgentForge,
    Kubelet,
}
