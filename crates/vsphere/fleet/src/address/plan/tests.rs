use proptest::prelude::*;

use super::*;

#[test]
fn the_whole_address_space_is_no_special_case() {
    let plan = AddressPlan::of_range("0.0.0.0/0".parse().unwrap()).unwrap();
    assert_eq!(plan.total(), (1 << 32) - 2);
    assert_eq!(plan.address_of(0), Some([0, 0, 0, 1].into()));
    assert_eq!(plan.address_of(plan.total() - 1), Some([255, 255, 255, 254].into()));
    assert_eq!(plan.address_of(plan.total()), None);
}

proptest! {
    /// Against the plain way: list every address, drop what must not be given, drop repeats.
    #[test]
    fn the_plan_is_the_plain_list(
        ranges in prop::collection::vec((0..4_u8, any::<u8>(), 22..=32_u8), 1..6),
        gateway in any::<u8>(),
    ) {
        let nets: Vec<Ipv4Net> = ranges
            .iter()
            .map(|(c, d, prefix)| Ipv4Net::new([10, 0, *c, *d].into(), *prefix).unwrap())
            .collect();
        let gateway = Ipv4Addr::from([10, 0, 0, gateway]);
        let network = AddressRanges {
            at: "here".into(),
            ranges: nets.iter().map(Ipv4Net::trunc).collect(),
            gateway: Some(gateway),
            subnet_mask: [255, 255, 255, 0].into(),
        };

        let mut banned = std::collections::BTreeSet::from([gateway]);
        for net in &nets {
            let within = net.prefix_len().max(24);
            for part in net.subnets(within).unwrap() {
                let subnet = Ipv4Net::new(part.network(), 24).unwrap().trunc();
                banned.extend([subnet.network(), subnet.broadcast()]);
            }
            if net.prefix_len() < 31 {
                banned.extend([net.network(), net.broadcast()]);
            }
        }
        let mut wanted: Vec<Ipv4Addr> = Vec::new();
        for net in &nets {
            for bits in net.network().to_bits()..=net.broadcast().to_bits() {
                let address = Ipv4Addr::from_bits(bits);
                if !banned.contains(&address) && !wanted.contains(&address) {
                    wanted.push(address);
                }
            }
        }
        match AddressPlan::new(&[network], None) {
            Err(problems) => prop_assert!(wanted.is_empty(), "{problems:?}"),
            Ok(plan) => {
                prop_assert!(plan.iter().eq(wanted.iter().copied()));
                for (number, address) in wanted.iter().enumerate() {
                    prop_assert_eq!(plan.number_of(*address), Some(number as u64));
                    prop_assert_eq!(plan.address_of(number as u64), Some(*address));
                }
                prop_assert_eq!(plan.number_of(gateway), None);
            }
        }
    }
}
