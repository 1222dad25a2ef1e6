#![doc = include_str!("../README.md")]

mod cds;
mod kube;
mod vcenter;

use std::process::ExitCode;

use clap::Subcommand;

pub use cds::SimCds;
pub use kube::SimKube;
pub use vcenter::SimVcenter;

/// Which stand-in to serve.
#[derive(Debug, Subcommand)]
pub enum Simulator {
    /// Serve an embedded vCenter until Ctrl-C
    ///
    /// It speaks the vim25 API that govc, pyVmomi and Roost itself use. Tasks take time, guests boot, get an address and run
    /// programs, files can be uploaded. All chance comes from the seed.
    Vcenter(Box<SimVcenter>),
    /// Serve an embedded CDS API until Ctrl-C
    ///
    /// It speaks what a CDS hatchery and its workers use, V1 and V2, by HTTP and websocket. Jobs can arrive by themselves;
    /// guests download a worker that does them. All chance comes from the seed. What a hatchery needs to sign in is printed.
    Cds(Box<SimCds>),
    /// Serve an embedded Kubernetes API server until Ctrl-C
    ///
    /// It speaks the API that kubectl and controllers use: built-in kinds, custom resource definitions with their schemas and
    /// rules, watches, server-side apply, webhooks. Nothing runs in it. All chance comes from the seed.
    Kube(Box<SimKube>),
    /// Be the worker that a guest downloaded from the embedded CDS API
    #[command(hide = true)]
    Worker {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// Serves until Ctrl-C.
pub async fn serve(simulator: Simulator) -> anyhow::Result<ExitCode> {
    match simulator {
        Simulator::Vcenter(options) => vcenter::serve(*options).await?,
        Simulator::Cds(options) => cds::serve(*options).await?,
        Simulator::Kube(options) => kube::serve(*options).await?,
        Simulator::Worker { .. } => return cds::run_worker().await,
    }
    Ok(ExitCode::SUCCESS)
}
