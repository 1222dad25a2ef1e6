//! What goes wrong under `--chaos`: rules of both simulators, and blows that fall from time to time. All chance comes from the seed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use roost_cds_sim::Fault;
use roost_clock::Random;
use roost_vcenter_sim::{Action, Outage, Rule, RuleId, When};
use tokio::time::sleep;

use super::world::World;

/// How likely a request to CDS meets each of the many faults that it may meet.
const CDS_FAULTS: f64 = 0.004;
const BETWEEN_BLOWS: (Duration, Duration) = (Duration::from_secs(50), Duration::from_secs(150));
const OUTAGE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(30));
/// Requests that a burst of errors meets.
const BURST: u64 = 25;

/// The faults of a run, and how often each has struck. A handle; clones share it.
#[derive(Debug, Clone)]
pub(super) struct Chaos {
    world: World,
    struck: Arc<Mutex<Struck>>,
}

#[derive(Debug, Default)]
struct Struck {
    rules: Vec<(RuleId, &'static str)>,
    /// By what they are called, in the order in which they first struck.
    counts: Vec<(&'static str, u64)>,
}

/// Something that happens to a whole server at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    VcenterRestart,
    VcenterSessions,
    CdsSessions,
    CdsErrors,
    CdsWebsockets,
}

const BLOWS: [Blow; 5] = [
    Blow::VcenterRestart,
    Blow::VcenterSessions,
    Blow::CdsSessions,
    Blow::CdsErrors,
    Blow::CdsWebsockets,
];

impl Chaos {
    /// Puts all rules in force.
    pub(super) fn begin(world: World) -> Self {
        let faults = world.vcenter.faults();
        let rules = [
            (
                0.10,
                "failed clones",
                "CloneVM_Task",
                Action::fail_task("NoDiskSpace", "the datastore is full"),
            ),
            (
                0.04,
                "failed power-ons",
                "PowerOnVM_Task",
                Action::fail_task("GenericVmConfigFault", "the host did not want to"),
            ),
            (0.02, "hung vCenter calls", "*VM_Task", Action::Hang),
            (0.02, "lost vCenter answers", "*_Task", Action::CutAfter),
            (0.01, "cut vCenter connections", "*", Action::CutBefore),
            (0.01, "slow vCenter answers", "*InGuest", Action::Delay(Duration::from_secs(8))),
        ];
        let add = |(chance, name, method, action): (f64, _, &str, Action)| {
            (faults.add(Rule::new(method, action).when(When::Chance(chance))), name)
        };
        let struck = Struck { rules: rules.map(add).into(), counts: Vec::new() };
        world.cds.inject_chaos(CDS_FAULTS);
        Self { world, struck: Arc::new(Mutex::new(struck)) }
    }

    fn struck(&self) -> MutexGuard<'_, Struck> {
        self.struck.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a blow fall from time to time. Each kind comes once before one comes again.
    pub(super) async fn go_on(self, mut random: Random) {
        let mut left = Vec::new();
        loop {
            sleep(random.duration(BETWEEN_BLOWS.0, BETWEEN_BLOWS.1)).await;
            if left.is_empty() {
                left.extend(BLOWS);
            }
            let at = usize::try_from(random.below(left.len() as u64)).unwrap_or(0);
            let lasts = random.duration(OUTAGE.0, OUTAGE.1);
            self.strike(left.swap_remove(at), lasts);
        }
    }

    fn strike(&self, blow: Blow, lasts: Duration) {
        let World { vcenter, cds } = &self.world;
        match blow {
            Blow::VcenterRestart => vcenter.restart(Outage { lasts, refuses: true }),
            Blow::VcenterSessions => vcenter.expire_sessions(),
            Blow::CdsSessions => cds.forget_sessions(),
            Blow::CdsErrors => cds.inject(Fault::on("**").first(BURST).answer(503, 0)),
            Blow::CdsWebsockets => cds.close_websockets(roost_cds::SocketClosed::ABNORMAL),
        }
        self.struck().add(blow.name(), 1);
    }

    /// No more of it. What struck is still known.
    pub(super) fn end(&self) {
        self.settle();
        self.world.vcenter.faults().clear();
        self.world.cds.clear_faults();
    }

    /// How often each fault has struck.
    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        self.settle();
        self.struck().counts.clone()
    }

    fn settle(&self) {
        let reports = self.world.vcenter.faults().list();
        let mut struck = self.struck();
        for (id, name) in struck.rules.clone() {
            if let Some(report) = reports.iter().find(|report| report.id == id) {
                struck.set(name, report.fired);
            }
        }
        struck.set("CDS faults", self.world.cds.faults_met());
    }
}

impl Struck {
    fn entry(&mut self, name: &'static str) -> &mut u64 {
        let at = self.counts.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            self.counts.push((name, 0));
            self.counts.len() - 1
        });
        &mut self.counts[at].1
    }

    fn add(&mut self, name: &'static str, count: u64) {
        *self.entry(name) += count;
    }

    fn set(&mut self, name: &'static str, count: u64) {
        *self.entry(name) = count;
    }
}

impl Blow {
    fn name(self) -> &'static str {
        match self {
            Self::VcenterRestart => "vCenter restarts",
            Self::VcenterSessions => "lost vCenter sessions",
            Self::CdsSessions => "lost CDS sessions",
            Self::CdsErrors => "bursts of CDS errors",
            Self::CdsWebsockets => "closed websockets",
        }
    }
}
