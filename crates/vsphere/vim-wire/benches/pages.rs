//! How fast a page set of 10,000 VMs is decoded and encoded, narrow (what Roost watches) and wide (whole objects).
//!
//! `cargo bench -p roost-vim-wire`. The comparison with govmomi on recorded answers is `cargo bench -p roost`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use roost_vim_wire::types::{
    Description, DynamicProperty, GuestInfo, GuestNicInfo, ObjectContent, RetrieveResult,
    VirtualDevice, VirtualDeviceConnectInfo, VirtualHardware, VirtualMachineConfigInfo,
    VirtualMachinePowerState, VirtualMachineSummary,
};
use roost_vim_wire::{
    Array, Field, Item, MoRef, MoType, PageDecoder, Value, encode_reply, methods,
};

const VMS: usize = 10_000;
/// What a socket usually hands over at once.
const CHUNK: usize = 64 << 10;

type Properties = Vec<(&'static str, Value)>;

fn nic(n: usize) -> GuestNicInfo {
    GuestNicInfo {
        network: Some("DC0_DVPG0".into()),
        ip_address: vec![format!("10.1.{}.{}", n / 250, n % 250)],
        mac_address: Some(format!("00:50:56:00:{:02x}:{:02x}", n / 256 % 256, n % 256)),
        connected: true,
        device_config_id: 4000,
        ..Default::default()
    }
}

fn narrow(n: usize) -> Properties {
    vec![
        (
            "config.annotation",
            Value::string(format!("{{\"hatchery_name\":\"h1\",\"worker_name\":\"worker-{n}\"}}")),
        ),
        ("config.template", Value::Bool(false)),
        ("config.uuid", Value::string(format!("4210b0f7-0000-0000-0000-{n:012}"))),
        ("guest.guestOperationsReady", Value::Bool(true)),
        ("guest.ipAddress", Value::string(format!("10.1.{}.{}", n / 250, n % 250))),
        ("guest.net", Value::Array(Array::new("GuestNicInfo", vec![Value::data(nic(n))]))),
        ("guest.toolsRunningStatus", Value::string("guestToolsRunning")),
        ("name", Value::string(format!("worker-{n}"))),
        ("parent", Value::Ref(MoRef::new(MoType::Folder, "group-v3"))),
        ("resourcePool", Value::Ref(MoRef::new(MoType::ResourcePool, "resgroup-27"))),
        (
            "runtime.powerState",
            VirtualMachinePowerState::PoweredOn.to_value().expect("an enumeration"),
        ),
        ("summary.config.memorySizeMB", Value::Int(4096)),
        ("summary.config.numCpu", Value::Int(2)),
    ]
}

fn wide(n: usize) -> Properties {
    let device = |key: i32| VirtualDevice {
        key,
        device_info: Some(Description::default()),
        connectable: Some(VirtualDeviceConnectInfo::default()),
        controller_key: Some(100),
        unit_number: Some(key % 16),
        ..VirtualDevice::of("VirtualVmxnet3")
    };
    let hardware = VirtualHardware {
        num_cpu: 2,
        memory_mb: 4096,
        device: (0..12).map(device).collect(),
        ..Default::default()
    };
    let config =
        VirtualMachineConfigInfo { name: format!("worker-{n}"), hardware, ..Default::default() };
    let guest =
        GuestInfo { net: vec![nic(n)], guest_state: "running".into(), ..Default::default() };
    vec![
        ("config", Value::data(config)),
        ("guest", Value::data(guest)),
        ("name", Value::string(format!("worker-{n}"))),
        ("summary", Value::data(VirtualMachineSummary::default())),
    ]
}

fn answer(properties: fn(usize) -> Properties) -> RetrieveResult {
    let object = |n| ObjectContent {
        obj: MoRef::vm(format!("vm-{n}")),
        prop_set: properties(n)
            .into_iter()
            .map(|(name, val)| DynamicProperty { name: name.into(), val })
            .collect(),
        missing_set: Vec::new(),
    };
    RetrieveResult { token: None, objects: (0..VMS).map(object).collect() }
}

fn decode(body: &[u8]) -> usize {
    let (mut decoder, mut objects) = (PageDecoder::new(), 0);
    let mut count = |item| objects += usize::from(matches!(black_box(item), Item::Object(_)));
    for chunk in body.chunks(CHUNK) {
        decoder.feed(chunk, &mut count).expect("a well-formed page");
    }
    decoder.finish(&mut count).expect("a whole page");
    objects
}

fn pages(c: &mut Criterion) {
    for (set, properties) in [("narrow", narrow as fn(usize) -> Properties), ("wide", wide)] {
        let result = Some(answer(properties));
        let body = encode_reply::<methods::RetrievePropertiesEx>(&result);
        assert_eq!(decode(&body), VMS);
        let mut group = c.benchmark_group(set);
        group.sample_size(10).throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function("decode", |b| b.iter(|| decode(black_box(&body))));
        group.bench_function("encode", |b| {
            b.iter(|| encode_reply::<methods::RetrievePropertiesEx>(black_box(&result)));
        });
        group.finish();
    }
}

criterion_group!(benches, pages);
criterion_main!(benches);
