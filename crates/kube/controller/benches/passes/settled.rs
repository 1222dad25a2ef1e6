use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube::api::PostParams;
use kube::{Api, CustomResourceExt as _};
use prometheus_client::registry::Registry;
use roost_clock::SystemClock;
use roost_controller::crd::install_crds;
use roost_controller::{ControllerSettings, Key, Manager};
use roost_kube_sim::{KubeSim, Options};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Instant, sleep};

use crate::machine::{Machine, Machines, machine};

/// How often each object is signalled in one round.
const TURNS: usize = 5;

/// Microseconds per pass, by wall and by CPU time of the whole process, the best of some rounds.
pub(crate) fn best_of(rounds: usize, objects: usize) -> (f64, f64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(run(rounds, objects))
}

async fn run(rounds: usize, objects: usize) -> (f64, f64) {
    let sim = KubeSim::start(Options::default(), Arc::new(SystemClock));
    let client = sim.client();
    install_crds(&client, &[Machine::crd()], "bench").await.expect("the definition");
    let api: Api<Machine> = Api::namespaced(client.clone(), "default");
    for number in 0..objects {
        api.create(&PostParams::default(), &machine(number)).await.expect("an object");
    }
    let mut manager = Manager::new(client.clone(), "bench", &mut Registry::default());
    let machines = manager.watch(Api::<Machine>::all(client));
    let passes = Arc::new(AtomicUsize::new(0));
    let reconciler = Machines { writer: manager.writer(), passes: Arc::clone(&passes) };
    let controller = manager.controller("machine", &machines, ControllerSettings::default());
    let trigger = controller.trigger();
    controller.reconcile(Arc::new(reconciler));
    tokio::spawn(manager.run(std::future::pending()));
    reached(&passes, objects).await;

    let revision = sim.revision();
    let mut best = (f64::MAX, f64::MAX);
    for _ in 0..rounds {
        let (wall, cpu) = (Instant::now(), cpu_time());
        for _ in 0..TURNS {
            let before = passes.load(Ordering::Relaxed);
            for number in 0..objects {
                trigger.signal(Key::new("default", &format!("machine-{number:05}")));
            }
            reached(&passes, before + objects).await;
        }
        let count = f64::from(u32::try_from(TURNS * objects).unwrap_or(u32::MAX));
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / count;
        best = (
            best.0.min(micros(wall.elapsed())),
            best.1.min(micros(cpu_time().saturating_sub(cpu))),
        );
    }
    assert_eq!(sim.revision(), revision, "a settled pass writes nothing");
    best
}

async fn reached(passes: &AtomicUsize, count: usize) {
    while passes.load(Ordering::Relaxed) < count {
        sleep(Duration::from_millis(1)).await;
    }
}

fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
