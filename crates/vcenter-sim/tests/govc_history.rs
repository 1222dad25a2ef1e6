//! `govc` watches: updates as they come, events and tasks afterwards.

mod govc;
mod wire_door;

use std::thread;

use govc::{Lab, lines};
use roost_oracle::Govc;
use wire_door::{USER, instant, quick};

const VM: &str = "DC0_H0_VM0";
const PATH: &str = "vm/DC0_H0_VM0";

#[test]
fn a_waiting_collect_sees_each_change_once() {
    let Some(lab) = Lab::open(instant()) else { return };
    let waiting = Govc::new(&lab.door.url()).unwrap();
    let seen = thread::scope(|scope| {
        let watch = ["object.collect", "-n", "3", PATH, "name", "runtime.powerState", "config.annotation"];
        let watcher = scope.spawn(|| waiting.stdout(&watch));
        // One call has brought what there is; the next one waits.
        lab.door.until("the watcher waits", || lab.door.calls("WaitForUpdatesEx") >= 2);
        for (count, change) in [
            &["vm.change", "-vm", VM, "-annotation", "seen"][..],
            &["object.rename", PATH, "seen-1"],
            &["vm.power", "-off", "seen-1"],
        ].into_iter().enumerate() {
            lab.does(change);
            lab.door.until("the change is seen", || {
                watcher.is_finished() || lab.door.calls("WaitForUpdatesEx") >= waits(&lab, count)
            });
        }
        watcher.join().unwrap()
    });
    let seen = lines(&seen);
    assert_eq!(seen[..2], ["name string DC0_H0_VM0", "runtime.powerState types.VirtualMachinePowerState poweredOn"]);
    let changes = [
        "config.annotation string seen",
        "name string seen-1",
        "runtime.powerState types.VirtualMachinePowerState poweredOff",
    ];
    assert_eq!(seen[2..], changes);
}

/// Tasks are waited for with the same call, so what the watcher has done cannot be told from them; at least as many.
fn waits(_lab: &Lab, count: usize) -> u64 {
    3 + count as u64
}

#[test]
fn a_collect_with_a_filter_ends_when_it_is_met() {
    let Some(lab) = Lab::open(quick()) else { return };
    let waiting = Govc::new(&lab.door.url()).unwrap();
    let seen = thread::scope(|scope| {
        let watcher = scope.spawn(|| waiting.stdout(&["object.collect", "-s", PATH, "-runtime.powerState", "poweredOff"]));
        lab.door.until("the watcher waits", || lab.door.calls("WaitForUpdatesEx") >= 2);
        assert!(!watcher.is_finished());
        lab.does(&["vm.power", "-off", VM]);
        watcher.join().unwrap()
    });
    assert_eq!(seen, "poweredOff\n");
    lab.does(&["vm.power", "-on", VM]);
    let ready = ["object.collect", "-s", PATH, "-guest.guestOperationsReady", "true"];
    assert_eq!(lab.says(&ready), "true\n", "the guest comes up while it waits");
}

#[test]
fn events_tell_the_story_of_a_vm() {
    let Some(lab) = Lab::open(instant()) else { return };
    lab.does(&["vm.clone", "-vm", "debian12", "-pool", "host/DC0_C0/Resources", "-on=false", "worker-1"]);
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
        let at = rest.find(class).unwrap_or_else(|| panic!("no {class} (in this order) in:\n{story}"));
        rest = &rest[at + class.len()..];
    }
    let renamed = lab.says(&["events", "-type", "VmRenamedEvent"]);
    assert!(renamed.contains("[warning] Renamed worker-1 from worker-1 to worker-2 in DC0"), "{renamed}");
    let json = lab.govc.json(&["events", "-type", "VmPoweredOffEvent", "vm/worker-2"]);
    assert!(json.contains("\"message\": \"worker-2 on "), "{json}");
    assert!(json.contains("in DC0 is powered off\""), "{json}");
    assert_eq!(lines(&lab.says(&["events", "-type", "VmPoweredOffEvent"])).len(), 1);

    let logins = lab.says(&["events", "-type", "UserLoginSessionEvent", "/"]);
    assert!(logins.contains(&format!("[info] User {USER}@127.0.0.1 logged in as govc/")), "{logins}");
    lab.does(&["vm.destroy", "worker-2"]);
    let removed = lab.says(&["events", "-type", "VmRemovedEvent", "vm"]);
    assert!(removed.contains("Removed worker-2 on "), "{removed}");
}

#[test]
fn an_event_is_posted_by_a_person() {
    let Some(lab) = Lab::open(instant()) else { return };
    lab.does(&["event.post", "-s", "warning", "-i", "com.example.drained", PATH]);
    let _ = lab.says(&["events", "-l", PATH]);
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
    assert!(tasks[2].contains(" error [The attempted operation cannot be performed"), "{}", tasks[2]);

    let long = lab.says(&["tasks", "-l", "vm/renamed"]);
    assert!(long.contains("Power Off virtual machine") && long.contains("Reconfigure virtual machine"), "{long}");
    let failed = lines(&lab.says(&["tasks", "-s", "error"]));
    assert_eq!(failed.len(), 2, "{failed:?}");
    let recent = lab.json(&["tasks"]);
    let task = &recent["tasks"].as_array().unwrap()[0];
    assert_eq!((&task["descriptionId"], &task["entityName"]), (&"VirtualMachine.powerOff".into(), &VM.into()));
}

#[test]
fn a_task_shows_its_progress_and_can_be_cancelled() {
    let Some(mut options) = Some(quick()) else { return };
    options.timings.clone_full = roost_vcenter_sim::Timings::realistic().clone_full;
    let Some(lab) = Lab::open(options) else { return };
    let cloning = Govc::new(&lab.door.url()).unwrap();
    thread::scope(|scope| {
        let clone = ["vm.clone", "-vm", "debian12", "-pool", "host/DC0_C0/Resources", "worker-1"];
        let clone = scope.spawn(|| cloning.run(&clone));
        lab.door.until("the clone began", || lab.door.calls("CloneVM_Task") == 1);
        let running = lab.json(&["tasks"]);
        let task = running["tasks"].as_array().unwrap().iter().find(|task| task["name"] == "CloneVM_Task").unwrap();
        assert_eq!((task["state"].as_str(), task["cancelable"].as_bool()), (Some("running"), Some(true)));
        lab.does(&["task.cancel", task["key"].as_str().unwrap()]);
        let clone = clone.join().unwrap();
        assert!(!clone.is_success());
        assert!(clone.stderr.contains("The task was canceled by a user"), "{}", clone.stderr);
    });
    assert_eq!(lab.says(&["ls", "vm/worker-1"]), "");
}
