//! Our spares as inventory, scheduler and models show them: what the planner claims from and the loop of spares keeps up.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::Timestamp;
use roost_cds::v1;
use roost_fleet::{Connection, Power, Snapshot, Vm};

use super::holding::own_annotation;
use super::scheduler::SchedulerState;
use crate::annotation::Annotation;
use crate::config::{SpareKind, SpareModel};
use crate::door::HATCHERY;
use crate::model::last_modified;
use crate::planted::{self, Bug};
use crate::spares::{Spare, SpareState};

/// Our spares, by id. Those that the server has lost sight of are left out: nobody can claim or finish them, and one that comes back
/// is counted again. So is a VM that has the name of a spare and says that it is none: somebody is at work on it by hand.
pub(crate) fn spares(
    snapshot: &Snapshot,
    hatchery: &str,
    scheduler: &mut SchedulerState,
    models: Option<&[v1::Model]>,
    now: Timestamp,
) -> Vec<Spare> {
    let anybodys = snapshot.vms().filter(|vm| {
        planted::is(Bug::ForgetsOwners) && vm.owner().is_some_and(|owner| **owner != *hatchery)
    });
    let ours = snapshot.owned_by(HATCHERY, hatchery).chain(anybodys);
    let ours = ours.filter(|vm| !vm.template && is_reached(vm));
    let (mut spares, mut addresses) = (Vec::new(), Addresses::default());
    for vm in ours {
        let Some(annotation) = own_annotation(vm, hatchery) else { continue };
        let kind = SpareKind::of(&vm.name, &annotation)
            .filter(|_| annotation.provisioning || annotation.doomed.is_some());
        let Some(kind) = kind else {
            // What is off and marked never runs again.
            if annotation.doomed.is_none() || vm.power != Power::Off {
                addresses.taken.extend(annotation.address());
            }
            continue;
        };
        // A spare that is being made has a reservation as well, which is its maker's and no claim.
        let is_made_here = scheduler.making.contains_key(&vm.name);
        let is_claimed = !is_made_here && scheduler.ledger.lock().is_promised(&vm.id, now);
        let is_busy = is_made_here || scheduler.is_busy(&vm.id);
        addresses.of_spares.push(annotation.address().or(vm.name_address));
        spares.push(Spare {
            vm: vm.id.clone(),
            name: vm.name.to_string(),
            state: SpareState::of(&annotation, vm.power, is_claimed, is_busy),
            born: annotation.created.get().or(vm.created),
            is_outdated: is_outdated(&kind.model, &annotation, models),
            shares_address: false,
            kind,
        });
    }
    addresses.tell_apart(&mut spares);
    spares
}

/// Who has which address. CDS's own hatchery leaves spares that share one.
#[derive(Default)]
struct Addresses {
    /// Of our VMs that are no spares.
    taken: BTreeSet<IpAddr>,
    /// Of each spare, in their order.
    of_spares: Vec<Option<IpAddr>>,
}

impl Addresses {
    /// Of the spares with one address the first stays one: whoever is promised or runs already, then the oldest. None does beside a worker.
    fn tell_apart(mut self, spares: &mut [Spare]) {
        let mut order: Vec<usize> = (0..spares.len()).collect();
        order.sort_by_key(|index| {
            let spare = &spares[*index];
            let rank = match spare.state {
                SpareState::Claimed => 0,
                SpareState::Making => 1,
                SpareState::Unfinished => 2,
                SpareState::Ready => 3,
                SpareState::Dying => 4,
            };
            (rank, spare.born, spare.vm.clone())
        });
        for index in order {
            if let Some(address) = self.of_spares[index]
                && spares[index].state != SpareState::Dying
            {
                spares[index].shares_address = !self.taken.insert(address);
            }
        }
    }
}

/// Kinds that are being cloned and that the inventory does not show yet.
pub(crate) fn in_flight(snapshot: &Snapshot, scheduler: &SchedulerState) -> Vec<SpareKind> {
    let unseen = scheduler.making.iter().filter(|(name, _)| snapshot.named(name).next().is_none());
    unseen.map(|(_, kind)| kind.clone()).collect()
}

/// The V1 model of this path, among those that CDS has enabled.
pub(crate) fn v1_model<'a>(
    path: &v1::ModelPath,
    models: Option<&'a [v1::Model]>,
) -> Option<&'a v1::Model> {
    models?.iter().find(|model| model.path() == *path)
}

fn is_reached(vm: &Vm) -> bool {
    match vm.connection {
        // Of a VM that was just made nothing is told yet.
        Connection::Connected | Connection::Unknown => true,
        Connection::Disconnected
        | Connection::Orphaned
        | Connection::Inaccessible
        | Connection::Invalid => false,
    }
}

/// A spare that does not say what its model was is believed: hatcheries that are older than the key made it.
fn is_outdated(model: &SpareModel, annotation: &Annotation, models: Option<&[v1::Model]>) -> bool {
    let SpareModel::V1(path) = model else { return false };
    let made_from = &annotation.worker_model_last_modified;
    v1_model(path, models)
        .is_some_and(|model| !made_from.is_empty() && *made_from != last_modified(model))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use roost_clock::{Clock, SimClock};
    use roost_fleet::{
        Amounts, Ask, Ledger, Machine, Mirror, Power, Reservation, SharedLedger, VmId, Wrote,
    };

    use super::*;
    use crate::annotation::HatcheryVms;
    use crate::config::tests::config;
    use crate::door::WORKERS;
    use crate::model::tests::v1_model;

    struct Scene {
        mirror: Mirror,
        clock: Arc<SimClock>,
        scheduler: SchedulerState,
    }

    impl Scene {
        fn new() -> Self {
            let clock = Arc::new(SimClock::new());
            let mirror = Mirror::new(vec![Arc::new(HatcheryVms)], clock.clone());
            let config = config("", "");
            let ledger = Ledger::default().with_account(
                HATCHERY,
                config.ledger_limits(),
                config.addresses.clone(),
            );
            Self {
                mirror,
                clock,
                scheduler: SchedulerState::new(&config, SharedLedger::new(ledger)),
            }
        }

        fn vm(&self, name: &str, power: Power, annotation: &Annotation) {
            let wrote =
                Wrote::new().name(name).annotation(annotation.to_string()).power(power).cpus(4);
            self.mirror.created(&VmId::new(name), wrote);
        }

        fn states(&mut self, models: Option<&[v1::Model]>) -> Vec<(String, SpareState, bool)> {
            let (snapshot, now) = (self.mirror.snapshot(), self.clock.now());
            self.scheduler.look(&snapshot, now);
            spares(&snapshot, "hv1", &mut self.scheduler, models, now)
                .into_iter()
                .map(|spare| (spare.name, spare.state, spare.is_outdated))
                .collect()
        }

        fn claim(&mut self, vm: &str) -> Reservation {
            let ask = Ask {
                request: HATCHERY.request("job"),
                name: None,
                amounts: Amounts::default().count(WORKERS, 1),
                pool: None,
                machine: Machine::Spare { candidates: vec![VmId::new(vm)] },
            };
            self.scheduler.ledger.lock().reserve(ask, self.clock.now()).unwrap()
        }
    }

    fn spare() -> Annotation {
        Annotation {
            hatchery_name: "hv1".into(),
            provisioning: true,
            vmware_model_path: "debian12".into(),
            ..Annotation::default()
        }
    }

    #[tokio::test]
    async fn spares_are_ours_by_annotation_and_spares_by_name() {
        let mut scene = Scene::new();
        scene.vm("provision-v2-off", Power::Off, &spare());
        scene.vm("provision-v2-on", Power::On, &spare());
        scene.vm("keen-bohr", Power::Off, &spare());
        scene.vm(
            "provision-v2-other",
            Power::Off,
            &Annotation { hatchery_name: "hv2".into(), ..spare() },
        );
        scene.vm(
            "provision-v2-by-hand",
            Power::Off,
            &Annotation { provisioning: false, ..spare() },
        );
        assert_eq!(
            scene.states(None),
            [
                ("provision-v2-off".to_owned(), SpareState::Ready, false),
                ("provision-v2-on".to_owned(), SpareState::Unfinished, false),
            ]
        );
    }

    #[tokio::test]
    async fn a_promise_to_a_job_is_a_claim_and_the_promise_of_its_maker_is_none() {
        let mut scene = Scene::new();
        scene.vm("provision-v2-a", Power::Off, &spare());
        let state = |scene: &mut Scene| scene.states(None)[0].1;
        let claim = scene.claim("provision-v2-a");
        assert_eq!(state(&mut scene), SpareState::Claimed);
        let kind = SpareKind { model: SpareModel::V2("debian12".into()), flavor: None };
        scene.scheduler.making.insert("provision-v2-a".into(), kind.clone());
        scene.scheduler.making.insert("provision-v2-b".into(), kind.clone());
        assert_eq!(state(&mut scene), SpareState::Making);
        let snapshot = scene.mirror.snapshot();
        assert_eq!(in_flight(&snapshot, &scene.scheduler), [kind], "the other is seen already");
        scene.scheduler.making.clear();
        claim.release();
        assert_eq!(state(&mut scene), SpareState::Ready);
    }

    #[tokio::test]
    async fn a_v1_spare_is_outdated_when_its_model_was_changed_since() {
        let mut scene = Scene::new();
        let (mut model, path) = (v1_model("debian12"), "shared.infra/debian12");
        let of_v1 = Annotation {
            worker_model_path: path.into(),
            worker_model_last_modified: last_modified(&model),
            ..spare()
        };
        scene.vm("provision-v1-a", Power::Off, &of_v1);
        let silent = Annotation { worker_model_last_modified: String::new(), ..of_v1 };
        scene.vm("provision-v1-b", Power::Off, &silent);
        let outdated = |scene: &mut Scene, models: Option<&[v1::Model]>| -> Vec<bool> {
            scene.states(models).into_iter().map(|(_, _, is_outdated)| is_outdated).collect()
        };
        assert_eq!(outdated(&mut scene, None), [false, false]);
        assert_eq!(outdated(&mut scene, Some(&[model.clone()])), [false, false]);
        model.user_last_modified = Some("2026-06-02T00:00:00Z".parse().unwrap());
        assert_eq!(outdated(&mut scene, Some(&[model])), [true, false]);
    }
}
