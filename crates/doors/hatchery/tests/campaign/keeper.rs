//! Whoever keeps a hatchery's process alive: starts it, and starts it again when it died or gave up.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::lab::{CrashAt, Service, Start, World, secs};

/// How a process ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Death {
    After(Duration),
    At(CrashAt),
}

/// Keeps the hatchery running until troubles are over, and leaves it running then. Returns how often it died.
pub(crate) async fn keep(
    service: &mut Service,
    world: &World,
    deaths: &[Death],
    mut over: watch::Receiver<bool>,
) -> u64 {
    let mut deaths = deaths.iter();
    let mut died = 0;
    loop {
        let is_over = *over.borrow();
        let death = deaths.next().filter(|_| !is_over).copied();
        let crash = match death {
            Some(Death::At(crash)) => Some(crash),
            Some(Death::After(_)) | None => None,
        };
        match service.start(world, crash).await {
            Start::Runs => {}
            Start::Died(why) => {
                tracing::info!("** {} died at its start: {why}", service.name());
                died += 1;
                sleep(pause(died)).await;
                continue;
            }
            Start::Refused(error) => {
                tracing::info!("** {} did not start: {error}", service.name());
                sleep(secs(10)).await;
                continue;
            }
        }
        let after = match death {
            Some(Death::After(after)) => after,
            Some(Death::At(_)) | None => Duration::from_hours(1000),
        };
        let mut stopped = service.hatchery().stopped();
        let why = tokio::select! {
            biased;
            why = service.fuse().blown() => why,
            why = stopped.wait_for(Option::is_some) => {
                why.map_or_else(|_| "nothing".to_owned(), |why| format!("{:?}", *why))
            }
            () = sleep(after) => "its time".to_owned(),
            _ = over.wait_for(|over| *over) => {
                service.fuse().disarm();
                return died;
            }
        };
        tracing::info!("** {} died of {why}", service.name());
        service.crash();
        died += 1;
        sleep(pause(died)).await;
    }
}

/// From a supervisor that is quick to an operator who has to come.
fn pause(died: u64) -> Duration {
    match died % 3 {
        1 => Duration::ZERO,
        2 => secs(5),
        _ => secs(100),
    }
}
