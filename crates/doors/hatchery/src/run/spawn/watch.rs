//! From a script that runs to a worker that CDS knows. A script that has ended is not waited for.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use roost_cds::CallError;
use roost_fleet::{Check, Hold, Pauses, PhaseError, Power, Vm};
use roost_supervise::Tasks;
use roost_vim::{Exit, GuestCredentials};
use tokio::time::{Instant, sleep, sleep_until};

use super::NewWorker;
use super::end::watch_end;
use super::give_up::{hand_back, put_down, record};
use super::job_side::{Standing, standing};
use crate::door::phase;
use crate::run::machine::{Launch, LaunchSeen};
use crate::run::spawn::Spawner;

/// How often it is looked whether CDS knows the worker by now. Only a look at what was read for all workers.
const LOOK: Duration = Duration::from_secs(2);
/// When the guest is asked whether the script still runs, counted from the launch. Each is a call to the vCenter.
const QUESTIONS: [Duration; 3] =
    [Duration::from_mins(1), Duration::from_mins(2), Duration::from_mins(4)];
/// How long CDS is asked what became of the job.
const FINDING_OUT: Duration = Duration::from_mins(5);
/// The name of a step in metrics.
const ENDED: &str = "launch-ended";
/// The VM is waited for as long as the phase lasts.
const NO_END: Duration = Duration::from_hours(24 * 7);

/// A worker that was launched and is not registered yet.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) new: NewWorker,
    pub(super) work: Hold,
    pub(super) credentials: GuestCredentials,
    pub(super) launch: Launch,
}

/// How a watch ended without a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    PoweredOff,
    Gone,
    /// The script ended, or was never there.
    LaunchEnded(Option<Exit>),
}

/// Watches beside everything else until the worker is registered, or has no time left for it.
pub(super) fn watch(spawner: &Arc<Spawner>, tasks: &Tasks, watched: Watched) {
    spawner.signals.workers.notify_one();
    // From here on, also while it registers: a worker may be quicker than the next reading of the list.
    watch_end(spawner, tasks, watched.work.vm(), &watched.new.worker, &watched.new.job.id);
    let spawner = Arc::clone(spawner);
    tasks.aside("registration-watch", async move { until_registered(&spawner, watched).await });
}

async fn until_registered(spawner: &Spawner, watched: Watched) {
    let within = spawner.about.config.lifetimes.registration;
    let waiting = async {
        tokio::select! {
            biased;
            () = registered(spawner, &watched.new.worker) => Ok(()),
            end = off_or_gone(spawner, &watched) => Err(end),
            exit = launch_ended(spawner, &watched) => Err(End::LaunchEnded(exit)),
        }
    };
    let run =
        spawner.vms.timelines.run(&watched.new.worker, phase::REGISTERING, within, waiting).await;
    match run {
        Ok(()) => {
            spawner.scheduler.lock().attempts.forget(&watched.new.job.id);
            drop(watched.work);
        }
        Err(PhaseError::Failed { source, .. }) => conclude(spawner, watched, source).await,
        // The clean-up decides, on views that it believes.
        Err(PhaseError::Overdue { .. }) => drop(watched.work),
    }
    spawner.signals.cleanup.notify_one();
}

async fn registered(spawner: &Spawner, worker: &str) {
    while !spawner.scheduler.lock().facts().registered.contains(worker) {
        sleep(LOOK).await;
    }
}

async fn off_or_gone(spawner: &Spawner, watched: &Watched) -> End {
    let condition = |vm: Option<&Arc<Vm>>| match vm {
        None => Check::Met(End::Gone),
        Some(vm) if vm.power == Power::Off => Check::Met(End::PoweredOff),
        Some(_) => Check::NotYet,
    };
    loop {
        if let Ok(end) = spawner.mirror.wait_until(watched.work.vm(), NO_END, condition).await {
            return end;
        }
    }
}

/// Ends when the guest says that the script has ended, and CDS that nobody works at the job.
async fn launch_ended(spawner: &Spawner, watched: &Watched) -> Option<Exit> {
    let Watched { new, work, credentials, launch } = watched;
    let launched = Instant::now();
    for question in QUESTIONS {
        sleep_until(launched + question).await;
        let exit = match spawner.vms.look_at_launch(work.vm(), credentials, *launch).await {
            Ok(LaunchSeen::Ended(exit)) => Some(exit),
            Ok(LaunchSeen::Absent) => None,
            Ok(LaunchSeen::Running { .. }) | Err(_) => continue,
        };
        if is_unserved(spawner, new).await.unwrap_or(false) {
            return exit;
        }
    }
    pending().await
}

/// Whether CDS surely knows no such worker, and nobody works at the job. What cannot be read says nothing.
async fn is_unserved(spawner: &Spawner, new: &NewWorker) -> Result<bool, CallError> {
    spawner.workers.read().await?;
    if spawner.scheduler.lock().facts().registered.contains(&*new.worker) {
        return Ok(false);
    }
    let (standing, _) = standing(spawner, &new.job.id).await?;
    Ok(matches!(standing, Standing::Held | Standing::Free))
}

/// The VM first, then the job: what might still run in the VM must not meet a second worker.
async fn conclude(spawner: &Spawner, watched: Watched, end: End) {
    let Watched { new, work, .. } = watched;
    let mut pauses = Pauses::within(FINDING_OUT);
    loop {
        match is_unserved(spawner, &new).await {
            Ok(true) => break,
            Err(_) if pauses.pause().await => {}
            // A worker that was quick: registered and done between two readings. Or nobody says, and the clean-up has it.
            Ok(false) | Err(_) => return,
        }
    }
    let (why, step) = match end {
        End::PoweredOff => {
            ("its VM powered off before its worker registered".to_owned(), "powered-off")
        }
        End::Gone => ("its VM vanished before its worker registered".to_owned(), "vanished"),
        End::LaunchEnded(Some(Exit { code, .. })) => (
            format!("the launch script ended with exit code {code}, and no worker registered"),
            ENDED,
        ),
        End::LaunchEnded(None) => {
            ("the launch script does not run, and no worker registered".to_owned(), ENDED)
        }
    };
    record(spawner, &new, Some(work.vm()), &why, step);
    put_down(spawner, work, &why).await;
    hand_back(spawner, &new, &why).await;
    spawner.signals.plan.notify_one();
}
