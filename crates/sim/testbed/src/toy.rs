//! A door in little: it keeps so many VMs alive and knows them by `extraConfig`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use roost_fleet::{
    AddressNeed, AddressPlan, Amounts, Ask, Basis, Candidate, Claim, DoorName, Draft, Fleet, Guard,
    Holding, Limits, Machine, Marks, Need, Owner, Power, Quota, Recognise, Reservation, Snapshot,
    Vm, VmId,
};
use roost_supervise::Chain;
use roost_vim::CloneVm;
use roost_vim::wire::MoRef;
use roost_vim::wire::types::Hidden;
use tokio::task::JoinSet;
use tokio::time::timeout;

pub const TOY: DoorName = DoorName::new("toy");
/// What it counts.
pub const MACHINES: Quota = Quota::lasting("machines");
/// Its marks in `extraConfig`.
pub const OWNER: &str = "toy.owner";
pub const SLOT: &str = "toy.slot";
pub const ADDRESS: &str = "toy.address";

/// Nothing happens without a change; this is only for what changes by the clock.
const LOOK: Duration = Duration::from_secs(30);

/// How it recognises its VMs.
#[derive(Debug, Clone, Copy)]
pub struct ToyVms;

impl Recognise for ToyVms {
    fn needs(&self) -> &[Need] {
        &[Need::ExtraConfig(OWNER), Need::ExtraConfig(SLOT), Need::ExtraConfig(ADDRESS)]
    }

    fn recognise(&self, vm: &Marks<'_>) -> Option<Claim> {
        let request = vm.extra_config(SLOT).map(Into::into);
        let address = vm.extra_config(ADDRESS).and_then(|text| text.parse().ok());
        Some(Claim { request, address, ..Claim::of(TOY, vm.extra_config(OWNER)?) })
    }
}

/// What it is to keep.
#[derive(Debug, Clone)]
pub struct ToySettings {
    pub name: Arc<str>,
    pub wanted: u64,
    pub template: VmId,
    pub folder: MoRef,
    pub pool: MoRef,
    /// What it wants to see: a datacenter.
    pub container: MoRef,
    pub limits: Limits,
    pub addresses: AddressPlan,
}

#[derive(Debug)]
pub struct Toy {
    fleet: Fleet,
    settings: ToySettings,
}

/// What is to be done next, by what is seen.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    make: Vec<u64>,
    power_on: Vec<VmId>,
    delete: Vec<VmId>,
}

fn plan(own: &[&Arc<Vm>], wanted: u64) -> Plan {
    let slot = |vm: &Vm| vm.request().and_then(|slot| slot.parse::<u64>().ok());
    let taken: BTreeSet<u64> = own.iter().filter_map(|vm| slot(vm)).collect();
    let (kept, extra): (Vec<&Arc<Vm>>, Vec<&Arc<Vm>>) =
        own.iter().copied().partition(|vm| slot(vm).is_some_and(|slot| slot < wanted));
    let is_off = |vm: &&&Arc<Vm>| vm.power == Power::Off;
    Plan {
        make: (0..wanted).filter(|slot| !taken.contains(slot)).collect(),
        power_on: kept.iter().filter(is_off).map(|vm| vm.id.clone()).collect(),
        delete: extra.into_iter().map(|vm| vm.id.clone()).collect(),
    }
}

impl Toy {
    pub fn new(fleet: Fleet, settings: ToySettings) -> Self {
        let ToySettings { limits, addresses, container, .. } = &settings;
        fleet.open_account(TOY, limits.clone(), addresses.clone());
        fleet.cover(container);
        Self { fleet, settings }
    }

    /// Does not end.
    pub async fn run(self) {
        let toy = Arc::new(self);
        let following = toy.fleet.clone();
        let _follow = tokio::spawn(async move { following.follow().await });
        let mut guard = toy.fleet.guard(&toy.settings.name);
        let mut changes = toy.fleet.mirror().changes();
        let news = toy.fleet.ledger().news(TOY);
        let mut steps = JoinSet::new();
        loop {
            if toy.fleet.mirror().freshness().complete {
                toy.apply(toy.settings.wanted, &mut guard, &mut steps);
            }
            let woken = async {
                tokio::select! {
                    _ = changes.changed() => {}
                    () = news.notified() => {}
                    Some(_) = steps.join_next() => {}
                }
            };
            let _ = timeout(LOOK, woken).await;
        }
    }

    /// One round for whoever is told by others how many are wanted, with every step to its end. Returns how many are on, as far as is
    /// seen by then. Somebody must follow the fleet.
    pub async fn keep(self: &Arc<Self>, wanted: u64) -> usize {
        if self.fleet.mirror().freshness().complete {
            let (mut guard, mut steps) = (self.fleet.guard(&self.settings.name), JoinSet::new());
            self.apply(wanted, &mut guard, &mut steps);
            while steps.join_next().await.is_some() {}
        }
        let snapshot = self.fleet.mirror().snapshot();
        snapshot.owned_by(TOY, &self.settings.name).filter(|vm| vm.power == Power::On).count()
    }

    fn holding(&self, vm: &Vm) -> Holding {
        let own = vm
            .claim
            .as_ref()
            .is_some_and(|claim| claim.door == TOY && claim.owner == self.settings.name);
        let counts = Amounts { cpus: vm.cpus.into(), ..Amounts::default() }.count(MACHINES, 1);
        Holding {
            own,
            request: vm.request().filter(|_| own).cloned(),
            amounts: if own { counts } else { Amounts::default() },
            ends: None,
        }
    }

    fn apply(self: &Arc<Self>, wanted: u64, guard: &mut Guard, steps: &mut JoinSet<()>) {
        let (snapshot, now) = (self.fleet.mirror().snapshot(), self.fleet.now());
        self.fleet.ledger().observe(TOY, &snapshot, now, |vm| self.holding(vm));
        let own: Vec<_> = snapshot.owned_by(TOY, &self.settings.name).collect();
        let plan = plan(&own, wanted);
        for slot in plan.make {
            if let Some(reservation) = self.reserve(slot, &snapshot) {
                let on = Arc::clone(self);
                steps.spawn(async move { on.make(slot, reservation).await });
            }
        }
        for vm in plan.power_on {
            let Some(hold) = self.fleet.machines().hold(TOY, &vm) else { continue };
            let machines = self.fleet.machines().clone();
            steps.spawn(async move { told("power on", machines.power_on(&hold).await) });
        }
        for vm in plan.delete {
            let Some(row) = snapshot.vm(&vm) else { continue };
            let candidate = Candidate {
                vm: vm.clone(),
                name: Arc::clone(&row.name),
                owner: row.owner().cloned(),
                basis: Basis::Asked,
                why: "fewer are wanted".into(),
            };
            let Some(hold) = self.fleet.machines().hold(TOY, &vm) else { continue };
            let verdict = guard.asked(&candidate, now);
            self.fleet.journal().record(Draft::from(&verdict), now);
            if verdict.is_delete() {
                hold.leaving();
                let machines = self.fleet.machines().clone();
                steps.spawn(async move { told("destroy", machines.destroy(&hold).await) });
            }
        }
    }

    /// `None` if there is one already, or no room; the journal says which.
    fn reserve(&self, slot: u64, snapshot: &Snapshot) -> Option<Reservation> {
        let now = self.fleet.now();
        let cpus = snapshot.vm(&self.settings.template)?.cpus;
        let ask = Ask {
            request: TOY.request(slot.to_string()),
            name: Some(self.name_of(slot).into()),
            amounts: Amounts { cpus: cpus.into(), ..Amounts::default() }.count(MACHINES, 1),
            pool: None,
            machine: Machine::Fresh { address: AddressNeed::FromPlan },
        };
        let mut ledger = self.fleet.ledger();
        if ledger.has_machine(&ask.request, now) {
            return None;
        }
        match ledger.reserve(ask, now) {
            Ok(reservation) => Some(reservation),
            Err(refusal) => {
                self.fleet.journal().record(Draft::from(&refusal), now);
                None
            }
        }
    }

    fn name_of(&self, slot: u64) -> String {
        format!("{}-{slot}", self.settings.name)
    }

    async fn make(&self, slot: u64, mut reservation: Reservation) {
        let ToySettings { name, folder, pool, template, .. } = &self.settings;
        let Some(template) = self.fleet.mirror().vm(template) else { return };
        let mark = |key: &str, value: String| (key.to_owned(), Hidden(value));
        let address = reservation.address().map(|grant| grant.address.to_string());
        let request = CloneVm {
            extra_config: vec![
                mark(OWNER, name.to_string()),
                mark(SLOT, slot.to_string()),
                mark(ADDRESS, address.unwrap_or_default()),
            ],
            power_on: true,
            ..CloneVm::new(folder.clone(), self.name_of(slot), pool.clone())
        };
        let owner = Owner { door: TOY, name };
        let machines = self.fleet.machines();
        match machines.clone_vm(owner, &request, &template, &mut reservation).await {
            Ok(_hold) => reservation.commit(),
            Err(failed) if failed.error.nothing_made() => {
                told("clone", Err::<(), _>(failed.error));
                reservation.release();
            }
            Err(failed) => told("clone", Err::<(), _>(failed.error)),
        }
    }
}

fn told<T>(verb: &str, done: Result<T, roost_fleet::MachineError>) {
    if let Err(error) = done {
        tracing::warn!("{verb}: {}", Chain(&error));
    }
}
