use super::*;

#[test]
fn a_refusal_carries_every_gate_and_the_first_that_failed() {
    let mut ledger = ledger(Limits {
        cpus: Limit::At(16),
        reserve: Some(Reserve { count: 2, cpus: 2, memory_mb: 2048 }),
        ..quotas(Limit::At(3), Limit::At(1), Limit::Unlimited)
    });
    let _held = ledger.reserve(ask("a", 8), at(0)).unwrap();
    let refusal = ledger.reserve(ask("b", 8), at(0)).unwrap_err();
    assert_eq!(refusal.bound_by, LedgerGate::Quota(PENDING));
    let told: Vec<String> = refusal.gates.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "request: needs 1, 0 of 1 taken",
            "workers: needs 1, 1 of 3 taken",
            "pending: needs 1, 1 of 1 taken",
            "registering: needs 0, 0 of unlimited taken",
            "cpus: needs 8, 8 of 16 taken",
            "memory: needs 8192, 8192 of unlimited taken",
            "cpu-reserve: needs 12, 8 of 16 taken",
            "address: needs 1, 1 of 6 taken",
        ]
    );
    let failed: Vec<&str> =
        refusal.gates.iter().filter(|gate| !gate.passed).map(|gate| gate.name).collect();
    assert_eq!(failed, ["pending", "cpu-reserve"]);
    assert_eq!(refusal.to_string(), "pending: needs 1, 1 of 1 taken");
    assert_eq!(serde_json::to_value(&refusal).unwrap()["bound_by"], "pending");
}

#[test]
fn each_gate_binds_by_itself() {
    let open = Limits::default();
    let unlimited = |request: &str| ask(request, 4);
    let registering = |request: &str| {
        let amounts = Amounts::default().count(WORKERS, 1).count(REGISTERING, 1);
        Ask { amounts, ..ask(request, 0) }
    };
    for (case, limits, asked, wanted) in [
        (
            "workers",
            open.clone().quota(WORKERS, Limit::At(1)),
            unlimited("b"),
            LedgerGate::Quota(WORKERS),
        ),
        (
            "pending",
            open.clone().quota(PENDING, Limit::At(1)),
            unlimited("b"),
            LedgerGate::Quota(PENDING),
        ),
        ("cpus", Limits { cpus: Limit::At(7), ..open.clone() }, unlimited("b"), LedgerGate::Cpus),
        (
            "memory",
            Limits { memory_mb: Limit::At(8191), ..open.clone() },
            unlimited("b"),
            LedgerGate::Memory,
        ),
        (
            "registering",
            open.clone().quota(REGISTERING, Limit::At(0)),
            registering("b"),
            LedgerGate::Quota(REGISTERING),
        ),
        ("twice the same", open.clone(), unlimited("a"), LedgerGate::Request),
    ] {
        let mut ledger = ledger(limits);
        let _first = ledger.reserve(ask("a", 4), at(0)).unwrap();
        assert_eq!(bound(&mut ledger, asked, at(0)), wanted, "{case}");
    }
    let mut ledger = ledger(open);
    let held: Vec<_> =
        (0..6).map(|n| ledger.reserve(ask(&n.to_string(), 64), at(0)).unwrap()).collect();
    assert_eq!(ledger.taken(DOOR, at(0)).promised.cpus, 6 * 64, "no limit is no limit");
    drop(held);
}

#[test]
fn a_gate_of_which_nothing_is_needed_does_not_bind() {
    let mut ledger = ledger(Limits::default().quota(PENDING, Limit::At(1)));
    ledger.see(DOOR, &VmId::new("vm-1"), "w", holding("x", worker(1, 1).count(PENDING, 5)), at(0));
    let amounts = Amounts::default().count(WORKERS, 1).count(REGISTERING, 1);
    assert!(ledger.reserve(Ask { amounts, ..ask("r", 0) }, at(0)).is_ok());
}

#[test]
fn larger_machines_leave_room_for_small_ones() {
    let limits = Limits {
        cpus: Limit::At(16),
        memory_mb: Limit::At(20 * 1024),
        reserve: Some(Reserve { count: 2, cpus: 2, memory_mb: 2048 }),
        ..Limits::default()
    };
    let mut ledger = ledger(limits.clone());
    let _twelve = ledger.reserve(ask("a", 12), at(0)).unwrap();
    assert_eq!(bound(&mut ledger, ask("b", 3), at(0)), LedgerGate::CpuReserve);
    let _small = ledger.reserve(ask("c", 2), at(0)).unwrap();
    let _small = ledger.reserve(ask("d", 2), at(0)).unwrap();
    assert_eq!(bound(&mut ledger, ask("e", 1), at(0)), LedgerGate::Cpus, "the room is for use");

    // Few CPUs and much memory starve small ones as well.
    let mut ledger = ledger_of(&limits);
    let greedy = Ask { amounts: worker(1, 17 * 1024), ..ask("m", 1) };
    assert_eq!(bound(&mut ledger, greedy, at(0)), LedgerGate::MemoryReserve);

    // Without a limit of its own there is nothing to keep room in.
    let mut ledger =
        ledger_of(&Limits { cpus: Limit::Unlimited, memory_mb: Limit::Unlimited, ..limits });
    assert!(ledger.reserve(ask("a", 1_000), at(0)).is_ok());
}

fn ledger_of(limits: &Limits) -> Ledger {
    ledger(limits.clone())
}

#[test]
fn a_pool_is_asked_and_what_is_on_its_way_counts() {
    let pool = PoolId::new("resgroup-8");
    let within = |request: &str, cpus| Ask { pool: Some(pool.clone()), ..ask(request, cpus) };
    let mut ledger = ledger(Limits::default());
    let unknown = ledger.weigh(&within("a", 4), at(0));
    let gate = unknown.iter().find(|gate| gate.name == "pool-memory").unwrap();
    assert!(gate.passed);
    assert_eq!(gate.to_string(), "pool-memory: needs 4096, 0 of unknown taken");

    ledger.set_pool(&pool, Some(PoolRoom { cpu_mhz: 1, memory_mb: 10 * 1024 }));
    let mut first = ledger.reserve(within("a", 6), at(0)).unwrap();
    assert_eq!(bound(&mut ledger, within("b", 5), at(0)), LedgerGate::PoolMemory);

    // The VM runs; the pool's own account shows it a little later.
    let vm = VmId::new("vm-1");
    first.submitted();
    first.bind(&vm);
    ledger.see(DOOR, &vm, "vm-of-a", holding("a", worker(6, 6 * 1024)), at(1));
    assert_eq!(bound(&mut ledger, within("b", 5), at(2)), LedgerGate::PoolMemory);
    ledger.set_pool(&pool, Some(PoolRoom { cpu_mhz: 1, memory_mb: 5 * 1024 }));
    let second = ledger.reserve(within("b", 5), at(3)).unwrap();
    first.commit();
    second.release();

    ledger.set_pool(&pool, Some(PoolRoom { cpu_mhz: 0, memory_mb: 10 * 1024 }));
    assert_eq!(bound(&mut ledger, within("c", 1), at(4)), LedgerGate::PoolCpu);
    ledger.set_limits(DOOR, Limits { mhz_per_cpu: Some(2_000), ..Limits::default() });
    ledger.set_pool(&pool, Some(PoolRoom { cpu_mhz: 7_000, memory_mb: 10 * 1024 }));
    assert_eq!(bound(&mut ledger, within("c", 4), at(4)), LedgerGate::PoolCpu);
    assert!(ledger.reserve(within("c", 3), at(4)).is_ok());
}

#[test]
fn a_spare_has_one_taker_and_a_fresh_machine_is_the_other_way() {
    let spares = [VmId::new("vm-1"), VmId::new("vm-2")];
    let claim = |request: &str| Ask {
        machine: Machine::Spare { candidates: spares.to_vec() },
        ..ask(request, 1)
    };
    let either = |request: &str| Ask {
        machine: Machine::SpareOrFresh {
            candidates: spares.to_vec(),
            address: AddressNeed::FromPlan,
        },
        ..ask(request, 1)
    };
    let mut ledger = ledger(Limits::default());
    let first = ledger.reserve(claim("a"), at(0)).unwrap();
    let second = ledger.reserve(either("b"), at(0)).unwrap();
    assert_eq!((first.spare(), second.spare()), (Some(&spares[0]), Some(&spares[1])));
    assert!(first.address().is_none() && second.address().is_none(), "spares have their own");
    let refusal = ledger.reserve(claim("c"), at(0)).unwrap_err();
    assert_eq!(refusal.to_string(), "spare: needs 1, 2 of 2 taken");
    let fresh = ledger.reserve(either("c"), at(0)).unwrap();
    assert_eq!(fresh.spare(), None);
    assert_eq!(fresh.address().unwrap().address.to_string(), "10.0.0.1");
    assert!(ledger.is_promised(&spares[0], at(0)));
    drop(first);
    assert!(!ledger.is_promised(&spares[0], at(0)));
    assert_eq!(ledger.reserve(claim("d"), at(0)).unwrap().spare(), Some(&spares[0]));
    let dhcp = Ask { machine: Machine::Fresh { address: AddressNeed::Dhcp }, ..ask("e", 1) };
    assert!(ledger.reserve(dhcp, at(0)).unwrap().address().is_none());
}

#[test]
fn exhausted_addresses_are_a_reason_with_a_forecast() {
    let mut ledger = ledger(Limits::default());
    for number in 1..=4_u8 {
        let vm = VmId::new(format!("vm-{number}"));
        let ends = Some(at(1_000 + 100 * u64::from(number)));
        ledger.see_addresses(&vm, vec![[10, 0, 0, number].into()], at(0));
        ledger.see(DOOR, &vm, "x", Holding { ends, ..Holding::default() }, at(0));
    }
    let mut held: Vec<_> =
        (0..2).map(|n| ledger.reserve(ask(&n.to_string(), 1), at(0)).unwrap()).collect();
    assert_eq!(held[1].address().unwrap().address.to_string(), "10.0.0.6");
    let refusal = ledger.reserve(ask("late", 1), at(0)).unwrap_err();
    assert_eq!(refusal.bound_by, LedgerGate::Address);
    let forecast = refusal.forecast.clone().unwrap();
    assert_eq!(
        forecast.next_free,
        Some(at(1_100 + 120)),
        "the first VM ends, and its address rests"
    );
    assert_eq!(
        refusal.to_string(),
        "address: needs 1, 6 of 6 taken; 4 of 6 used, 2 promised, 0 resting; \
         the next one is expected by 1970-01-01T00:20:20Z"
    );
    ledger.see_addresses(&VmId::new("vm-3"), Vec::new(), at(10));
    ledger.vanish(DOOR, &VmId::new("vm-3"), at(10));
    let forecast = ledger.reserve(ask("late", 1), at(11)).unwrap_err().forecast.unwrap();
    assert_eq!((forecast.next_free, forecast.by), (Some(at(130)), crate::ComesFreeBy::Rest));
    assert!(forecast.to_string().ends_with("the next one has rested by 1970-01-01T00:02:10Z"));
    let late = ledger.reserve(ask("late", 1), at(130)).unwrap();
    assert_eq!(late.address().unwrap().address.to_string(), "10.0.0.3");
    held.clear();
}

#[test]
fn two_doors_share_addresses_and_room_and_nothing_else() {
    const OTHER: DoorName = DoorName::new("other");
    let one = Limits { cpus: Limit::At(4), ..Limits::default() };
    let mut ledger = ledger(one.clone()).with_account(OTHER, one, plan("10.0.0.0/30"));
    let pool = PoolId::new("resgroup-8");
    ledger.set_pool(&pool, Some(PoolRoom { cpu_mhz: 1, memory_mb: 10 * 1024 }));
    let within = |door: DoorName| Ask {
        request: door.request("42"),
        pool: Some(pool.clone()),
        ..ask("42", 4)
    };
    let first = ledger.reserve(within(DOOR), at(0)).unwrap();
    let second = ledger.reserve(within(OTHER), at(0)).unwrap();
    assert_eq!(first.address().unwrap().address.to_string(), "10.0.0.1");
    assert_eq!(second.address().unwrap().address.to_string(), "10.0.0.2", "the first is given");
    assert_eq!(ledger.taken(OTHER, at(0)).promised.cpus, 4, "each door counts its own");
    assert_eq!(bound(&mut ledger, within(DOOR), at(0)), LedgerGate::Request);

    let third = Ask { request: OTHER.request("43"), amounts: size(0, 3 * 1024), ..within(OTHER) };
    assert_eq!(bound(&mut ledger, third.clone(), at(0)), LedgerGate::PoolMemory);
    drop(first);
    let third = ledger.reserve(third, at(0)).unwrap();
    assert_eq!(third.address().unwrap().address.to_string(), "10.0.0.1", "given back");
    let nobody = Ask { request: DoorName::new("nobody").request("1"), ..ask("1", 1) };
    assert_eq!(bound(&mut ledger, nobody, at(0)), LedgerGate::Request);
}
