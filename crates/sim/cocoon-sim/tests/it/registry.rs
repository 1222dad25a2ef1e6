use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use roost_clock::SimClock;
use roost_cocoon_sim::{EpochRegistry, RegistryEffect, RegistryFault, SimRuntime, Timings};
use roost_microvm::{
    ArtifactKind, Input, Reference, Registry, RegistrySettings, RunOptions, Runtime,
};
use serde_json::json;
use tokio::io::AsyncReadExt;

pub(crate) async fn serve(registry: &EpochRegistry) -> String {
    let listener =
        tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = registry.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/")
}

pub(crate) fn client(url: String, token: Option<&str>) -> Registry {
    let tls = roost_tls::TlsTrust::default().client_config().unwrap();
    let http =
        reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls).build().unwrap();
    Registry::new(RegistrySettings { url, token: token.map(Into::into), http })
}

/// A host whose timings are none: these tests run on real time.
fn host() -> SimRuntime {
    let none = std::time::Duration::ZERO;
    let timings =
        Timings { quick: none, pull: none, run: none, clone: none, save: none, remove: none };
    SimRuntime::new(Arc::new(SimClock::default()), timings)
}

async fn snapshot_of(host: &SimRuntime) {
    host.ensure_image("img", false).await.unwrap();
    host.run(RunOptions {
        name: "a".into(),
        image: "img".into(),
        cpus: Some(4),
        ..RunOptions::default()
    })
    .await
    .unwrap();
    host.with_host(|host| host.remember("a", &"count=7 ".repeat(10_000))).unwrap();
    host.snapshot_save("a", "a").await.unwrap();
}

fn export(host: &SimRuntime) -> Input {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let host = host.clone();
    tokio::spawn(async move { host.snapshot_export("a", Box::new(far)).await });
    Box::new(near)
}

async fn push(host: &SimRuntime, registry: &Registry) {
    let to = Reference::parse("a:hibernate");
    registry.push_snapshot(&to, Some("img"), export(host), Timestamp::UNIX_EPOCH).await.unwrap();
}

#[tokio::test]
async fn a_snapshot_travels_through_the_registry_with_its_memory() {
    let stand_in = EpochRegistry::with_token("secret");
    let registry = client(serve(&stand_in).await, Some("secret"));
    let (source, target) = (host(), host());
    snapshot_of(&source).await;
    push(&source, &registry).await;
    assert_eq!(stand_in.tags(), ["a:hibernate"]);
    let from = Reference::parse("a:hibernate");
    assert_eq!(registry.kind_of(&from).await.unwrap(), Some(ArtifactKind::Snapshot));
    let archive = registry.pull_snapshot(from, "a-hibernate-import".into());
    target.snapshot_import("a-hibernate-import", archive).await.unwrap();
    let arrived = target.snapshot("a-hibernate-import").await.unwrap().unwrap();
    assert_eq!((arrived.cpu, arrived.image.as_str()), (4, "img"));
    target
        .with_host(|host| assert!(host.kept("a-hibernate-import").starts_with("count=7 count=7")));

    registry.delete_manifest("a", "hibernate").await.unwrap();
    registry.delete_manifest("a", "hibernate").await.unwrap();
    assert!(!registry.has_manifest("a", "hibernate").await.unwrap());
}

#[tokio::test]
async fn a_download_that_breaks_goes_on_where_it_was_and_a_wrong_one_is_refused() {
    let stand_in = EpochRegistry::default();
    let registry = client(serve(&stand_in).await, None);
    let source = host();
    snapshot_of(&source).await;
    push(&source, &registry).await;
    let cut =
        |effect| RegistryFault { method: "GET".into(), path: "/blobs/".into(), times: 1, effect };
    let from = || Reference::parse("a:hibernate");

    // The first blob is the small configuration, which is asked for again as a whole.
    stand_in.add_fault(cut(RegistryEffect::Status(503)));
    let mut whole = Vec::new();
    registry.pull_snapshot(from(), "b".into()).read_to_end(&mut whole).await.unwrap();
    let target = host();
    target.snapshot_import("b", Box::new(std::io::Cursor::new(whole))).await.unwrap();

    let config_first = RegistryFault {
        method: "GET".into(),
        path: "/blobs/".into(),
        times: 1,
        effect: RegistryEffect::CutAfter(usize::MAX),
    };
    stand_in.add_fault(config_first.clone());
    stand_in.add_fault(RegistryFault { times: 1, ..config_first.clone() });
    stand_in.add_fault(cut(RegistryEffect::CutAfter(30_000)));
    registry.pull_snapshot(from(), "c".into()).read_to_end(&mut Vec::new()).await.unwrap();

    stand_in.add_fault(config_first.clone());
    stand_in.add_fault(config_first);
    stand_in.add_fault(cut(RegistryEffect::Corrupt));
    let archive = registry.pull_snapshot(from(), "d".into());
    assert!(target.snapshot_import("d", archive).await.is_err());
    assert_eq!(target.snapshot("d").await.unwrap(), None, "nothing wrong is ever imported");
}

#[tokio::test]
async fn a_push_that_fails_leaves_no_tag_and_a_token_is_needed() {
    let stand_in = EpochRegistry::with_token("secret");
    let url = serve(&stand_in).await;
    let source = host();
    snapshot_of(&source).await;
    let stranger = client(url.clone(), None);
    let to = Reference::parse("a:hibernate");
    let refused = stranger
        .push_snapshot(&to, None, export(&source), Timestamp::UNIX_EPOCH)
        .await
        .unwrap_err();
    assert!(format!("{refused:?}").contains("401"), "{refused:?}");

    let registry = client(url, Some("secret"));
    let fault = |times| RegistryFault {
        method: "PATCH".into(),
        path: "/uploads/".into(),
        times,
        effect: RegistryEffect::Status(500),
    };
    stand_in.add_fault(fault(1));
    push(&source, &registry).await;
    stand_in.add_fault(fault(100));
    let again = Reference::parse("a:latest");
    let failed = registry
        .push_snapshot(&again, None, export(&source), Timestamp::UNIX_EPOCH)
        .await
        .unwrap_err();
    assert!(!format!("{failed:?}").contains("secret"));
    assert_eq!(stand_in.tags(), ["a:hibernate"]);
}

/// The piece is there, or the blob, and only the answer is not: neither is sent twice, and the push goes on.
#[tokio::test]
async fn a_push_survives_answers_that_are_lost_at_every_step() {
    for (method, path) in [
        ("POST", "/uploads/"),
        ("PATCH", "/uploads/"),
        ("PUT", "/uploads/"),
        ("PUT", "/manifests/"),
        ("HEAD", "/blobs/"),
    ] {
        for effect in [RegistryEffect::AfterTheFact(502), RegistryEffect::Status(503)] {
            let stand_in = EpochRegistry::default();
            let registry = client(serve(&stand_in).await, None);
            let source = host();
            snapshot_of(&source).await;
            let fault =
                RegistryFault { method: method.into(), path: path.into(), times: 1, effect };
            stand_in.add_fault(fault);
            push(&source, &registry).await;
            assert_eq!(stand_in.tags(), ["a:hibernate"], "{method} {path} {effect:?}");
            let target = host();
            let archive = registry.pull_snapshot(Reference::parse("a:hibernate"), "b".into());
            target.snapshot_import("b", archive).await.unwrap();
            target.with_host(|host| assert!(host.kept("b").starts_with("count=7 count=7")));
        }
    }
}

/// What it says of tags that are deleted, of pieces and of places differs from epoch.
#[tokio::test]
async fn a_registry_of_others_keeps_snapshots_and_forgets_them() {
    let Some(peer) = roost_oracle::DockerRegistry::start() else { return };
    let registry = client(peer.url(), None);
    let source = host();
    snapshot_of(&source).await;
    assert!(!registry.has_manifest("a", "hibernate").await.unwrap());
    push(&source, &registry).await;
    push(&source, &registry).await;
    assert!(registry.has_manifest("a", "hibernate").await.unwrap());
    let from = || Reference::parse("a:hibernate");
    assert_eq!(registry.kind_of(&from()).await.unwrap(), Some(ArtifactKind::Snapshot));
    let target = host();
    let progress = roost_microvm::Progress::default();
    let archive = registry.counting(&progress).pull_snapshot(from(), "b".into());
    target.snapshot_import("b", archive).await.unwrap();
    target.with_host(|host| assert_eq!(host.kept("b"), "count=7 ".repeat(10_000)));
    assert_eq!(progress.tenths(), Some(10));
    let pulled = target.snapshot("b").await.unwrap().unwrap();
    assert!(pulled.is_pulled(), "{pulled:?}");
    registry.delete_manifest("a", "hibernate").await.unwrap();
    assert!(!registry.has_manifest("a", "hibernate").await.unwrap());
    registry.delete_manifest("a", "hibernate").await.unwrap();
}

/// Docker's registry answers the deletion of a tag with 400, or with 405 where nothing may be deleted.
#[tokio::test]
async fn a_tag_that_cannot_be_deleted_by_name_is_deleted_by_digest() {
    let stand_in = EpochRegistry::default();
    let registry = client(serve(&stand_in).await, None);
    let source = host();
    snapshot_of(&source).await;
    push(&source, &registry).await;
    for status in [400, 405] {
        push(&source, &registry).await;
        stand_in.add_fault(RegistryFault {
            method: "DELETE".into(),
            path: "/manifests/hibernate".into(),
            times: 1,
            effect: RegistryEffect::Status(status),
        });
        registry.delete_manifest("a", "hibernate").await.unwrap();
        assert!(stand_in.tags().is_empty());
    }
}

#[tokio::test]
async fn a_cloud_image_is_its_parts_in_order() {
    let stand_in = EpochRegistry::default();
    let registry = client(serve(&stand_in).await, None);
    let parts: [&[u8]; 2] = [b"first ", b"second"];
    let layer = |part: &[u8], title: &str| {
        json!({"mediaType": "application/vnd.cocoonstack.disk.qcow2.part", "digest": roost_microvm::Digest::of(part).as_str(),
            "size": part.len(), "annotations": {"org.opencontainers.image.title": title}})
    };
    let manifest = json!({"schemaVersion": 2, "artifactType": "application/vnd.cocoonstack.os-image.v1+json",
        "layers": [layer(parts[1], "disk.2"), layer(parts[0], "disk.1")]});
    stand_in.put("os", "v1", &manifest, &parts);
    let from = Reference::parse("os:v1");
    assert_eq!(registry.kind_of(&from).await.unwrap(), Some(ArtifactKind::CloudImage));
    let mut disk = String::new();
    registry.pull_disk(from).read_to_string(&mut disk).await.unwrap();
    assert_eq!(disk, "first second");
    let missing = Reference::parse("nothing");
    assert_eq!(registry.kind_of(&missing).await.unwrap(), None);
    assert!(registry.pull_disk(missing).read_to_end(&mut Vec::new()).await.is_err());
}
