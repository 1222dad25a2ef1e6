use k8s_openapi::api::core::v1::ConfigMap;
use roost_workqueue::{Add, Order, Settings, Workqueue};

use super::*;
use crate::api::condition::{Reason, Truth, mark, mark_false, mark_true};
use crate::api::vm::{Network, NetworkStatus, PowerState, PromoteDisksMode};

const NOW: Timestamp = Timestamp::constant(1_000_000, 0);

/// A VM in words.
struct Vm(VirtualMachine);

fn vm() -> Vm {
    Vm(VirtualMachine::default())
}

/// Created, powered on as wanted, with a network that is enabled.
fn running() -> Vm {
    let mut vm = vm().created().power(Some(PowerState::PoweredOn), Some(PowerState::PoweredOn));
    vm.0.spec.network = Some(Network::default());
    vm
}

impl Vm {
    fn created(mut self) -> Self {
        mark_true(&mut self.0.status_mut().conditions, ConditionType::Created, NOW);
        self
    }

    fn not_created(mut self) -> Self {
        let conditions = &mut self.0.status_mut().conditions;
        mark_false(conditions, ConditionType::Created, Reason::Error, "no room", NOW);
        self
    }

    fn power(mut self, wanted: Option<PowerState>, is: Option<PowerState>) -> Self {
        self.0.spec.power_state = wanted;
        self.0.status_mut().power_state = is;
        self
    }

    fn with_ip6(mut self) -> Self {
        let network = NetworkStatus { primary_ip6: "fd00::1".to_owned(), ..Default::default() };
        self.0.status_mut().network = Some(network);
        self
    }

    fn without_network(mut self) -> Self {
        self.0.spec.network = Some(Network { disabled: true, ..Network::default() });
        self
    }

    fn promoted(mut self) -> Self {
        mark_true(&mut self.0.status_mut().conditions, ConditionType::DiskPromotionSynced, NOW);
        self
    }

    fn mode(mut self, mode: PromoteDisksMode) -> Self {
        self.0.spec.promote_disks_mode = Some(mode);
        self
    }

    fn deleting(mut self) -> Self {
        self.0.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(NOW));
        self
    }

    fn annotated(mut self, priority: &str) -> Self {
        let annotations = self.0.metadata.annotations.get_or_insert_default();
        annotations.insert(RECONCILE_PRIORITY.to_owned(), priority.to_owned());
        self
    }

    fn at(&self, cause: Cause) -> i32 {
        priority(Some(&self.0), cause, NOW, &PrioritySettings::default())
    }
}

#[test]
fn the_table_of_priorities() {
    let (on, off) = (Some(PowerState::PoweredOn), Some(PowerState::PoweredOff));
    let suspended = Some(PowerState::Suspended);
    let stable = || running().with_ip6().promoted();
    let table = vec![
        ("P1", vm(), Cause::Created, 100),
        ("P2", vm(), Cause::InitialList, -1),
        ("P3", vm().not_created(), Cause::Changed, 100),
        ("P4", vm().created().power(on, off), Cause::Changed, 99),
        ("P5", vm().created().power(on, off), Cause::Resync, -2),
        ("P6 changed", vm().power(on, off).deleting(), Cause::Changed, 98),
        ("P6 deleted", vm().power(on, off).deleting(), Cause::Deleted, 98),
        ("P6 signal", vm().power(on, off).deleting(), Cause::Signal, 98),
        ("P7", running(), Cause::Signal, 97),
        ("P8", running().without_network(), Cause::Signal, 96),
        ("P9", running().with_ip6().promoted(), Cause::Signal, -4),
        ("P10", running().with_ip6().mode(PromoteDisksMode::Online), Cause::Changed, 96),
        ("P11", running().with_ip6().mode(PromoteDisksMode::Disabled), Cause::Changed, -2),
        ("P12", vm().created().power(off, off), Cause::Changed, 96),
        ("P13", vm().deleting().annotated("250"), Cause::Deleted, 250),
        ("P14", vm().annotated("-7"), Cause::Created, -7),
        ("P15", vm().deleting().annotated("high"), Cause::Changed, 98),
        ("P16", stable().annotated(""), Cause::Changed, -2),
        ("P19", vm().created().power(suspended, suspended).promoted(), Cause::Signal, -4),
        ("no wish beside a state", vm().created().power(None, on), Cause::Changed, 99),
        ("created event of a stable VM", stable(), Cause::Created, -1),
        ("deleted event of a stable VM", stable(), Cause::Deleted, -3),
        ("its class changed", stable(), Cause::Related, -2),
        ("queued again, in sync now", stable(), Cause::Requeued { last: 99 }, -4),
        ("queued again, still to be made", vm(), Cause::Requeued { last: -4 }, 100),
        ("beyond all numbers", vm().annotated("99999999999"), Cause::Created, i32::MAX),
    ];
    for (case, vm, cause, expected) in table {
        assert_eq!(vm.at(cause), expected, "{case}");
    }
}

/// P17 and P18.
#[test]
fn other_kinds_have_the_override_only() {
    let mut object = ConfigMap::default();
    assert_eq!(of_other(&object, DEFAULT_GENERIC), -4);
    let annotations = object.metadata.annotations.get_or_insert_default();
    annotations.insert(RECONCILE_PRIORITY.to_owned(), "5".to_owned());
    assert_eq!(of_other(&object, DEFAULT_GENERIC), 5);
}

/// P20: a restart with many VMs holds back nobody who asks for something.
#[tokio::test(start_paused = true)]
async fn new_vms_and_power_changes_overtake_the_initial_list() {
    let queue = Workqueue::new(&Settings::default());
    let old = running().with_ip6().promoted();
    for number in 0..1000 {
        queue.add_with(Add::at(old.at(Cause::InitialList)), [format!("old-{number}")]);
    }
    let power = vm().created().power(Some(PowerState::PoweredOn), Some(PowerState::PoweredOff));
    queue.add_with(Add::at(power.at(Cause::Changed)), ["power".to_owned()]);
    queue.add_with(Add::at(vm().at(Cause::Created)), ["new".to_owned()]);
    let mut taken = Vec::new();
    for _ in 0..4 {
        taken.push(queue.try_get(Order::Priority).unwrap().key().clone());
    }
    assert_eq!(taken, ["new", "power", "old-0", "old-1"]);
}

/// P21: the runtime asks again at every requeue, so a key does not keep a level that it no longer deserves.
#[test]
fn a_requeued_key_is_weighed_anew() {
    let in_sync = running().with_ip6().promoted();
    assert_eq!(in_sync.at(Cause::Requeued { last: POWER_STATE_CHANGE }), DEFAULT_GENERIC);
}

#[test]
fn a_vm_that_waits_in_vain_falls_back_to_the_default() {
    let settings = PrioritySettings::default();
    let late = NOW + settings.patience;
    let mut waiting = running().promoted();
    let conditions = &mut waiting.0.status_mut().conditions;
    mark(conditions, ConditionType::PowerStateSynced, Truth::True, Reason::Synced, "", NOW);
    let at = |vm: &Vm, now| priority(Some(&vm.0), Cause::Signal, now, &settings);
    let last = late - Duration::from_secs(1);
    assert_eq!((at(&waiting, last), at(&waiting, late)), (WAITING_FOR_IP, DEFAULT_GENERIC));

    let mut promoting = running().with_ip6();
    let conditions = &mut promoting.0.status_mut().conditions;
    let (kind, reason) = (ConditionType::DiskPromotionSynced, Reason::DiskPromotionPending);
    mark_false(conditions, kind, reason, "has a snapshot", NOW);
    assert_eq!(at(&promoting, NOW), WAITING_FOR_DISK_PROMOTION);
    assert_eq!(at(&promoting, late), DEFAULT_GENERIC);
}

#[test]
fn settings_change_routine_work_and_promotion() {
    let settings = PrioritySettings {
        routine: Routine::Lowest,
        promotes_disks: false,
        ..PrioritySettings::default()
    };
    let at = |vm: &Vm, cause| priority(Some(&vm.0), cause, NOW, &settings);
    assert_eq!(at(&vm(), Cause::InitialList), -100);
    assert_eq!(at(&vm(), Cause::Resync), -100);
    assert_eq!(at(&running().with_ip6(), Cause::Changed), -2);
    assert_eq!(priority(None, Cause::Deleted, NOW, &settings), -3);
}

#[test]
fn labels_are_few() {
    let PriorityLabels::Named(name) = labels() else { panic!("not named") };
    for (priority, label) in [
        (100, "creating"),
        (99, "power"),
        (98, "deleting"),
        (97, "ip"),
        (96, "promo"),
        (-3, "default"),
        (-100, "default"),
        (0, "default"),
        (4711, "override"),
    ] {
        assert_eq!(name(priority), label, "{priority}");
    }
}

/// Ageing: routine work gets its turn under a steady stream of urgent keys.
#[tokio::test(start_paused = true)]
async fn an_old_routine_key_rises_but_not_to_the_levels_of_people() {
    let settings = Settings { ageing: Some(ageing()), ..Settings::default() };
    let queue = Workqueue::new(&settings);
    queue.add_with(Add::at(DEFAULT_GENERIC), ["old"]);
    tokio::time::advance(ageing().after + Duration::from_secs(1)).await;
    queue.add_with(Add::at(DEFAULT_CREATE), ["listed"]);
    queue.add_with(Add::at(WAITING_FOR_DISK_PROMOTION), ["urgent"]);
    let mut taken = Vec::new();
    while let Some(key) = queue.try_get(Order::Priority) {
        taken.push(*key.key());
    }
    assert_eq!(taken[0], "urgent");
    assert_eq!(taken.len(), 3);
}

#[test]
fn without_priorities_all_are_alike() {
    let settings = PrioritySettings { is_used: false, ..PrioritySettings::default() };
    let new = VirtualMachine::default();
    for cause in [Cause::Created, Cause::InitialList, Cause::Signal, Cause::Deleted] {
        assert_eq!(priority(Some(&new), cause, Timestamp::UNIX_EPOCH, &settings), 0);
    }
}
