//! The same verbs on an ESXi host without a vCenter.

use bytes::Bytes;
use roost_vcenter_sim::{Options, Product};
use roost_vim::{CreateVm, EventQuery, NewDisk, Reconfigure, TailFrom};

use crate::lab::Lab;

#[tokio::test(start_paused = true)]
async fn a_host_without_vcenter_has_vms_files_and_events() {
    let lab = Lab::with_templates(
        Options { product: Product::HostAgent, ..Options::default() },
        Vec::new(),
    )
    .await;
    let client = &lab.client;
    assert_eq!(lab.finder.datacenter().path, "/ha-datacenter");
    let datastore = lab.finder.datastore("").await.unwrap();
    let files = client.datastore(lab.finder.datacenter(), &datastore).await.unwrap();
    let iso = files.path("iso/boot.iso");
    files.upload(&Bytes::from_static(b"an ISO"), &iso).await.unwrap();
    let request = CreateVm {
        disks: vec![NewDisk::thin(1 << 30)],
        iso: Some(iso),
        ..CreateVm::new(
            lab.finder.vm_folder("").await.unwrap().moref,
            "node-1",
            lab.finder.resource_pool("").await.unwrap().moref,
            datastore.name.clone(),
        )
    };
    let vm = client.create_or_adopt(&request, |_| true).await.unwrap().into_vm();
    let mut tail = client.tail_events(EventQuery::of(vm.clone()), TailFrom::Now).await.unwrap();
    client.reconfigure(&vm, &Reconfigure::annotation("mine")).await.unwrap();
    client.power_on(&vm, None).await.unwrap();
    assert!(!tail.next().await.unwrap().is_empty());
    assert!(!client.events(&EventQuery::of(vm.clone())).await.unwrap().is_empty());
    client.destroy(&vm).await.unwrap();
}
