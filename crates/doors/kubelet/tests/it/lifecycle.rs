use kube::ResourceExt;
use roost_cocoon_sim::{EpochRegistry, Fault};
use roost_door::FrontDoor;
use roost_kubelet::key;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use crate::lab::{Lab, is_ready, phase, secs};

#[tokio::test(start_paused = true)]
async fn a_pod_becomes_a_vm_and_goes_with_it() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    assert_eq!(lab.vm_names(), ["vk-default-a"]);
    let pod = lab.pod("a").await.unwrap();
    assert_eq!(phase(&pod), "Running");
    let vm = pod.annotations()[key::VM_ID].clone();
    let status = pod.status.clone().unwrap();
    assert_eq!(status.container_statuses.unwrap()[0].container_id, Some(format!("cocoon://{vm}")));
    assert_eq!(pod.annotations()[key::LIFECYCLE_STATE], "ready");
    let calls = lab
        .host
        .journal()
        .iter()
        .filter(|call| call.starts_with("vm run") || call.starts_with("image"))
        .count();
    assert_eq!(calls, 2, "{:?}", lab.host.journal());

    lab.delete("a").await;
    lab.until("the pod is gone", async |lab: &Lab| lab.pod("a").await.is_none()).await;
    assert!(lab.vm_names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_settled_pod_costs_no_write_and_no_call() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    sleep(secs(60)).await;
    let version = lab.pod("a").await.unwrap().resource_version();
    let calls = lab.host.journal().iter().filter(|call| !call.starts_with("vm list")).count();
    sleep(secs(3600)).await;
    assert_eq!(lab.pod("a").await.unwrap().resource_version(), version);
    let after = lab.host.journal().iter().filter(|call| !call.starts_with("vm list")).count();
    assert_eq!(after, calls);
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_tried_again_until_it_works() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    lab.host.add_fault(Fault::of("vm run").fails("no space left on device").times(30));
    lab.run_pod("a").await;
    lab.until("the failure is told", async |lab: &Lab| {
        let status = lab.pod("a").await.and_then(|pod| pod.status).unwrap_or_default();
        status.reason.as_deref() == Some("ProviderFailed")
            && status.message.is_some_and(|message| message.contains("no space left on device"))
    })
    .await;
    assert_eq!(lab.pod("a").await.unwrap().annotations()[key::LIFECYCLE_STATE], "failed");
    // Upstream gives up after twenty attempts; here nobody has to touch the pod.
    sleep(secs(3 * 3600)).await;
    lab.ready("a").await;
    assert_eq!(lab.vm_names().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_make_a_second_vm() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    lab.host.add_fault(Fault::of("vm run").fails("signal: killed").after_the_fact());
    lab.run_pod("a").await;
    lab.ready("a").await;
    assert_eq!(lab.vm_names(), ["vk-default-a"]);
}

#[tokio::test(start_paused = true)]
async fn a_fork_starts_from_its_source_and_wins_over_mode_run() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    lab.run_pod("main").await;
    lab.ready("main").await;
    lab.host.with_host(|host| host.remember("vk-default-main", "count=7")).unwrap();
    for name in ["sub-1", "sub-2"] {
        lab.apply(
            name,
            &[(key::MODE, "run"), (key::IMAGE, "img"), (key::FORK_FROM, "vk-default-main")],
        )
        .await;
    }
    lab.ready("sub-1").await;
    lab.ready("sub-2").await;
    lab.host.with_host(|host| assert_eq!(host.memory("vk-default-sub-1"), Some("count=7")));
    let saves = lab.host.journal().iter().filter(|call| call.starts_with("snapshot save")).count();
    assert_eq!(saves, 1, "both forks share one snapshot");
}

#[tokio::test(start_paused = true)]
async fn vms_of_others_are_shown_and_never_touched() {
    let lab = Lab::new();
    let node = lab.start().await.unwrap();
    lab.apply(
        "tools",
        &[
            (key::MANAGED, "false"),
            (key::MODE, "static"),
            (key::VM_ID, "EXT1"),
            (key::VM_IP, "127.0.0.9"),
            (key::VNC_PORT, "5901"),
        ],
    )
    .await;
    lab.ready("tools").await;
    let pod = lab.pod("tools").await.unwrap();
    assert_eq!(pod.status.unwrap().pod_ip.as_deref(), Some("127.0.0.9"));
    let shown = node.door.request("default/tools").unwrap().request;
    assert_eq!(shown.facts.get("vnc_port"), Some("5901"));
    lab.delete("tools").await;
    lab.until("the pod is gone", async |lab: &Lab| lab.pod("tools").await.is_none()).await;
    let touched: Vec<_> =
        lab.host.journal().into_iter().filter(|call| call.contains("EXT1")).collect();
    assert!(touched.is_empty(), "{touched:?}");
}

#[tokio::test(start_paused = true)]
async fn an_annotation_that_somebody_sets_meanwhile_is_never_overwritten() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    lab.run_pod("a").await;
    for round in 0..40 {
        lab.annotate("a", "example.org/round", Some(&round.to_string())).await;
        sleep(std::time::Duration::from_millis(137)).await;
        assert_eq!(
            lab.pod("a").await.unwrap().annotations()["example.org/round"],
            round.to_string()
        );
    }
    lab.ready("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_a_vm_name_says_so() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    lab.apply("a", &[(key::VM_NAME, "")]).await;
    lab.until("it is told", async |lab: &Lab| {
        let status = lab.pod("a").await.and_then(|pod| pod.status).unwrap_or_default();
        status.message.is_some_and(|message| message.contains("missing vm.cocoonstack.io/name"))
    })
    .await;
    lab.annotate("a", key::VM_NAME, Some("x")).await;
    lab.annotate("a", key::MODE, Some("run")).await;
    lab.annotate("a", key::IMAGE, Some("img")).await;
    lab.ready("a").await;
    assert!(is_ready(&lab.pod("a").await.unwrap()));
}

/// Two pods of one name for a VM, as an update of a Deployment makes them: the second must neither take the first one's VM nor lose its own later.
#[tokio::test(start_paused = true)]
async fn a_vm_is_never_shared_and_the_second_pod_waits_until_it_is_free() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    let shared = [(key::VM_NAME, "vk-shared"), (key::MODE, "run"), (key::IMAGE, "img")];
    lab.apply("a", &shared).await;
    lab.ready("a").await;
    let first = lab.pod("a").await.unwrap().annotations()[key::VM_ID].clone();
    lab.apply("b", &shared).await;
    lab.until("b says why it waits", async |lab: &Lab| {
        let status = lab.pod("b").await.and_then(|pod| pod.status).unwrap_or_default();
        status.message.is_some_and(|it| it.contains("VM vk-shared is that of pod default/a"))
    })
    .await;
    lab.delete("a").await;
    lab.ready("b").await;
    let second = lab.pod("b").await.unwrap().annotations()[key::VM_ID].clone();
    assert_ne!(first, second, "a VM of its own");
    sleep(secs(600)).await;
    assert_eq!(lab.vm_names(), ["vk-shared"]);
}

#[tokio::test(start_paused = true)]
async fn a_guest_is_asked_to_stop_for_its_grace_before_its_vm_is_removed() {
    let lab = Lab::new();
    let _node = lab.start().await.unwrap();
    for (name, grace) in [("a", 7), ("b", 0)] {
        lab.run_pod(name).await;
        lab.ready(name).await;
        let id = lab.pod(name).await.unwrap().annotations()[key::VM_ID].clone();
        let options = kube::api::DeleteParams::default().grace_period(grace);
        lab.pods().delete(name, &options).await.unwrap();
        lab.until("the VM is gone", async |lab: &Lab| lab.vm_names().is_empty()).await;
        let calls = lab.host.journal();
        let at = |call: String| calls.iter().position(|it| *it == call);
        let (stop, removal) = (at(format!("vm stop {id} --timeout 7")), at(format!("vm rm {id}")));
        assert_eq!(stop.is_some(), grace > 0, "{calls:?}");
        assert!(stop < removal, "{calls:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_vms_are_made_at_once_than_is_allowed() {
    for (limit, most) in [("1", 1), ("4", 3)] {
        let lab = Lab::new();
        let _node =
            lab.start_with(&[("VK_MAX_CLONES", limit), ("VK_MAX_PULLS", "9")]).await.unwrap();
        for name in ["a", "b", "c"] {
            lab.run_pod(name).await;
        }
        for name in ["a", "b", "c"] {
            lab.ready(name).await;
        }
        assert_eq!(lab.host.most_at_once("vm run"), most, "{limit} are allowed");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_waits_for_its_snapshot_says_how_much_is_here() {
    let registry = EpochRegistry::default();
    let lab = Lab::with_epoch(&registry);
    let _node = lab.start().await.unwrap();
    let saved = [(key::MODE, "run"), (key::IMAGE, "img"), (key::SNAPSHOT_POLICY, "always")];
    lab.apply("base", &saved).await;
    lab.ready("base").await;
    lab.delete("base").await;
    lab.until("it is saved", async |lab: &Lab| lab.pod("base").await.is_none()).await;
    lab.host.add_fault(Fault { delay_ms: 30_000, ..Fault::of("snapshot import") });
    lab.apply("a", &[(key::IMAGE, "vk-default-base:latest")]).await;
    lab.until("its container says how far it is", async |lab: &Lab| {
        let status = lab.pod("a").await.and_then(|pod| pod.status).unwrap_or_default();
        let waiting = status.container_statuses.unwrap_or_default().pop();
        let waiting = waiting.and_then(|it| it.state?.waiting).unwrap_or_default();
        waiting.reason.as_deref() == Some("PullingSnapshot")
            && waiting.message.as_deref() == Some("100 % are here")
    })
    .await;
    lab.ready("a").await;
}

/// The DHCP server would keep the address of a card that is gone for a day.
#[tokio::test]
async fn the_lease_of_a_vm_is_given_back_when_it_goes() {
    let lab = Lab::quick();
    let path = std::env::temp_dir().join(format!("roost-net-control-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let server = tokio::net::UnixListener::bind(&path).unwrap();
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = server.accept().await {
            let mut request = [0; 1024];
            let count = stream.read(&mut request).await.unwrap();
            told.send(String::from_utf8_lossy(&request[..count]).into_owned()).unwrap();
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        }
    });
    let socket = path.display().to_string();
    let _node = lab.start_with(&[("VK_COCOON_NET_CONTROL_SOCKET", &socket)]).await.unwrap();
    lab.run_pod("a").await;
    lab.ready("a").await;
    let vm = lab.host.with_host(|host| host.inspect("vk-default-a")).unwrap();
    assert!(heard.try_recv().is_err());
    lab.delete("a").await;
    lab.until("the pod is gone", async |lab: &Lab| lab.pod("a").await.is_none()).await;
    let request = heard.try_recv().unwrap();
    let line = format!("DELETE /v1/leases/{} HTTP/1.1\r\n", vm.mac().unwrap());
    assert!(request.starts_with(&line), "{request}");
    assert!(heard.try_recv().is_err(), "once");
    serving.abort();
    let _ = std::fs::remove_file(&path);
}
