//! Tags, images in drives, and what a VM is told apart by.

use roost_fleet::{Fleet, FleetRules, MachineError, VmId};
use roost_vim::CreateVm;

use crate::lab::{LAB, Lab};

async fn vm_with_image(lab: &Lab) -> VmId {
    let finder = lab.client.finder("DC0").await.unwrap();
    let datastore = finder.datastore("LocalDS_0").await.unwrap();
    let files = lab.client.datastore(finder.datacenter(), &datastore).await.unwrap();
    let iso = files.path("iso/boot.iso");
    lab.vcenter.put_file("[LocalDS_0] iso/boot.iso", "boot").unwrap();
    let network = finder.network("DC0_DVPG0").await.unwrap();
    let network = lab.client.network_backing(&network.moref).await.unwrap();
    let request = CreateVm {
        iso: Some(iso),
        nics: vec![roost_vim::NewNic { card: "vmxnet3".parse().unwrap(), network }],
        ..CreateVm::new(
            lab.find("/DC0/vm"),
            "node",
            lab.find("/DC0/host/DC0_C0/Resources"),
            "LocalDS_0",
        )
    };
    VmId::from(&lab.client.create_vm(&request).await.unwrap())
}

fn fleet(lab: &Lab) -> Fleet {
    Fleet::over(lab.client.clone(), lab.clock.clone(), vec![], None, FleetRules::default())
}

#[tokio::test(start_paused = true)]
async fn a_vm_is_told_apart_by_its_uuid_and_cards() {
    let lab = Lab::new(0).await;
    let vm = vm_with_image(&lab).await;
    let identity = fleet(&lab).machines().identity(&vm).await.unwrap();
    assert_eq!(identity.uuid.unwrap(), lab.vcenter.vm("node").unwrap().uuid);
    assert_eq!(identity.macs.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn images_are_taken_out_once() {
    let lab = Lab::new(0).await;
    let vm = vm_with_image(&lab).await;
    let fleet = fleet(&lab);
    let hold = fleet.machines().hold(LAB, &vm).unwrap();
    assert!(fleet.machines().eject_images(&hold).await.unwrap());
    assert!(!fleet.machines().eject_images(&hold).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn tags_are_found_by_id_or_name_and_attached_once() {
    let lab = Lab::new(0).await;
    let category = lab.client.ensure_tag_category("team", &["VirtualMachine"]).await.unwrap();
    let blue = lab.client.ensure_tag(&category, "blue").await.unwrap();
    lab.client.ensure_tag(&category, "green").await.unwrap();
    let vm = vm_with_image(&lab).await;
    let fleet = fleet(&lab);
    let hold = fleet.machines().hold(LAB, &vm).unwrap();
    for _ in 0..2 {
        fleet.machines().attach_tags(&hold, &[blue.clone(), "green".into()]).await.unwrap();
    }
    let attached = lab.client.attached_tags(&[vm.moref()]).await.unwrap();
    assert_eq!(attached[0].1.len(), 2);
    let unknown = fleet.machines().attach_tags(&hold, &["red".into()]).await.unwrap_err();
    assert!(matches!(unknown, MachineError::Rest { .. }), "{unknown}");
}
