//! Whether the resource pool has room for the workers.

use crate::flavor::Footprint;

use super::facts::{Facts, Pool, PoolRuntime};
use super::wish::Wish;
use roost_doctor::Finding;

const CHECK: &str = "pool";

pub(super) fn judge(wish: &Wish, facts: &Facts) -> Finding {
    let own_on = facts.machines.known().map_or(0, |machines| {
        machines.iter().filter(|vm| vm.is_of(&wish.hatchery) && !vm.is_template).count()
    });
    let advice = "correct hatchery.vsphere.resourcePoolString";
    facts.pool.judge(CHECK, advice, |pool| of(wish, pool, first_size(facts), own_on))
}

/// Of the first template that is known, for workers without a flavor.
fn first_size(facts: &Facts) -> Option<Footprint> {
    let first = facts.templates.iter().find_map(|(_, template)| template.known())?;
    Some(Footprint { cpus: first.cpus, memory_mb: first.memory_mb })
}

fn of(wish: &Wish, pool: &Pool, template: Option<Footprint>, own: usize) -> Finding {
    let path = &pool.place.path;
    let Some(runtime) = pool.runtime else {
        return Finding::warn(CHECK, format!("{path} does not tell what it has left")).advice(
            "only maxCpus and maxMemoryMB can hold workers back; give the user System.Read on it",
        );
    };
    let PoolRuntime { max_cpu_mhz, free_cpu_mhz, max_memory_mb, free_memory_mb, .. } = runtime;
    let has = format!(
        "{path}, {free_cpu_mhz} of {max_cpu_mhz} MHz and {free_memory_mb} of {max_memory_mb} MB not reserved"
    );
    if runtime.is_red {
        return Finding::warn(CHECK, format!("{has}; the vCenter shows it in red"))
            .advice("it promises more than it has; see its reservations in the vCenter");
    }
    if let Some(limit) = wish.limits.max_memory_mb.filter(|limit| *limit > max_memory_mb) {
        return Finding::warn(CHECK, format!("{has}; maxMemoryMB is {limit}, more than there is"))
            .advice("lower maxMemoryMB, or raise the limit of the pool: until then the pool is what holds workers back");
    }
    let Some(one) = wish.usual_footprint(template) else { return Finding::pass(CHECK, has) };
    let room = room_for(&runtime, one, wish.limits.mhz_per_cpu);
    if room == 0 {
        return Finding::fail(CHECK, format!("{has}; a worker of {one} does not fit")).advice(
            "raise the limit of the pool, free some of it, or choose another resourcePoolString",
        );
    }
    let missing = wish.max_workers.map(|workers| u64::from(workers).saturating_sub(own as u64));
    match missing {
        Some(missing) if missing > room => Finding::warn(
            CHECK,
            format!(
                "{has}; room for {room} more workers of {one}, maxWorker allows {missing} more"
            ),
        )
        .advice(
            "workers beyond that wait for room; lower maxWorker or raise the limit of the pool",
        ),
        _ => Finding::pass(CHECK, has),
    }
}

/// How many workers fit by what is not reserved, as the gates of the hatchery count.
fn room_for(runtime: &PoolRuntime, one: Footprint, mhz_per_cpu: Option<u64>) -> u64 {
    let by_memory = runtime.free_memory_mb.checked_div(one.memory_mb).unwrap_or(u64::MAX);
    let by_cpu = match mhz_per_cpu.map(|mhz| mhz * u64::from(one.cpus)) {
        Some(mhz) if mhz > 0 => runtime.free_cpu_mhz / mhz,
        _ if runtime.free_cpu_mhz == 0 => 0,
        _ => u64::MAX,
    };
    by_memory.min(by_cpu)
}

#[cfg(test)]
mod tests {
    use crate::config::ResourceLimits;
    use roost_vim::wire::{MoRef, MoType};

    use super::super::facts::Place;
    use super::super::wish::tests::wish;
    use super::*;
    use roost_doctor::Verdict;

    #[test]
    fn a_pool_is_measured_by_the_workers_that_it_is_for() {
        let one = Footprint { cpus: 2, memory_mb: 4096 };
        let pool = |free_memory_mb, free_cpu_mhz| Pool {
            place: Place {
                path: "/DC0/host/C/Resources".into(),
                object: MoRef::new(MoType::ResourcePool, "p"),
            },
            runtime: Some(PoolRuntime {
                max_cpu_mhz: 10_000,
                free_cpu_mhz,
                max_memory_mb: 65_536,
                free_memory_mb,
                is_red: false,
            }),
        };
        let mut wish = wish();
        for (memory, mhz, own, wanted) in [
            (16_384, 5000, 0, Verdict::Pass),
            (4096, 5000, 0, Verdict::Warn),
            (4096, 5000, 1, Verdict::Pass),
            (4095, 5000, 0, Verdict::Fail),
            (16_384, 0, 0, Verdict::Fail),
        ] {
            let finding = of(&wish, &pool(memory, mhz), Some(one), own);
            assert_eq!(finding.verdict, wanted, "{memory} {mhz} {own}: {finding:?}");
        }
        wish.limits = ResourceLimits { mhz_per_cpu: Some(3000), ..ResourceLimits::default() };
        assert_eq!(
            of(&wish, &pool(16_384, 5000), Some(one), 0).verdict,
            Verdict::Fail,
            "no 6000 MHz"
        );
        wish.limits = ResourceLimits { max_memory_mb: Some(99_999), ..ResourceLimits::default() };
        assert_eq!(of(&wish, &pool(16_384, 5000), Some(one), 0).verdict, Verdict::Warn);
        let silent = Pool { runtime: None, ..pool(0, 0) };
        assert_eq!(of(&wish, &silent, None, 0).verdict, Verdict::Warn);
    }
}
