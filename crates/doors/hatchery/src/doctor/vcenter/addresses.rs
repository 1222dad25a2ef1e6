//! The address range against what is in use.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use super::facts::Machine;
use super::wish::Wish;
use roost_doctor::{Fact, Finding};

const CHECK: &str = "addresses";
/// Enough to see what it is about.
const SHOWN: usize = 5;

pub(super) fn judge(wish: &Wish, machines: &Fact<Vec<Machine>>) -> Finding {
    if wish.addresses.is_dhcp() {
        return Finding::pass(CHECK, "no range is given: VMs ask a DHCP server");
    }
    match machines {
        Fact::Known(machines) => of(wish, machines),
        Fact::Failed(_) | Fact::Unanswered(_) => {
            Finding::skip(CHECK, "it is not known which VMs there are")
        }
        Fact::Skipped(why) => Finding::skip(CHECK, why),
    }
}

fn of(wish: &Wish, machines: &[Machine]) -> Finding {
    let mut holders: BTreeMap<Ipv4Addr, Vec<&Machine>> = BTreeMap::new();
    for machine in machines {
        for address in &machine.addresses {
            if let IpAddr::V4(address) = address
                && wish.addresses.contains(*address)
            {
                holders.entry(*address).or_default().push(machine);
            }
        }
    }
    let total = wish.addresses.total();
    let free = total - holders.len() as u64;
    let is_own = |machine: &&&Machine| machine.is_of(&wish.hatchery);
    let twice = told(&holders, |by| by.len() > 1);
    if !twice.is_empty() {
        return Finding::fail(CHECK, "two VMs have the same address of the range")
            .details(shown(twice))
            .advice("power one of each off and find out who gave it the address; another hatchery must have another range");
    }
    let foreign = told(&holders, |by| !by.iter().any(|machine| is_own(&machine)));
    let ours = holders.len() - foreign.len();
    let usable = total - foreign.len() as u64;
    let counted = format!(
        "{total} in the range, {ours} used by this hatchery, {} by others, {free} free",
        foreign.len()
    );
    let wider = "widen iprange or networks, or give those VMs other addresses";
    if usable == 0 || free == 0 && ours == 0 {
        return Finding::fail(CHECK, format!("{counted}: no worker can have one"))
            .details(shown(foreign))
            .advice(wider);
    }
    if let Some(most) = wish.most_vms().filter(|most| *most > usable) {
        return Finding::warn(CHECK, format!("{counted}: maxWorker and spares may be {most} VMs, and {usable} can have one"))
            .details(shown(foreign))
            .advice("widen iprange or networks, or lower maxWorker: workers beyond that wait for an address");
    }
    if !foreign.is_empty() {
        return Finding::warn(CHECK, format!("{counted}: the range is not this hatchery's alone"))
            .details(shown(foreign))
            .advice("those are left alone, but whoever gave them may give more: keep the range to this hatchery, out of DHCP");
    }
    Finding::pass(CHECK, counted)
}

fn told(
    holders: &BTreeMap<Ipv4Addr, Vec<&Machine>>,
    is_meant: impl Fn(&[&Machine]) -> bool,
) -> Vec<String> {
    let meant = holders.iter().filter(|(_, by)| is_meant(by));
    let words = meant.map(|(address, by)| {
        let names: Vec<&str> = by.iter().map(|machine| machine.name.as_str()).collect();
        format!("{address}: {}", names.join(", "))
    });
    words.collect()
}

fn shown(mut all: Vec<String>) -> Vec<String> {
    if all.len() > SHOWN {
        let more = all.len() - SHOWN;
        all.truncate(SHOWN);
        all.push(format!("and {more} more"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::wish::tests::wish;
    use super::*;
    use roost_doctor::Verdict;

    fn machine(name: &str, owner: &str, last: u8) -> Machine {
        Machine {
            name: name.into(),
            owner: Some(owner.into()),
            addresses: vec![IpAddr::from([10, 0, 0, last])],
            ..Machine::default()
        }
    }

    /// 10.0.0.10 to 14 are to be given: 8 is the network, 9 the gateway, 15 the broadcast.
    #[test]
    fn a_range_is_measured_by_who_uses_it() {
        let own = || machine("w1", "roost", 10);
        let other = |last| machine("db", "", last);
        for (case, machines, wanted) in [
            ("nobody", vec![], Verdict::Pass),
            ("own only", vec![own()], Verdict::Pass),
            ("outside", vec![other(9), other(20)], Verdict::Pass),
            ("a stranger", vec![own(), other(11)], Verdict::Warn),
            ("too few left", vec![other(10), other(11), other(12)], Verdict::Warn),
            ("none left", (10..15).map(other).collect(), Verdict::Fail),
            ("twice", vec![own(), other(10)], Verdict::Fail),
        ] {
            let finding = of(&wish(), &machines);
            assert_eq!(finding.verdict, wanted, "{case}: {finding:?}");
        }
        let stranger = of(&wish(), &[other(11)]);
        assert_eq!(stranger.details, ["10.0.0.11: db"]);
        assert_eq!(
            stranger.found.split(':').next(),
            Some("5 in the range, 0 used by this hatchery, 1 by others, 4 free")
        );
    }

    #[test]
    fn without_a_range_there_is_nothing_to_use_up() {
        let wish = Wish { addresses: roost_fleet::AddressPlan::default(), ..wish() };
        let unknown = Fact::Skipped("not logged in".into());
        assert_eq!(judge(&wish, &unknown).verdict, Verdict::Pass);
    }
}
