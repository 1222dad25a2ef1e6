//! From a VM that boots to a script that runs in it.

use std::net::IpAddr;
use std::time::Duration;

use roost_fleet::{Hold, MachineError, Pauses, VmId};
use tokio::time::{sleep, timeout};

use super::NewWorker;
use super::job_side::waits_for_worker;
use crate::door::phase;
use crate::run::bring_up::{BringUp, LaunchSpec};
use crate::run::machine::{Launch, LaunchSeen};
use crate::run::spawn::Spawner;

/// Whether an earlier process may have sent the launch already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Earlier {
    Nothing,
    Perhaps,
}

/// A launch that an earlier process sent in its last moment may need this long to show.
const SHOWS_WITHIN: Duration = Duration::from_secs(5);

/// How long the launch waits for CDS's word on the job.
const ASKING: Duration = Duration::from_secs(5);

/// Waits for the guest, and launches the worker in it. An error means that the worker was not launched.
pub(super) async fn start_worker(
    spawner: &Spawner,
    new: &NewWorker,
    launch_spec: &LaunchSpec,
    work: &Hold,
    expected: Option<IpAddr>,
    earlier: Earlier,
) -> Result<Launch, MachineError> {
    let up = BringUp { vms: &spawner.vms, work, machine: &new.worker, expected };
    up.wait_ready().await?;
    if earlier == Earlier::Perhaps
        && let Some(launch) = find_earlier(spawner, &new.worker, launch_spec, work.vm()).await?
    {
        return Ok(launch);
    }
    up.prepare(launch_spec).await?;
    still_wanted(spawner, new).await?;
    up.launch(launch_spec).await
}

/// A run may have been stopped while the VM booted. What CDS does not say soon holds nothing up: a worker whose job is gone ends by itself.
async fn still_wanted(spawner: &Spawner, new: &NewWorker) -> Result<(), MachineError> {
    let asked = timeout(ASKING, waits_for_worker(spawner, &new.job.id)).await;
    let Ok(Ok(Some(why))) = asked else { return Ok(()) };
    let (phase, machine) = (phase::LAUNCHING, new.worker.to_string());
    Err(MachineError::Unwanted { phase, machine, why })
}

/// Looks twice before it believes that nothing was launched: two launches are worse than a late one.
async fn find_earlier(
    spawner: &Spawner,
    worker: &str,
    launch_spec: &LaunchSpec,
    vm: &VmId,
) -> Result<Option<Launch>, MachineError> {
    for look in 0..2 {
        if look > 0 {
            sleep(SHOWS_WITHIN).await;
        }
        let mut pauses = Pauses::within(spawner.vms.machines.longest(phase::PROBING));
        let seen = loop {
            match spawner.vms.look_for_launch(vm, &launch_spec.credentials).await {
                Ok(seen) => break seen,
                Err(error) => {
                    if !error.may_pass() || !pauses.pause().await {
                        return Err(error);
                    }
                }
            }
        };
        match seen {
            LaunchSeen::Absent => {}
            LaunchSeen::Running { pid } => return Ok(Some(Launch::Running { pid })),
            LaunchSeen::Ended(exit) => {
                let (phase, machine) = (phase::LAUNCHING, worker.to_owned());
                return Err(MachineError::Exit { phase, machine, code: exit.code });
            }
        }
    }
    Ok(None)
}
