//! From an object to a VM that is on and has an address.

use bytes::Bytes;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use roost_vcenter_sim::Power;
use roost_vim::{NewLibrary, UploadSource};
use roost_vm_operator::api::condition::ConditionType;
use roost_vm_operator::api::names::{annotation, extra_config, finalizer};
use roost_vm_operator::bootstrap::decode;
use serde_json::json;

use crate::lab::{Lab, condition, minutes, vm};

#[tokio::test(start_paused = true)]
async fn an_applied_vm_is_made_powered_on_and_gets_its_address() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    let made = lab.until_on("web-0").await;
    let machine = lab.machine("web-0").unwrap();
    assert_eq!((machine.cpus, machine.memory_mb, machine.power), (2, 4096, Power::On));
    assert_eq!(machine.path, "/DC0/vm/team-a/web-0");
    let of = |key: &str| machine.extra_config.iter().find(|(own, _)| own == key);
    assert_eq!(of(extra_config::NAMESPACED_NAME).unwrap().1, "team-a/web-0");
    let status = made.status.as_ref().unwrap();
    assert_eq!(status.unique_id, machine.moref.id.to_string());
    assert_eq!(status.instance_uuid, made.spec.instance_uuid);
    assert_eq!(status.network.as_ref().unwrap().primary_ip4, machine.ip.unwrap().to_string());
    assert_eq!(made.finalizers(), [finalizer::VM]);
    assert_eq!(made.annotations()[annotation::FIRST_BOOT_DONE], "true");
    for kind in [
        ConditionType::Created,
        ConditionType::ClassReady,
        ConditionType::ImageReady,
        ConditionType::StorageReady,
        ConditionType::NetworkReady,
        ConditionType::PlacementReady,
        ConditionType::Connected,
    ] {
        assert_eq!(condition(&made, kind).map(|(status, _)| status), Some("True"), "{kind}");
    }
    tokio::time::sleep(minutes(1)).await;
    assert_eq!(lab.events().await, [("CreateSuccess".to_owned(), "Create success".to_owned())]);
}

const DESCRIPTOR: &str = r#"<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1" xmlns:rasd="r" xmlns:vmw="v">
<References><File ovf:id="f" ovf:href="d.vmdk" ovf:size="4"/></References>
<DiskSection><Disk ovf:diskId="d" ovf:fileRef="f" ovf:capacity="1" ovf:capacityAllocationUnits="byte * 2^30"/></DiskSection>
<NetworkSection><Network ovf:name="nat"/></NetworkSection>
<VirtualSystem ovf:id="s"><VirtualHardwareSection>
<Item><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>1</rasd:VirtualQuantity></Item>
<Item><rasd:ResourceType>6</rasd:ResourceType><rasd:InstanceID>3</rasd:InstanceID><rasd:ResourceSubType>VirtualSCSI</rasd:ResourceSubType></Item>
<Item><rasd:ResourceType>17</rasd:ResourceType><rasd:InstanceID>4</rasd:InstanceID><rasd:Parent>3</rasd:Parent><rasd:AddressOnParent>0</rasd:AddressOnParent><rasd:HostResource>ovf:/disk/d</rasd:HostResource></Item>
<Item><rasd:ResourceType>10</rasd:ResourceType><rasd:InstanceID>5</rasd:InstanceID><rasd:Connection>nat</rasd:Connection></Item>
</VirtualHardwareSection></VirtualSystem></Envelope>"#;

#[tokio::test(start_paused = true)]
async fn a_template_of_a_content_library_becomes_a_vm_with_one_card() {
    let lab = Lab::new().await;
    let client = lab.fleet.client();
    let datastore = lab.site.find("/DC0/datastore/LocalDS_0");
    let new = NewLibrary { name: "images".into(), description: String::new(), datastore };
    let library = client.create_library(&new).await.unwrap();
    let item = client.create_library_item(&library, "tiny", "ovf").await.unwrap();
    let files: [(&str, &dyn UploadSource); 2] = [
        ("tiny.ovf", &Bytes::from_static(DESCRIPTOR.as_bytes())),
        ("d.vmdk", &Bytes::from_static(b"KDMV")),
    ];
    client.upload_item_files(&item, &files).await.unwrap();
    lab.image("vmi-1111111111111111a", "OVF", &item).await;
    let mut wanted = vm("web-0");
    wanted.spec.image.as_mut().unwrap().name = "vmi-1111111111111111a".into();
    lab.apply(&wanted).await;
    lab.until("on", "web-0", |vm| {
        vm.current_power_state() == Some(roost_vm_operator::api::PowerState::PoweredOn)
    })
    .await;
    let machine = lab.machine("web-0").unwrap();
    assert_eq!((machine.cpus, machine.memory_mb), (2, 4096), "by its class, not by the template");
    assert_eq!(machine.path, "/DC0/vm/team-a/web-0");
    assert_eq!(machine.devices.iter().filter(|device| device.is_nic()).count(), 1);
    assert_eq!(lab.machine("web-0").unwrap().uuid, lab.get("web-0").await.spec.bios_uuid);
}

#[tokio::test(start_paused = true)]
async fn a_guest_reads_its_name_network_and_users_before_it_boots() {
    let lab = Lab::new().await;
    let mut secret = Secret::default();
    secret.metadata.name = Some("web-0-boot".into());
    secret.string_data = Some([("token".to_owned(), "s3cret".to_owned())].into());
    lab.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    let mut told = vm("web-0");
    let bootstrap = json!({ "cloudInit": { "cloudConfig": {
        "users": [{ "name": "ops", "sudo": "ALL=(ALL) NOPASSWD:ALL" }],
        "write_files": [{ "path": "/etc/token", "content": { "name": "web-0-boot", "key": "token" } }],
    } } });
    told.spec.bootstrap = Some(serde_json::from_value(bootstrap).unwrap());
    let network = json!({ "hostName": "web-0", "domainName": "lab.example", "interfaces": [
        { "name": "eth0", "addresses": ["10.0.0.21/24"], "gateway4": "10.0.0.1" },
    ] });
    told.spec.network = Some(serde_json::from_value(network).unwrap());
    lab.apply(&told).await;
    lab.until_on("web-0").await;
    let machine = lab.machine("web-0").unwrap();
    let of = |key: &str| {
        let found = machine.extra_config.iter().find(|(own, _)| own == key);
        String::from_utf8(decode(found.unwrap().1.as_bytes())).unwrap()
    };
    let metadata = of(extra_config::METADATA);
    let card = machine.devices.iter().find(|device| device.is_nic()).unwrap();
    assert!(
        metadata.contains("web-0.lab.example") && metadata.contains("10.0.0.21/24"),
        "{metadata}"
    );
    assert!(metadata.contains(card.mac_address.as_deref().unwrap()), "{metadata}");
    let userdata = of(extra_config::USERDATA);
    assert!(userdata.starts_with("## template: jinja\n#cloud-config\n"), "{userdata}");
    assert!(userdata.contains("ops") && userdata.contains("s3cret"), "{userdata}");
    let events = lab.events().await;
    assert!(events.iter().all(|(_, note)| !note.contains("s3cret")));
}

#[tokio::test(start_paused = true)]
async fn a_guest_whose_object_names_no_name_servers_is_told_those_of_the_operator() {
    let mut lab = Lab::idle().await;
    crate::fast_deploy::home(&lab).await;
    let mut map = ConfigMap::default();
    map.metadata.name = Some("vmoperator-network-config".into());
    let data = [("nameservers", "192.0.2.53 192.0.2.54"), ("searchsuffixes", "corp.example")];
    map.data = Some(data.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    let maps: Api<ConfigMap> =
        Api::namespaced(lab.client.clone(), &lab.settings.flow.pod_namespace);
    maps.create(&PostParams::default(), &map).await.unwrap();
    lab.start();
    for (name, own) in [("silent", json!({})), ("outspoken", json!(["203.0.113.1"]))] {
        let mut told = vm(name);
        told.spec.bootstrap =
            Some(serde_json::from_value(json!({ "cloudInit": { "cloudConfig": {} } })).unwrap());
        let mut card =
            json!({ "name": "eth0", "addresses": ["10.0.0.21/24"], "gateway4": "10.0.0.1" });
        if own.is_array() {
            card["nameservers"] = own;
        }
        let network = json!({ "interfaces": [card] });
        told.spec.network = Some(serde_json::from_value(network).unwrap());
        lab.apply(&told).await;
        lab.until_on(name).await;
        let machine = lab.machine(name).unwrap();
        let found = machine.extra_config.iter().find(|(own, _)| own == extra_config::METADATA);
        let metadata = String::from_utf8(decode(found.unwrap().1.as_bytes())).unwrap();
        assert_eq!(metadata.contains("192.0.2.54"), name == "silent", "{metadata}");
        assert!(metadata.contains("corp.example"), "{metadata}");
    }
}
