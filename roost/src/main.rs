//! `roost`: command line, configuration, wiring; no decisions.

mod ask;
mod cli;
mod completions;
mod config;
mod demo;
mod doctor;
mod interruption;
mod man;
mod output;
mod serve;
mod sim_cds;
mod sim_kube;
mod sim_vcenter;
mod telemetry;
mod tell;
mod terminal;
mod top;

use std::process::ExitCode;

use clap::Parser as _;
use roost_hatchery::run::StartError;
use roost_supervise::Chain;

use crate::cli::{Args, Command, ConfigAction, Simulator};
use crate::output::complain;

/// A service manager must not try this again and again: the account would be locked. `deploy/systemd/roost.service` names it.
const LOGIN_REFUSED: u8 = 77;

fn main() -> ExitCode {
    let args = Args::parse();
    // Before anything else can ask for TLS: one crypto provider for the whole process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // A service logs as its file says, a demo by where it is shown. What the doctor finds is its report.
    match args.command {
        Command::Run { .. } | Command::Demo(_) | Command::Top(_) => {}
        Command::Doctor(_) => telemetry::init_silent(),
        _ => telemetry::init(),
    }
    match run(args) {
        Ok(code) => code,
        Err(error) => {
            complain(format_args!("roost: {}", Chain(&*error)));
            match error.downcast_ref() {
                Some(StartError::LoginRefused { .. }) => ExitCode::from(LOGIN_REFUSED),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

#[tokio::main]
async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Check { config } => config::check(&config)?,
        Command::Ask(ask) => ask::run(ask).await?,
        Command::Tell(tell) => tell::run(tell).await?,
        Command::Top(top) => top::run(*top).await?,
        Command::Completions { shell } => completions::print(shell)?,
        Command::Config { action: ConfigAction::New } => config::print_sample()?,
        Command::Demo(args) => return demo::run(args).await,
        Command::Doctor(args) => return doctor::run(args).await,
        Command::Man { dir } => man::write(dir.as_deref())?,
        Command::Run { config, observe_only } => serve::run(&config, observe_only).await?,
        Command::Sim { simulator: Simulator::Vcenter(options) } => {
            sim_vcenter::serve(*options).await?;
        }
        Command::Sim { simulator: Simulator::Cds(options) } => sim_cds::serve(*options).await?,
        Command::Sim { simulator: Simulator::Kube(options) } => sim_kube::serve(*options).await?,
        Command::Sim { simulator: Simulator::Worker { .. } } => return sim_cds::run_worker().await,
    }
    Ok(ExitCode::SUCCESS)
}
