use serde_json::{Value, json};

use super::*;

fn class(spec: Value) -> VirtualMachineClassSpec {
    serde_json::from_value(spec).unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "reads better where it is called")]
fn vm(spec: Value) -> VirtualMachine {
    serde_json::from_value(
        json!({"metadata": {"name": "web-0", "namespace": "team-a"}, "spec": spec}),
    )
    .unwrap()
}

fn full() -> VirtualMachineConfigSpec {
    base_config(&class(json!({"configSpec": {
        "_typeName": "VirtualMachineConfigSpec",
        "name": "of the class",
        "uuid": "u", "instanceUuid": "i", "guestId": "g", "version": "vmx-19", "firmware": "efi",
        "numCPUs": 4, "memoryMB": 2048, "cpuHotAddEnabled": true,
        "files": {"_typeName": "VirtualMachineFileInfo", "vmPathName": "[ds]"},
        "vmProfile": [{"_typeName": "VirtualMachineDefinedProfileSpec", "profileId": "p"}],
        "extraConfig": [
            {"_typeName": "OptionValue", "key": "class.key", "value": {"_typeName": "string", "_value": "v"}},
            {"_typeName": "OptionValue", "key": "disk.enableUUID", "value": {"_typeName": "string", "_value": "FALSE"}},
        ],
        "deviceChange": [
            {"_typeName": "VirtualDeviceConfigSpec", "operation": "add", "device": {"_typeName": "VirtualE1000e", "key": -1}},
            {"_typeName": "VirtualDeviceConfigSpec", "operation": "add", "device": {"_typeName": "VirtualDisk", "key": -2,
                "backing": {"_typeName": "VirtualDiskFlatVer2BackingInfo", "fileName": ""}}},
            {"_typeName": "VirtualDeviceConfigSpec", "operation": "add", "device": {"_typeName": "VirtualDisk", "key": -3,
                "backing": {"_typeName": "VirtualDiskRawDiskMappingVer1BackingInfo", "fileName": ""}}},
            {"_typeName": "VirtualDeviceConfigSpec", "operation": "add", "device": {"_typeName": "VirtualPCIPassthrough", "key": -4}},
        ],
    }})))
}

#[test]
fn a_class_hands_on_its_hardware_and_no_identity() {
    let base = full();
    assert_eq!(
        (base.num_cpus, base.memory_mb, base.cpu_hot_add_enabled),
        (Some(4), Some(2048), Some(true))
    );
    assert_eq!((base.version.as_deref(), base.firmware.as_deref()), (Some("vmx-19"), Some("efi")));
    assert_eq!((base.uuid, base.instance_uuid, base.guest_id, base.name), (None, None, None, None));
    assert!(base.files.is_none() && base.vm_profile.is_empty());
    let devices: Vec<_> = base
        .device_change
        .iter()
        .map(|change| (change.device.class.as_str(), change.device.key))
        .collect();
    assert_eq!(
        devices,
        [("VirtualE1000e", -1), ("VirtualDisk", -3), ("VirtualPCIPassthrough", -4)]
    );
}

#[test]
fn a_class_without_a_spec_hands_on_its_devices() {
    let base = base_config(&class(json!({"hardware": {"devices": {
        "vgpuDevices": [{"profileName": "grid_v100"}],
        "dynamicDirectPathIODevices": [{"vendorID": 4318, "deviceID": 7864, "customLabel": "gpu"}],
    }}})));
    let backings: Vec<_> =
        base.device_change.iter().map(|change| change.device.backing.clone().unwrap()).collect();
    assert_eq!(backings[0].class, "VirtualPCIPassthroughVmiopBackingInfo");
    assert_eq!(backings[0].rest, [Element::leaf("vgpu", "grid_v100")]);
    assert_eq!(backings[1].rest[0].text_of("vendorId"), Some("4318"));
    assert_eq!(backings[1].rest[1], Element::leaf("customLabel", "gpu"));
    assert_ne!(base.device_change[0].device.key, base.device_change[1].device.key);
    assert!(has_passthrough(&base) && !has_vtpm(&base));
    assert_eq!(base_config(&class(json!({}))), VirtualMachineConfigSpec::default());
}

#[test]
fn the_hardware_version_is_what_all_agree_on() {
    let plain = VirtualMachineConfigSpec::default();
    let gpu = base_config(&class(
        json!({"hardware": {"devices": {"vgpuDevices": [{"profileName": "g"}]}}}),
    ));
    let claims = json!({"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "c"}}]});
    for (case, spec, base, image, want) in [
        ("nobody says anything", json!({}), &plain, None, None),
        ("the image", json!({}), &plain, Some(17), Some(17)),
        ("the object wants more", json!({"minHardwareVersion": 20}), &plain, Some(17), Some(20)),
        ("the object wants less", json!({"minHardwareVersion": 14}), &plain, Some(17), Some(17)),
        ("the class", json!({}), &full(), Some(21), Some(19)),
        ("the object above the class", json!({"minHardwareVersion": 20}), &full(), None, Some(20)),
        ("claims", claims, &plain, Some(13), Some(15)),
        ("passthrough", json!({}), &gpu, Some(13), Some(17)),
    ] {
        assert_eq!(hardware_version(&vm(spec), base, image), want, "{case}");
    }
    assert_eq!(hardware_version_of("vmx-21"), Some(21));
    assert_eq!(hardware_version_of("21"), None);
}

#[test]
fn the_guest_is_the_objects_or_the_images() {
    assert_eq!(
        guest_id(&vm(json!({"guestID": "ubuntu64Guest"})), "rhel9_64Guest"),
        "ubuntu64Guest"
    );
    assert_eq!(guest_id(&vm(json!({})), "rhel9_64Guest"), "rhel9_64Guest");
    assert_eq!(guest_id(&vm(json!({})), ""), "otherGuest");
    assert_eq!(guest_id(&vm(json!({})), "otherGuest64"), "otherGuest");
}

#[test]
fn keys_of_the_class_go_before_global_ones() {
    let global =
        [("disk.enableUUID".to_owned(), "TRUE".to_owned()), ("global".to_owned(), "g".to_owned())];
    let keys = |vm: &VirtualMachine, base: &VirtualMachineConfigSpec| {
        extra_config(vm, base, &global)
            .into_iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
    };
    let expected = [
        "vmservice.namespacedName=team-a/web-0",
        "class.key=v",
        "disk.enableUUID=FALSE",
        "pciPassthru.use64bitMMIO=TRUE",
        "pciPassthru.64bitMMIOSizeGB=512",
        "global=g",
        "vmware.tools.gosc.ignoretoolscheck=TRUE",
    ];
    assert_eq!(keys(&vm(json!({})), &full()), expected);
    let mut without = vm(json!({}));
    let annotations = without.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::PCI_PASSTHRU_MMIO_SIZE.to_owned(), "0".to_owned());
    assert!(!keys(&without, &full()).iter().any(|key| key.starts_with("pciPassthru")));
    let plain = keys(&vm(json!({})), &VirtualMachineConfigSpec::default());
    assert_eq!(plain[1], "disk.enableUUID=TRUE");
}
