//! Where VMs go: datacenter, folder, datastore, network.

use super::facts::{Datastore, Facts, Network};
use roost_doctor::Finding;

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let advice = "correct hatchery.vsphere.datacenterString; a datacenter that the user may not see is not there for it";
    let datacenter = facts
        .datacenter
        .judge("datacenter", advice, |place| Finding::pass("datacenter", &place.path));
    let folder = facts.folder.judge("folder", "correct hatchery.vsphere.folderString", |place| {
        Finding::pass("folder", &place.path)
    });
    let datastore =
        facts.datastore.judge("datastore", "correct hatchery.vsphere.datastoreString", datastore);
    let network = facts.network.judge("network", "correct hatchery.vsphere.networkString", network);
    vec![datacenter, folder, datastore, network]
}

fn datastore(datastore: &Datastore) -> Finding {
    let (check, path) = ("datastore", &datastore.place.path);
    if !datastore.is_accessible {
        return Finding::fail(check, format!("{path} is not accessible"))
            .advice("see in the vCenter which hosts have lost it");
    }
    if datastore.is_at_pool == Some(false) {
        return Finding::fail(check, format!("no host of the resource pool has {path}"))
            .advice("mount it there, or choose another datastoreString or resourcePoolString");
    }
    if let Some(mode) = &datastore.maintenance {
        return Finding::fail(check, format!("{path} is in maintenance ({mode})"))
            .advice("clones are refused until it is over; choose another datastoreString");
    }
    let (free, capacity) = (datastore.free_gb, datastore.capacity_gb);
    Finding::pass(check, format!("{path}, {free} of {capacity} GB free"))
}

fn network(network: &Network) -> Finding {
    let (check, path) = ("network", &network.place.path);
    if network.is_at_pool == Some(false) {
        return Finding::fail(check, format!("no host of the resource pool has {path}"))
            .advice("connect them, or choose another networkString or resourcePoolString");
    }
    if network.is_accessible == Some(false) {
        return Finding::fail(check, format!("{path} is not accessible"))
            .advice("see in the vCenter which hosts have lost it");
    }
    Finding::pass(check, format!("{path}, {}", network.kind))
}

#[cfg(test)]
mod tests {
    use roost_vim::wire::{MoRef, MoType};

    use super::super::facts::Place;
    use super::*;
    use roost_doctor::Verdict;

    #[test]
    fn a_datastore_or_network_that_no_host_has_is_a_failure() {
        let place = |kind, path: &str| Place { path: path.into(), object: MoRef::new(kind, "x-1") };
        let good = Datastore {
            place: place(MoType::Datastore, "/DC0/datastore/ds1"),
            is_at_pool: Some(true),
            is_accessible: true,
            maintenance: None,
            capacity_gb: 100,
            free_gb: 40,
        };
        assert_eq!(datastore(&good).verdict, Verdict::Pass);
        for bad in [
            Datastore { is_at_pool: Some(false), ..good.clone() },
            Datastore { is_accessible: false, ..good.clone() },
            Datastore { maintenance: Some("inMaintenance".into()), ..good.clone() },
        ] {
            assert_eq!(datastore(&bad).verdict, Verdict::Fail, "{bad:?}");
        }
        let good = Network {
            place: place(MoType::Network, "/DC0/network/VM Network"),
            is_at_pool: None,
            kind: "standard",
            is_accessible: None,
        };
        assert_eq!(network(&good).verdict, Verdict::Pass);
        assert_eq!(network(&Network { is_at_pool: Some(false), ..good }).verdict, Verdict::Fail);
    }
}
