//! The built binary as its users run it: simulators and the service as processes that talk over real sockets.
//!
//! Ports are picked by the system and read from what a process says. Everything ends with the test.
#![allow(dead_code, unused_imports, reason = "each test file uses its own part")]

mod cds;
mod control;
mod process;
mod service;
mod site;
mod vcenter;

use std::time::Duration;

use tokio::time::{self, Instant};

pub(crate) use cds::CdsSim;
pub(crate) use control::Control;
pub(crate) use process::{Process, roost};
pub(crate) use service::Service;
pub(crate) use site::Site;
pub(crate) use vcenter::VcenterSim;

const LOOK: Duration = Duration::from_millis(50);

/// That many seconds from now. Generous: a slow machine shall not fail a test.
pub(crate) fn within(secs: u64) -> Instant {
    Instant::now() + Duration::from_secs(secs)
}

/// Waits until something holds, and says what did not by the deadline.
pub(crate) async fn until(what: &str, deadline: Instant, mut holds: impl AsyncFnMut() -> bool) {
    while !holds().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        time::sleep(LOOK).await;
    }
}
