use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::config::SparePool;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn kind(template: &str) -> SpareKind {
    SpareKind { model: SpareModel::V2(template.into()), flavor: None }
}

fn flavored(template: &str, flavor: &str) -> SpareKind {
    SpareKind { flavor: Some(flavor.into()), ..kind(template) }
}

fn pool(template: &str, number: u32) -> SparePool {
    SparePool { kind: kind(template), number }
}

/// A spare of debian12 whose number is also its age: the higher the younger.
fn spare(number: u32, state: SpareState) -> Spare {
    Spare {
        vm: VmId::new(format!("vm-{number:03}")),
        name: format!("provision-v2-{number}"),
        kind: kind("debian12"),
        state,
        born: Some(NOW + Duration::from_secs(number.into())),
        is_outdated: false,
        shares_address: false,
    }
}

#[derive(Default)]
struct Scene {
    pools: Vec<SparePool>,
    spares: Vec<Spare>,
    in_flight: Vec<SpareKind>,
    holds: BTreeMap<SpareKind, Hold>,
    backoffs: Backoffs,
    pool_size: u32,
    free_addresses: Option<u64>,
}

impl Scene {
    fn of(pools: &[(&str, u32)], pool_size: u32) -> Self {
        let pools = pools.iter().map(|(template, number)| pool(template, *number)).collect();
        Self { pools, pool_size, ..Self::default() }
    }

    fn plan(&self) -> SparePlan {
        plan(SpareView {
            pools: &self.pools,
            spares: &self.spares,
            in_flight: &self.in_flight,
            holds: &self.holds,
            backoffs: &self.backoffs,
            pool_size: self.pool_size,
            free_addresses: self.free_addresses,
            now: NOW,
        })
    }

    fn makes(&self) -> Vec<String> {
        self.plan().make.iter().map(ToString::to_string).collect()
    }
}

fn ids(vms: &[VmId]) -> Vec<&str> {
    vms.iter().map(VmId::as_str).collect()
}

#[test]
fn d28_pools_take_turns_and_the_pool_size_bounds_what_is_made_at_once() {
    let scene = Scene::of(&[("debian12", 3), ("ubuntu24", 2)], 10);
    assert_eq!(scene.makes(), ["debian12", "ubuntu24", "debian12", "ubuntu24", "debian12"]);
    let scene = Scene::of(&[("debian12", 3), ("ubuntu24", 2)], 2);
    assert_eq!(scene.makes(), ["debian12", "ubuntu24"]);
    let standing = &scene.plan().standing[0];
    assert_eq!(standing.waiting, Some(Waiting::PoolSize { limit: 2 }));
    assert_eq!(standing.missing(), 3);
}

#[test]
fn d28_a_pool_size_of_one_does_not_let_the_first_pool_starve_the_others() {
    let mut scene = Scene::of(&[("debian12", 5), ("ubuntu24", 5)], 1);
    let mut made = Vec::new();
    for number in 0..6 {
        let next = scene.plan().make.remove(0);
        made.push(next.to_string());
        scene.spares.push(Spare { kind: next, ..spare(number, SpareState::Ready) });
    }
    assert_eq!(made, ["debian12", "ubuntu24", "debian12", "ubuntu24", "debian12", "ubuntu24"]);
}

#[test]
fn d28_what_is_being_made_or_in_flight_counts_as_there_and_as_at_work() {
    let mut scene = Scene::of(&[("debian12", 4)], 3);
    scene.spares = vec![spare(1, SpareState::Ready), spare(2, SpareState::Making)];
    scene.in_flight = vec![kind("debian12")];
    assert_eq!(scene.makes(), ["debian12"], "4 wanted, 1 ready, 2 coming");
    scene.pool_size = 2;
    assert_eq!(scene.makes(), [""; 0]);
    let standing = &scene.plan().standing[0];
    assert_eq!((standing.ready, standing.coming), (1, 2));
}

#[test]
fn a_claimed_spare_is_replaced_at_once() {
    let mut scene = Scene::of(&[("debian12", 2)], 5);
    scene.spares = vec![spare(1, SpareState::Ready), spare(2, SpareState::Claimed)];
    assert_eq!(scene.makes(), ["debian12"]);
    assert_eq!(scene.plan().remove, []);
}

#[test]
fn d29_the_oldest_are_removed_when_there_are_too_many() {
    let mut scene = Scene::of(&[("debian12", 1)], 5);
    scene.spares = vec![
        spare(3, SpareState::Ready),
        spare(1, SpareState::Ready),
        spare(2, SpareState::Ready),
        spare(4, SpareState::Dying),
    ];
    let gone: Vec<_> = scene.plan().remove;
    assert_eq!(
        gone,
        [(VmId::new("vm-001"), Removal::Excess), (VmId::new("vm-002"), Removal::Excess)]
    );
}

#[test]
fn w17_a_vm_that_is_being_claimed_is_never_removed_nor_counted() {
    let mut scene = Scene::of(&[("debian12", 1)], 5);
    scene.spares = vec![spare(1, SpareState::Claimed), spare(2, SpareState::Ready)];
    assert_eq!(scene.plan().remove, [], "one is wanted and one is there");
    scene.pools.clear();
    let gone = scene.plan().remove;
    assert_eq!(gone, [(VmId::new("vm-002"), Removal::NotConfigured)]);
}

#[test]
fn d29_spares_of_a_kind_that_nobody_asks_for_any_more_go() {
    let mut scene = Scene::of(&[("ubuntu24", 0)], 5);
    scene.spares = vec![
        spare(1, SpareState::Ready),
        Spare { kind: kind("ubuntu24"), ..spare(2, SpareState::Unfinished) },
        Spare { kind: flavored("ubuntu24", "large"), ..spare(3, SpareState::Ready) },
        spare(4, SpareState::Making),
    ];
    let plan = scene.plan();
    let gone: Vec<_> = plan.remove.iter().map(|(vm, why)| (vm.as_str(), *why)).collect();
    assert_eq!(
        gone,
        [
            ("vm-002", Removal::Excess),
            ("vm-001", Removal::NotConfigured),
            ("vm-003", Removal::NotConfigured)
        ]
    );
    assert_eq!(plan.finish, []);
}

#[test]
fn d30_what_an_earlier_process_left_half_made_is_finished() {
    let mut scene = Scene::of(&[("debian12", 2)], 1);
    scene.spares = vec![
        spare(1, SpareState::Unfinished),
        spare(2, SpareState::Unfinished),
        spare(3, SpareState::Ready),
    ];
    let plan = scene.plan();
    assert_eq!(ids(&plan.finish), ["vm-002"]);
    assert_eq!(
        plan.remove,
        [(VmId::new("vm-001"), Removal::Excess)],
        "the half-made go before the ready"
    );
    assert_eq!(plan.make, []);
}

#[test]
fn spares_of_a_changed_model_go_and_are_replaced() {
    let mut scene = Scene::of(&[("debian12", 1)], 5);
    scene.spares = vec![Spare { is_outdated: true, ..spare(1, SpareState::Ready) }];
    let plan = scene.plan();
    assert_eq!(plan.remove, [(VmId::new("vm-001"), Removal::Outdated)]);
    assert_eq!(plan.make.len(), 1);
}

/// The Go hatchery leaves spares that share one.
#[test]
fn a_spare_whose_address_another_has_is_no_spare_and_goes() {
    let mut scene = Scene::of(&[("debian12", 2)], 5);
    let shared = Spare { shares_address: true, ..spare(2, SpareState::Ready) };
    scene.spares = vec![spare(1, SpareState::Ready), shared];
    let plan = scene.plan();
    assert_eq!(plan.remove, [(VmId::new("vm-002"), Removal::SharedAddress)]);
    assert_eq!((plan.standing[0].ready, plan.make.len()), (1, 1));
    let model = SpareModel::V2("debian12".into());
    assert_eq!(ids(&claimable(&scene.spares, &model, None)), ["vm-001"]);
}

#[test]
fn a_model_that_must_be_registered_gets_no_new_spares_and_does_not_hold_up_others() {
    let mut scene = Scene::of(&[("debian12", 2), ("ubuntu24", 2)], 1);
    scene.holds.insert(kind("debian12"), Hold::NeedsRegistration);
    assert_eq!(scene.makes(), ["ubuntu24"]);
    assert_eq!(scene.plan().standing[0].waiting, Some(Waiting::Held(Hold::NeedsRegistration)));
}

#[test]
fn a_template_that_always_fails_backs_off_further_each_time() {
    let mut scene = Scene::of(&[("debian12", 2)], 5);
    let model = SpareModel::V2("debian12".into());
    let mut now = NOW;
    let mut delays = Vec::new();
    for _ in 0..9 {
        let until = scene.backoffs.failed(&model, now);
        delays.push(until.duration_since(now).as_secs());
        now = until;
    }
    assert_eq!(delays, [30, 60, 120, 240, 480, 960, 1800, 1800, 1800]);
    assert_eq!(scene.backoffs.blocked(&model, now), None, "then it is tried again");
    scene.backoffs = Backoffs::default();
    scene.backoffs.failed(&model, NOW);
    assert_eq!(scene.makes(), [""; 0]);
    let waiting = scene.plan().standing[0].waiting.clone().unwrap();
    assert_eq!(waiting.to_string(), "failed once, tried again at 1970-01-01T00:00:30Z");
    scene.backoffs.succeeded(&model);
    assert_eq!(scene.makes().len(), 2);
}

#[test]
fn spares_stop_at_the_last_free_address() {
    let mut scene = Scene::of(&[("debian12", 3)], 5);
    scene.free_addresses = Some(1);
    assert_eq!(scene.makes(), ["debian12"]);
    assert_eq!(scene.plan().standing[0].waiting, Some(Waiting::NoAddress));
}

#[test]
fn c_8_2_a_spare_of_the_same_flavor_comes_first_then_a_neutral_one_and_never_another_flavor() {
    let of = |number, kind| Spare { kind, ..spare(number, SpareState::Ready) };
    let spares = [
        of(1, kind("debian12")),
        of(2, flavored("debian12", "large")),
        of(3, flavored("debian12", "small")),
        of(4, kind("ubuntu24")),
        of(5, kind("debian12")),
        spare(6, SpareState::Claimed),
        spare(7, SpareState::Making),
        Spare { is_outdated: true, ..spare(8, SpareState::Ready) },
    ];
    let model = SpareModel::V2("debian12".into());
    assert_eq!(ids(&claimable(&spares, &model, Some("LARGE"))), ["vm-002", "vm-001", "vm-005"]);
    assert_eq!(ids(&claimable(&spares, &model, Some("medium"))), ["vm-001", "vm-005"]);
    assert_eq!(ids(&claimable(&spares, &model, None)), ["vm-001", "vm-005"], "the template's size");
}

#[test]
fn d42_a_spare_is_ready_by_power_and_annotation() {
    let spare = Annotation {
        provisioning: true,
        vmware_model_path: "debian12".into(),
        ..Annotation::default()
    };
    let state = |annotation: &Annotation, power, claimed, made| {
        SpareState::of(annotation, power, claimed, made)
    };
    assert_eq!(state(&spare, Power::Off, false, false), SpareState::Ready);
    assert_eq!(state(&spare, Power::On, false, false), SpareState::Unfinished);
    assert_eq!(state(&spare, Power::Off, false, true), SpareState::Making);
    assert_eq!(state(&spare, Power::Off, true, false), SpareState::Claimed);
    let mut doomed = spare.clone();
    doomed.doom("x");
    assert_eq!(state(&doomed, Power::Off, false, false), SpareState::Dying);
    assert_eq!(SpareKind::of("provision-v2-x", &spare), Some(kind("debian12")));
    assert_eq!(SpareKind::of("keen-bohr", &spare), None);
    let v1 = Annotation { worker_model_path: "team/build".into(), ..Annotation::default() };
    let of_v1 = SpareKind::of("provision-v1-x", &v1).unwrap();
    assert_eq!(of_v1.model, SpareModel::V1(ModelPath::parse("team/build")));
}

proptest! {
    /// Carrying out a plan leads to what is configured, and never touches what is claimed.
    #[test]
    fn plans_lead_to_what_is_configured(
        wanted in proptest::collection::vec(0_u32..4, 1..4),
        states in proptest::collection::vec((0_usize..4, 0_u8..5), 0..20),
        pool_size in 1_u32..4,
    ) {
        let names = ["a", "b", "c", "d"];
        let mut scene = Scene::of(&[], pool_size);
        scene.pools = wanted.iter().zip(names).map(|(number, name)| pool(name, *number)).collect();
        scene.spares = states.iter().zip(0..).map(|((which, state), number)| {
            let state = [SpareState::Ready, SpareState::Making, SpareState::Unfinished, SpareState::Claimed, SpareState::Dying][usize::from(*state)];
            Spare { kind: kind(names[*which]), ..spare(number, state) }
        }).collect();
        let claimed = |scene: &Scene| scene.spares.iter().filter(|spare| spare.state == SpareState::Claimed).count();
        let before = claimed(&scene);
        let mut number = 100;
        for _ in 0..40 {
            let plan = scene.plan();
            prop_assert!(plan.make.len() <= pool_size as usize);
            let removed: Vec<_> = plan.remove.iter().map(|(vm, _)| vm.clone()).collect();
            scene.spares.retain(|spare| !removed.contains(&spare.vm) && spare.state != SpareState::Dying);
            scene.spares.iter_mut().filter(|spare| spare.state != SpareState::Claimed).for_each(|spare| spare.state = SpareState::Ready);
            for kind in plan.make {
                number += 1;
                scene.spares.push(Spare { kind, ..spare(number, SpareState::Ready) });
            }
        }
        prop_assert_eq!(claimed(&scene), before);
        for pool in &scene.pools {
            let ready = scene.spares.iter().filter(|spare| spare.kind == pool.kind && spare.state == SpareState::Ready).count();
            prop_assert_eq!(ready, pool.number as usize, "{}", pool.kind);
        }
    }
}
