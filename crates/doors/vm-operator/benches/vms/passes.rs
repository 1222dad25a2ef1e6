use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use roost_clock::{Random, SimClock};
use roost_controller::{Key, Trigger};
use roost_testbed::Site;
use roost_vcenter_sim::{Action, Options, Rule, TemplateOptions, Vcenter};
use roost_vm_operator::api::vm::PowerState;
use roost_vm_operator::{VmOperator, VmOperatorSettings};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::lab::{Lab, NAMESPACE, minutes, passes_in, vm};

/// How often each object is signalled in one round.
const TURNS: u32 = 5;

pub(crate) fn on_simulated_time<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(work)
}

/// A vCenter with room for all of them.
fn spacious() -> Site {
    let options = Options {
        clusters: 1,
        standalone_hosts: 0,
        vms: 0,
        host_memory_gb: Some(1 << 16),
        host_cores: Some(i16::MAX),
        datastore_gb: Some(1 << 20),
        templates: vec![TemplateOptions::new(Site::TEMPLATE)],
        ..Options::default()
    };
    let clock = Arc::new(SimClock::new());
    Site { vcenter: Vcenter::start(options, clock.clone()), clock }
}

fn name(number: usize) -> String {
    format!("web-{number:05}")
}

/// A process of the door.
struct Process {
    registry: Registry,
    trigger: Trigger,
    shutdown: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Process {
    fn start(lab: &Lab, settings: VmOperatorSettings) -> Self {
        let (mut registry, random) = (Registry::default(), Random::from_seed(1));
        let operator =
            VmOperator::new(&lab.door, lab.fleet.clone(), settings, random, &mut registry);
        let trigger = operator.trigger();
        let (shutdown, ended) = oneshot::channel::<()>();
        let task = tokio::spawn(operator.run(async {
            let _ = ended.await;
        }));
        Self { registry, trigger, shutdown, task }
    }

    fn passes(&self) -> u64 {
        passes_in(&self.registry)
    }

    async fn stop(self) {
        let _ = self.shutdown.send(());
        self.task.await.unwrap();
    }
}

/// So many VMs that are as wanted, powered on or not, with the process that made them.
async fn settled_vms(objects: usize, power: PowerState) -> (Lab, Process) {
    let mut lab = Lab::at(spacious()).await;
    lab.settings.provider.max_creates = 5_000;
    let process = Process::start(&lab, lab.settings.clone());
    for number in 0..objects {
        let mut wanted = vm(&name(number));
        wanted.spec.power_state = Some(power);
        lab.apply(&wanted).await;
    }
    for number in 0..objects {
        lab.until("as wanted", &name(number), |vm| vm.current_power_state() == Some(power)).await;
    }
    sleep(minutes(30)).await;
    (lab, process)
}

/// A lab with settled VMs and nobody at work.
pub(crate) async fn quiet(objects: usize) -> Lab {
    let (mut lab, process) = settled_vms(objects, PowerState::PoweredOn).await;
    process.stop().await;
    lab.renew().await;
    lab
}

pub(crate) struct Cost {
    pub(crate) calls: u64,
    pub(crate) writes: u64,
    pub(crate) passes: u64,
}

/// What one VM costs, once what is found once has been found.
pub(crate) fn one_vm() -> Cost {
    on_simulated_time(async {
        let (lab, process) = settled_vms(1, PowerState::PoweredOn).await;
        let before = (lab.calls(), lab.writes(), process.passes());
        lab.apply(&vm("new")).await;
        let is_on = |vm: &roost_vm_operator::api::VirtualMachine| {
            vm.current_power_state() == Some(PowerState::PoweredOn)
        };
        lab.until("on", "new", is_on).await;
        sleep(Duration::from_secs(2)).await;
        let (calls, writes) = (lab.calls() - before.0, lab.writes() - before.1 - 1);
        lab.until_on("new").await;
        sleep(minutes(5)).await;
        Cost { calls, writes, passes: process.passes() - before.2 }
    })
}

/// Microseconds per pass, by wall and by CPU time of the whole process, the best of some rounds.
pub(crate) fn settled(rounds: usize, objects: usize) -> (f64, f64) {
    on_simulated_time(async {
        let (lab, process) = settled_vms(objects, PowerState::PoweredOn).await;
        let (calls, writes) = (lab.calls(), lab.writes());
        let mut best = (f64::MAX, f64::MAX);
        for _ in 0..rounds {
            let before = process.passes();
            let (wall, cpu) = (time(ClockId::Monotonic), time(ClockId::ProcessCPUTime));
            for _ in 0..TURNS {
                for number in 0..objects {
                    process.trigger.signal(Key::new(NAMESPACE, &name(number)));
                }
                // Time moves on when nothing is left to do.
                sleep(Duration::from_millis(1)).await;
            }
            let took = |clock, since: Duration| time(clock).saturating_sub(since).as_secs_f64();
            let (wall, cpu) = (took(ClockId::Monotonic, wall), took(ClockId::ProcessCPUTime, cpu));
            let passes = process.passes() - before;
            assert_eq!(passes, u64::from(TURNS) * objects as u64, "each was looked at");
            let count = f64::from(u32::try_from(passes).unwrap_or(u32::MAX));
            let micros = |seconds: f64| seconds * 1e6 / count;
            best = (best.0.min(micros(wall)), best.1.min(micros(cpu)));
        }
        assert_eq!(lab.writes(), writes, "a settled pass writes nothing");
        assert_eq!(lab.calls(), calls, "a settled pass asks nothing");
        best
    })
}

fn time(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

/// How many passes go before the create of a VM that is new after a start.
pub(crate) fn before_a_new_one(objects: usize) -> u64 {
    on_simulated_time(async {
        let lab = quiet(objects).await;
        lab.apply(&vm("new")).await;
        let clones = || lab.site.vcenter.counters().calls_of("CloneVM_Task");
        let made = clones();
        let slow = Rule::new("CloneVM_Task", Action::Delay(minutes(1)));
        lab.site.vcenter.faults().add(slow.once());
        // Its only worker waits for the end of a create, so whatever it does before is seen.
        let mut settings = VmOperatorSettings { workers: 1, ..lab.settings.clone() };
        settings.provider.async_create = false;
        let process = Process::start(&lab, settings);
        let mut before = 0;
        // As long as nothing is known of the vCenter, a pass does nothing.
        while lab.fleet.mirror().freshness().as_of.is_none() {
            before = process.passes();
            sleep(Duration::from_millis(1)).await;
        }
        while clones() == made {
            sleep(Duration::from_millis(100)).await;
        }
        process.passes() - before
    })
}
