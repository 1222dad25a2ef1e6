//! `roost demo agent-forge` as a newcomer meets it, and what the commands say of it meanwhile.

use crate::wire::{Process, Site, roost};

fn asked(url: &str, args: &[&str]) -> (bool, String) {
    let output = roost(args).args(["--url", url]).output().unwrap();
    let said = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8(said).unwrap())
}

#[test]
fn nodes_come_and_go_and_each_step_can_be_explained() {
    let site = Site::new("agent-forge-demo");
    let mut demo =
        roost(&["demo", "agent-forge", "--listen", "127.0.0.1:0", "--keep", "--seed", "7"]);
    demo.current_dir(site.folder());
    let mut demo = Process::start(demo, &site.file("log"), "Ctrl-C ends it)");
    let url = demo.word("http://127").to_owned();
    // Step by step: each may take a while on a busy machine.
    for part in ["is scaled to 1", "is gone", "stays; Ctrl-C ends it"] {
        demo.until_it_says(part);
    }
    let said = demo.said().to_owned();
    for part in [
        "is scaled to 3",
        "the VM boots the discovery ISO, attempt 1",
        "bound to Agent",
        "is scaled to 1",
        "is gone",
        "ok     one VM was made for each of 3 AgentMachines",
        "ok     one login to the vCenter",
        "ok     the VMs of the machines that went are gone, and no other",
    ] {
        assert!(said.contains(part), "{part:?} is missing in\n{said}");
    }
    // Cluster API chooses which of them stays. Those that went are known for a while, as ended.
    let id_of = |name: &&str| format!("blue-blue/{name}");
    let stayed = ["blue-gp-0001", "blue-gp-0002", "blue-gp-0003"]
        .into_iter()
        .find(|name| {
            asked(&url, &["explain", "agentmachine", &id_of(name)]).1.contains("working, waited")
        })
        .unwrap();
    let (_, said) = asked(&url, &["explain", "agentmachine", &id_of(&stayed)]);
    let machine = format!("machine {stayed}");
    for part in [&*machine, "agent ", "vsphereagent ", "registered"] {
        assert!(said.contains(part), "{part:?} is missing in\n{said}");
    }
    let (_, same) = asked(&url, &["explain", &id_of(&stayed)]);
    assert_eq!(said.lines().next(), same.lines().next(), "the kind may be left out");
    let (_, vm) = asked(&url, &["explain", "vm", stayed]);
    assert!(vm.contains("powered on"), "{vm}");
    let (is_known, said) = asked(&url, &["explain", "agentmachine", "blue-blue/blue-gp-0007"]);
    assert!(!is_known && said.contains("do you mean blue-blue/blue-gp-000"), "{said}");
    let (_, said) = asked(&url, &["pools"]);
    assert!(said.contains("blue/blue-gp"), "{said}");
    let (code, _) = demo.interrupt();
    assert_eq!(code, Some(0));
}
