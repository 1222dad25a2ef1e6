//! A promise becomes a VM without a gap and without counting twice.

use super::*;

const VM: &str = "vm-7";

fn one_at_a_time() -> Ledger {
    ledger(Limits { cpus: Limit::At(4), ..Limits::default() }.quota(WORKERS, Limit::At(1)))
}

fn taken(ledger: &mut Ledger, now: Timestamp) -> (u64, u64) {
    let taken = ledger.taken(DOOR, now);
    (taken.by_vms.cpus, taken.promised.cpus)
}

#[test]
fn a_reservation_that_nobody_knows_of_is_free_at_once() {
    let mut ledger = one_at_a_time();
    for number in 0..3 {
        let held = ledger.reserve(ask(&number.to_string(), 4), at(0)).unwrap();
        assert_eq!(held.address().unwrap().address.to_string(), "10.0.0.1");
        assert_eq!(bound(&mut ledger, ask("x", 1), at(0)), LedgerGate::Quota(WORKERS));
        drop(held);
    }
}

#[test]
fn a_vm_is_known_by_the_name_it_was_to_get_or_by_its_id() {
    for by_name in [true, false] {
        let mut ledger = one_at_a_time();
        let vm = VmId::new(VM);
        let mut held = ledger.reserve(ask("a", 4), at(0)).unwrap();
        held.submitted();
        let name = if by_name { "vm-of-a" } else { "another" };
        if !by_name {
            held.bind(&vm);
        }
        assert_eq!(taken(&mut ledger, at(1)), (0, 4));
        // It appears switched off, which takes a slot but no CPU yet.
        let off = Amounts::default().count(WORKERS, 1);
        ledger.see(DOOR, &vm, name, Holding { request: None, ..holding("a", off) }, at(2));
        assert_eq!(taken(&mut ledger, at(2)), (0, 4));
        assert_eq!(ledger.taken(DOOR, at(2)).promised.of(WORKERS), 0);
        ledger.see(DOOR, &vm, name, holding("a", worker(4, 4096)), at(3));
        assert_eq!(taken(&mut ledger, at(3)), (4, 0));
        assert_eq!(bound(&mut ledger, ask("a", 1), at(3)), LedgerGate::Request);
        held.commit();
        assert_eq!(taken(&mut ledger, at(4)), (4, 0));
        assert_eq!(ledger.taken(DOOR, at(4)).reservations, 0);
        ledger.vanish(DOOR, &vm, at(5));
        assert_eq!(taken(&mut ledger, at(5)), (0, 0));
    }
}

#[test]
fn a_strangers_vm_of_that_name_is_not_ours() {
    let mut ledger = one_at_a_time();
    let mut held = ledger.reserve(ask("a", 4), at(0)).unwrap();
    held.submitted();
    let foreign = Holding { own: false, ..Holding::default() };
    ledger.see(DOOR, &VmId::new("vm-1"), "vm-of-a", foreign, at(1));
    ledger.see(DOOR, &VmId::new(VM), "vm-of-a", holding("a", worker(4, 4096)), at(2));
    assert_eq!(taken(&mut ledger, at(2)), (4, 0));
}

#[test]
fn committed_before_it_is_seen_it_stays_counted() {
    let mut ledger = one_at_a_time();
    let vm = VmId::new(VM);
    let mut held = ledger.reserve(ask("a", 4), at(0)).unwrap();
    held.submitted();
    held.bind(&vm);
    held.commit();
    assert_eq!(taken(&mut ledger, at(1)), (0, 4));
    assert_eq!(bound(&mut ledger, ask("a", 1), at(1)), LedgerGate::Request);
    ledger.see(DOOR, &vm, "vm-of-a", holding("a", worker(4, 4096)), at(100));
    assert_eq!(taken(&mut ledger, at(100)), (4, 0));
    assert_eq!(ledger.taken(DOOR, at(100)).reservations, 0);
}

#[test]
fn a_holder_that_went_away_after_it_asked_for_a_vm_leaves_a_safety_period() {
    let mut ledger = one_at_a_time();
    let mut held = ledger.reserve(ask("a", 4), at(0)).unwrap();
    held.submitted_as("given-late");
    drop(held);
    assert_eq!(bound(&mut ledger, ask("b", 1), at(1)), LedgerGate::Quota(WORKERS));
    assert_eq!(ledger.taken(DOOR, at(299)).addresses.promised, 1);
    assert_eq!(ledger.taken(DOOR, at(301)).addresses.promised, 0);
    let held = ledger.reserve(ask("b", 1), at(301)).unwrap();
    assert_eq!(held.address().unwrap().address.to_string(), "10.0.0.1");
    drop(held);

    let mut held = ledger.reserve(ask("c", 4), at(400)).unwrap();
    held.submitted_as("given-late");
    drop(held);
    ledger.see(DOOR, &VmId::new(VM), "given-late", holding("c", worker(4, 4096)), at(401));
    assert_eq!(taken(&mut ledger, at(401)), (4, 0), "it came after all");
    assert_eq!(ledger.taken(DOOR, at(401)).reservations, 0);
}

#[test]
fn a_clock_that_was_set_back_holds_no_promise_for_longer_than_usual() {
    let mut ledger = one_at_a_time();
    let mut held = ledger.reserve(ask("a", 4), at(7_200)).unwrap();
    held.submitted_as("given-late");
    drop(held);
    assert_eq!(ledger.taken(DOOR, at(7_200)).addresses.promised, 1);
    assert_eq!(ledger.taken(DOOR, at(3_600)).addresses.promised, 1);
    assert_eq!(ledger.taken(DOOR, at(3_899)).addresses.promised, 1, "its safety period lasts");
    assert_eq!(ledger.taken(DOOR, at(3_901)).addresses.promised, 0);
}

#[test]
fn whoever_knows_that_there_is_no_vm_releases_at_once() {
    let mut ledger = one_at_a_time();
    let mut held = ledger.reserve(ask("a", 4), at(0)).unwrap();
    held.submitted();
    held.release();
    assert!(ledger.reserve(ask("a", 4), at(0)).is_ok());
}

#[test]
fn a_vm_that_came_and_went_takes_its_promise_with_it() {
    let mut ledger = one_at_a_time();
    let vm = VmId::new(VM);
    let mut held = ledger.reserve(ask("a", 4), at(0)).unwrap();
    held.submitted();
    held.bind(&vm);
    ledger.see(DOOR, &vm, "vm-of-a", holding("a", Amounts::default()), at(1));
    ledger.vanish(DOOR, &vm, at(2));
    assert_eq!(taken(&mut ledger, at(2)), (0, 4), "its holder has not given up");
    drop(held);
    ledger.see(DOOR, &vm, "vm-of-a", holding("a", Amounts::default()), at(3));
    ledger.vanish(DOOR, &vm, at(4));
    assert_eq!(taken(&mut ledger, at(4)), (0, 0));
}

#[test]
fn a_claimed_spare_is_taken_over_when_it_runs() {
    let mut ledger = one_at_a_time();
    let vm = VmId::new(VM);
    let spare = Holding { own: true, ..Holding::default() };
    ledger.see_addresses(&vm, vec![[10, 0, 0, 1].into()], at(0));
    ledger.see(DOOR, &vm, "provision-1", spare, at(0));
    let claim = Ask { machine: Machine::Spare { candidates: vec![vm.clone()] }, ..ask("a", 4) };
    let mut held = ledger.reserve(claim, at(0)).unwrap();
    held.submitted();
    assert_eq!(taken(&mut ledger, at(1)), (0, 4));
    ledger.see(DOOR, &vm, "vm-of-a", holding("a", worker(4, 4096)), at(2));
    held.commit();
    assert_eq!(taken(&mut ledger, at(3)), (4, 0));
    assert!(!ledger.is_promised(&vm, at(3)));
    let addresses = ledger.taken(DOOR, at(3)).addresses;
    assert_eq!((addresses.used, addresses.promised), (1, 0));
}

#[tokio::test]
async fn giving_back_rings() {
    let mut ledger = one_at_a_time();
    let news = ledger.news(DOOR);
    let held = ledger.reserve(ask("a", 1), at(0)).unwrap();
    let rung = tokio::spawn(async move { news.notified().await });
    drop(held);
    rung.await.unwrap();
}
