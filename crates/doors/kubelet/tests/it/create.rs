//! The ways to a VM, and what each of them costs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::ResourceExt;
use roost_cocoon_sim::{EpochRegistry, Fault, RegistryEffect, RegistryFault};
use roost_kubelet::key;
use roost_microvm::StaticAddress;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::lab::{Lab, secs};

/// What was asked of the host for a pod, without looks at all VMs.
fn calls(lab: &Lab, from: usize) -> Vec<String> {
    let journal = lab.host.journal().split_off(from);
    let verb = |call: &String| call.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let looks = ["vm list", "vm status", "snapshot list"];
    journal.iter().map(verb).filter(|verb| !looks.contains(&verb.as_str())).collect()
}

async fn failure_of(lab: &Lab, name: &str, words: &str) {
    lab.until(&format!("{name} says {words}"), async |lab: &Lab| {
        let pod = lab.pod(name).await.unwrap();
        pod.annotations().get(key::LIFECYCLE_MESSAGE).is_some_and(|said| said.contains(words))
    })
    .await;
}

/// The base is pulled for the first clone and is there for the second; each VM costs two calls.
#[tokio::test(start_paused = true)]
async fn a_clone_costs_two_calls_once_its_base_is_there_and_a_run_two() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    let _node = lab.start().await.unwrap();
    let before = lab.host.journal().len();
    lab.apply("base", &[(key::MODE, "run"), (key::IMAGE, "img"), (key::SNAPSHOT_POLICY, "always")])
        .await;
    lab.ready("base").await;
    assert_eq!(calls(&lab, before), ["image pull", "vm run"]);
    lab.delete("base").await;
    lab.until("it is saved", async |lab: &Lab| lab.pod("base").await.is_none()).await;

    let base = [(key::IMAGE, "vk-default-base:latest")];
    let before = lab.host.journal().len();
    lab.apply("a", &base).await;
    lab.ready("a").await;
    assert_eq!(
        calls(&lab, before),
        ["snapshot inspect", "snapshot import", "snapshot inspect", "vm clone"]
    );
    let before = lab.host.journal().len();
    lab.apply("b", &base).await;
    lab.ready("b").await;
    assert_eq!(calls(&lab, before), ["snapshot inspect", "vm clone"]);
    let pod = lab.pod("b").await.unwrap();
    let vm = lab.host.with_host(|host| host.inspect("vk-default-b")).unwrap();
    assert_eq!(pod.annotations()[key::VM_ID], vm.id);
    let before = lab.host.journal().len();
    lab.delete("b").await;
    lab.until("it is gone", async |lab: &Lab| lab.pod("b").await.is_none()).await;
    assert!(calls(&lab, before).contains(&"vm rm".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_of_another_hypervisor_is_refused_before_anything_is_cloned() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    let _node = lab.start().await.unwrap();
    lab.apply(
        "base",
        &[
            (key::MODE, "run"),
            (key::IMAGE, "img"),
            (key::BACKEND, "firecracker"),
            (key::SNAPSHOT_POLICY, "always"),
        ],
    )
    .await;
    lab.ready("base").await;
    lab.delete("base").await;
    lab.until("it is saved", async |lab: &Lab| lab.pod("base").await.is_none()).await;
    let image = (key::IMAGE, "vk-default-base:latest");
    lab.apply("a", &[image, (key::BACKEND, "cloud-hypervisor")]).await;
    failure_of(&lab, "a", "was taken with firecracker but CocoonSet requests cloud-hypervisor")
        .await;
    assert!(!lab.host.journal().iter().any(|call| call.starts_with("vm clone")));
    lab.apply("b", &[image, (key::BACKEND, "firecracker")]).await;
    lab.ready("b").await;
}

#[tokio::test(start_paused = true)]
async fn an_image_of_the_registry_is_imported_and_a_snapshot_is_no_image() {
    let registry = EpochRegistry::default();
    let disk: &[u8] = b"disk";
    let layer = json!({"mediaType": "application/vnd.cocoonstack.disk.qcow2",
        "digest": roost_microvm::Digest::of(disk).as_str(), "size": disk.len(),
        "annotations": {"org.opencontainers.image.title": "disk.qcow2"}});
    let kind = "application/vnd.cocoonstack.os-image.v1+json";
    let manifest = json!({"schemaVersion": 2, "artifactType": kind, "layers": [layer]});
    registry.put("os", "v1", &manifest, &[disk]);
    let kind = "application/vnd.cocoonstack.snapshot.v1+json";
    registry.put("saved", "v1", &json!({"schemaVersion": 2, "artifactType": kind}), &[]);
    let lab = Lab::with_epoch(&registry);
    let _node = lab.start().await.unwrap();
    lab.apply("a", &[(key::MODE, "run"), (key::IMAGE, "os:v1")]).await;
    lab.ready("a").await;
    assert_eq!(calls(&lab, 0), ["image inspect", "image import", "vm run"]);
    lab.apply("b", &[(key::MODE, "run"), (key::IMAGE, "saved:v1")]).await;
    failure_of(&lab, "b", "image saved:v1 is a snapshot: use mode=clone").await;
    lab.apply("c", &[(key::MODE, "run"), (key::IMAGE, "ghcr.io/x/ubuntu:24.04")]).await;
    lab.ready("c").await;
}

/// A guest whose console shows one card and takes the address that it is given.
async fn console(socket: tokio::net::UnixListener) {
    let (mut stream, _) = socket.accept().await.unwrap();
    let (mut address, mut buffer) = ("0.0.0.0".to_owned(), [0; 1024]);
    loop {
        let Ok(read @ 1..) = stream.read(&mut buffer).await else { return };
        let said = String::from_utf8_lossy(&buffer[..read]).into_owned();
        let words: Vec<&str> = said.split_whitespace().collect();
        if let ["i", _, ip, ..] = words[..] {
            ip.clone_into(&mut address);
        }
        let answer = match words[..] {
            ["i"] => format!("Net: 3, Ip={address}\r\nSAC>"),
            _ => "SAC>".to_owned(),
        };
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn a_windows_guest_gets_its_static_address_through_its_console() {
    let lab = Lab::quick();
    let folder = std::env::temp_dir().join(format!("roost-sac-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    lab.host.put_consoles_in(&folder);
    let socket = tokio::net::UnixListener::bind(folder.join("vk-default-a.sock")).unwrap();
    let guest = tokio::spawn(console(socket));
    let network = StaticAddress { ip: "10.7.0.9".into(), gateway: "10.7.0.1".into(), prefix: 24 };
    lab.host.with_host(|host| {
        host.cards_are_static(Some(network));
        host.put_image("win", "cloudimg", jiff::Timestamp::UNIX_EPOCH);
    });
    let _node = lab.start().await.unwrap();
    lab.apply("a", &[(key::MODE, "run"), (key::IMAGE, "win"), (key::OS, "windows")]).await;
    lab.until("the guest has its address", async |lab: &Lab| {
        let pod = lab.pod("a").await.unwrap();
        let says = |key: &str, word: &str| pod.annotations().get(key).is_some_and(|it| it == word);
        says(key::POST_CLONE_STATE, "done") && says(key::LIFECYCLE_STATE, "ready")
    })
    .await;
    guest.abort();
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(start_paused = true)]
async fn a_windows_guest_without_a_console_is_said_to_have_failed() {
    let lab = Lab::new();
    let network = StaticAddress { ip: "10.7.0.9".into(), ..StaticAddress::default() };
    lab.host.with_host(|host| {
        host.cards_are_static(Some(network));
        host.put_image("win", "cloudimg", jiff::Timestamp::UNIX_EPOCH);
    });
    let _node = lab.start().await.unwrap();
    lab.apply("a", &[(key::MODE, "run"), (key::IMAGE, "win"), (key::OS, "windows")]).await;
    failure_of(&lab, "a", "could not be reached within a minute").await;
    let pod = lab.pod("a").await.unwrap();
    assert_eq!(pod.annotations()[key::LIFECYCLE_STATE], "failed");
    tokio::time::sleep(secs(5)).await;
    assert_eq!(lab.vm_names(), ["vk-default-a"], "it goes on without");
}

/// Firecracker gives a clone the cards of its source, so every copy needs the script.
async fn fork(lab: &Lab, name: &str) {
    if lab.pod("main").await.is_none() {
        let run = [(key::MODE, "run"), (key::IMAGE, "img"), (key::BACKEND, "firecracker")];
        lab.apply("main", &run).await;
        lab.says("main", "ready").await;
    }
    let fork = [(key::FORK_FROM, "vk-default-main"), (key::BACKEND, "firecracker")];
    lab.apply(name, &fork).await;
}

async fn network_is(lab: &Lab, name: &str, state: &str) {
    lab.until(&format!("the network of {name} is {state}"), async |lab: &Lab| {
        let pod = lab.pod(name).await.unwrap();
        pod.annotations().get(key::POST_CLONE_STATE).is_some_and(|it| it == state)
    })
    .await;
}

fn scripts(lab: &Lab) -> usize {
    lab.host.journal().iter().filter(|call| call.starts_with("vm exec")).count()
}

#[tokio::test(start_paused = true)]
async fn a_copied_guest_gets_its_own_network_before_its_pod_says_ready() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    lab.host.programs_exit(None);
    fork(&lab, "a").await;
    network_is(&lab, "a", "running").await;
    assert_eq!(lab.state("a").await, "creating");
    lab.host.programs_exit(Some(0));
    network_is(&lab, "a", "done").await;
    lab.says("a", "ready").await;
    let pod = lab.pod("a").await.unwrap();
    assert!(!pod.annotations().contains_key(key::POST_CLONE_HINT));
    assert!(!lab.pod("main").await.unwrap().annotations().contains_key(key::POST_CLONE_STATE));
}

#[tokio::test(start_paused = true)]
async fn a_script_that_cannot_be_run_is_shown_to_people_and_stays_shown() {
    let lab = Lab::new();
    let node = lab.start().await.unwrap();
    lab.host.programs_exit(None);
    fork(&lab, "a").await;
    network_is(&lab, "a", "failed").await;
    let hint = |pod: &k8s_openapi::api::core::v1::Pod| {
        let hint = STANDARD.decode(&pod.annotations()[key::POST_CLONE_HINT]).unwrap();
        String::from_utf8(hint).unwrap()
    };
    let said = hint(&lab.pod("a").await.unwrap());
    assert!(said.contains("echo vk-default-a > /etc/hostname"), "{said}");
    assert_eq!(lab.state("a").await, "failed");
    // The hint was deleted by the next kubelet.
    node.kill().await;
    let tries = scripts(&lab);
    let _node = lab.start().await.unwrap();
    tokio::time::sleep(secs(600)).await;
    let pod = lab.pod("a").await.unwrap();
    assert_eq!((hint(&pod), pod.annotations()[key::POST_CLONE_STATE].as_str()), (said, "failed"));
    assert_eq!((lab.state("a").await.as_str(), scripts(&lab)), ("failed", tries));
}

/// A death while the script is tried, one in the clone itself, and an answer that is lost: the next one to look owes the script all the same.
#[tokio::test(start_paused = true)]
async fn a_script_that_was_owed_is_run_whatever_died_in_between() {
    let lab = Lab::new();
    let node = lab.start().await.unwrap();
    lab.host.programs_exit(None);
    fork(&lab, "a").await;
    network_is(&lab, "a", "running").await;
    node.kill().await;
    lab.host.programs_exit(Some(0));
    let node = lab.start().await.unwrap();
    network_is(&lab, "a", "done").await;
    lab.says("a", "ready").await;

    lab.host.add_fault(Fault::of("vm clone").fails("signal: killed").after_the_fact());
    fork(&lab, "b").await;
    network_is(&lab, "b", "done").await;

    lab.host.commands_outlive_callers(true);
    fork(&lab, "c").await;
    let has_begun =
        |lab: &Lab| lab.host.journal().iter().any(|call| call == "vm clone vk-default-c");
    lab.until("it is being cloned", async |lab: &Lab| has_begun(lab)).await;
    node.kill().await;
    assert!(lab.vm_names().contains(&"vk-default-c".to_owned()));
    let _node = lab.start().await.unwrap();
    network_is(&lab, "c", "done").await;
    lab.says("c", "ready").await;
}

/// Its annotations say that it is run from an image; only the tag tells that it was woken.
#[tokio::test(start_paused = true)]
async fn a_guest_whose_wake_nobody_saw_end_gets_its_own_network() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    lab.host.commands_outlive_callers(true);
    let node = lab.start().await.unwrap();
    let run = [(key::MODE, "run"), (key::IMAGE, "img"), (key::BACKEND, "firecracker")];
    lab.apply("a", &run).await;
    lab.says("a", "ready").await;
    lab.annotate("a", key::HIBERNATE, Some("true")).await;
    lab.says("a", "hibernated").await;
    lab.annotate("a", key::HIBERNATE, None).await;
    let has_begun = |lab: &Lab| lab.host.journal().iter().any(|call| call.starts_with("vm clone"));
    lab.until("it is being cloned", async |lab: &Lab| has_begun(lab)).await;
    node.kill().await;
    assert_eq!(scripts(&lab), 0);
    registry.add_fault(RegistryFault {
        method: "HEAD".into(),
        path: "/manifests/".into(),
        times: 2,
        effect: RegistryEffect::Status(403),
    });
    let _node = lab.start().await.unwrap();
    network_is(&lab, "a", "done").await;
    lab.says("a", "ready").await;
}

/// The folder holds all that is needed: no snapshot is looked for, saved or pulled.
#[tokio::test(start_paused = true)]
async fn a_clone_from_a_folder_costs_one_call() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    let _node = lab.start().await.unwrap();
    let before = lab.host.journal().len();
    lab.apply("a", &[(key::CLONE_FROM_DIR, "/data/base"), (key::IMAGE, "img")]).await;
    lab.ready("a").await;
    assert_eq!(calls(&lab, before), ["vm clone"]);
}

/// The operator moves a pod: it sleeps, its pod goes, and another one is to wake from what is left.
#[tokio::test(start_paused = true)]
async fn a_new_pod_wakes_from_what_another_left_if_that_is_asked_for() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    let _node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    lab.host.with_host(|host| host.remember("vk-default-a", "count=7")).unwrap();
    lab.annotate("a", key::HIBERNATE, Some("true")).await;
    lab.until("it sleeps", async |lab: &Lab| lab.vm_names().is_empty()).await;
    lab.delete("a").await;
    lab.until("the pod is gone", async |lab: &Lab| lab.pod("a").await.is_none()).await;
    assert_eq!(registry.tags(), ["vk-default-a:hibernate"], "what was saved stays");
    let restore = [(key::MODE, "run"), (key::IMAGE, "img"), (key::RESTORE_FROM_HIBERNATE, "true")];
    lab.apply("a", &restore).await;
    lab.ready("a").await;
    lab.host.with_host(|host| assert_eq!(host.memory("vk-default-a"), Some("count=7")));
}
