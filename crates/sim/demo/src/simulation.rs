//! The thread on which the simulation runs, from the first VM to the last word.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use prometheus_client::registry::Registry;
use roost_clock::{Clock, Random, SimClock};
use roost_door::{Core, Feed, FrontDoor, History, House, JoinedCore, Links};
use roost_fleet::Recognise;
use roost_hatchery::config::{Config, Surroundings};
use roost_hatchery::metrics::Metrics;
use roost_hatchery::run::{Hatchery, OpenFleet, StartError, Stopped, Wiring};
use roost_hatchery::{Build, HatcheryDoor};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::CONSOLE_TOKEN;
use super::Speed;
use super::beside::{self, Cluster, KubeDoors, Stories};
use super::chaos::Chaos;
use super::config::{self, Nowhere};
use super::demand::Demand;
use super::looking_in::LookingIn;
use super::narrator::narrate;
use super::pacer::{Pace, keep_pace};
use super::reckoning::reckon;
use super::report::{Ended, Report};
use super::stage::Stage;
use super::tricks::Tricks;
use super::witness::Witness;
use super::world::{FOREIGN_VMS, World};

const LOOK: Duration = Duration::from_secs(1);
/// Without any job that ends or VM that goes for this long, nothing will come any more.
const PATIENCE: Duration = Duration::from_hours(1);
/// At the end: for steps that are under way.
const GRACE: Duration = Duration::from_mins(2);
/// How fast it goes on after the end if it was as fast as it goes before.
const AFTERWARDS: f64 = 1.0;
/// How long a process that was killed is gone.
const DOWN: Duration = Duration::from_secs(10);

/// What a simulation is told at its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) seed: u64,
    pub(super) jobs: usize,
    pub(super) speed: Speed,
    pub(super) chaos: bool,
    pub(super) keep: bool,
    /// Lines about what happens, on stdout.
    pub(super) narrates: bool,
    /// The Kubernetes doors work beside the hatchery.
    pub(super) all_doors: bool,
}

/// A simulation on its own thread. It ends when this is dropped, or by itself.
#[derive(Debug)]
pub(super) struct Simulation {
    /// What there is to see, once it runs.
    pub(super) stage: oneshot::Receiver<Stage>,
    /// The summary, once all jobs are done or somebody ended it.
    pub(super) report: watch::Receiver<Option<Arc<Report>>>,
    /// Closed with the thread, with what went wrong if anything did.
    pub(super) ended: oneshot::Receiver<anyhow::Result<()>>,
    stop: watch::Sender<bool>,
    /// What the pacer waits with; see [`keep_pace`].
    hold: Option<mpsc::Sender<()>>,
}

impl Simulation {
    pub(super) fn start(setting: Setting) -> anyhow::Result<Self> {
        let (stage_sender, stage) = oneshot::channel();
        let (report_sender, report) = watch::channel(None);
        let (end, ended) = oneshot::channel();
        let (stop, stopped) = watch::channel(false);
        let (hold, release) = mpsc::channel();
        let play = Play { setting, report: report_sender, stopped };
        let thread = move || {
            let _ = end.send(play.perform(stage_sender, release));
        };
        std::thread::Builder::new()
            .name("simulation".into())
            .spawn(thread)
            .context("starting the simulation's thread")?;
        Ok(Self { stage, report, ended, stop, hold: Some(hold) })
    }

    /// Somebody has seen enough.
    pub(super) fn stop(&mut self) {
        self.stop.send_replace(true);
        self.hold = None;
    }
}

/// The thread's own part.
struct Play {
    setting: Setting,
    report: watch::Sender<Option<Arc<Report>>>,
    stopped: watch::Receiver<bool>,
}

impl Play {
    fn perform(
        self,
        stage: oneshot::Sender<Stage>,
        release: mpsc::Receiver<()>,
    ) -> anyhow::Result<()> {
        // Time only: the clock jumps, and a network would not jump with it.
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .context("starting the simulation")?;
        runtime.block_on(self.run(stage, release))
    }

    async fn run(
        mut self,
        opened: oneshot::Sender<Stage>,
        release: mpsc::Receiver<()>,
    ) -> anyhow::Result<()> {
        let Setting { seed, speed, .. } = self.setting;
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let random = Random::from_seed(seed);
        let config = Arc::new(config::load()?);
        let world = World::start(&random, &clock, FOREIGN_VMS)?;
        let witness = Witness::new(world.clone(), config.ledger_limits());
        let feed = Feed::default();
        let cluster = if self.setting.all_doors {
            Some(Cluster::start(&world, &random, &clock).await?)
        } else {
            None
        };
        let surroundings = Around { config, clock: Arc::clone(&clock), random, feed, cluster };
        let mut life = surroundings.open(&world).await?;
        let shown: Vec<_> = life.doors().into_iter().map(LookingIn::new).collect();
        let shown_core = LookingIn::new(life.core());
        let Around { random, feed, cluster, .. } = &surroundings;
        let demand = Demand::draw(self.setting.jobs, &mut random.fork("demand"));
        let (pace, restart) = (Pace::new(speed), Arc::new(Notify::new()));
        let mut house = House {
            name: life.hatchery.name().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: clock.now(),
            clock: LookingIn::new(Arc::clone(&clock)),
            observes_only: false,
            doors: shown.iter().map(|door| Arc::clone(door) as Arc<dyn FrontDoor>).collect(),
            core: Some(Arc::clone(&shown_core) as Arc<dyn Core>),
            feed: feed.clone(),
            history: History::default(),
            links: Links::default(),
            demonstration: None,
        };
        let jobs = Arc::new(AtomicU64::new(demand.jobs() as u64));
        house.demonstration = Some(Arc::new(Tricks {
            world: world.clone(),
            witness: witness.clone(),
            jobs: Arc::clone(&jobs),
            pace: Arc::clone(&pace),
            restart: Arc::clone(&restart),
            simulation: Handle::current(),
            token: CONSOLE_TOKEN.to_owned(),
            seed,
            waves: AtomicU64::new(0),
            kube: cluster.as_ref().map(|cluster| cluster.kube.clone()),
        }));
        let mut tasks = JoinSet::new();
        let stories = match (cluster, house.doors.as_slice()) {
            (Some(cluster), [_, objects, nodes, pods]) => {
                tasks.spawn(cluster.clone().go_on());
                let theirs = [objects, nodes, pods].map(Arc::clone);
                beside::tell(cluster, &world, theirs, &mut tasks)
            }
            _ => Stories::default(),
        };
        let house = Arc::new(house);
        let (world_seen, witness_seen) = (world.clone(), witness.clone());
        let stage = Stage {
            house,
            world: world_seen,
            witness: witness_seen,
            jobs,
            stories,
            contradiction: Arc::default(),
        };
        let began = Instant::now();
        // Nobody has to look on.
        let _ = opened.send(stage.clone());

        tasks.spawn(keep_pace(Arc::clone(&pace), release));
        tasks.spawn(witness.clone().keep_looking());
        tasks.spawn(arrive(demand, witness.clone(), world.clone()));
        let chaos = self.setting.chaos.then(|| Chaos::begin(world.clone()));
        if let Some(chaos) = chaos.clone() {
            tasks.spawn(chaos.go_on(random.fork("blows")));
        }
        if self.setting.narrates {
            tasks.spawn(narrate(stage.clone()));
        }
        let mut settling = Box::pin(until_settled(&stage, chaos.as_ref()));
        let mut ended = None;
        let ended = loop {
            // After the end it goes on for as long as somebody looks at its page.
            if let Some(ended) = ended
                && !(self.setting.keep || stage.is_looked_at())
            {
                break ended;
            }
            tokio::select! {
                biased;
                () = was_stopped(&mut self.stopped) => break ended.unwrap_or(Ended::Stopped),
                Some(why) = gave_up(&life.hatchery) => bail!("the hatchery stopped: {why}"),
                settled = &mut settling, if ended.is_none() => {
                    let report = reckon(&stage, seed, settled, began.elapsed(), chaos.as_ref());
                    self.report.send_replace(Some(Arc::new(report)));
                    ended = Some(settled);
                    if speed == Speed::Max {
                        pace.set(AFTERWARDS);
                    }
                }
                () = restart.notified() => {
                    // The process dies as it is; what it asked for is carried out nevertheless.
                    drop(life);
                    sleep(DOWN).await;
                    life = surroundings.open(&world).await?;
                    for (shown, door) in shown.iter().zip(life.doors()) {
                        shown.replace(door);
                    }
                    shown_core.replace(life.core());
                    stage.house.history.note(clock.now(), "killed and started again");
                }
                () = sleep(LOOK), if ended.is_some() => {}
            }
        };
        if self.report.borrow().is_none() {
            let report = reckon(&stage, seed, ended, began.elapsed(), chaos.as_ref());
            self.report.send_replace(Some(Arc::new(report)));
        }
        tasks.abort_all();
        // What they need goes after them.
        life.beside = None;
        life.hatchery.shut_down(GRACE).await;
        life.hatchery.fleet().shut_down().await;
        Ok(())
    }
}

/// What a process of Roost is started with, and started with again.
struct Around {
    config: Arc<Config>,
    clock: Arc<dyn Clock>,
    random: Random,
    feed: Feed,
    cluster: Option<Cluster>,
}

impl Around {
    async fn open(&self, world: &World) -> anyhow::Result<Life> {
        let Self { config, clock, random, feed, cluster } = self;
        let mut registry = Registry::default();
        let metrics = Arc::new(Metrics::register(&mut registry, &config.identity.name));
        let others = cluster.as_ref().map(|_| Cluster::recognise()).unwrap_or_default();
        let wiring = wiring(config, world, clock, random, &metrics, others).await;
        let wiring = wiring.context("opening the vCenter")?;
        let hatchery = Hatchery::start(wiring).await.context("starting the hatchery")?;
        hatchery.opened().await;
        let controls = Some(hatchery.controls());
        let build = Build::default();
        let door = HatcheryDoor::new(hatchery.window(), controls, registry, metrics, build, feed);
        let beside = match cluster {
            Some(cluster) => Some(cluster.open(hatchery.fleet()).await?),
            None => None,
        };
        Ok(Life { hatchery, door, beside })
    }
}

/// One life of Roost: a hatchery that decides, the doors beside it, and what is shown of them.
struct Life {
    hatchery: Hatchery,
    door: Arc<HatcheryDoor>,
    beside: Option<KubeDoors>,
}

impl Life {
    fn doors(&self) -> Vec<Arc<dyn FrontDoor>> {
        let mut doors = vec![Arc::clone(&self.door) as Arc<dyn FrontDoor>];
        doors.extend(self.beside.iter().flat_map(|beside| beside.doors.iter().cloned()));
        doors
    }

    fn core(&self) -> Arc<dyn Core> {
        let first = Arc::clone(&self.door) as Arc<dyn Core>;
        match &self.beside {
            None => first,
            Some(beside) => Arc::new(JoinedCore {
                first,
                others: vec![Arc::clone(&beside.core)],
                doors: self.doors().iter().map(|door| door.words()).collect(),
                registries: beside.registries.clone(),
            }),
        }
    }
}

pub(super) async fn wiring(
    config: &Arc<Config>,
    world: &World,
    clock: &Arc<dyn Clock>,
    random: &Random,
    metrics: &Arc<Metrics>,
    others: Vec<Arc<dyn Recognise>>,
) -> Result<Wiring, StartError> {
    let surroundings: Arc<dyn Surroundings + Send + Sync> = Arc::new(Nowhere);
    let vcenter =
        OpenFleet::open(config, &surroundings, world.door(), clock, metrics, others).await?;
    Ok(Wiring {
        config: Arc::clone(config),
        surroundings,
        vcenter,
        cds: Arc::new(world.cds.clone()),
        clock: Arc::clone(clock),
        random: random.fork("hatchery"),
        metrics: Arc::clone(metrics),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hostname: "demo".to_owned(),
    })
}

async fn arrive(demand: Demand, witness: Witness, world: World) {
    demand.arrive(world.cds, |job| witness.queued(job)).await;
    witness.all_queued();
}

async fn was_stopped(stopped: &mut watch::Receiver<bool>) {
    // A sender that is gone has stopped it as well.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Why the hatchery cannot go on, as soon as that is so.
async fn gave_up(hatchery: &Hatchery) -> Option<Stopped> {
    hatchery.stopped().wait_for(Option::is_some).await.ok().and_then(|why| why.clone())
}

/// Until every job is done or refused and only the spares of the pools are left. Faults end with the last job, so that what they left behind can
/// be cleaned up.
async fn until_settled(stage: &Stage, chaos: Option<&Chaos>) -> Ended {
    let (mut last_news, mut before) = (Instant::now(), None);
    loop {
        sleep(LOOK).await;
        stage.compare();
        let open = stage.witness.unfinished().len();
        let vms = stage.witness.vms();
        let is_over = stage.witness.have_all_arrived() && open == 0;
        if is_over && let Some(chaos) = chaos {
            chaos.end();
        }
        let wanted: u64 = stage.pools().iter().map(|pool| pool.wanted).sum();
        let all_refused = || {
            let jobs = stage.witness.jobs();
            stage.refused().len() == jobs.iter().filter(|job| job.impossible.is_some()).count()
        };
        let is_over = is_over && stage.stories.are_over();
        if is_over && vms.others == 0 && vms.spares == wanted && all_refused() {
            return Ended::ByItself;
        }
        let now = Some((open, vms));
        if before != now {
            (last_news, before) = (Instant::now(), now);
        }
        if last_news.elapsed() > PATIENCE {
            return Ended::Stuck;
        }
    }
}
