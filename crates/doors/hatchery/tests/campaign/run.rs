//! One seed from its first job to the last look.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

use roost_cds::v1::ModelPath;
use roost_cds::{JobId, JobStatus};
use roost_cds_sim::{JobReport, V1Demand, V2Demand};
use roost_clock::Random;
use roost_fleet::{Query, Resume};
use roost_hatchery::planted::{self, Bug};
use roost_vcenter_sim::{GuestBehaviour, Outage};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::draw::{Draw, Speaks, misconduct};
use crate::keeper::keep;
use crate::lab::{
    Conduct, DEBIAN, Invariant, Service, Truth, UBUNTU, Violation, World, WorldOptions, mins, secs,
};

/// The V1 model of every run.
pub(crate) const V1_MODEL: &str = "shared.infra/classic";

/// After the last fault everything must be in order within this time. A V2 job may be put off for an hour by its attempts and fail after another.
const PATIENCE: Duration = Duration::from_hours(5);
/// Once everything was in order, whatever begins by itself is over within this time: a V1 model that is registered again, from its template to
/// the end of its VM's grace period.
const AT_REST: Duration = Duration::from_mins(20);

/// How a seed came out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcomes {
    pub(crate) violations: Vec<Violation>,
    /// A panic, which is as bad.
    pub(crate) panic: Option<String>,
    pub(crate) digest: u64,
    pub(crate) tally: Tally,
}

impl Outcomes {
    pub(crate) fn is_well(&self) -> bool {
        self.violations.is_empty() && self.panic.is_none()
    }

    pub(crate) fn broke(&self, invariant: Invariant) -> bool {
        self.violations.iter().any(|violation| violation.invariant == invariant)
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) jobs: u64,
    pub(crate) succeeded: u64,
    pub(crate) launches: u64,
    pub(crate) deaths: u64,
    pub(crate) calls: u64,
    pub(crate) simulated: Duration,
}

/// Runs a seed on a runtime of its own.
pub(crate) fn run(seed: u64, bug: Option<Bug>) -> Outcomes {
    let run = || {
        planted::plant(bug);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(play(seed))
    };
    let outcome = catch_unwind(AssertUnwindSafe(run));
    planted::plant(None);
    BEGAN.set(None);
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        let words = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Outcomes { panic: Some(words.unwrap_or_default()), ..Outcomes::default() }
    })
}

thread_local! {
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// How much simulated time has passed in the run of this thread.
pub(crate) fn elapsed() -> Option<Duration> {
    BEGAN.get().map(|began| began.elapsed())
}

async fn play(seed: u64) -> Outcomes {
    let began = Instant::now();
    BEGAN.set(Some(began));
    let Draw { setups, deaths, acts, trouble, worker_ttl, timings, latency, misconduct, speaks } =
        Draw::of(seed);
    let mut options = WorldOptions { timings, ..WorldOptions::seed(seed) };
    options.cds.latency = latency;
    // A V2 job that has had all of its attempts waits for this; a shorter wait shows the same.
    options.cds.timings.v2_waiting = mins(50);
    let world = World::start(options);
    world.v1_model("classic");
    behave(&world, misconduct);
    let mut truth = Truth::watch(&world);
    for setup in &setups {
        truth.expect_of(setup);
    }
    let mut services: Vec<Service> = setups.into_iter().map(Service::new).collect();

    let (over, is_over) = watch::channel(false);
    let story = async {
        let played = acts.play(&world, trouble).await;
        calm(&world);
        over.send_replace(true);
        played
    };
    let keepers = services
        .iter_mut()
        .zip(&deaths)
        .map(|(service, deaths)| keep(service, &world, deaths, is_over.clone()));
    let (played, died) = tokio::join!(story, in_turn_together(keepers));

    serve_all(&world, &truth, &services, &played.impossible, speaks).await;
    look_back(&world, &truth, &services, &played.disturbed, worker_ttl);
    let jobs = world.cds.jobs();
    let tally = Tally {
        jobs: jobs.len() as u64,
        succeeded: jobs.iter().filter(|job| job.status == JobStatus::Success).count() as u64,
        launches: world.guests.launches().len() as u64,
        deaths: died.iter().sum(),
        calls: world.vcenter.counters().total_calls(),
        simulated: began.elapsed(),
    };
    let digest = digest(&world, &services, &jobs);
    Outcomes { violations: truth.violations(), panic: None, digest, tally }
}

/// All of them at once; a hatchery and its keeper need no task of their own.
async fn in_turn_together<F: Future<Output = u64>>(keepers: impl Iterator<Item = F>) -> Vec<u64> {
    let mut keepers: Vec<_> = keepers.map(Box::pin).collect();
    match keepers.as_mut_slice() {
        [one] => vec![one.await],
        [one, two] => {
            let (one, two) = tokio::join!(one, two);
            vec![one, two]
        }
        _ => unreachable!("there are one or two hatcheries"),
    }
}

fn behave(world: &World, probability: f64) {
    let random = Mutex::new(Random::from_seed(world.seed).fork("guests"));
    world.guests.conduct(move |_| {
        let mut random = random.lock().unwrap();
        if random.chance(probability) { misconduct(&mut random) } else { Conduct::Obedient }
    });
}

/// From here on nothing goes wrong any more. What hangs in the vCenter ends with a restart of it.
fn calm(world: &World) {
    tracing::info!("** all is well from here on");
    world.vcenter.faults().clear();
    world.vcenter.restart(Outage { lasts: secs(5), refuses: true });
    world.cds.clear_faults();
    world.cds.come_back();
    for template in ["debian12", "ubuntu24"] {
        world.vcenter.set_guest_behaviour(template, GuestBehaviour::default()).unwrap();
    }
    world.guests.conduct(|_| Conduct::Obedient);
    // CDS gives up a model that could not be started so often; its owner has had a look at it.
    world.cds.change_model(&ModelPath::parse(V1_MODEL), |model| model.nb_spawn_err = 0);
}

/// Jobs that nothing stands in the way of.
fn probe(world: &World, speaks: Speaks) -> Vec<JobId> {
    let v2 = [DEBIAN, UBUNTU].map(V2Demand::new);
    match speaks {
        Speaks::V1 => vec![world.v1_job(V1Demand::new().model(V1_MODEL))],
        Speaks::V2 => v2.map(|demand| world.v2_job(demand)).into(),
        Speaks::Both => {
            let v1 = world.v1_job(V1Demand::new().model(DEBIAN));
            v2.map(|demand| world.v2_job(demand)).into_iter().chain([v1]).collect()
        }
    }
}

/// Waits until everything is as it should be. Returns whether it came to that.
async fn settle(
    world: &World,
    truth: &Truth,
    services: &[Service],
    impossible: &BTreeSet<JobId>,
    patience: Duration,
) -> bool {
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        sleep(secs(15)).await;
        for service in services {
            approve(service);
        }
        let jobs = world.cds.jobs();
        let has_ended = |job: &JobReport| job.status.is_final() || impossible.contains(&job.id);
        let is_clean = !services.iter().any(|service| truth.is_anything_left(world, service));
        if jobs.iter().all(has_ended) && is_clean {
            return true;
        }
    }
    false
}

/// What waited is served, and what comes now as well.
async fn serve_all(
    world: &World,
    truth: &Truth,
    services: &[Service],
    impossible: &BTreeSet<JobId>,
    speaks: Speaks,
) {
    let probes = if settle(world, truth, services, impossible, PATIENCE).await {
        let probes = probe(world, speaks);
        settle(world, truth, services, impossible, PATIENCE).await;
        // Whether it stays so. A registration that waited for an old booking of its model may begin in this time, and its VM is then no leftover
        // before its grace period is over.
        sleep(mins(3)).await;
        settle(world, truth, services, impossible, AT_REST).await;
        probes
    } else {
        Vec::new()
    };
    for job in world.cds.jobs() {
        let is_served = if probes.contains(&job.id) {
            job.status == JobStatus::Success
        } else {
            job.status.is_final() || impossible.contains(&job.id)
        };
        if !is_served {
            let why = services.iter().find_map(|service| service.verdict(&job.id));
            let words = format!("{} is {:?}: {}", job.id, job.status, words(why.as_deref()));
            truth.accuse(Invariant::EveryJobServed, &job.id.to_string(), &words);
        }
    }
}

fn words(decision: Option<&roost_fleet::Decision>) -> String {
    decision.map_or_else(|| "nobody says why".to_owned(), ToString::to_string)
}

/// A person looks at a freeze, finds that the VMs may go, and says so.
fn approve(service: &Service) {
    if service.is_running() && service.hatchery().view().overview.deletions.frozen.is_some() {
        tracing::info!("** a person approves the deletions of {}", service.name());
        service.hatchery().resume_deletions(Resume::Approve);
    }
}

/// What can be asked only afterwards.
fn look_back(
    world: &World,
    truth: &Truth,
    services: &[Service],
    disturbed: &BTreeSet<String>,
    worker_ttl: Duration,
) {
    truth.look();
    truth.others_are_untouched(world);
    let all: Vec<&Service> = services.iter().collect();
    truth.every_job_is_explained(world, &all);
    truth.work_is_undisturbed(worker_ttl, disturbed);
    for service in services {
        truth.nothing_is_left(world, service);
        let stopped = service.hatchery().stopped().borrow().clone();
        if let Some(why) = stopped {
            truth.accuse(Invariant::EveryJobServed, service.name(), &format!("it stopped: {why}"));
        }
        for task in service.hatchery().tasks() {
            if task.restarts > 0 {
                let words = format!("{} of {} panicked", task.name, service.name());
                truth.accuse(Invariant::NoPanic, task.name, &words);
            }
        }
    }
}

/// A number that differs when anything of the run does.
fn digest(world: &World, services: &[Service], jobs: &[JobReport]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for job in jobs {
        format!("{job:?}").hash(&mut hasher);
    }
    for event in world.vcenter.events() {
        (event.created_time, event.user_name, event.full_formatted_message).hash(&mut hasher);
    }
    for launch in world.guests.launches() {
        (launch.vm, launch.at).hash(&mut hasher);
    }
    for service in services {
        for decision in service.hatchery().journal().find(&Query::default()) {
            (decision.seq, decision.at, decision.times, decision.to_string()).hash(&mut hasher);
        }
    }
    world.vcenter.counters().total_calls().hash(&mut hasher);
    hasher.finish()
}
