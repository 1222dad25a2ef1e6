use serde_json::json;

use super::super::network::DnsDefaults;
use super::super::tests::{secrets, vm};
use super::*;

fn web() -> VirtualMachine {
    vm(json!({
        "network": {
            "hostName": "web-0", "domainName": "lab.example", "nameservers": ["10.0.0.2"], "searchDomains": ["lab.example"],
            "interfaces": [{
                "name": "eth0", "addresses": ["10.0.0.21/24"], "gateway4": "10.0.0.1", "mtu": 1500,
                "routes": [{"to": "10.9.0.0/16", "via": "10.0.0.254", "metric": 10}],
            }],
            "vlans": [{"name": "eth0.5", "id": 5, "link": "eth0"}],
        },
        "bootstrap": {"cloudInit": {
            "instanceID": "i-1",
            "sshAuthorizedKeys": ["ssh-ed25519 AAAA one", "ssh-ed25519 BBBB two"],
            "waitOnNetwork4": true,
            "cloudConfig": {
                "timezone": "UTC",
                "defaultUserEnabled": true,
                "ssh_pwauth": false,
                "users": [{"name": "ops", "sudo": "ALL=(ALL) NOPASSWD:ALL", "passwd": {"name": "boot", "key": "pw"}}],
                "write_files": [
                    {"path": "/etc/motd", "content": "hello", "permissions": "0644"},
                    {"path": "/etc/token", "content": {"name": "boot", "key": "token"}},
                ],
                "runcmd": ["systemctl enable nginx", ["sh", "-c", "echo done"]],
            },
        }},
    }))
}

fn network() -> GuestNetwork {
    GuestNetwork::of(&web(), &["00:50:56:AA:BB:CC".to_owned()], &DnsDefaults::default())
}

fn read(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

#[test]
fn the_metadata_says_who_the_guest_is_and_where() {
    let none = secrets(&[]);
    let text = metadata(&web(), &network(), &none, GatewayForm::Legacy);
    let expected = json!({
        "instance-id": "i-1",
        "local-hostname": "web-0.lab.example",
        "hostname": "web-0.lab.example",
        "public-keys": "ssh-ed25519 AAAA one\nssh-ed25519 BBBB two",
        "wait-on-network": {"ipv4": true, "ipv6": false},
        "network": {
            "version": 2,
            "ethernets": {"eth0": {
                "match": {"macaddress": "00:50:56:aa:bb:cc"},
                "set-name": "eth0",
                "dhcp4": false, "dhcp6": false, "accept-ra": false,
                "addresses": ["10.0.0.21/24"],
                "gateway4": "10.0.0.1",
                "mtu": 1500,
                "nameservers": {"addresses": ["10.0.0.2"], "search": ["lab.example"]},
                "routes": [{"to": "10.9.0.0/16", "via": "10.0.0.254", "metric": 10}],
            }},
            "vlans": {"eth0.5": {"id": 5, "link": "eth0", "dhcp4": false, "dhcp6": false, "accept-ra": false}},
        },
    });
    assert_eq!(read(&text), expected, "{text}");
    assert_eq!(text, metadata(&web(), &network(), &none, GatewayForm::Legacy));

    let modern = read(&metadata(&web(), &network(), &none, GatewayForm::Routes));
    let card = &modern["network"]["ethernets"]["eth0"];
    assert_eq!(card["routes"][0], json!({"to": "0.0.0.0/0", "via": "10.0.0.1"}));
    assert_eq!(card.get("gateway4"), None);
}

#[test]
fn the_instance_id_falls_back_to_the_object() {
    let none = secrets(&[]);
    let id = |vm: &VirtualMachine| {
        read(&metadata(vm, &network(), &none, GatewayForm::Routes))["instance-id"].clone()
    };
    assert_eq!(id(&vm(json!({"bootstrap": {"cloudInit": {}}}))), "uid-1");
    let mut once = web();
    let annotations = once.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::CLOUD_INIT_INSTANCE_ID.to_owned(), "again".to_owned());
    assert_eq!(id(&once), "again");
}

#[test]
fn inline_userdata_has_its_secrets() {
    let all = secrets(&[("boot", "pw", "secret: word"), ("boot", "token", "t0ken")]);
    let text = userdata(&web(), &all).unwrap().unwrap();
    assert!(text.starts_with("## template: jinja\n#cloud-config\n"), "{text}");
    let expected = json!({
        "timezone": "UTC",
        "ssh_pwauth": false,
        "users": ["default", {"name": "ops", "sudo": "ALL=(ALL) NOPASSWD:ALL", "passwd": "secret: word"}],
        "write_files": [
            {"path": "/etc/motd", "content": "hello", "permissions": "0644"},
            {"path": "/etc/token", "content": "t0ken"},
        ],
        "runcmd": ["systemctl enable nginx", ["sh", "-c", "echo done"]],
    });
    assert_eq!(read(&text), expected, "{text}");
    let error = userdata(&web(), &secrets(&[])).unwrap_err();
    assert_eq!(error.to_string(), "there is no Secret boot");
    assert_eq!(
        userdata(&vm(json!({"bootstrap": {"cloudInit": {"cloudConfig": {}}}})), &all),
        Ok(None)
    );
    let odd = vm(
        json!({"bootstrap": {"cloudInit": {"cloudConfig": {"write_files": [{"path": "/x", "content": 5}]}}}}),
    );
    assert_eq!(userdata(&odd, &all), Err(BootstrapError::FileContent { path: "/x".into() }));
}

#[test]
fn raw_userdata_is_unpacked_and_found_under_the_usual_keys() {
    let raw = vm(
        json!({"bootstrap": {"cloudInit": {"rawCloudConfig": {"name": "boot", "key": "mine"}}}}),
    );
    let text = "#cloud-config\nhostname: x\n";
    let packed = encode(text);
    for all in [
        secrets(&[("boot", "mine", text)]),
        secrets(&[("boot", "mine", &packed)]),
        secrets(&[("boot", "user-data", text), ("boot", "value", "other")]),
        secrets(&[("boot", "mine", ""), ("boot", "value", text)]),
    ] {
        assert_eq!(userdata(&raw, &all).unwrap().as_deref(), Some(text));
    }
    let keyed = secrets(&[("boot", "mine", text), ("boot", "ssh-public-keys", "ssh-rsa CCCC")]);
    let found = read(&metadata(&raw, &network(), &keyed, GatewayForm::Routes));
    assert_eq!(found["public-keys"], "ssh-rsa CCCC");
}

#[test]
fn only_what_differs_is_sent() {
    let all = secrets(&[("boot", "pw", "x"), ("boot", "token", "y")]);
    let keys = cloud_init_keys(&web(), &network(), &all, GatewayForm::Routes).unwrap();
    assert_eq!(format!("{keys:?}"), "CloudInitKeys { .. }");
    let first = keys.differences(|_| None);
    let names: Vec<_> = first.iter().map(|(key, _)| *key).collect();
    let expected = [
        "guestinfo.metadata",
        "guestinfo.metadata.encoding",
        "guestinfo.userdata",
        "guestinfo.userdata.encoding",
    ];
    assert_eq!(names, expected);
    assert_eq!(decode(first[0].1.as_bytes()), keys.metadata().as_bytes());
    let written =
        |key: &str| first.iter().find(|(known, _)| *known == key).map(|(_, value)| value.as_str());
    assert_eq!(keys.differences(written), []);

    let without = CloudInitKeys { userdata: None, ..keys };
    let removed = without.differences(written);
    assert_eq!(
        removed,
        [("guestinfo.userdata", String::new()), ("guestinfo.userdata.encoding", String::new())]
    );
}
