//! What `govc` is refused, and why it says so.

use crate::govc::Lab;
use crate::wire_door::instant;
use roost_oracle::Govc;
use roost_vcenter_sim::{Action, Options, Rule, TemplateOptions};
use roost_vim_wire::{Fault, LocalizedMethodFault};

const POOL: &str = "DC0_C0/Resources";

#[test]
fn a_wrong_password_is_refused_by_that_name() {
    let Some(lab) = Lab::open(instant()) else { return };
    for (user, password) in [("roost%40vsphere.local", "wrong"), ("nobody", "p%40ss%2F%3C%26%3E")] {
        let stranger = Govc::new(&lab.door.url_for(user, password)).unwrap();
        let refused = stranger.run(&["ls"]);
        assert!(!refused.is_success());
        let reason = "Cannot complete login due to an incorrect user name or password.";
        assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    }
    assert_eq!(lab.vcenter.counters().failed_logins, 2);
}

#[test]
fn what_does_not_exist_is_not_found() {
    let Some(lab) = Lab::open(instant()) else { return };
    for (args, complaint) in [
        (&["vm.power", "-on", "nobody"][..], "vm 'nobody' not found"),
        (&["vm.destroy", "nobody"], "vm 'nobody' not found"),
        (&["vm.clone", "-vm", "nobody", "-pool", POOL, "x"], "vm 'nobody' not found"),
        (
            &["vm.clone", "-vm", "debian12", "-pool", "DC0_C0/Resources/none", "x"],
            "resource pool 'DC0_C0/Resources/none' not found",
        ),
        (&["vm.create", "-net", "nowhere", "-pool", POOL, "x"], "network 'nowhere' not found"),
        (&["vm.create", "-iso", "none.iso", "-pool", POOL, "x"], "none.iso"),
        (&["object.rename", "vm/nobody", "x"], "vm/nobody"),
        (&["snapshot.revert", "-vm", "DC0_H0_VM0", "none"], "snapshot"),
        (&["device.remove", "-vm", "DC0_H0_VM0", "disk-9"], "device 'disk-9' not found"),
        (
            &["object.collect", "-s", "VirtualMachine:vm-999", "name"],
            "has already been deleted or has not been completely created",
        ),
    ] {
        let said = lab.refused(args);
        assert!(said.contains(complaint), "{args:?}: {said}");
    }
}

#[test]
fn a_name_is_given_once() {
    let Some(lab) = Lab::open(Options { autostart: false, ..instant() }) else { return };
    lab.does(&["folder.create", "vm/taken"]);
    let force = ["-net", "VM Network", "-force", "-on=false"];
    for args in [
        [&["vm.clone", "-vm", "debian12", "-pool", POOL], &force[..], &["DC0_H0_VM0"]].concat(),
        [&["vm.create", "-pool", POOL], &force[..], &["DC0_H0_VM0"]].concat(),
        vec!["object.rename", "vm/DC0_H0_VM1", "DC0_H0_VM0"],
        vec!["vm.change", "-vm", "DC0_H0_VM1", "-name", "DC0_H0_VM0"],
    ] {
        let said = lab.refused(&args);
        assert!(said.contains("The name 'DC0_H0_VM0' already exists."), "{args:?}: {said}");
    }
    let said = lab.refused(&["folder.create", "vm/taken"]);
    assert!(said.contains("The name 'taken' already exists."), "{said}");
    assert_eq!(lab.lines(&["find", "vm", "-name", "DC0_H0_VM0"]), ["vm/DC0_H0_VM0"]);
    // govc itself looks for the file before it asks.
    let said = lab.refused(&["vm.create", "-net", "VM Network", "-pool", POOL, "DC0_H0_VM0"]);
    assert!(said.contains("file [LocalDS_0] DC0_H0_VM0/DC0_H0_VM0.vmx already exists"), "{said}");
}

#[test]
fn power_that_is_there_already_is_a_wrong_state() {
    let Some(lab) = Lab::open(instant()) else { return };
    let vm = "DC0_H0_VM0";
    let said = lab.refused(&["vm.power", "-on", vm]);
    assert!(said.contains("cannot be performed in the current state (Powered on)"), "{said}");
    let said = lab.refused(&["object.destroy", "vm/DC0_H0_VM0"]);
    assert!(said.contains("cannot be performed in the current state (Powered on)"), "{said}");
    let said = lab.refused(&["vm.markastemplate", vm]);
    assert!(said.contains("current state (Powered on)"), "{said}");
    lab.does(&["vm.power", "-off", vm]);
    for operation in ["-off", "-suspend", "-reset", "-s", "-r"] {
        let said = lab.refused(&["vm.power", operation, vm]);
        assert!(said.contains("current state (Powered off)"), "{operation}: {said}");
    }
    lab.does(&["object.destroy", "vm/DC0_H0_VM0"]);
}

#[test]
fn a_cpu_is_not_added_to_a_running_vm_that_cannot_take_it() {
    let Some(lab) = Lab::open(instant()) else { return };
    let said = lab.refused(&["vm.change", "-vm", "DC0_H0_VM0", "-c", "2"]);
    assert!(said.contains("hot") || said.contains("current state"), "{said}");
    let template = lab.refused(&["vm.change", "-vm", "debian12", "-c", "2"]);
    assert!(template.contains("Only the name and the annotation of a template"), "{template}");
    lab.does(&["vm.change", "-vm", "debian12", "-annotation", "a template takes this"]);
}

#[test]
fn a_host_that_is_full_starts_no_more() {
    let template = TemplateOptions { memory_mb: 4096, ..TemplateOptions::new("debian12") };
    let options = Options {
        hosts: 1,
        host_memory_gb: Some(10),
        vms: 0,
        templates: vec![template],
        ..instant()
    };
    let Some(lab) = Lab::open(options) else { return };
    for name in ["one", "two"] {
        lab.does(&["vm.clone", "-vm", "debian12", "-pool", POOL, name]);
    }
    let said = lab.refused(&["vm.clone", "-vm", "debian12", "-pool", POOL, "three"]);
    assert!(said.contains("does not have sufficient memory resources"), "{said}");
    assert_eq!(lab.property("vm/three", "runtime.powerState"), "poweredOff", "it is there and off");
}

#[test]
fn what_may_not_be_done_names_the_privilege() {
    let Some(lab) = Lab::open(instant()) else { return };
    lab.vcenter.deny("VirtualMachine.Interact.PowerOff", None);
    let said = lab.refused(&["vm.power", "-off", "DC0_H0_VM0"]);
    assert!(said.contains("Permission to perform this operation was denied"), "{said}");
}

#[test]
fn a_rule_makes_one_call_fail() {
    let Some(lab) = Lab::open(instant()) else { return };
    let busy = LocalizedMethodFault::new(
        Fault::of("TaskInProgress"),
        "Another task is already in progress.",
    );
    lab.vcenter.faults().add(Rule::new("PowerOffVM_Task", Action::Fault(busy)).once());
    let said = lab.refused(&["vm.power", "-off", "DC0_H0_VM0"]);
    assert!(said.contains("Another task is already in progress."), "{said}");
    lab.does(&["vm.power", "-off", "DC0_H0_VM0"]);
}
