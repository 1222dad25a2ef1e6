//! What happens to a run from outside, and when.

use std::collections::BTreeSet;
use std::time::Duration;

use roost_cds::JobId;
use roost_cds_sim::{EventFault, Fault, V1Demand, V2Demand};
use roost_vcenter_sim::{GuestBehaviour, Outage, Power, Rule, VmGlance};
use tokio::time::{Instant, sleep_until};

use crate::lab::{Note, World};

#[derive(Debug, Clone)]
pub(crate) enum Act {
    V1(V1Demand, Prospect),
    V2(V2Demand, Prospect),
    VcenterRule(Rule),
    VcenterRestart(Outage),
    ExpireSessions,
    CdsChaos(f64),
    CdsFault(Fault),
    CdsEvents(EventFault),
    CloseSockets(u16),
    CdsDown,
    CdsBack,
    ForgetSessions,
    DeleteServices,
    Guests { template: &'static str, behaviour: GuestBehaviour },
    SomebodyPowersOff(u64),
    SomebodyDestroys(u64),
    SomebodyDisables(u64),
}

/// Whether a hatchery of the run can ever serve a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prospect {
    Possible,
    Impossible,
}

/// What a run must be told about what happened to it.
#[derive(Debug, Default)]
pub(crate) struct Played {
    /// VMs that somebody has laid hands on.
    pub(crate) disturbed: BTreeSet<String>,
    /// Jobs that nobody can serve.
    pub(crate) impossible: BTreeSet<JobId>,
}

/// By time, and within one instant in the order in which they were drawn.
#[derive(Debug, Default)]
pub(crate) struct Acts(Vec<(Duration, Act)>);

impl Acts {
    pub(crate) fn add(&mut self, at: Duration, act: Act) {
        self.0.push((at, act));
    }

    /// Does everything in its turn.
    pub(crate) async fn play(mut self, world: &World, until: Duration) -> Played {
        let began = Instant::now();
        self.0.sort_by_key(|(at, _)| *at);
        let mut played = Played::default();
        for (at, act) in self.0 {
            sleep_until(began + at.min(until)).await;
            tracing::info!("** {act:?}");
            act.play(world, &mut played);
        }
        sleep_until(began + until).await;
        played
    }
}

impl Act {
    fn play(self, world: &World, played: &mut Played) {
        let Played { disturbed, impossible } = played;
        let mut note = |job, prospect| {
            if prospect == Prospect::Impossible {
                impossible.insert(job);
            }
        };
        let World { vcenter, cds, .. } = world;
        match self {
            Self::V1(demand, prospect) => note(world.v1_job(demand), prospect),
            Self::V2(demand, prospect) => note(world.v2_job(demand), prospect),
            Self::VcenterRule(rule) => drop(vcenter.faults().add(rule)),
            Self::VcenterRestart(outage) => vcenter.restart(outage),
            Self::ExpireSessions => vcenter.expire_sessions(),
            Self::CdsChaos(probability) => cds.inject_chaos(probability),
            Self::CdsFault(fault) => cds.inject(fault),
            Self::CdsEvents(fault) => cds.inject_event(fault),
            Self::CloseSockets(code) => cds.close_websockets(code),
            Self::CdsDown => cds.go_down(),
            Self::CdsBack => cds.come_back(),
            Self::ForgetSessions => cds.forget_sessions(),
            Self::DeleteServices => {
                for service in cds.services() {
                    cds.delete_service(&service.name);
                }
            }
            Self::Guests { template, behaviour } => {
                vcenter.set_guest_behaviour(template, behaviour).unwrap();
            }
            Self::SomebodyPowersOff(luck) => {
                if let Some(vm) = victim(world, luck) {
                    disturbed.insert(vm.name.to_string());
                    vcenter.set_power(&vm.name, Power::Off).unwrap();
                }
            }
            Self::SomebodyDestroys(luck) => {
                if let Some(vm) = victim(world, luck) {
                    disturbed.insert(vm.name.to_string());
                    vcenter.kill_vm(&vm.name).unwrap();
                }
            }
            Self::SomebodyDisables(luck) => {
                let workers = cds.workers();
                if let Some(worker) = pick(&workers, luck) {
                    disturbed.insert(worker.name.clone());
                    cds.disable_worker(&worker.name);
                }
            }
        }
    }
}

/// A VM of a hatchery of ours.
fn victim(world: &World, luck: u64) -> Option<VmGlance> {
    let ours: Vec<VmGlance> = world
        .vcenter
        .glance()
        .into_iter()
        .filter(|vm| !vm.template && vm.power == Power::On && Note::of(vm).is_some())
        .collect();
    pick(&ours, luck).cloned()
}

fn pick<T>(items: &[T], luck: u64) -> Option<&T> {
    let index = luck.checked_rem(items.len() as u64)?;
    items.get(usize::try_from(index).ok()?)
}
