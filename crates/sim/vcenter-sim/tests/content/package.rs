//! Packages through the OVF manager and a lease.

use http::StatusCode;
use roost_vcenter_sim::Options;
use roost_vim_wire::methods::{
    CreateDescriptor, CreateImportSpec, ExportVm, HttpNfcLeaseAbort, HttpNfcLeaseComplete,
    HttpNfcLeaseProgress, ImportVApp,
};
use roost_vim_wire::{Element, MoRef, MoType, Value};

use crate::lab::{Client, Lab};
use crate::rest::{DESCRIPTOR, DISK};

async fn lab() -> (Lab, Client) {
    let lab = Lab::start(Options::default()).await;
    let client = lab.login().await;
    (lab, client)
}

fn ovf_manager() -> MoRef {
    MoRef::new(MoType::from("OvfManager"), "OvfManager")
}

/// The lease of an import, when it is ready.
async fn import(client: &Client, name: &str) -> (MoRef, Element) {
    let pool = client.find("/DC0/host/DC0_C0/Resources").await;
    let network = client.find("/DC0/network/VM Network").await;
    let mapping = Element::new("networkMapping")
        .with_field("name", &"nat".to_owned())
        .with_field("network", &network);
    let cisp = Element::new("cisp")
        .typed("OvfCreateImportSpecParams")
        .with_field("entityName", &name.to_owned())
        .with(mapping);
    let spec = client
        .call(CreateImportSpec {
            this: ovf_manager(),
            ovf_descriptor: DESCRIPTOR.into(),
            resource_pool: pool.clone(),
            datastore: client.find("/DC0/datastore/LocalDS_0").await,
            cisp,
        })
        .await
        .unwrap();
    assert_eq!(spec.child("fileItem").unwrap().text_of("path"), Some("tiny-disk1.vmdk"));
    let mut import = spec.child("importSpec").unwrap().clone();
    import.name = "spec".into();
    let lease = client
        .call(ImportVApp { this: pool, spec: import, folder: None, host: None })
        .await
        .unwrap();
    while client.property(&lease, "state").await.unwrap().as_str() == Some("initializing") {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let Some(Value::Other(info)) = client.property(&lease, "info").await else {
        panic!("{:?}", client.property(&lease, "error").await)
    };
    let wanted = spec.child("fileItem").unwrap().text_of("deviceId").unwrap().to_owned();
    let first = info.child("deviceUrl").unwrap();
    assert_eq!(first.text_of("importKey"), Some(wanted.as_str()));
    (lease, *info)
}

fn path_of(info: &Element) -> String {
    let url = info.child("deviceUrl").unwrap().text_of("url").unwrap().to_owned();
    url.strip_prefix("http://*").unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_package_is_imported_with_its_bytes_and_comes_out_again() {
    let (lab, client) = lab().await;
    let (lease, info) = import(&client, "tiny").await;
    let sent =
        client.http("PUT", &path_of(&info), std::str::from_utf8(DISK).unwrap()).await.unwrap();
    assert_eq!(sent.0, StatusCode::CREATED);
    client.call(HttpNfcLeaseProgress { this: lease.clone(), percent: 60 }).await.unwrap();
    assert_eq!(client.property(&lease, "transferProgress").await.unwrap().as_i64(), Some(60));
    client.call(HttpNfcLeaseComplete { this: lease.clone() }).await.unwrap();
    let vm = lab.vcenter.vm("tiny").unwrap();
    assert_eq!((vm.cpus, vm.memory_mb), (2, 512));

    let lease = client.call(ExportVm { this: vm.moref.clone() }).await.unwrap();
    let Some(Value::Other(info)) = client.property(&lease, "info").await else { panic!() };
    let (status, bytes) = client.http("GET", &path_of(&info), "").await.unwrap();
    assert_eq!((status, bytes.as_bytes()), (StatusCode::OK, DISK));
    let device = info.child("deviceUrl").unwrap();
    let file = Element::new("ovfFiles")
        .with_field("deviceId", &device.text_of("key").unwrap().to_owned())
        .with_field("path", &"out-0.vmdk".to_owned())
        .with_field("size", &11_i64);
    let cdp = Element::new("cdp").with(file).with_field("name", &"out".to_owned());
    let described =
        client.call(CreateDescriptor { this: ovf_manager(), obj: vm.moref, cdp }).await.unwrap();
    let text = described.text_of("ovfDescriptor").unwrap();
    assert!(text.contains("ovf:href=\"out-0.vmdk\""), "{text}");
    assert!(text.contains("vmw:osType=\"debian12_64Guest\""), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_import_that_is_given_up_leaves_no_vm() {
    let (lab, client) = lab().await;
    let (lease, _) = import(&client, "aborted").await;
    assert!(lab.vcenter.vm("aborted").is_some());
    client.call(HttpNfcLeaseAbort { this: lease.clone(), fault: None }).await.unwrap();
    assert_eq!(lab.vcenter.vm("aborted"), None);
    assert_eq!(client.property(&lease, "state").await.unwrap().as_str(), Some("error"));

    let (lease, _) = import(&client, "forgotten").await;
    tokio::time::sleep(std::time::Duration::from_secs(200)).await;
    client.call(HttpNfcLeaseProgress { this: lease.clone(), percent: 1 }).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(200)).await;
    assert!(lab.vcenter.vm("forgotten").is_some(), "progress keeps a lease alive");
    tokio::time::sleep(std::time::Duration::from_secs(500)).await;
    assert_eq!(lab.vcenter.vm("forgotten"), None, "silence ends it");
}
