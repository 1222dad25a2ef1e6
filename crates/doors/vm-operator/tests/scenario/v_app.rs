//! vApp properties: from the object, with its Secrets and its network, to the VM that an OVF template made.

use bytes::Bytes;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use roost_door::FrontDoor as _;
use roost_vim::wire::{Element, Value};
use roost_vim::{NewLibrary, UploadSource};
use roost_vm_operator::api::condition::ConditionType;
use roost_vm_operator::api::{PowerState, VirtualMachine};
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, condition, minutes, vm};

const IMAGE: &str = "vmi-1111111111111111a";

const DESCRIPTOR: &str = r#"<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1" xmlns:rasd="r" xmlns:vmw="v">
<References><File ovf:id="f" ovf:href="d.vmdk" ovf:size="4"/></References>
<DiskSection><Disk ovf:diskId="d" ovf:fileRef="f" ovf:capacity="1" ovf:capacityAllocationUnits="byte * 2^30"/></DiskSection>
<VirtualSystem ovf:id="s"><OperatingSystemSection ovf:id="94" vmw:osType="ubuntu64Guest"/><VirtualHardwareSection>
<Item><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>1</rasd:VirtualQuantity></Item>
</VirtualHardwareSection>
<ProductSection><Property ovf:key="hostname" ovf:type="string" ovf:userConfigurable="true" ovf:value="old"/>
<Property ovf:key="password" ovf:type="string" ovf:password="true" ovf:userConfigurable="true"/>
<Property ovf:key="address" ovf:type="string" ovf:userConfigurable="true"/>
<Property ovf:key="fixed" ovf:type="string" ovf:value="stays"/></ProductSection>
</VirtualSystem></Envelope>"#;

async fn library_image(lab: &Lab) {
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
    lab.image(IMAGE, "OVF", &item).await;
}

async fn v_app_config(lab: &Lab, name: &str) -> Option<Element> {
    let vm = lab.machine(name).unwrap().moref;
    let read = lab.fleet.observer().properties(&vm, &["config.vAppConfig"]).await.unwrap();
    match read.get("config.vAppConfig") {
        Some(Value::Other(config)) => Some((**config).clone()),
        _ => None,
    }
}

fn value(config: &Element, id: &str) -> String {
    let mut rows = config.children_named("property");
    let row = rows.find(|row| row.text_of("id") == Some(id)).unwrap();
    row.text_of("value").unwrap_or_default().to_owned()
}

fn of_image(name: &str, bootstrap: serde_json::Value) -> VirtualMachine {
    let mut wanted = vm(name);
    wanted.spec.image.as_mut().unwrap().name = IMAGE.into();
    wanted.spec.bootstrap = Some(serde_json::from_value(bootstrap).unwrap());
    let network = json!({"interfaces": [{"name": "eth0", "addresses": ["10.0.0.21/24"], "gateway4": "10.0.0.1"}]});
    wanted.spec.network = Some(serde_json::from_value(network).unwrap());
    wanted
}

async fn until_power(lab: &Lab, name: &str, state: PowerState) -> VirtualMachine {
    lab.until(state.as_str(), name, |vm| vm.current_power_state() == Some(state)).await
}

#[tokio::test(start_paused = true)]
async fn properties_reach_the_vm_before_it_boots_and_change_when_it_is_off() {
    let lab = Lab::new().await;
    library_image(&lab).await;
    let mut secret = Secret::default();
    secret.metadata.name = Some("boot".into());
    secret.string_data = Some([("pw".to_owned(), "s3cret".to_owned())].into());
    lab.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    let properties = |host: &str| {
        json!({"vAppConfig": {"properties": [
            {"key": "hostname", "value": {"value": host}},
            {"key": "password", "value": {"from": {"name": "boot", "key": "pw"}}},
            {"key": "address", "value": {"value": "{{ V1alpha6_FirstIPv4 }}"}},
            {"key": "fixed", "value": {"value": "other"}},
        ]}})
    };
    lab.apply(&of_image("web-0", properties("web-0"))).await;
    let on = until_power(&lab, "web-0", PowerState::PoweredOn).await;
    let config = v_app_config(&lab, "web-0").await.unwrap();
    assert_eq!(value(&config, "hostname"), "web-0");
    assert_eq!(value(&config, "password"), "s3cret");
    assert_eq!(value(&config, "address"), "10.0.0.21");
    assert_eq!(value(&config, "fixed"), "", "what a user may not set keeps its default");
    assert_eq!(config.text_of("ovfEnvironmentTransport"), Some("com.vmware.guestInfo"));
    assert_eq!(condition(&on, ConditionType::BootstrapReady), Some(("True", "True")));
    assert!(lab.events().await.iter().all(|(_, note)| !note.contains("s3cret")));

    // While it runs nothing is told: the guest has read it.
    lab.patch("web-0", json!({"spec": {"bootstrap": properties("web-1")}})).await;
    sleep(minutes(5)).await;
    assert_eq!(value(&v_app_config(&lab, "web-0").await.unwrap(), "hostname"), "web-0");
    for state in [PowerState::PoweredOff, PowerState::PoweredOn] {
        lab.patch("web-0", json!({"spec": {"powerState": state, "powerOffMode": "Hard"}})).await;
        until_power(&lab, "web-0", state).await;
    }
    assert_eq!(value(&v_app_config(&lab, "web-0").await.unwrap(), "hostname"), "web-1");
}

#[tokio::test(start_paused = true)]
async fn cloud_init_goes_before_the_properties_of_an_image() {
    let lab = Lab::new().await;
    library_image(&lab).await;
    lab.apply(&of_image("web-0", json!({"cloudInit": {"cloudConfig": {}}}))).await;
    until_power(&lab, "web-0", PowerState::PoweredOn).await;
    assert_eq!(v_app_config(&lab, "web-0").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_vm_without_properties_says_so() {
    let lab = Lab::new().await;
    let mut wanted = vm("web-0");
    let bootstrap = json!({"vAppConfig": {"properties": [{"key": "x", "value": {"value": "y"}}]}});
    wanted.spec.bootstrap = Some(serde_json::from_value(bootstrap).unwrap());
    lab.apply(&wanted).await;
    sleep(minutes(5)).await;
    assert_eq!(lab.get("web-0").await.current_power_state(), Some(PowerState::PoweredOff));
    let shown = format!("{:?}", lab.shown.as_ref().unwrap().request("team-a/web-0"));
    assert!(shown.contains("the VM has no vApp configuration"), "{shown}");
}
