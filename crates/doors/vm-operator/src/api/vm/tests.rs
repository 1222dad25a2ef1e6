use serde_json::{Value, json};

use super::*;
use crate::api::condition::{ConditionType, mark_true};
use crate::api::names::{annotation, finalizer, label};

/// A manifest with nearly everything that a person writes.
fn manifest() -> Value {
    json!({
        "apiVersion": "vmoperator.vmware.com/v1alpha6",
        "kind": "VirtualMachine",
        "metadata": {"name": "web-0", "namespace": "team-a", "labels": {"app": "web"}},
        "spec": {
            "className": "small",
            "imageName": "ubuntu-24.04-cloud",
            "storageClass": "gold",
            "powerState": "PoweredOn",
            "powerOffMode": "TrySoft",
            "promoteDisksMode": "Online",
            "instanceUUID": "2d5b3d0e-5a6b-4c0e-9f0e-0a1b2c3d4e5f",
            "biosUUID": "3d5b3d0e-5a6b-4c0e-9f0e-0a1b2c3d4e5f",
            "guestID": "ubuntu64Guest",
            "network": {
                "hostName": "web-0",
                "domainName": "lab.example",
                "nameservers": ["10.0.0.2"],
                "interfaces": [{
                    "name": "eth0",
                    "network": {"name": "VM Network"},
                    "addresses": ["10.0.0.21/24"],
                    "gateway4": "10.0.0.1",
                    "gateway6": "None",
                    "dhcp6": false,
                    "ipamModes": ["IPv4"],
                }],
            },
            "bootstrap": {"cloudInit": {
                "instanceID": "i-1",
                "waitOnNetwork4": true,
                "cloudConfig": {
                    "ssh_pwauth": false,
                    "users": [{
                        "name": "ops",
                        "sudo": "ALL=(ALL) NOPASSWD:ALL",
                        "passwd": {"name": "web-0-boot", "key": "ops-passwd"},
                        "ssh_authorized_keys": ["ssh-ed25519 AAAA"],
                    }],
                    "write_files": [
                        {"path": "/etc/motd", "content": "hello"},
                        {"path": "/etc/token", "permissions": "0600", "content": {"name": "web-0-boot", "key": "token"}},
                    ],
                    "runcmd": ["systemctl enable nginx", ["sh", "-c", "echo done"]],
                },
            }},
            "readinessProbe": {"guestInfo": [{"key": "ready", "value": "true"}]},
            "volumes": [{
                "name": "data",
                "removable": false,
                "persistentVolumeClaim": {"claimName": "web-0-data"},
            }],
            "hardware": {
                "cdrom": [{"name": "cd1", "image": {"kind": "VirtualMachineImage", "name": "vmi-0"}, "connected": false}],
                "ideControllers": [{"busNumber": 0}, {"busNumber": 1}],
                "scsiControllers": [{"busNumber": 0, "type": "LsiLogicSAS", "sharingMode": "None"}],
            },
            "bootOptions": {"firmware": "efi", "bootDelay": "5s", "bootOrder": [{"type": "CDRom", "name": "cd1"}]},
            "advanced": {"bootDiskCapacity": 1_073_741_824, "changeBlockTracking": true, "hugePages1GEnabled": true},
            "resources": {"size": {"cpu": "4", "memory": "4Gi"}},
            "crypto": {"vTPMMode": "New", "useDefaultKeyProvider": false},
        },
        "status": {
            "uniqueID": "vm-42",
            "powerState": "PoweredOn",
            "hardware": {"controllers": [{"type": "IDE", "busNumber": 0, "deviceKey": 200, "devices": [{"type": "CDROM", "unitNumber": 0}]}]},
            "volumes": [{"name": "disk-1", "type": "Classic", "diskUUID": "6000", "limit": "10Gi"}],
            "rootSnapshots": [{"name": "", "type": "Unmanaged"}],
            "network": {"primaryIP4": "10.0.0.21", "interfaces": [{"name": "eth0", "deviceKey": 4000, "vnumaNodeID": 1}]},
        },
    })
}

#[test]
fn an_object_comes_out_as_it_went_in() {
    let vm: VirtualMachine = serde_json::from_value(manifest()).unwrap();
    assert_eq!(serde_json::to_value(&vm).unwrap(), manifest());
    assert_eq!(vm.spec.power_state, Some(PowerState::PoweredOn));
    assert_eq!(vm.namespaced_name(), "team-a/web-0");
    let interface = &vm.spec.network.as_ref().unwrap().interfaces[0];
    assert_eq!((interface.gateway4(), interface.gateway6()), (Some("10.0.0.1"), None));
    assert_eq!(interface.device_name(), "eth0");
    assert_eq!(vm.spec.volumes[0].claim_name(), Some("web-0-data"));
    assert!(!vm.spec.volumes[0].is_removable());
}

#[test]
fn an_object_without_a_spec_can_be_read() {
    let vm: VirtualMachine = serde_json::from_value(json!({"metadata": {"name": "x"}})).unwrap();
    assert_eq!(vm, VirtualMachine::new("x", VirtualMachineSpec::default()));
}

#[test]
fn what_a_vm_waits_for() {
    let mut vm: VirtualMachine = serde_json::from_value(manifest()).unwrap();
    assert!(!vm.is_created() && !vm.waits_for_power_state() && !vm.waits_for_address());
    assert!(vm.waits_for_disk_promotion());
    let now = jiff::Timestamp::UNIX_EPOCH;
    mark_true(&mut vm.status_mut().conditions, ConditionType::Created, now);
    mark_true(&mut vm.status_mut().conditions, ConditionType::DiskPromotionSynced, now);
    assert!(vm.is_created() && !vm.waits_for_disk_promotion());
    vm.status_mut().network = None;
    assert!(vm.waits_for_address());
    vm.spec.network = None;
    assert!(!vm.waits_for_address(), "no card was ever seen");
    vm.spec.power_state = Some(PowerState::PoweredOff);
    assert!(vm.is_powering_off());
    vm.spec.power_state = None;
    assert!(vm.waits_for_power_state());
}

#[test]
fn marks_on_the_object_are_found() {
    let mut vm = VirtualMachine::default();
    assert!(!vm.is_paused_by_annotation() && !vm.skips_platform_delete() && !vm.is_cluster_node());
    let annotations = vm.metadata.annotations.get_or_insert_default();
    for key in [
        annotation::PAUSED,
        annotation::SKIP_DELETE_PLATFORM_RESOURCE,
        "poweron.check.vmoperator.vmware.com/backup",
        "delete.check.vmoperator.vmware.com/audit",
    ] {
        annotations.insert(key.to_owned(), String::new());
    }
    let labels = vm.metadata.labels.get_or_insert_default();
    labels.insert(label::CLUSTER_ROLES[1].to_owned(), "worker".to_owned());
    vm.metadata.finalizers = Some(vec![finalizer::DEPRECATED_VM.to_owned()]);
    assert!(vm.is_paused_by_annotation() && vm.skips_platform_delete() && vm.is_cluster_node());
    assert_eq!((vm.power_on_checks(), vm.delete_checks()), (vec!["backup"], vec!["audit"]));
    assert!(!vm.has_finalizer() && vm.has_deprecated_finalizer());
    assert!(vm.is_classless());
    assert_eq!(PauseState::new(true, true).label(), Some("both"));
    assert_eq!(PauseState::new(false, false).label(), None);
}

#[test]
fn a_guest_is_known_by_its_id() {
    for (id, family) in [
        ("ubuntu64Guest", GuestFamily::Linux),
        ("vmwarePhoton64Guest", GuestFamily::Linux),
        ("rhel9_64Guest", GuestFamily::Linux),
        ("other5xLinux64Guest", GuestFamily::Linux),
        ("windows2022srvNext_64Guest", GuestFamily::Windows),
        ("winNetEnterprise64Guest", GuestFamily::Windows),
        ("darwin23_64Guest", GuestFamily::Other),
        ("otherGuest", GuestFamily::Other),
        ("", GuestFamily::Other),
    ] {
        assert_eq!(GuestFamily::of(id), family, "{id}");
    }
}

#[test]
fn devices_sit_where_their_controllers_have_room() {
    let scsi = ScsiType::ParaVirtual;
    assert!(ControllerType::Ide.has_unit(1, scsi) && !ControllerType::Ide.has_unit(2, scsi));
    assert!(ControllerType::Scsi.has_unit(64, scsi) && !ControllerType::Scsi.has_unit(7, scsi));
    assert!(!ControllerType::Scsi.has_unit(16, ScsiType::LsiLogic));
    assert!(ControllerType::Sata.has_unit(29, scsi) && !ControllerType::Sata.has_unit(30, scsi));
    assert_eq!(ControllerType::Ide.max_controllers(), 2);
}
