use roost_clock::SimClock;
use tokio::time::sleep;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn mirror() -> Mirror {
    let mirror = Mirror::new(vec![Arc::new(Slashes)], Arc::new(SimClock::new()));
    mirror.update(|core| core.hear(&[enter(1, usual(1)), enter(2, usual(2))]));
    mirror
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_holds_already_does_not_wait() {
    let mirror = mirror();
    let off = mirror.wait_until(&vm_id(1), SECOND, condition::powered(Power::Off)).await;
    assert_eq!(off, Ok(()));
    assert_eq!(mirror.wait_until(&vm_id(9), SECOND, condition::gone()).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_change_wakes_whoever_waits_for_that_vm_only() {
    let mirror = mirror();
    let asked = Arc::new(Mutex::new(0));
    let (waits, count) = (mirror.clone(), Arc::clone(&asked));
    let waiting = tokio::spawn(async move {
        let mut wanted = condition::has_address([10, 0, 0, 9].into());
        let condition = |vm: Option<&Arc<Vm>>| {
            *count.lock().unwrap() += 1;
            wanted(vm)
        };
        waits.changed(&vm_id(1), Wrote::new().power(Power::On));
        waits.wait_until(&vm_id(1), 60 * SECOND, condition).await
    });
    sleep(SECOND).await;
    mirror.update(|core| core.hear(&[modify(2, vec![power("poweredOn")])]));
    sleep(SECOND).await;
    assert_eq!(*asked.lock().unwrap(), 1, "it was not asked about another VM");
    mirror.update(|core| {
        core.hear(&[modify(1, vec![power("poweredOn"), guest_net(&["10.0.0.7"])])]);
        core.answered(at(0));
    });
    sleep(SECOND).await;
    assert!(!waiting.is_finished(), "a template's old address is not the one");
    mirror.update(|core| core.hear(&[modify(1, vec![guest_net(&["fe80::1", "10.0.0.9"])])]));
    assert_eq!(waiting.await.unwrap(), Ok([10, 0, 0, 9].into()));
    assert_eq!(
        format!("{:?}", mirror.core().waits),
        "Waits { bells: {} }",
        "nobody is left behind"
    );
}

#[tokio::test(start_paused = true)]
async fn it_ends_at_its_deadline_and_says_if_the_view_was_old() {
    let mirror = mirror();
    let begun = Instant::now();
    mirror.changed(&vm_id(1), Wrote::new().power(Power::On));
    let late =
        mirror.wait_until(&vm_id(1), 180 * SECOND, condition::guest_ready()).await.unwrap_err();
    assert_eq!(begun.elapsed(), 180 * SECOND);
    assert_eq!(
        late.to_string(),
        "vm-1 did not get there within 180s (the view of the datacenter is not up to date)"
    );
}

#[tokio::test(start_paused = true)]
async fn what_can_no_longer_happen_is_not_waited_for() {
    let mirror = mirror();
    mirror.changed(&vm_id(1), Wrote::new().power(Power::On));
    let waits = mirror.clone();
    let waiting = tokio::spawn(async move {
        waits.wait_until(&vm_id(1), 60 * SECOND, condition::any_address()).await
    });
    sleep(SECOND).await;
    mirror.destroyed(&vm_id(1));
    assert_eq!(waiting.await.unwrap().unwrap_err().to_string(), "vm-1: the VM is gone");
    let off = mirror.wait_until(&vm_id(2), SECOND, condition::guest_ready()).await.unwrap_err();
    assert_eq!(off, WaitError::Never { vm: vm_id(2), why: "the VM is powered off" });
}

#[tokio::test(start_paused = true)]
async fn changes_can_be_followed() {
    let mirror = mirror();
    let mut changes = mirror.changes();
    changes.mark_unchanged();
    mirror.update(|core| core.hear(&[enter(1, usual(1))]));
    assert!(!changes.has_changed().unwrap());
    mirror.changed(&vm_id(1), Wrote::new().cpus(3));
    assert!(changes.has_changed().unwrap());
    assert_eq!(*changes.borrow_and_update(), mirror.snapshot().generation());
}
