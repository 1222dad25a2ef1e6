//! What runs in the guests: the worker that the launch script starts, and what else a guest may do with that script.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::{JobId, Secret, WorkerConfig};
use roost_cds_sim::{CdsApi, Worker, WorkerEnd};
use roost_clock::{Clock, SimClock};
use roost_vcenter_sim::{GuestEffect, GuestProgram, GuestReply, GuestRun, GuestWork};
use tokio::time::sleep;

/// What a guest makes of the launch script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conduct {
    /// The worker runs, and the guest shuts down as the script says.
    Obedient,
    /// The same, after this long: a slow download.
    Slow(Duration),
    /// The script ends with an error before there is a worker, and the guest stays on.
    ScriptFails,
    /// The script hangs before there is a worker.
    Hangs,
    /// There is no worker, and the guest shuts down at once.
    GoesDown,
    /// The worker runs, and the guest stays on.
    StaysOn,
}

/// A launch script that was started in a guest.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) vm: String,
    /// `None` for a registration.
    pub(crate) job: Option<JobId>,
    pub(crate) at: Timestamp,
    pub(crate) arguments: String,
    pub(crate) state: Working,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Working {
    /// The script runs; whether the worker does depends on the [`Conduct`].
    Running,
    Ended(Option<WorkerEnd>),
    /// Its VM went down with the worker at work.
    CutShort(Timestamp),
}

type Judge = Box<dyn FnMut(&Launch) -> Conduct + Send>;
type Prepare = Box<dyn FnMut(&GuestProgram) -> Option<GuestReply> + Send>;

/// All guests of a vCenter. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Guests {
    shared: Arc<Shared>,
}

struct Shared {
    cds: CdsApi,
    clock: Arc<SimClock>,
    launches: Mutex<Vec<Launch>>,
    conduct: Mutex<Judge>,
    others: Mutex<Prepare>,
}

impl fmt::Debug for Guests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guests").finish_non_exhaustive()
    }
}

impl Guests {
    pub(crate) fn new(cds: &CdsApi, clock: &Arc<SimClock>) -> Self {
        Self {
            shared: Arc::new(Shared {
                cds: cds.clone(),
                clock: Arc::clone(clock),
                launches: Mutex::default(),
                conduct: Mutex::new(Box::new(|_| Conduct::Obedient)),
                others: Mutex::new(Box::new(|_| None)),
            }),
        }
    }

    /// Decides from now on what guests make of launch scripts.
    pub(crate) fn conduct(&self, judge: impl FnMut(&Launch) -> Conduct + Send + 'static) {
        *self.shared.conduct.lock().unwrap() = Box::new(judge);
    }

    /// Decides from now on what all other programs do; `None` leaves them to the simulator.
    pub(crate) fn others(
        &self,
        decide: impl FnMut(&GuestProgram) -> Option<GuestReply> + Send + 'static,
    ) {
        *self.shared.others.lock().unwrap() = Box::new(decide);
    }

    /// Every launch so far, oldest first.
    pub(crate) fn launches(&self) -> Vec<Launch> {
        self.shared.launches.lock().unwrap().clone()
    }

    pub(crate) fn launches_of(&self, job: &JobId) -> Vec<Launch> {
        self.launches().into_iter().filter(|launch| launch.job.as_ref() == Some(job)).collect()
    }

    pub(crate) fn with_launches<T>(&self, look: impl FnOnce(&[Launch]) -> T) -> T {
        look(&self.shared.launches.lock().unwrap())
    }

    /// What the simulator asks for each program.
    pub(crate) fn run(&self, program: &GuestProgram) -> Option<GuestReply> {
        let Some(config) = program.variable(WorkerConfig::VARIABLE) else {
            return (self.shared.others.lock().unwrap())(program);
        };
        let config = WorkerConfig::decode(&Secret::from(config)).expect("a CDS_CONFIG that reads");
        let launch = Launch {
            vm: program.vm.clone(),
            job: config.job(),
            at: self.shared.clock.now(),
            arguments: program.arguments.clone(),
            state: Working::Running,
        };
        let conduct = (self.shared.conduct.lock().unwrap())(&launch);
        let mut launches = self.shared.launches.lock().unwrap();
        let number = launches.len();
        launches.push(launch);
        drop(launches);
        let (guests, program) = (self.clone(), program.clone());
        let work = GuestWork::new(move || {
            let (guests, program) = (guests.clone(), program.clone());
            async move { guests.work(number, &program, conduct).await }
        });
        Some(work.into())
    }

    async fn work(&self, number: usize, program: &GuestProgram, conduct: Conduct) -> GuestRun {
        let mut end = EndOf { guests: self, number, state: None };
        let end_state = |worked| Some(Working::Ended(worked));
        let run = match conduct {
            Conduct::ScriptFails => {
                end.state = end_state(None);
                return GuestRun::exits(1);
            }
            Conduct::Hangs => {
                end.state = end_state(None);
                return GuestRun::hangs();
            }
            Conduct::GoesDown => {
                end.state = end_state(None);
                return GuestRun::exits(1).then(GuestEffect::PowerOff);
            }
            Conduct::Slow(by) => {
                sleep(by).await;
                self.run_worker(program).await
            }
            Conduct::Obedient | Conduct::StaysOn => self.run_worker(program).await,
        };
        end.state = end_state(run);
        let goes_down = program.arguments.contains("shutdown") && conduct != Conduct::StaysOn;
        let run = GuestRun::exits(0);
        if goes_down { run.then(GuestEffect::PowerOff) } else { run }
    }

    async fn run_worker(&self, program: &GuestProgram) -> Option<WorkerEnd> {
        let pairs = program.environment.iter().filter_map(|pair| pair.split_once('='));
        let env: BTreeMap<String, String> =
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let cds = Arc::new(self.shared.cds.clone());
        let worker = Worker::from_env(&env, cds, Arc::clone(&self.shared.clock) as Arc<dyn Clock>);
        worker.expect("a configuration that a worker can use").run().await.ok()
    }
}

/// Notes how a launch ended, also if it was dropped on the way.
struct EndOf<'a> {
    guests: &'a Guests,
    number: usize,
    state: Option<Working>,
}

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        let now = self.guests.shared.clock.now();
        let state = self.state.take().unwrap_or(Working::CutShort(now));
        self.guests.shared.launches.lock().unwrap()[self.number].state = state;
    }
}
