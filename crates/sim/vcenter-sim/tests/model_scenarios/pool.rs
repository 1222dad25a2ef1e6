use roost_vcenter_sim::{Options, PoolView};
use roost_vim_wire::methods::{CreateResourcePool, DestroyTask, UpdateConfig};
use roost_vim_wire::types::{
    ResourceAllocationInfo, ResourceConfigSpec, VirtualMachineCloneSpec, VirtualMachineConfigSpec,
};
use roost_vim_wire::{Fault, MoRef};

use crate::story::{POOL, Story, instant};

const GIB: i64 = 1 << 30;

fn pool(story: &Story, path: &str) -> PoolView {
    story.lab.vcenter.pool(path).unwrap()
}

fn memory(limit_mb: i64, reservation_mb: i64, expandable: bool) -> ResourceConfigSpec {
    let unlimited = || ResourceAllocationInfo {
        reservation: Some(0),
        expandable_reservation: Some(true),
        limit: Some(-1),
        ..Default::default()
    };
    ResourceConfigSpec {
        cpu_allocation: unlimited(),
        memory_allocation: ResourceAllocationInfo {
            reservation: Some(reservation_mb),
            expandable_reservation: Some(expandable),
            limit: Some(limit_mb),
            ..unlimited()
        },
        ..Default::default()
    }
}

async fn child(
    story: &Story,
    parent: &MoRef,
    name: &str,
    spec: ResourceConfigSpec,
) -> Result<MoRef, Fault> {
    story.client.call(CreateResourcePool { this: parent.clone(), name: name.into(), spec }).await
}

async fn worker_in(
    story: &Story,
    pool: &MoRef,
    name: &str,
    memory_mb: i64,
) -> Result<MoRef, Fault> {
    let config = VirtualMachineConfigSpec { memory_mb: Some(memory_mb), ..Default::default() };
    let mut spec =
        VirtualMachineCloneSpec { config: Some(config), power_on: true, ..story.linked().await };
    spec.location.pool = Some(pool.clone());
    story.clone_vm("debian12", name, spec).await
}

#[tokio::test(start_paused = true)]
async fn a_pools_numbers_move_with_its_vms() {
    let story = Story::start(instant()).await;
    let empty = pool(&story, POOL).runtime;
    assert_eq!((empty.memory.reservation_used, empty.memory.unreserved_for_vm), (0, 3 * 256 * GIB));
    assert_eq!(empty.memory.max_usage, 3 * 256 * GIB);
    let vm = story.worker("worker-1").await;
    let one = pool(&story, POOL).runtime;
    assert_eq!(one.memory.reservation_used, GIB);
    assert_eq!(one.memory.overall_usage, GIB);
    assert_eq!(one.memory.unreserved_for_vm, empty.memory.unreserved_for_vm - GIB);
    assert!(one.cpu.unreserved_for_vm < empty.cpu.unreserved_for_vm);
    story.power_off(&vm).await.unwrap();
    assert_eq!(pool(&story, POOL).runtime, empty);
    let larger =
        VirtualMachineConfigSpec { memory_mb: Some(4096), num_cpus: Some(4), ..Default::default() };
    story.reconfigure(&vm, larger).await.unwrap();
    story.power_on(&vm).await.unwrap();
    let grown = pool(&story, POOL).runtime;
    assert_eq!(grown.memory.reservation_used, 4 * GIB);
    assert_eq!(grown.cpu.reservation_used, 4 * one.cpu.reservation_used);
    story.lab.vcenter.kill_vm("worker-1").unwrap();
    assert_eq!(pool(&story, POOL).runtime, empty);
}

#[tokio::test(start_paused = true)]
async fn what_a_child_takes_is_missing_from_its_parents() {
    let story = Story::start(instant()).await;
    let root = story.find(POOL).await;
    let outer = child(&story, &root, "outer", memory(-1, 0, true)).await.unwrap();
    let inner = child(&story, &outer, "inner", memory(-1, 0, true)).await.unwrap();
    worker_in(&story, &inner, "w", 2048).await.unwrap();
    for name in ["inner", "outer", POOL] {
        assert_eq!(pool(&story, name).runtime.memory.reservation_used, 2 * GIB, "{name}");
    }
    assert_eq!(pool(&story, "inner").runtime.memory.reservation_used_for_vm, 2 * GIB);
    assert_eq!(pool(&story, "outer").runtime.memory.reservation_used_for_vm, 0);
    let refused = child(&story, &outer, "inner", memory(-1, 0, true)).await.unwrap_err();
    assert_eq!(
        (refused.class.as_str(), refused.object("object")),
        ("DuplicateName", Some(inner.clone()))
    );
    let task = story.client.call(DestroyTask { this: outer.clone() }).await.unwrap();
    story.client.finish(&task).await.unwrap();
    let parent = story.property(&inner, "parent").await.unwrap();
    assert_eq!(parent.as_ref(), Some(&root), "what was in a pool goes to its parent");
}

#[tokio::test(start_paused = true)]
async fn a_full_pool_admits_no_more() {
    let story = Story::start(instant()).await;
    let root = story.find(POOL).await;
    let small = child(&story, &root, "small", memory(3072, 0, true)).await.unwrap();
    worker_in(&story, &small, "a", 2048).await.unwrap();
    let refused = worker_in(&story, &small, "b", 2048).await.unwrap_err();
    assert_eq!(refused.class, "InsufficientMemoryResourcesFault");
    assert_eq!(
        (refused.text("unreserved"), refused.text("requested")),
        (Some("1073741824"), Some("2147483648"))
    );
    let b = story.vm("b").moref;
    assert!(story.event_classes().contains(&"VmFailedToPowerOnEvent".to_owned()));
    let roomier =
        UpdateConfig { this: small.clone(), name: None, config: Some(memory(8192, 0, true)) };
    story.client.call(roomier).await.unwrap();
    story.power_on(&b).await.unwrap();
    let fixed = child(&story, &root, "fixed", memory(-1, 1024, false)).await.unwrap();
    assert!(
        worker_in(&story, &fixed, "c", 2048).await.unwrap_err().is("InsufficientResourcesFault")
    );
    assert_eq!(
        pool(&story, POOL).runtime.memory.reservation_used,
        5 * GIB,
        "a reservation counts though nothing runs"
    );
}

#[tokio::test(start_paused = true)]
async fn a_full_cluster_admits_no_more_until_something_stops() {
    let story = Story::start(Options { hosts: 1, host_memory_gb: Some(2), ..instant() }).await;
    let first = story.worker("a").await;
    story.worker("b").await;
    let spec = VirtualMachineCloneSpec { power_on: true, ..story.linked().await };
    let refused = story.clone_vm("debian12", "c", spec).await.unwrap_err();
    assert!(refused.is("InsufficientResourcesFault"), "{}", refused.class);
    story.power_off(&first).await.unwrap();
    let spec = VirtualMachineCloneSpec { power_on: true, ..story.linked().await };
    story.clone_vm("debian12", "d", spec).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn cpus_run_out_as_well() {
    let story = Story::start(Options { hosts: 1, host_cores: Some(1), ..instant() }).await;
    let mut started = 0;
    let failed = loop {
        let spec = VirtualMachineCloneSpec { power_on: true, ..story.linked().await };
        match story.clone_vm("debian12", &format!("w{started}"), spec).await {
            Ok(_) => started += 1,
            Err(fault) => break fault,
        }
    };
    assert_eq!((started, failed.class.as_str()), (8, "InsufficientCpuResourcesFault"));
    assert_eq!(pool(&story, POOL).runtime.cpu.unreserved_for_vm, 0);
}
