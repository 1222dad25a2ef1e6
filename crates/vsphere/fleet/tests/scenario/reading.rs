use roost_clock::Clock as _;
use roost_fleet::{AddressNeed, LedgerGate, PoolId, PoolUsage, Quota};
use roost_fleet::{
    AddressPlan, Amounts, Ask, Holding, Ledger, Limit, Limits, Machine, Power, Vm, condition,
};
use roost_vim::Reconfigure;
use tokio::time::sleep;

use crate::lab::{LAB, Lab, MINUTE, SECOND, wait_for};

#[tokio::test(start_paused = true)]
async fn a_datacenter_is_mirrored_whole_with_one_subscription() {
    let lab = Lab::new(300).await;
    assert_eq!(lab.names(), lab.true_names());
    let seen = lab.mirror.snapshot();
    assert_eq!(seen.len(), 301);
    let freshness = seen.freshness();
    assert!(freshness.complete && freshness.items == 301 && freshness.trouble.is_none());
    assert!(seen.template("debian12").is_some());
    let vm = seen.named("DC0_C0_RP0_VM7").next().unwrap();
    let truth = lab.vcenter.vm("DC0_C0_RP0_VM7").unwrap();
    assert_eq!(
        (vm.cpus, vm.memory_mb),
        (truth.cpus.cast_unsigned(), truth.memory_mb.cast_unsigned().into())
    );
    assert_eq!(vm.power, Power::On);
    assert!(vm.change_version.is_some() && vm.created.is_some() && vm.uuid.is_some());
    let pool = seen.pool(&PoolId::from(&lab.find("/DC0/host/DC0_C0/Resources"))).unwrap();
    assert!(pool.room().is_some_and(|room| room.cpu_mhz > 0 && room.memory_mb > 0), "{pool:?}");
    let usage = PoolUsage::read(&lab.client, &pool.id).await.unwrap().unwrap();
    assert!(usage.memory_bytes <= pool.memory_bytes.max.unwrap());
    let counters = lab.vcenter.counters();
    assert_eq!(
        (counters.open_filters, counters.open_collectors, counters.open_sessions),
        (1, 1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn at_rest_the_server_is_hardly_asked_and_no_more_for_many_vms() {
    let mut calls = Vec::new();
    for vms in [10, 1_000] {
        let lab = Lab::new(vms).await;
        sleep(10 * MINUTE).await;
        lab.vcenter.reset_counters();
        sleep(60 * MINUTE).await;
        calls.push(lab.vcenter.counters().total_calls());
        assert!(lab.age() <= 61 * SECOND, "it is heard from every minute: {:?}", lab.age());
    }
    assert!(calls[0] <= 4 * 60, "{calls:?}");
    assert_eq!(calls[0], calls[1]);
}

#[tokio::test(start_paused = true)]
async fn what_others_do_is_seen_soon() {
    let lab = Lab::new(20).await;
    let vm = lab.id("DC0_C0_RP0_VM3");
    lab.vcenter.set_power("DC0_C0_RP0_VM3", roost_vcenter_sim::Power::Off).unwrap();
    lab.mirror.wait_until(&vm, SECOND, condition::powered(Power::Off)).await.unwrap();
    let change =
        Reconfigure { name: Some("renamed".into()), ..Reconfigure::annotation("hv1/job-1") };
    lab.client.reconfigure(&vm.moref(), &change).await.unwrap();
    wait_for("a new name and annotation", || {
        lab.mirror.snapshot().serving(&LAB.request("job-1")).any(|vm| &*vm.name == "renamed")
    })
    .await;
    lab.vcenter.kill_vm("renamed").unwrap();
    lab.mirror.wait_until(&vm, SECOND, condition::gone()).await.unwrap();
    lab.vcenter.add_vm("newcomer", roost_vcenter_sim::Power::On).unwrap();
    let newcomer = lab.id("newcomer");
    let address = lab.mirror.wait_until(&newcomer, 5 * MINUTE, |vm| match vm {
        None => roost_fleet::Check::NotYet,
        Some(_) => condition::any_address()(vm),
    });
    let address = address.await.unwrap();
    assert_eq!(lab.vcenter.vm("newcomer").unwrap().ip, Some(address));
    assert_eq!(lab.mirror.snapshot().using(address).count(), 1);
    lab.mirror.wait_until(&newcomer, 5 * MINUTE, condition::guest_ready()).await.unwrap();
}

const WORKERS: Quota = Quota::lasting("workers");

#[tokio::test(start_paused = true)]
async fn a_ledger_counts_what_the_mirror_shows() {
    let lab = Lab::new(12).await;
    let limits = Limits { cpus: Limit::At(12), ..Limits::default() };
    let limits = limits.quota(WORKERS, Limit::At(13));
    let mut ledger = Ledger::default().with_account(LAB, limits, AddressPlan::default());
    let size = |cpus| Amounts { cpus, ..Amounts::default() };
    let hold = |vm: &Vm| Holding {
        own: !vm.template,
        request: vm.request().cloned(),
        amounts: if vm.template {
            Amounts::default()
        } else {
            let cpus = if vm.is_on() { vm.cpus.into() } else { 0 };
            size(cpus).count(WORKERS, 1)
        },
        ends: None,
    };
    let ask = |request: &str| Ask {
        request: LAB.request(request),
        name: None,
        amounts: size(1).count(WORKERS, 1),
        pool: Some(PoolId::from(&lab.find("/DC0/host/DC0_C0/Resources"))),
        machine: Machine::Fresh { address: AddressNeed::Dhcp },
    };
    let now = lab.clock.now();
    ledger.observe(LAB, &lab.mirror.snapshot(), now, hold);
    assert_eq!(ledger.taken(LAB, now).by_vms, size(12).count(WORKERS, 12));
    assert_eq!(ledger.reserve(ask("a"), now).unwrap_err().bound_by, LedgerGate::Cpus);

    let vm = lab.id("DC0_C0_RP0_VM1");
    lab.client.power_off(&vm.moref()).await.unwrap();
    lab.mirror.changed(&vm, roost_fleet::Wrote::new().power(Power::Off));
    let now = lab.clock.now();
    ledger.observe(LAB, &lab.mirror.snapshot(), now, hold);
    let held = ledger.reserve(ask("a"), now).unwrap();
    assert!(held.gates().iter().any(|gate| gate.name == "pool-memory" && gate.passed));
    lab.client.destroy(&vm.moref()).await.unwrap();
    lab.mirror.destroyed(&vm);
    ledger.observe(LAB, &lab.mirror.snapshot(), now, hold);
    let taken = ledger.taken(LAB, now);
    assert_eq!((taken.by_vms.of(WORKERS), taken.promised.of(WORKERS)), (11, 1));
}
