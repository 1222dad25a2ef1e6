//! `roost demo`: a vCenter, a CDS API and a hatchery between them, in one process, on simulated time.
//!
//! ```text
//!   real time                                  simulated time, one thread
//!   +---------------------------+              +------------------------------------------+
//!   | terminal view, web page   | -- looks --> | hatchery -- vCenter, CDS API (in process) |
//!   | Ctrl-C                    | -- stops --> | demand . chaos . witness . narrator       |
//!   | summary, exit code        | <-- report - | pacer                                     |
//!   +---------------------------+              +------------------------------------------+
//! ```
//!
//! The hatchery is the one that `roost run` runs, made from a configuration file like any other. Everything on the right follows from the seed: those on
//! the left only look on.

mod chaos;
mod config;
mod demand;
mod live;
mod looking_in;
mod narrator;
mod pacer;
mod reckoning;
mod report;
mod simulation;
mod stage;
#[cfg(test)]
mod through_http;
mod witness;
mod world;

use std::io::{IsTerminal as _, stdout};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use roost_clock::Random;
use roost_console::{Console, Settings};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

use self::live::Bill;
use self::report::{Ended, Report};
use self::simulation::{Setting, Simulation};
use self::stage::Stage;
use crate::cli::Demo;
use crate::interruption::interruption;
use crate::output::say;
use crate::telemetry;

/// Where the web page is, unless somebody else is there.
const PORT: u16 = 8086;
/// Enough to see something new each time, and few enough digits to type one again.
const NEW_SEEDS: u64 = 100_000;
/// For actions. As all secrets of the demo it is known to everybody; what it opens is a simulation.
const CONSOLE_TOKEN: &str = "demo";
/// For pages that are open at the end.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

pub(crate) async fn run(args: Demo) -> anyhow::Result<ExitCode> {
    if args.print_config {
        say(&config::text());
        return Ok(ExitCode::SUCCESS);
    }
    let is_live = !args.plain && stdout().is_terminal();
    telemetry::init_demo(is_live);
    let interrupted = interruption()?;
    let listener = listen(args.listen).await?;
    let url = format!("http://{}", listener.local_addr().context("the web page's address")?);
    let seed = args.seed.unwrap_or_else(|| Random::from_system().below(NEW_SEEDS));
    say(&format!(
        "{url} shows what happens (seed {seed}; the token for actions is \"{CONSOLE_TOKEN}\"; Ctrl-C ends it)\n"
    ));

    let mut simulation = Simulation::start(Setting {
        seed,
        jobs: args.jobs.try_into().context("--jobs")?,
        speed: args.speed,
        chaos: args.chaos,
        keep: args.keep,
        narrates: !is_live,
    })?;
    let Ok(stage) = (&mut simulation.stage).await else {
        // It has ended before it began, and says why.
        (&mut simulation.ended).await.context("the simulation's thread")??;
        anyhow::bail!("the simulation ended before it began");
    };
    let (close, closing) = watch::channel(false);
    let console = Console {
        house: Arc::clone(&stage.house),
        settings: Settings { token: Some(CONSOLE_TOKEN.into()), ..Settings::default() },
    };
    let page = tokio::spawn(console.serve(listener, until_true(closing.clone())));
    let bill =
        Bill { seed, speed: args.speed.to_string(), url, chaos: args.chaos, keep: args.keep };
    let report = simulation.report.clone();
    let mut looking = pin!(look_on(&stage, bill, is_live, report, closing));
    let looked = tokio::select! {
        biased;
        () = interrupted => {
            close.send_replace(true);
            // The view gives the terminal back first.
            looking.await
        }
        looked = &mut looking => looked,
    };
    close.send_replace(true);
    simulation.stop();
    let ended = (&mut simulation.ended).await.context("the simulation's thread panicked");
    let _ = timeout(CLOSE_WITHIN, page).await;
    looked?;
    ended??;
    let report = simulation.report.borrow().clone().context("the simulation gave no summary")?;
    if is_live || !args.keep || report.ended == Ended::Stopped {
        say(&format!("\n{report}"));
    }
    Ok(if report.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Until the demo is over, or somebody has seen enough.
async fn look_on(
    stage: &Stage,
    bill: Bill,
    is_live: bool,
    mut report: watch::Receiver<Option<Arc<Report>>>,
    closing: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    if is_live {
        let stage = stage.clone();
        let watching =
            tokio::task::spawn_blocking(move || live::watch(&stage, &bill, &report, &closing));
        return watching.await.context("the view")?;
    }
    let ended = tokio::select! {
        biased;
        () = until_true(closing.clone()) => return Ok(()),
        ended = report.wait_for(Option::is_some) => ended.ok().and_then(|report| report.clone()),
    };
    if let Some(report) = ended.filter(|_| bill.keep) {
        say(&format!("\n{report}\n{} stays; Ctrl-C ends it\n", bill.url));
        until_true(closing).await;
    }
    Ok(())
}

async fn listen(wanted: Option<SocketAddr>) -> anyhow::Result<TcpListener> {
    if let Some(wanted) = wanted {
        return TcpListener::bind(wanted).await.with_context(|| format!("listening on {wanted}"));
    }
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    if let Ok(listener) = TcpListener::bind(usual).await {
        return Ok(listener);
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("listening on 127.0.0.1")
}

async fn until_true(mut closing: watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}
