//! Nothing that was before our own change is shown after it.

use super::*;

fn claimed() -> Wrote {
    Wrote::new().name("worker-x").annotation("test:hv1/j1/10.0.0.9").cpus(8).memory_mb(8192)
}

fn known() -> Core {
    let mut core = core();
    core.hear(&[enter(1, usual(1))]);
    core
}

fn answers(core: &mut Core, times: usize) {
    (0..times).for_each(|_| core.answered(at(0)));
}

#[test]
fn a_change_is_seen_at_once_and_in_every_index() {
    let mut core = known();
    core.wrote(&vm_id(1), claimed(), at(0));
    let vm = core.row(1);
    assert_eq!((vm.cpus, vm.memory_mb, &*vm.name), (8, 8192, "worker-x"));
    assert_eq!(ids(core.tables.serving(&LAB.request("j1"))), ["vm-1"]);
    assert_eq!(ids(core.tables.named("worker-1")), [""; 0]);
    assert_eq!(ids(core.tables.using("10.0.0.9".parse().unwrap())), ["vm-1"]);
    assert_eq!(vm.change_version, None, "the version before would only be refused");

    // The stream is behind: it still tells of what was before.
    core.hear(&[modify(1, vec![text("name", "between"), text("config.changeVersion", "2")])]);
    core.hear(&[enter(1, usual(1))]);
    assert_eq!((&*core.row(1).name, core.row(1).cpus), ("worker-x", 8));

    core.hear(&[modify(
        1,
        vec![
            text("name", "worker-x"),
            text("config.annotation", "test:hv1/j1/10.0.0.9"),
            set("summary.config.numCpu", Value::Int(8)),
            set("summary.config.memorySizeMB", Value::Int(8192)),
            text("config.changeVersion", "3"),
        ],
    )]);
    assert_eq!(core.row(1).change_version.as_deref(), Some("3"));
    answers(&mut core, 3);
    assert_eq!(core.take_doubts(at(600_000)), [], "it agreed in time");
    // From here on the stream's word is the last one.
    core.hear(&[modify(1, vec![text("name", "by somebody else")])]);
    assert_eq!(&*core.row(1).name, "by somebody else");
}

#[test]
fn what_the_server_does_not_announce_is_read() {
    // vcsim announces a new changeVersion and nothing else of a reconfiguration.
    let mut core = known();
    core.wrote(&vm_id(1), claimed(), at(0));
    core.hear(&[modify(1, vec![text("config.changeVersion", "2")])]);
    core.answered(at(5));
    assert_eq!(core.take_doubts(at(5)), [vm_id(1)]);
    assert_eq!(core.take_doubts(at(600_000)), [], "one read at a time");
    let mut read = usual(1);
    read.extend([
        text("name", "worker-x"),
        text("config.annotation", "test:hv1/j1/10.0.0.9"),
        set("summary.config.numCpu", Value::Int(8)),
        set("summary.config.memorySizeMB", Value::Int(8192)),
        text("config.changeVersion", "2"),
    ]);
    let read = properties(read);
    core.read(&vm_id(1), Some(&read), at(6));
    assert_eq!((core.row(1).cpus, core.row(1).change_version.as_deref()), (8, Some("2")));
    answers(&mut core, 3);
    assert_eq!(
        core.take_doubts(at(600_000)),
        [vm_id(1)],
        "asked since, the stream still says nothing"
    );
    core.read(&vm_id(1), Some(&read), at(600_001));
    answers(&mut core, 3);
    assert_eq!((core.row(1).cpus, core.row(1).change_version.as_deref()), (8, Some("2")));
    assert_eq!(core.take_doubts(at(1_200_000)), [], "it never will");
}

#[test]
fn a_change_by_somebody_else_right_after_ours_is_found_out() {
    let mut core = known();
    core.wrote(&vm_id(1), Wrote::new().power(Power::On), at(0));
    core.hear(&[modify(1, vec![power("poweredOff")])]);
    assert_eq!(core.row(1).power, Power::On, "that may have been before");
    core.answered(at(1));
    assert_eq!(core.take_doubts(at(1)), [vm_id(1)]);
    core.read(&vm_id(1), Some(&properties(usual(1))), at(2));
    assert_eq!(core.row(1).power, Power::Off, "it was not");
}

#[test]
fn a_silent_stream_is_not_waited_for() {
    let mut core = known();
    core.wrote(&vm_id(1), Wrote::new().cpus(4), at(0));
    assert_eq!(core.next_alarm(), Some(at(2_000)));
    assert_eq!(core.take_doubts(at(2_000)), [vm_id(1)]);
    core.read_failed(&vm_id(1), at(2_010));
    assert_eq!(core.row(1).cpus, 4);
    assert_eq!(core.take_doubts(at(2_011)), []);
    assert_eq!(core.take_doubts(at(10_000)), [vm_id(1)], "it is tried again");
}

#[test]
fn off_and_on_again_does_not_flicker() {
    let mut core = known();
    core.wrote(&vm_id(1), Wrote::new().power(Power::On), at(0));
    core.wrote(&vm_id(1), Wrote::new().power(Power::Off), at(1));
    assert_eq!(core.row(1).power, Power::Off);
    // An answer from before is counted late, and another one was on its way.
    core.answered(at(1));
    core.hear(&[modify(1, vec![power("poweredOn")])]);
    assert_eq!(core.row(1).power, Power::Off, "that is our own change before the last");
    core.hear(&[modify(1, vec![power("poweredOff")])]);
    answers(&mut core, 3);
    assert_eq!(core.row(1).power, Power::Off);
    assert_eq!(core.take_doubts(at(600_000)), []);
}

#[test]
fn a_power_change_of_ours_ends_what_the_guest_said() {
    let mut core = known();
    let ready = set("guest.guestOperationsReady", Value::Bool(true));
    core.hear(&[modify(1, vec![power("poweredOn"), ready.clone()])]);
    core.wrote(&vm_id(1), Wrote::new().power(Power::Off), at(0));
    core.wrote(&vm_id(1), Wrote::new().power(Power::On), at(1));
    assert!(!core.row(1).guest.operations_ready);
    core.hear(&[modify(1, vec![ready.clone()])]);
    assert!(!core.row(1).guest.operations_ready, "that was on its way");
    core.answered(at(2));
    core.hear(&[modify(1, vec![set("guest.guestOperationsReady", Value::Bool(false))])]);
    core.hear(&[modify(1, vec![ready])]);
    assert!(core.row(1).guest.operations_ready);
}

#[test]
fn a_vm_that_we_made_is_there_at_once() {
    let mut core = core();
    core.hear(&[]);
    core.wrote(&vm_id(7), claimed().power(Power::On), at(0));
    assert_eq!(ids(core.tables.owned_by(LAB, "hv1")), ["vm-7"]);
    assert_eq!(core.row(7).power, Power::On);
    // A page of the stream can hold the VM before all of it is there.
    core.hear(&[enter(7, vec![text("name", "worker-x")])]);
    assert_eq!(core.row(7).request().unwrap().as_ref(), "j1");
    core.hear(&[leave(7)]);
    assert!(!core.has(7), "it has been there, and has left");
}

#[test]
fn a_vm_that_we_made_and_the_stream_never_shows_is_looked_for() {
    let mut core = core();
    core.wrote(&vm_id(7), claimed(), at(0));
    assert_eq!(core.take_doubts(at(2_000)), [vm_id(7)]);
    core.read(&vm_id(7), Some(&properties(usual(7))), at(2_001));
    answers(&mut core, 3);
    assert!(core.has(7));
    core.apply(0, &[], true, true, at(3_000));
    assert_eq!(core.take_doubts(at(3_000)), [vm_id(7)], "a new load did not have it either");
    core.read(&vm_id(7), None, at(3_001));
    assert!(!core.has(7));

    core.wrote(&vm_id(8), claimed(), at(0));
    assert_eq!(core.take_doubts(at(4_000)), [vm_id(8)]);
    core.read(&vm_id(8), None, at(4_001));
    assert!(!core.has(8), "gone before anyone saw it");
}

#[test]
fn a_vm_that_we_destroyed_is_gone_at_once_and_stays_gone() {
    let mut core = known();
    core.destroyed(&vm_id(1), at(0));
    assert!(!core.has(1));
    assert!(core.tables.owned_by(LAB, "hv1").next().is_none());
    core.hear(&[modify(1, vec![text("name", "late news")]), enter(1, usual(1))]);
    assert!(!core.has(1), "an older update that arrives late");
    core.hear(&[leave(1)]);
    answers(&mut core, 3);
    assert!(!core.has(1));
    assert_eq!(core.take_doubts(at(600_000)), []);
}

#[test]
fn a_vm_that_was_not_destroyed_after_all_comes_back() {
    let mut core = known();
    core.destroyed(&vm_id(1), at(0));
    answers(&mut core, 1);
    assert_eq!(core.take_doubts(at(1)), [vm_id(1)]);
    core.read(&vm_id(1), Some(&properties(usual(1))), at(2));
    assert!(core.has(1));
    core.destroyed(&vm_id(1), at(3));
    assert_eq!(core.take_doubts(at(2_003)), [vm_id(1)]);
    core.read(&vm_id(1), None, at(2_004));
    assert!(!core.has(1));
    assert_eq!(core.take_doubts(at(2_005)), [], "it waits for the stream to say so");
    core.begin_load(1);
    core.hear(&[]);
    answers(&mut core, 3);
    assert_eq!(core.take_doubts(at(600_000)), []);
}
