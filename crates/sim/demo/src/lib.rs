#![doc = include_str!("../README.md")]

mod args;
mod beside;
mod chaos;
mod config;
mod demand;
mod door_tricks;
mod live;
mod looking_in;
mod narrator;
mod nodes;
mod objects;
mod pacer;
mod pods;
mod reckoning;
mod report;
mod simulation;
mod stage;
#[cfg(test)]
mod through_http;
mod tricks;
mod vms;
mod witness;
mod world;

pub use self::args::{Demo, Speed};

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use roost_client::{interruption, say};
use roost_clock::Random;
use roost_console::{Console, Settings};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use self::args::DemoDoor;
use self::live::Bill;
use self::report::Report;
use self::simulation::{Setting, Simulation};
use self::stage::Stage;

/// Where the web page is, unless somebody else is there.
const PORT: u16 = 8086;
/// Enough to see something new each time, and few enough digits to type one again.
const NEW_SEEDS: u64 = 100_000;
/// For actions. As all secrets of the demo it is known to everybody; what it opens is a simulation.
const CONSOLE_TOKEN: &str = "demo";
/// How often it is looked whether anybody still has its page open.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// For pages that are open at the end.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// Plays until its end or Ctrl-C. The exit code says whether all was well.
pub async fn run(args: Demo) -> anyhow::Result<ExitCode> {
    if args.print_config {
        say(&config::text());
        return Ok(ExitCode::SUCCESS);
    }
    match args.door {
        DemoDoor::AgentForge => return Box::pin(nodes::run(&args)).await,
        DemoDoor::Kubelet => return Box::pin(pods::run(&args)).await,
        DemoDoor::VmOperator => return Box::pin(vms::run(&args)).await,
        DemoDoor::All | DemoDoor::Hatchery => {}
    }
    let is_live = args.is_live();
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
        all_doors: args.door == DemoDoor::All,
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
    let was_said = looked?;
    ended??;
    let report = simulation.report.borrow().clone().context("the simulation gave no summary")?;
    if !was_said {
        say(&format!("\n{report}"));
    }
    Ok(if report.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Until the demo is over, or somebody has seen enough. Returns whether the summary was said.
async fn look_on(
    stage: &Stage,
    bill: Bill,
    is_live: bool,
    mut report: watch::Receiver<Option<Arc<Report>>>,
    closing: watch::Receiver<bool>,
) -> anyhow::Result<bool> {
    if is_live {
        let stage = stage.clone();
        let watching =
            tokio::task::spawn_blocking(move || live::watch(&stage, &bill, &report, &closing));
        watching.await.context("the view")??;
        return Ok(false);
    }
    let ended = tokio::select! {
        biased;
        () = until_true(closing.clone()) => return Ok(false),
        ended = report.wait_for(Option::is_some) => ended.ok().and_then(|report| report.clone()),
    };
    if let Some(report) = ended.filter(|_| bill.keep || stage.is_looked_at()) {
        let until =
            if bill.keep { "Ctrl-C ends it" } else { "as long as it is open; Ctrl-C ends it" };
        say(&format!("\n{report}\n{} stays; {until}\n", bill.url));
        let is_left = async {
            while bill.keep || stage.is_looked_at() {
                sleep(LOOK_AGAIN).await;
            }
        };
        tokio::select! {
            () = until_true(closing) => {}
            () = is_left => {}
        }
        return Ok(true);
    }
    Ok(false)
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
