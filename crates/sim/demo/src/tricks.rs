//! What somebody who looks on can do to the world of the demo.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use roost_cds_sim::Fault;
use roost_clock::Random;
use roost_door::{Demonstration, Refused, Trick};
use roost_kube_sim::KubeSim;
use roost_vcenter_sim::{Action, Outage, Rule};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::demand::Demand;
use super::pacer::Pace;
use super::witness::Witness;
use super::world::World;

/// Long enough to see banners, gates and the recovery at the usual speed.
const OUTAGE: Duration = Duration::from_mins(2);
/// Clones that a full datastore refuses, and calls that hang.
const FULL: u64 = 15;
const HUNG: u64 = 5;
/// Requests to CDS that fail while it is cut off.
const CUT: u64 = 120;
const MORE_JOBS: usize = 50;
/// Beside CDS.
const CUT_KUBE_AT: usize = 4;

/// The tricks of one demo.
#[derive(Debug)]
pub(super) struct Tricks {
    pub(super) world: World,
    pub(super) witness: Witness,
    /// How many will have come by the end.
    pub(super) jobs: Arc<AtomicU64>,
    pub(super) pace: Arc<Pace>,
    /// Told when Roost itself is to die and start again.
    pub(super) restart: Arc<Notify>,
    pub(super) simulation: Handle,
    pub(super) token: String,
    pub(super) seed: u64,
    pub(super) waves: AtomicU64,
    /// The API server of the doors beside the hatchery, if they are there.
    pub(super) kube: Option<KubeSim>,
}

impl Tricks {
    fn add_jobs(&self) {
        let wave = self.waves.fetch_add(1, Ordering::Relaxed);
        let mut random = Random::from_seed(self.seed.wrapping_add(wave)).fork("more jobs");
        let demand = Demand::draw(MORE_JOBS, &mut random).at_once();
        self.jobs.fetch_add(demand.jobs() as u64, Ordering::Relaxed);
        let (witness, cds) = (self.witness.clone(), self.world.cds.clone());
        self.simulation.spawn(async move { demand.arrive(cds, |job| witness.queued(job)).await });
    }
}

impl Demonstration for Tricks {
    fn pace(&self) -> String {
        self.pace.to_string()
    }

    fn token(&self) -> String {
        self.token.clone()
    }

    fn tricks(&self) -> Vec<Trick> {
        let trick = |name, words: &str, about| Trick { name, words: words.to_owned(), about };
        let pause = if self.pace.is_paused() { "Let time go on" } else { "Stop time" };
        let mut tricks = vec![
            trick("restart-vcenter", "Restart vCenter", "refuses all calls for 2 minutes"),
            trick("fill-datastore", "Fill the datastore", "the next 15 clones fail"),
            trick("hang-calls", "Hang calls", "the next 5 changes of VMs are never answered"),
            trick("cut-cds", "Cut off CDS", "it answers with errors and closes its websockets"),
            trick("add-jobs", "Add 50 jobs", "all at once: see who waits for what"),
            trick("restart-roost", "Kill and restart Roost", "it must lose and double nothing"),
            trick("mend", "Mend everything", "takes back what was broken"),
            trick("slower", "Half speed", "for a closer look"),
            trick("faster", "Double speed", "for the impatient"),
            trick("pause", pause, "the page goes on"),
        ];
        if self.kube.is_some() {
            let cut = trick("cut-kube", "Cut off the API server", "it is away for 2 minutes");
            tricks.insert(CUT_KUBE_AT, cut);
        }
        tricks
    }

    fn play(&self, name: &str) -> Result<String, Refused> {
        let World { vcenter, cds } = &self.world;
        // Whatever waits within them waits on the simulation's time.
        let _time = self.simulation.enter();
        Ok(match name {
            "restart-vcenter" => {
                vcenter.restart(Outage { lasts: OUTAGE, refuses: true });
                "the vCenter restarts, and is back in 2 simulated minutes".to_owned()
            }
            "fill-datastore" => {
                let full = Action::fail_task("NoDiskSpace", "the datastore is full");
                vcenter.faults().add(Rule::new("CloneVM_Task", full).times(FULL));
                format!("the datastore is full for the next {FULL} clones")
            }
            "hang-calls" => {
                vcenter.faults().add(Rule::new("*VM_Task", Action::Hang).times(HUNG));
                format!("the next {HUNG} changes of VMs are not answered")
            }
            "cut-cds" => {
                cds.inject(Fault::on("**").first(CUT).answer(503, 0));
                cds.close_websockets(roost_cds::SocketClosed::ABNORMAL);
                format!("CDS answers the next {CUT} requests with errors")
            }
            "cut-kube" if let Some(kube) = &self.kube => {
                kube.restart(OUTAGE);
                "the API server is away, and is back in 2 simulated minutes".to_owned()
            }
            "add-jobs" => {
                self.add_jobs();
                format!("{MORE_JOBS} more jobs are queued")
            }
            "restart-roost" => {
                self.restart.notify_one();
                "Roost is killed and started again".to_owned()
            }
            "mend" => {
                vcenter.faults().clear();
                cds.clear_faults();
                if let Some(kube) = &self.kube {
                    kube.restart(Duration::ZERO);
                }
                "what was broken is mended; a vCenter that restarts takes its time".to_owned()
            }
            "slower" => self.pace.change(0.5),
            "faster" => self.pace.change(2.0),
            "pause" => self.pace.pause(),
            other => return Err(Refused::Unknown { what: format!("trick {other}") }),
        })
    }
}

#[cfg(test)]
mod tests {
    use roost_clock::{Clock, SimClock};
    use roost_hatchery::config::Config;
    use roost_kube_sim::Options;
    use tokio::time::sleep;

    use super::super::args::Speed;
    use super::*;

    fn tricks(kube: Option<KubeSim>, config: &Config) -> Tricks {
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let world = World::start(&Random::from_seed(7), &clock, 3).unwrap();
        Tricks {
            witness: Witness::new(world.clone(), config.ledger_limits()),
            world,
            jobs: Arc::default(),
            pace: Pace::new(Speed::Max),
            restart: Arc::default(),
            simulation: Handle::current(),
            token: "demo".into(),
            seed: 7,
            waves: AtomicU64::new(0),
            kube,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_trick_does_what_its_button_says() {
        let config = super::super::config::load().unwrap();
        let kube = KubeSim::start(Options::default(), Arc::new(SimClock::new()));
        let client = kube.client();
        let answers = async || client.apiserver_version().await.is_ok();
        let all = tricks(Some(kube), &config);
        let play = |name: &str| all.play(name).unwrap();

        play("add-jobs");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(all.world.cds.jobs().len(), MORE_JOBS);
        assert_eq!(all.jobs.load(Ordering::Relaxed), MORE_JOBS as u64);

        play("cut-kube");
        assert!(!answers().await);
        sleep(OUTAGE * 2).await;
        assert!(answers().await, "it comes back by itself");
        play("cut-kube");
        play("mend");
        assert!(answers().await, "mending brings it back at once");

        play("restart-roost");
        all.restart.notified().await;

        let paused = |all: &Tricks| all.tricks().iter().any(|it| it.words == "Let time go on");
        assert!(!paused(&all));
        play("pause");
        assert!(paused(&all));
        play("pause");
        for trick in all.tricks() {
            assert!(!play(trick.name).is_empty(), "{trick:?}");
        }
        assert!(all.play("unheard-of").is_err());
        assert!(tricks(None, &config).play("cut-kube").is_err(), "there is no API server");
    }
}
