use serde_json::{Value, json};

use super::*;

/// Each case: the new object, then what is refused, or nothing.
#[test]
fn rules_of_new_objects() {
    let spec = |fields: Value| json!({"spec": fields});
    let interface = |fields: Value| {
        let mut interface = json!({"name": "eth0", "network": {"name": "n"}});
        merge(&mut interface, fields);
        json!({"spec": {"network": {"interfaces": [interface]}}})
    };
    let windows = |fields: Value| {
        let mut inline = json!({"userData": {"fullName": "a", "orgName": "b"}});
        merge(&mut inline, fields);
        json!({"spec": {"bootstrap": {"sysprep": {"sysprep": inline}}}})
    };
    let cases: Vec<(Value, &[&str])> = vec![
        (json!({}), &[]),
        (spec(json!({"image": {"kind": "Pod"}})), &["spec.image.kind: must be one of"]),
        (spec(json!({"image": null, "imageName": null})), &["spec.image: is required"]),
        (spec(json!({"className": null})), &["spec.className: is required"]),
        (
            spec(
                json!({"className": null, "class": {"apiVersion": "v", "kind": "k", "name": "n"}}),
            ),
            &[],
        ),
        (spec(json!({"powerState": "Suspended"})), &["spec.powerState: cannot set a new VM's"]),
        (
            spec(json!({"nextRestartTime": "now"})),
            &["spec.nextRestartTime: cannot restart VM on create"],
        ),
        (
            spec(json!({"currentSnapshotName": "s"})),
            &["spec.currentSnapshotName: cannot be set on create"],
        ),
        (
            spec(json!({"minHardwareVersion": 99})),
            &["spec.minHardwareVersion: must be from 13 to 22"],
        ),
        (spec(json!({"affinity": {}})), &["spec.affinity: needs spec.groupName"]),
        (spec(json!({"affinity": {}, "groupName": "g"})), &[]),
        (
            spec(json!({"advanced": {"bootDiskCapacity": "1500k"}})),
            &["spec.advanced.bootDiskCapacity: must be a multiple"],
        ),
        (spec(json!({"advanced": {"bootDiskCapacity": "20Gi"}})), &[]),
        (
            spec(
                json!({"hardware": {"cdrom": [{"name": "cd1", "image": {"kind": "k", "name": "n"}}]}}),
            ),
            &["spec.guestID: is required"],
        ),
        (
            spec(json!({"guestID": "otherGuest", "hardware": {"cdrom": [
                {"name": "cd1", "image": {"kind": "k", "name": "n"}}, {"name": "cd2", "image": {"kind": "k", "name": "n"}},
            ]}})),
            &["spec.hardware.cdrom[1].image: is used by another"],
        ),
        // Bootstrap
        (
            spec(json!({"bootstrap": {"cloudInit": {}, "vAppConfig": {}}})),
            &["CloudInit may not be used with vAppConfig"],
        ),
        (
            spec(json!({"bootstrap": {"linuxPrep": {}, "sysprep": {"rawSysprep": {"name": "s"}}}})),
            &["LinuxPrep may not be used with sysprep"],
        ),
        (spec(json!({"bootstrap": {"linuxPrep": {}, "vAppConfig": {}}})), &[]),
        (
            spec(
                json!({"bootstrap": {"cloudInit": {"cloudConfig": {}, "rawCloudConfig": {"name": "s", "key": "k"}}}}),
            ),
            &["cloudConfig and rawCloudConfig are mutually exclusive"],
        ),
        (
            spec(json!({"bootstrap": {"sysprep": {}}})),
            &["either sysprep or rawSysprep must be provided"],
        ),
        (windows(json!({})), &[]),
        (
            windows(json!({"guiUnattended": {"autoLogon": true}})),
            &[
                "guiUnattended.autoLogonCount: autoLogon needs it",
                "guiUnattended.password: autoLogon needs it",
            ],
        ),
        (
            windows(json!({"identification": {"domainAdmin": "a"}})),
            &["spec.network.domainName: joining", "identification.domainAdminPassword: joining"],
        ),
        (
            windows(json!({"identification": {"domainAdmin": "a", "joinWorkgroup": "w"}})),
            &["joinWorkgroup and a domain are mutually exclusive"],
        ),
        (
            spec(
                json!({"bootstrap": {"vAppConfig": {"rawProperties": "s", "properties": [{"key": ""}]}}}),
            ),
            &[
                "properties and rawProperties are mutually exclusive",
                "properties[0].key: is required",
            ],
        ),
        (
            spec(
                json!({"bootstrap": {"vAppConfig": {"properties": [{"key": "k", "value": {"value": "v", "from": {"name": "s"}}}]}}}),
            ),
            &["properties[0].value: from and value are mutually exclusive"],
        ),
        // Network
        (
            spec(json!({"network": {"nameservers": ["dns"]}})),
            &["spec.network.nameservers[0]: must be an IPv4 or IPv6"],
        ),
        (
            spec(
                json!({"network": {"nameservers": ["10.0.0.2"]}, "bootstrap": {"vAppConfig": {}}}),
            ),
            &["spec.network.nameservers: needs LinuxPrep"],
        ),
        (
            spec(
                json!({"network": {"searchDomains": ["x"]}, "bootstrap": {"cloudInit": {"useGlobalSearchDomainsAsDefault": false}}}),
            ),
            &["spec.network.searchDomains: needs LinuxPrep"],
        ),
        (
            spec(json!({"network": {"nameservers": ["10.0.0.2"]}, "bootstrap": {"cloudInit": {}}})),
            &[],
        ),
        (
            interface(
                json!({"guestDeviceName": "ens1", "mtu": 9000, "routes": [], "searchDomains": ["x"]}),
            ),
            &["guestDeviceName: is available only with CloudInit", "mtu: is", "searchDomains: is"],
        ),
        (
            interface(json!({"nameservers": ["10.0.0.2"]})),
            &["nameservers: is available only with CloudInit and Sysprep"],
        ),
        (
            interface(json!({"addresses": ["10.0.0.2"]})),
            &["addresses[0]: must be an address with a prefix"],
        ),
        (
            interface(json!({"addresses": ["10.0.0.2/33"]})),
            &["addresses[0]: must be an address with a prefix"],
        ),
        (
            interface(json!({"addresses": ["10.0.0.2/24"], "dhcp4": true})),
            &["addresses[0]: goes with dhcp4 false"],
        ),
        (interface(json!({"addresses": ["10.0.0.2/24"], "dhcp6": true})), &[]),
        (interface(json!({"gateway4": "10.0.0.1"})), &["gateway4: needs an address of its family"]),
        (interface(json!({"gateway4": "None"})), &[]),
        (
            interface(json!({"addresses": ["10.0.0.2/24"], "gateway4": "fd00::1"})),
            &["gateway4: must be an IPv4 address"],
        ),
        (
            spec(json!({"network": {"hostName": "a_b"}})),
            &["spec.network.hostName: is no RFC 1123 label"],
        ),
        (
            spec(
                json!({"guestID": "windows2022srvNext_64Guest", "network": {"hostName": "longer-than-fifteen"}}),
            ),
            &["Windows has host names of at most 15"],
        ),
        (
            spec(json!({"network": {"hostName": "10.0.0.2", "domainName": "x"}})),
            &["an address as host name goes with no domain"],
        ),
        (
            spec(json!({"network": {"domainName": "a..b"}})),
            &["spec.network.domainName: is no domain name"],
        ),
        // Volumes
        (
            spec(json!({"volumes": [
                {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
                {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
            ]})),
            &[
                "spec.volumes[1].name: is used",
                "spec.volumes[1].persistentVolumeClaim.claimName: is used",
            ],
        ),
        (
            spec(json!({"volumes": [{"name": "A"}]})),
            &["spec.volumes[0].name: web-0-A is no name", "persistentVolumeClaim: is required"],
        ),
        (
            spec(
                json!({"volumes": [{"name": "a", "controllerType": "SCSI", "controllerBusNumber": 4, "unitNumber": 7,
                "persistentVolumeClaim": {"claimName": "c"}}]}),
            ),
            &[
                "controllerBusNumber: SCSI has the buses 0 to 3",
                "unitNumber: SCSI has no such unit",
            ],
        ),
        // The rest
        (
            spec(json!({"readinessProbe": {"tcpSocket": {"port": 22}, "guestHeartbeat": {}}})),
            &["spec.readinessProbe: exactly one"],
        ),
        (spec(json!({"readinessProbe": {"tcpSocket": {"port": 22}}})), &[]),
        (
            spec(json!({"bootOptions": {"bootRetryDelay": "5s"}})),
            &["bootRetryDelay: needs bootRetry Enabled"],
        ),
        (
            spec(json!({"bootOptions": {"efiSecureBoot": "Enabled"}})),
            &["efiSecureBoot: needs firmware efi"],
        ),
        (spec(json!({"bootOptions": {"bootDelay": "soon"}})), &["bootDelay: soon is no duration"]),
        (
            spec(
                json!({"bootOptions": {"bootOrder": [{"type": "Network", "name": "eth9"}, {"type": "Network", "name": "eth0"}]}}),
            ),
            &["bootOrder[0].name: there is no Network eth9"],
        ),
    ];
    for (patch, expected) in cases {
        assert_refused(&problems(patch.clone(), None, Rights::Ordinary), expected, &patch);
    }
}
