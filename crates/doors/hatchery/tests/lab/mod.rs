//! A hatchery at work on a simulated vCenter and a simulated CDS API, on paused time, all from one seed.
//!
//! A test says what its operator's file and its demand are about, lets time pass, and asks what is true afterwards. While it runs, [`Truth`]
//! looks at what every moment must show; a lab that is dropped with a violation fails its test.
#![allow(dead_code, reason = "each test target uses its own part")]
#![allow(unused_imports, reason = "each test target uses its own part")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod doors;
mod guests;
mod log;
mod service;
mod setup;
mod truth;
mod world;

use std::ops::Deref;
use std::time::Duration;

use roost_cds::{JobId, JobStatus};
use roost_cds_sim::{V1Demand, V2Demand};
use roost_hatchery::run::Hatchery;
use roost_vcenter_sim::{Power, VmGlance};
use tokio::time::{Instant, sleep};

pub(crate) use doors::{CrashAt, Fuse};
pub(crate) use guests::{Conduct, Guests, Launch};
pub(crate) use log::Log;
pub(crate) use service::{Service, Start, chain};
pub(crate) use setup::{GUEST_PASSWORD, Setup, VCENTER_PASSWORD};
pub(crate) use truth::{Invariant, MISREPORTED, Note, Truth, Violation};
pub(crate) use world::{DEBIAN, GoVm, UBUNTU, World, WorldOptions};

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn mins(mins: u64) -> Duration {
    Duration::from_mins(mins)
}

/// A world with one hatchery in it.
pub(crate) struct Lab {
    world: World,
    pub(crate) service: Service,
    pub(crate) truth: Truth,
}

impl Deref for Lab {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Lab {
    /// An open hatchery that speaks V1 and V2, has room for ten workers, and keeps no spares.
    pub(crate) async fn new() -> Self {
        Self::of(Setup::new("hv1")).await
    }

    pub(crate) async fn of(setup: Setup) -> Self {
        Self::in_world(WorldOptions::default(), setup).await
    }

    pub(crate) async fn in_world(options: WorldOptions, setup: Setup) -> Self {
        let mut lab = Self::closed(options, setup);
        lab.open().await;
        lab
    }

    /// With a hatchery that is not started yet.
    pub(crate) fn closed(options: WorldOptions, setup: Setup) -> Self {
        let world = World::start(options);
        let mut truth = Truth::watch(&world);
        truth.expect_of(&setup);
        Self { service: Service::new(setup), world, truth }
    }

    /// Starts the hatchery and waits until it decides.
    pub(crate) async fn open(&mut self) {
        self.service.open(&self.world).await;
    }

    /// Starts a process that dies at the given call, if it comes so far.
    pub(crate) async fn start_to_die(&mut self, crash: CrashAt) -> Start {
        self.service.start(&self.world, Some(crash)).await
    }

    pub(crate) fn hatchery(&self) -> &Hatchery {
        self.service.hatchery()
    }

    /// The process dies, wherever it is.
    pub(crate) fn crash(&mut self) {
        self.service.crash();
    }

    /// The process dies and comes back at once, with the same file.
    pub(crate) async fn restart(&mut self) {
        self.crash();
        self.open().await;
    }

    /// The process dies and comes back with another file of the same hatchery.
    pub(crate) async fn restart_with(&mut self, setup: Setup) {
        self.crash();
        self.truth.expect_of(&setup);
        self.service = Service::new(setup);
        self.open().await;
    }

    /// The hatchery's own VMs, templates aside.
    pub(crate) fn own_vms(&self) -> Vec<VmGlance> {
        self.world.vms_of(self.service.name())
    }

    pub(crate) fn own_names(&self) -> Vec<String> {
        self.own_vms().into_iter().map(|vm| vm.name.to_string()).collect()
    }

    /// Spares that are ready to be claimed.
    pub(crate) fn ready_spares(&self) -> Vec<VmGlance> {
        let is_ready = |vm: &VmGlance| {
            let note = Note::of(vm).unwrap_or_default();
            vm.power == Power::Off && vm.has_run && note.provisioning && !note.to_delete
        };
        self.own_vms().into_iter().filter(is_ready).collect()
    }

    /// The VM that serves this job.
    pub(crate) fn vm_of(&self, job: &JobId) -> Option<VmGlance> {
        let text = job.to_string();
        self.own_vms().into_iter().find(|vm| Note::of(vm).is_some_and(|note| note.job_id == text))
    }

    /// What the hatchery last decided about a job.
    pub(crate) fn verdict(&self, job: &JobId) -> Option<std::sync::Arc<roost_fleet::Decision>> {
        self.service.verdict(job)
    }

    /// The gate that keeps a job waiting.
    pub(crate) fn bound_by(&self, job: &JobId) -> Option<&'static str> {
        self.verdict(job)?.bound_by
    }

    /// Waits until there are so many spares that can be claimed.
    pub(crate) async fn wait_for_spares(&self, number: usize) {
        let what = format!("{number} spares are ready");
        wait_until(&what, mins(30), || self.ready_spares().len() == number).await;
    }

    /// Waits until only what the pools ask for is left of our VMs, and nothing is promised.
    pub(crate) async fn wait_until_clean(&self, spares: usize) {
        let is_clean = || self.own_vms().len() == spares && self.ready_spares().len() == spares;
        wait_until("nothing but spares is left", mins(90), is_clean).await;
    }

    /// Fails the test at once if a moment so far has shown what must never be.
    pub(crate) fn check(&self) {
        let violations = self.truth.violations();
        assert!(violations.is_empty(), "seed {}: {violations:#?}", self.world.seed);
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.truth.look();
            self.check();
        }
    }
}

/// Demand and how it fares.
impl World {
    pub(crate) fn v1_job(&self, demand: V1Demand) -> JobId {
        JobId::V1(self.cds.add_v1_job(demand))
    }

    pub(crate) fn v2_job(&self, demand: V2Demand) -> JobId {
        JobId::V2(self.cds.add_v2_job(demand).expect("the model exists"))
    }

    /// A V2 job of half a minute on `debian12`.
    pub(crate) fn job(&self) -> JobId {
        self.v2_job(V2Demand::new(DEBIAN))
    }

    pub(crate) fn jobs(&self, number: usize) -> Vec<JobId> {
        (0..number).map(|_| self.job()).collect()
    }

    pub(crate) fn status(&self, job: &JobId) -> JobStatus {
        self.cds.job(job).expect("the job was queued").status
    }

    pub(crate) async fn wait_for(&self, job: &JobId, status: JobStatus) {
        let what = format!("{job} is {status:?}");
        wait_until(&what, mins(120), || self.status(job) == status).await;
    }

    pub(crate) async fn wait_for_all(&self, jobs: &[JobId], status: JobStatus) {
        for job in jobs {
            self.wait_for(job, status).await;
        }
    }
}

/// Lets simulated time pass until it holds. Looks twice in a second.
pub(crate) async fn wait_until(what: &str, patience: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !holds() {
        assert!(Instant::now() < deadline, "{patience:?} have passed without this: {what}");
        sleep(Duration::from_millis(500)).await;
    }
}
