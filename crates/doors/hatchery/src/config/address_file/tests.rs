use super::*;

fn legacy(iprange: &str) -> AddressFile {
    AddressFile { iprange: iprange.into(), ..AddressFile::default() }
}

fn network(iprange: &str, gateway: &str, subnet_mask: &str) -> NetworkFile {
    NetworkFile {
        iprange: iprange.into(),
        gateway: gateway.into(),
        subnet_mask: subnet_mask.into(),
    }
}

fn addresses(file: &AddressFile) -> Vec<String> {
    file.plan().unwrap().iter().map(|address| address.to_string()).collect()
}

fn problems(file: &AddressFile) -> Vec<String> {
    file.plan().unwrap_err().iter().map(Problem::to_string).collect()
}

#[test]
fn a_range_gives_its_addresses_without_network_and_broadcast() {
    for (iprange, wanted) in [
        ("10.0.0.8/30", &["10.0.0.9", "10.0.0.10"][..]),
        ("10.0.0.10/30", &["10.0.0.9", "10.0.0.10"]),
        ("10.0.0.8/31", &["10.0.0.8", "10.0.0.9"]),
        ("10.0.0.8/32", &["10.0.0.8"]),
        (" 10.0.0.8/32 , 10.0.0.4/32,, ", &["10.0.0.8", "10.0.0.4"]),
        ("10.0.0.8/31,10.0.0.8/31,10.0.0.9/32", &["10.0.0.8", "10.0.0.9"]),
        // The last address of the subnet is no host's, however the range is cut.
        ("10.0.0.254/31", &["10.0.0.254"]),
    ] {
        assert_eq!(addresses(&legacy(iprange)), wanted, "{iprange}");
    }
    assert!(legacy("").plan().unwrap().is_dhcp());
}

#[test]
fn gateways_and_the_name_server_are_never_given() {
    let file = AddressFile {
        gateway: "10.0.0.9".into(),
        dns: "10.0.0.12".into(),
        ..legacy("10.0.0.8/29")
    };
    assert_eq!(addresses(&file), ["10.0.0.10", "10.0.0.11", "10.0.0.13", "10.0.0.14"]);
    let file = AddressFile {
        networks: vec![
            network("10.0.0.8/30,10.0.1.1/32", "10.0.0.1", "255.255.255.0"),
            network("10.0.1.0/30", "10.0.1.2", "255.255.255.0"),
        ],
        ..AddressFile::default()
    };
    assert_eq!(
        addresses(&file),
        ["10.0.0.9", "10.0.0.10", "10.0.1.1"],
        "one from a sibling's range"
    );
}

#[test]
fn each_address_knows_its_network() {
    let file = AddressFile {
        iprange: "192.168.0.0/24".into(),
        dns: "1.1.1.1".into(),
        networks: vec![
            network("10.0.1.0/30", "10.0.1.254", "255.255.255.0"),
            network("10.0.0.0/30", "10.0.0.62", "255.255.255.192"),
        ],
        ..AddressFile::default()
    };
    let plan = file.plan().unwrap();
    assert!(
        plan.iter()
            .eq([[10, 0, 1, 1], [10, 0, 1, 2], [10, 0, 0, 1], [10, 0, 0, 2]].map(Ipv4Addr::from))
    );
    let of = plan.network_of([10, 0, 0, 2].into()).unwrap();
    assert_eq!(of.gateway, Some([10, 0, 0, 62].into()));
    assert_eq!(of.subnet_mask, Ipv4Addr::new(255, 255, 255, 192));
    assert_eq!(of.dns, Some([1, 1, 1, 1].into()));
    assert_eq!(plan.network_of([192, 168, 0, 1].into()), None, "the lone range is not used");
    assert_eq!(plan.warnings()[0].path, "iprange");
}

#[test]
fn all_problems_are_told_at_once_by_path() {
    let file = AddressFile {
        dns: "dns.example".into(),
        networks: vec![
            network("10.0.0.5,fd00::/64,10.0.0.0/33", "10.0.0.256", "255.0.255.0"),
            network("", "", ""),
            network("10.9.0.0/30", "10.9.0.1", "255.255.255.0"),
            network("10.9.0.1/32", "10.9.0.1", "255.255.255.0"),
        ],
        ..AddressFile::default()
    };
    assert_eq!(
        problems(&file),
        [
            r#"dns: "dns.example" is not an IPv4 address"#,
            "networks[0].iprange: 10.0.0.5 has no prefix length; write 10.0.0.5/32",
            "networks[0].iprange: fd00::/64 is IPv6; only IPv4 ranges are given out",
            r#"networks[0].iprange: "10.0.0.0/33" is not a range such as 10.0.0.0/24"#,
            r#"networks[0].gateway: "10.0.0.256" is not an IPv4 address"#,
            "networks[0].subnetMask: 255.0.255.0 is not a subnet mask such as 255.255.255.0",
            "networks[1].iprange: is mandatory",
            "networks[1].gateway: is mandatory",
            "networks[1].subnetMask: is mandatory",
            "networks[3].iprange: holds no address that can be given to a VM",
        ]
    );
}

#[test]
fn what_is_odd_is_a_warning() {
    let file =
        AddressFile { gateway: "10.1.0.1".into(), ..legacy("10.0.0.0/24,10.0.0.8/30,10.2.0.0/23") };
    let plan = file.plan().unwrap();
    let warnings: Vec<_> = plan.warnings().iter().map(Problem::to_string).collect();
    assert_eq!(
        warnings,
        [
            "iprange: the gateway 10.1.0.1 is outside of 10.0.0.0/24",
            "iprange: the gateway 10.1.0.1 is outside of 10.2.0.0/24",
            "iprange: 10.2.0.0/23 is wider than its subnet mask 255.255.255.0",
            "iprange: 10.0.0.8/30 has addresses that stand earlier too"
        ]
    );
}
