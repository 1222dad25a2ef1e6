//! Whether the datastore has room for as many VMs as there may be.

use super::facts::{Datastore, Facts, Template};
use super::wish::Wish;
use roost_doctor::Finding;

const CHECK: &str = "space";

pub(super) fn judge(wish: &Wish, facts: &Facts) -> Finding {
    let Some(datastore) = facts.datastore.known() else {
        return Finding::skip(CHECK, "the datastore is not known");
    };
    let templates: Vec<&Template> =
        facts.templates.iter().filter_map(|(_, template)| template.known()).collect();
    let own = facts.machines.known().map_or(0, |machines| {
        machines.iter().filter(|vm| vm.is_of(&wish.hatchery) && !vm.is_template).count()
    });
    of(wish, datastore, &templates, own as u64)
}

/// `own` are VMs of ours that have their place already.
fn of(wish: &Wish, datastore: &Datastore, templates: &[&Template], own: u64) -> Finding {
    let free = datastore.free_gb;
    let Some(least) = templates.iter().map(|template| first_gb(template)).min() else {
        return Finding::skip(
            CHECK,
            format!("{free} GB are free; no template says how much a VM needs"),
        );
    };
    let advice = "free some of it, or choose another datastoreString";
    if free < least {
        return Finding::fail(CHECK, format!("{free} GB are free, and one more VM needs {least}"))
            .advice(advice);
    }
    let most = templates.iter().map(|template| most_gb(wish, template)).max().unwrap_or_default();
    let Some(vms) = wish.most_vms().map(|vms| vms.saturating_sub(own)) else {
        return Finding::pass(
            CHECK,
            format!("{free} GB are free; a VM takes up to {most}, and maxWorker sets no limit"),
        );
    };
    let all = vms * most;
    let shared = templates.iter().any(|template| template.is_shareable);
    if free < all {
        let less = if shared { "; clones that share a disk take less" } else { "" };
        return Finding::warn(CHECK, format!("{free} GB are free; {vms} more VMs (maxWorker and spares) of up to {most} GB may take {all}{less}"))
            .advice(advice);
    }
    Finding::pass(
        CHECK,
        format!("{free} GB are free; {vms} more VMs (maxWorker and spares) take up to {all}"),
    )
}

/// What a clone takes at once: a copy of the disk unless it is shared, and a swap file as large as its memory.
fn first_gb(template: &Template) -> u64 {
    let disk = if template.is_shareable { 0 } else { template.disk_gb };
    disk + template.memory_mb.div_ceil(1024)
}

/// What a VM takes when its disk is full, in its largest flavor.
fn most_gb(wish: &Wish, template: &Template) -> u64 {
    let flavors = || wish.flavors.iter();
    let disk = flavors().filter_map(|flavor| flavor.disk_gb).max().unwrap_or_default();
    let memory = flavors().filter_map(|flavor| flavor.memory_mb).max().unwrap_or_default();
    disk.max(template.disk_gb) + memory.max(template.memory_mb).div_ceil(1024)
}

#[cfg(test)]
mod tests {
    use roost_vim::wire::{MoRef, MoType};

    use super::super::facts::Place;
    use super::super::template::tests::template;
    use super::super::wish::tests::wish;
    use super::*;
    use roost_doctor::Verdict;

    fn datastore(free_gb: u64) -> Datastore {
        Datastore {
            place: Place {
                path: "/DC0/datastore/ds1".into(),
                object: MoRef::new(MoType::Datastore, "d"),
            },
            is_at_pool: None,
            is_accessible: true,
            maintenance: None,
            capacity_gb: 1000,
            free_gb,
        }
    }

    #[test]
    fn space_is_measured_by_what_all_vms_may_take() {
        // Three VMs of 10 GB disk and 1 GB swap.
        let (shared, copied) = (template(), Template { is_shareable: false, ..template() });
        for (free, template, own, wanted) in [
            (33, &shared, 0, Verdict::Pass),
            (32, &shared, 0, Verdict::Warn),
            (22, &shared, 1, Verdict::Pass),
            (1, &shared, 0, Verdict::Warn),
            (0, &shared, 0, Verdict::Fail),
            (11, &copied, 0, Verdict::Warn),
            (10, &copied, 0, Verdict::Fail),
        ] {
            let finding = of(&wish(), &datastore(free), &[template], own);
            assert_eq!(finding.verdict, wanted, "{free}: {finding:?}");
        }
        let unlimited = Wish { max_workers: None, ..wish() };
        assert_eq!(of(&unlimited, &datastore(5), &[&shared], 0).verdict, Verdict::Pass);
        assert_eq!(of(&wish(), &datastore(5), &[], 0).verdict, Verdict::Skip);
    }
}
