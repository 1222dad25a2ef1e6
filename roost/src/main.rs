//! `roost`: command line, configuration, wiring; no decisions.

mod agent_forge;
mod cli;
mod completions;
mod config;
mod crds;
mod doctor;
mod fleets;
mod here;
mod kubectl;
mod kubelet;
mod man;
mod manager;
mod page;
mod serve;
mod telemetry;
mod version;
mod vm_operator;

use std::process::ExitCode;

use clap::FromArgMatches as _;
use roost_client::complain;
use roost_hatchery::run::StartError;
use roost_supervise::Chain;

use crate::cli::{Args, Command, ConfigAction};
use crate::here::Here;

/// A service manager must not try this again and again: the account would be locked. `deploy/systemd/roost.service` names it.
const LOGIN_REFUSED: u8 = 77;

fn main() -> ExitCode {
    // Before anything else can ask for TLS: one crypto provider for the whole process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if kubectl::is_meant() {
        return match kubectl::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                complain(format_args!("kubectl roost: {}", Chain(&*error)));
                ExitCode::FAILURE
            }
        };
    }
    let matches = cli::command().get_matches();
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // A service logs as its file says, a demo by where it is shown. What the doctor finds is its report.
    match args.command {
        Command::Run { .. }
        | Command::Kubelet(_)
        | Command::AgentForge(_)
        | Command::VmOperator(_) => {}
        Command::Demo(ref demo) => telemetry::init_demo(demo.has_terminal()),
        Command::Top(ref top) => telemetry::init_demo(top.is_live()),
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
    let here = Here { at: args.at };
    match args.command {
        Command::AgentForge(options) => agent_forge::run(*options).await?,
        Command::VmOperator(options) => Box::pin(vm_operator::run(options)).await?,
        Command::Check { config } => config::check(&config)?,
        Command::Ask(ask) => roost_client::ask(ask, &here).await?,
        Command::Tell(tell) => roost_client::tell(tell, &here).await?,
        Command::Top(top) => roost_client::top(*top, &here).await?,
        Command::Version { output } => version::print(&output)?,
        Command::Completions { shell } => completions::print(shell)?,
        Command::Config { action: ConfigAction::New } => config::print_sample()?,
        Command::Crds { doors } => crds::print(&doors)?,
        Command::Demo(args) => return roost_demo::run(args).await,
        Command::Doctor(args) => return Ok(doctor::run(args).await),
        Command::Kubelet(options) => Box::pin(kubelet::run(&options)).await?,
        Command::Man { dir } => man::write(dir.as_deref())?,
        Command::Run { config, observe_only } => serve::run(&config, observe_only).await?,
        Command::Sim { simulator } => return roost_sim_serve::serve(simulator).await,
    }
    Ok(ExitCode::SUCCESS)
}
