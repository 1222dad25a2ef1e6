//! `roost`: command line, configuration, wiring; no decisions.

mod chain;
mod cli;
mod config;
mod output;
mod sim_vcenter;
mod telemetry;

use std::process::ExitCode;

use clap::Parser as _;

use crate::chain::Chain;
use crate::cli::{Args, Command, ConfigAction, Simulator};

fn main() -> ExitCode {
    let args = Args::parse();
    // Before anything else can ask for TLS: one crypto provider for the whole process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    telemetry::init();
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("roost: {}", Chain(&error));
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        Command::Check { config } => config::check(&config),
        Command::Config { action: ConfigAction::New } => {
            config::print_sample();
            Ok(())
        }
        Command::Sim { simulator: Simulator::Vcenter(options) } => {
            sim_vcenter::serve(*options).await
        }
    }
}
