//! What one change, one look and one reservation cost with 10,000 VMs, 200 of them ours.

use std::hint::black_box;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use roost_clock::{Clock as _, SystemClock};
use roost_fleet::{
    AddressNeed, AddressPlan, Amounts, Ask, Claim, DoorName, Holding, Ledger, Limit, Limits,
    Machine, Marks, Mirror, Quota, Recognise, Vm, VmId, Wrote,
};
use roost_vim::wire::types::{GuestNicInfo, PropertyChange, PropertyChangeOp};
use roost_vim::wire::{Array, MoRef, Value};
use roost_vim::{Batch, Change, Properties, Update};

const VMS: u32 = 10_000;
const OURS: u32 = 200;

/// `owner/request/address`.
#[derive(Debug)]
struct Slashes;

const DOOR: DoorName = DoorName::new("bench");
const WORKERS: Quota = Quota::lasting("workers");
const PENDING: Quota = Quota::passing("pending");

impl Recognise for Slashes {
    fn recognise(&self, vm: &Marks<'_>) -> Option<Claim> {
        let mut parts = vm.annotation?.strip_prefix("roost:")?.split('/');
        Some(Claim {
            owner: parts.next()?.into(),
            request: parts.next().map(Into::into),
            address: parts.next().and_then(|address| address.parse().ok()),
            ..Claim::of(DOOR, "")
        })
    }
}

fn set(path: &str, val: Value) -> PropertyChange {
    PropertyChange { name: path.into(), op: PropertyChangeOp::Assign, val: Some(val) }
}

fn address(number: u32) -> IpAddr {
    std::net::Ipv4Addr::from_bits(0x0a00_0000 + number).into()
}

fn power(on: bool) -> PropertyChange {
    let state = if on { "poweredOn" } else { "poweredOff" };
    set("runtime.powerState", Value::Enum("VirtualMachinePowerState".into(), state.into()))
}

fn vm(number: u32) -> Update {
    let annotation = match number {
        0..OURS => format!("roost:hv1/request-{number}/{}", address(number)),
        _ => "Ask the web team before you touch this one.".to_owned(),
    };
    let nic = GuestNicInfo {
        ip_address: vec![address(number).to_string(), "fe80::250:56ff:fe00:1".into()],
        mac_address: Some("00:50:56:00:00:01".into()),
        device_config_id: 4000,
        connected: true,
        ..GuestNicInfo::default()
    };
    let mut properties = Properties::default();
    for change in [
        set("name", Value::string(format!("machine-{number:05}"))),
        set("config.annotation", Value::string(annotation)),
        set("config.uuid", Value::string(format!("4210f5a2-0000-0000-0000-{number:012}"))),
        set("config.changeVersion", Value::string("2026-11-15T19:37:12.883724Z")),
        set("summary.config.numCpu", Value::Int(4)),
        set("summary.config.memorySizeMB", Value::Int(8192)),
        set("guest.ipAddress", Value::string(address(number).to_string())),
        set("guest.net", Value::Array(Array::new("GuestNicInfo", vec![Value::data(nic)]))),
        power(true),
    ] {
        properties.apply(change);
    }
    Update { obj: MoRef::vm(format!("vm-{number}")), change: Change::Enter(properties) }
}

fn batch(updates: Vec<Update>) -> Batch {
    Batch { updates, missing: Vec::new(), synced: true, resynced: false }
}

fn mirror() -> Mirror {
    let mirror = Mirror::new(vec![Arc::new(Slashes)], Arc::new(SystemClock));
    mirror.feed(&batch((0..VMS).map(vm).collect()));
    mirror
}

fn mirrors(c: &mut Criterion) {
    let mut group = c.benchmark_group("mirror, 10,000 VMs");
    let all: Vec<Update> = (0..VMS).map(vm).collect();
    group.sample_size(10).bench_function("first load", |b| {
        let load = batch(all.clone());
        b.iter_batched(
            || Mirror::new(vec![Arc::new(Slashes)], Arc::new(SystemClock)),
            |mirror| {
                mirror.feed(&load);
                mirror
            },
            BatchSize::PerIteration,
        );
    });
    let mirror = mirror();
    let (mut number, mut on) = (0, true);
    let mut change = || {
        number = (number + 7_919) % VMS;
        on = !on;
        batch(vec![Update {
            obj: MoRef::vm(format!("vm-{number}")),
            change: Change::Modify(vec![power(on)]),
        }])
    };
    group.sample_size(100);
    group.bench_function("one change", |b| {
        b.iter_batched(&mut change, |batch| mirror.feed(&batch), BatchSize::SmallInput);
    });
    group.bench_function("one change beside a snapshot", |b| {
        b.iter_batched(
            || (change(), mirror.snapshot()),
            |(batch, _held)| mirror.feed(&batch),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("our own change", |b| {
        let id = VmId::new("vm-5000");
        let mut cpus = 0;
        b.iter(|| {
            cpus = (cpus + 1) % 64;
            mirror.changed(&id, Wrote::new().cpus(cpus));
        });
    });
    group.bench_function("snapshot", |b| b.iter(|| black_box(mirror.snapshot())));
    group.bench_function("our VMs in a snapshot", |b| {
        let seen = mirror.snapshot();
        b.iter(|| seen.owned_by(DOOR, "hv1").filter(|vm| vm.is_on()).count());
    });
    group.bench_function("what changed since a snapshot", |b| {
        b.iter_batched(
            || {
                let before = mirror.snapshot();
                mirror.feed(&change());
                before
            },
            |before| mirror.snapshot().since(&before).count(),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn hold(vm: &Vm) -> Holding {
    let own = vm.owner().is_some();
    let amounts = Amounts {
        cpus: if vm.is_on() { vm.cpus.into() } else { 0 },
        memory_mb: vm.memory_mb,
        ..Amounts::default()
    };
    let amounts = amounts.count(WORKERS, 1);
    Holding {
        own,
        request: vm.request().cloned(),
        amounts: if own { amounts } else { Amounts::default() },
        ends: None,
    }
}

fn ledgers(c: &mut Criterion) {
    let mut group = c.benchmark_group("ledger, 10,000 VMs");
    let mirror = mirror();
    let now = SystemClock.now();
    let limits = |workers| Limits::default().quota(WORKERS, Limit::At(workers));
    let ledger = |workers| {
        let range = "10.0.0.0/16".parse().expect("a range");
        let plan = AddressPlan::of_range(range).expect("a good range");
        let mut ledger = Ledger::default().with_account(DOOR, limits(workers), plan);
        ledger.observe(DOOR, &mirror.snapshot(), now, hold);
        ledger
    };
    let ask = |number: u32| Ask {
        request: DOOR.request(format!("new-{number}")),
        name: Some(format!("worker-{number}").into()),
        amounts: Amounts { cpus: 4, memory_mb: 8192, ..Amounts::default() }
            .count(WORKERS, 1)
            .count(PENDING, 1),
        pool: None,
        machine: Machine::Fresh { address: AddressNeed::FromPlan },
    };
    group.sample_size(10).bench_function("first look at the mirror", |b| {
        b.iter_batched(|| (), |()| ledger(100_000), BatchSize::PerIteration);
    });
    group.sample_size(100);
    group.bench_function("look again after one change", |b| {
        let mut ledger = ledger(100_000);
        let mut on = true;
        b.iter_batched(
            || {
                on = !on;
                let change = Change::Modify(vec![power(on)]);
                mirror.feed(&batch(vec![Update { obj: MoRef::vm("vm-77"), change }]));
                mirror.snapshot()
            },
            |snapshot| ledger.observe(DOOR, &snapshot, now, hold),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("reserve and give back", |b| {
        let mut ledger = ledger(100_000);
        b.iter(|| drop(ledger.reserve(ask(1), now).expect("there is room")));
    });
    group.measurement_time(Duration::from_secs(5));
    group.bench_function("1,000 requests, 100 of which fit", |b| {
        let mut ledger = ledger(u64::from(OURS) + 100);
        b.iter(|| {
            let held: Vec<_> =
                (0..1_000).filter_map(|request| ledger.reserve(ask(request), now).ok()).collect();
            assert_eq!(held.len(), 100);
        });
    });
    group.finish();
}

criterion_group!(benches, mirrors, ledgers);
criterion_main!(benches);
