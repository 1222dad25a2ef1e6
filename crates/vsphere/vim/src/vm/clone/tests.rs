use std::net::Ipv4Addr;

use roost_vim_wire::types::VirtualDevice;
use roost_vim_wire::{MoType, encode_request};

use super::super::template::tests::{template, with_parent_disk};
use super::*;
use crate::NicAddress;
use crate::device::compact;

fn request() -> CloneVm {
    let folder = MoRef::new(MoType::Folder, "group-2");
    CloneVm::new(folder, "worker-1", MoRef::new(MoType::ResourcePool, "resgroup-27"))
}

fn body(template: &TemplateFacts, request: &CloneVm) -> String {
    let xml = String::from_utf8(encode_request(&request.call(template).unwrap(), None)).unwrap();
    let (_, body) = xml.split_once("<Body>").unwrap();
    body.strip_suffix("</Body></Envelope>").unwrap().to_owned()
}

/// The request that the Go hatchery sends, as it was recorded, less what it should not send: the template's MAC address.
#[test]
fn a_full_request_is_what_was_recorded() {
    let snapshot = MoRef::new(MoType::VirtualMachineSnapshot, "snapshot-78");
    let fixed = NicAddress::Fixed {
        address: Ipv4Addr::new(10, 0, 0, 10),
        subnet_mask: Ipv4Addr::new(255, 255, 255, 0),
        gateways: vec![Ipv4Addr::new(10, 0, 0, 1)],
    };
    let customization = Customization {
        dns_servers: vec![Ipv4Addr::new(10, 0, 0, 2).into()],
        nics: vec![fixed],
        ..Customization::linux("local")
    };
    let request = CloneVm {
        datastore: Some(MoRef::new(MoType::Datastore, "datastore-59")),
        disks: DiskCopy::ShareParents,
        snapshot: Some(snapshot),
        network: Some(NetworkBacking::Distributed {
            switch_uuid: "a86ec114".into(),
            portgroup_key: "dvportgroup-12".into(),
        }),
        annotation: Some(r#"{"hatchery_name":"h1"}"#.into()),
        cpus: Some(2),
        memory_mb: Some(4096),
        extra_config: vec![("guestinfo.hatchery".into(), Hidden("h1".into()))],
        customization: Some(customization),
        tools_after_power_on: Some(true),
        power_on: true,
        ..request()
    };
    let sample = compact(
        r#"<CloneVM_Task xmlns="urn:vim25"><_this type="VirtualMachine">vm-62</_this><folder type="Folder">group-2</folder><name>worker-1</name><spec><location>
           <datastore type="Datastore">datastore-59</datastore><diskMoveType>moveChildMostDiskBacking</diskMoveType><pool type="ResourcePool">resgroup-27</pool>
           <deviceChange xsi:type="VirtualDeviceConfigSpec"><operation>edit</operation><device xsi:type="VirtualE1000"><key>4000</key>
             <backing xsi:type="VirtualEthernetCardDistributedVirtualPortBackingInfo">
              <port><switchUuid>a86ec114</switchUuid><portgroupKey>dvportgroup-12</portgroupKey></port></backing>
             <connectable><startConnected>true</startConnected><allowGuestControl>true</allowGuestControl><connected>false</connected></connectable>
             <controllerKey>100</controllerKey><unitNumber>7</unitNumber>
             <wakeOnLanEnabled>true</wakeOnLanEnabled></device></deviceChange></location>
          <template>false</template><config><annotation>{&#34;hatchery_name&#34;:&#34;h1&#34;}</annotation>
           <tools><afterPowerOn>true</afterPowerOn></tools><numCPUs>2</numCPUs><memoryMB>4096</memoryMB>
           <extraConfig xsi:type="OptionValue"><key>guestinfo.hatchery</key><value xsi:type="xsd:string">h1</value></extraConfig></config><customization>
           <identity xsi:type="CustomizationLinuxPrep"><hostName xsi:type="CustomizationVirtualMachineName"></hostName>
            <domain>local</domain><timeZone>UTC</timeZone><hwClockUTC>true</hwClockUTC></identity><globalIPSettings><dnsServerList>10.0.0.2</dnsServerList></globalIPSettings>
           <nicSettingMap><adapter><ip xsi:type="CustomizationFixedIp"><ipAddress>10.0.0.10</ipAddress></ip>
            <subnetMask>255.255.255.0</subnetMask><gateway>10.0.0.1</gateway></adapter></nicSettingMap></customization><powerOn>true</powerOn>
          <snapshot type="VirtualMachineSnapshot">snapshot-78</snapshot></spec></CloneVM_Task>"#,
    );
    assert_eq!(body(&template(), &request), sample);
}

#[test]
fn a_bare_request_changes_nothing() {
    assert_eq!(
        body(&template(), &request()),
        compact(
            r#"<CloneVM_Task xmlns="urn:vim25"><_this type="VirtualMachine">vm-62</_this><folder type="Folder">group-2</folder><name>worker-1</name>
            <spec><location><pool type="ResourcePool">resgroup-27</pool></location><template>false</template><powerOn>false</powerOn></spec></CloneVM_Task>"#
        )
    );
}

#[test]
fn a_new_child_stands_on_the_current_snapshot_or_on_the_one_that_is_named() {
    let new_child = CloneVm { disks: DiskCopy::NewChild, ..request() };
    assert!(matches!(new_child.spec(&template()), Err(CloneSpecError::NoSnapshot { .. })));
    let snapshot = |id| MoRef::new(MoType::VirtualMachineSnapshot, id);
    let with_snapshot =
        TemplateFacts { current_snapshot: Some(snapshot("snapshot-1")), ..template() };
    let spec = new_child.spec(&with_snapshot).unwrap();
    assert_eq!(spec.location.disk_move_type.as_deref(), Some("createNewChildDiskBacking"));
    assert_eq!(spec.snapshot, Some(snapshot("snapshot-1")));
    let named = CloneVm { snapshot: Some(snapshot("snapshot-2")), ..new_child };
    assert_eq!(named.spec(&with_snapshot).unwrap().snapshot, Some(snapshot("snapshot-2")));
}

#[test]
fn the_first_disk_grows_in_the_configuration() {
    let bigger = CloneVm { disk_bytes: Some(20 << 30), ..request() };
    let config = bigger.spec(&template()).unwrap().config.unwrap();
    assert_eq!(config.device_change[0].device.capacity_in_kb, Some(20 << 20));
    assert_eq!(config.device_change[0].file_operation, None);
    let same = CloneVm { disk_bytes: Some(10 << 30), ..request() };
    assert_eq!(same.spec(&template()).unwrap().config, None);
    let smaller = CloneVm { disk_bytes: Some(5 << 30), ..request() };
    assert!(matches!(
        smaller.spec(&template()),
        Err(CloneSpecError::Disk { source: DeviceError::Shrink { .. } })
    ));
}

#[test]
fn a_disk_that_is_shared_with_the_template_does_not_grow() {
    let linked = CloneVm { disk_bytes: Some(20 << 30), disks: DiskCopy::ShareParents, ..request() };
    assert!(linked.spec(&template()).is_ok(), "without a parent it is a full copy");
    assert!(matches!(
        linked.spec(&with_parent_disk(template())),
        Err(CloneSpecError::SharedDiskGrowth { .. })
    ));
}

#[test]
fn what_the_template_lacks_is_named() {
    let bare = TemplateFacts {
        nics: Vec::new(),
        disks: vec![VirtualDevice::of("VirtualDisk")],
        ..template()
    };
    let network = Some(NetworkBacking::Opaque { id: "a".into(), kind: "b".into() });
    let error = CloneVm { network, ..request() }.spec(&bare).unwrap_err();
    assert_eq!(error.to_string(), "template tmpl-debian12 has no network card");
}
