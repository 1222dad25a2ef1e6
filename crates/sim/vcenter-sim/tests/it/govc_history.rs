//! `govc` watches: updates as they come, events and tasks afterwards.

use std::thread;

use crate::govc::{Lab, lines};
use crate::wire_door::{USER, instant, quick};
use roost_oracle::Govc;
use roost_vcenter_sim::{Options, Span, Timings};

const VM: &str = "DC0_H0_VM0";
const PATH: &str = "vm/DC0_H0_VM0";

#[test]
fn a_waiting_collect_sees_what_changed_and_nothing_else() {
    let Some(lab) = Lab::open(instant()) else { return };
    let vm = lab.says(&["ls", "-i", PATH]);
    let watch =
        ["object.collect", "-n", "1", vm.trim(), "name", "runtime.powerState", "config.annotation"];
    let (on, off) = ("runtime.powerState types.VirtualMachinePowerState poweredOn", "poweredOff");
    let off = on.replace("poweredOn", off);
    let (old, new) = ("name string DC0_H0_VM0", "name string seen-1");
    let annotation = "config.annotation string seen";
    let annotated = lab.watched(&watch, &["vm.change", "-vm", VM, "-annotation", "seen"]);
    assert_eq!(annotated, [old, on, annotation]);
    let renamed = lab.watched(&watch, &["object.rename", PATH, "seen-1"]);
    assert_eq!(renamed, [old, on, annotation, new]);
    let stopped = lab.watched(&watch, &["vm.power", "-off", "seen-1"]);
    assert_eq!(stopped, [new, on, annotation, &off]);
}

#[test]
fn a_collect_over_a_view_sees_vms_come() {
    let Some(lab) = Lab::open(instant()) else { return };
    let watch = ["object.collect", "-n", "1", "-type", "m", "/", "name"];
    let create = ["vm.create", "-host", "DC0_H0", "-net", "VM Network", "-on=false", "new-1"];
    let seen = lab.watched(&watch, &create);
    assert_eq!(seen.len(), 6, "{seen:?}");
    assert!(seen[5].ends_with(" name string new-1"), "{seen:?}");
}

#[test]
fn a_collect_with_a_filter_ends_when_it_is_met() {
    let Some(lab) = Lab::open(quick()) else { return };
    let off = ["object.collect", "-s", PATH, "-runtime.powerState", "poweredOff"];
    assert_eq!(lab.watched(&off, &["vm.power", "-off", VM]), ["poweredOff"]);
    lab.does(&["vm.power", "-on", VM]);
    let ready = ["object.collect", "-s", PATH, "-guest.guestOperationsReady", "true"];
    assert_eq!(lab.says(&ready), "true\n", "the guest comes up while it waits");

    let patient = ["object.collect", "-s", "-n", "1", "-wait", "1s", PATH, "name"];
    assert_eq!(lab.says(&patient), "DC0_H0_VM0\n", "it gives up when nothing happens");
}

#[test]
fn events_tell_the_story_of_a_vm() {
    let Some(lab) = Lab::open(instant()) else { return };
    lab.does(&[
        "vm.clone",
        "-vm",
        "debian12",
        "-pool",
        "DC0_C0/Resources",
        "-on=false",
        "worker-1",
    ]);
    lab.does(&["vm.change", "-vm", "worker-1", "-c", "2"]);
    lab.does(&["object.rename", "vm/worker-1", "worker-2"]);
    lab.does(&["vm.power", "-on", "worker-2"]);
    lab.does(&["vm.ip", "worker-2"]);
    lab.does(&["vm.power", "-off", "worker-2"]);
    let story = lab.says(&["events", "-l", "-n", "100", "vm/worker-2"]);
    let mut rest = story.as_str();
    for class in [
        "VmDeployedEvent",
        "VmReconfiguredEvent",
        "VmRenamedEvent",
        "VmStartingEvent",
        "PoweredOnEvent",
        "VmStoppingEvent",
        "VmPoweredOffEvent",
    ] {
        let at =
            rest.find(class).unwrap_or_else(|| panic!("no {class} (in this order) in:\n{story}"));
        rest = &rest[at + class.len()..];
    }
    let renamed = lab.says(&["events", "-type", "VmRenamedEvent"]);
    assert!(
        renamed.contains("[warning] Renamed worker-1 from worker-1 to worker-2 in DC0"),
        "{renamed}"
    );
    let json = lab.govc.json(&["events", "-type", "VmPoweredOffEvent", "vm/worker-2"]);
    assert!(json.contains("\"message\": \"worker-2 on "), "{json}");
    assert!(json.contains("in DC0 is powered off\""), "{json}");
    assert_eq!(lines(&lab.says(&["events", "-type", "VmPoweredOffEvent"])).len(), 1);

    let logins = lab.says(&["events", "-type", "UserLoginSessionEvent", "/"]);
    assert!(
        logins.contains(&format!("[info] User {USER}@127.0.0.1 logged in as govc/")),
        "{logins}"
    );
    lab.does(&["vm.destroy", "worker-2"]);
    let removed = lab.says(&["events", "-type", "VmRemovedEvent", "vm"]);
    assert!(removed.contains("Removed worker-2 on "), "{removed}");
}

#[test]
fn recent_tasks_say_what_was_done_to_what_by_whom() {
    let Some(lab) = Lab::open(instant()) else { return };
    lab.does(&["vm.power", "-off", VM]);
    lab.refused(&["vm.power", "-off", VM]);
    lab.does(&["vm.change", "-vm", VM, "-m", "64"]);
    lab.does(&["object.rename", PATH, "renamed"]);
    let tasks = lines(&lab.says(&["tasks"]));
    assert_eq!(tasks[0], "Task Target Initiator Queued Started Completed Result");
    let found: Vec<_> = tasks[1..].iter().map(|line| line.split(' ').collect::<Vec<_>>()).collect();
    let names: Vec<_> = found.iter().map(|columns| columns[0]).collect();
    assert_eq!(names, ["PowerOffVM", "PowerOffVM", "ReconfigVM", "VirtualMachine.Rename"]);
    assert!(found.iter().all(|columns| columns[2] == USER), "{tasks:?}");
    assert!(tasks[1].contains(" DC0_H0_VM0 ") && tasks[1].contains(" success ["), "{}", tasks[1]);
    assert!(
        tasks[2].contains(" error [The attempted operation cannot be performed"),
        "{}",
        tasks[2]
    );

    let long = lab.says(&["tasks", "-l", "vm/renamed"]);
    assert!(
        long.contains("Power Off virtual machine") && long.contains("Reconfigure virtual machine"),
        "{long}"
    );
    let failed = lines(&lab.says(&["tasks", "-s", "error"]));
    assert_eq!(failed.len(), 2, "{failed:?}");
    let recent = lab.json(&["tasks"]);
    let task = &recent["tasks"].as_array().unwrap()[0];
    assert_eq!(
        (&task["descriptionId"], &task["entityName"]),
        (&"VirtualMachine.powerOff".into(), &VM.into())
    );
}

#[test]
fn a_task_shows_its_progress_and_can_be_cancelled() {
    let timings = Timings { clone_full: Span::secs(300, 300), ..Timings::quick() };
    let options = Options { timings, ..quick() };
    let Some(lab) = Lab::open(options) else { return };
    let cloning = Govc::new(&lab.door.url()).unwrap();
    let clone = ["vm.clone", "-vm", "debian12", "-pool", "DC0_C0/Resources", "worker-1"];
    thread::scope(|scope| {
        let clone = scope.spawn(|| cloning.run(&clone));
        lab.door.until("the clone began", || lab.door.calls("CloneVM_Task") == 1);
        let running = lab.json(&["tasks"]);
        let task = running["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .find(|task| task["name"] == "CloneVM_Task")
            .unwrap();
        assert_eq!(
            (task["state"].as_str(), task["cancelable"].as_bool()),
            (Some("running"), Some(true))
        );
        lab.does(&["task.cancel", task["key"].as_str().unwrap()]);
        let clone = clone.join().unwrap();
        assert!(!clone.is_success());
        assert!(clone.stderr.contains("The task was canceled by a user"), "{}", clone.stderr);
    });
    assert_eq!(lab.says(&["ls", "vm/worker-1"]), "");
}
