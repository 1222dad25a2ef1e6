//! What the close-up costs: how many VMs there are does not matter, how many are looked at closely does.
//!
//! ```sh
//! cargo bench -p roost-testbed
//! ```
#![expect(clippy::unwrap_used, reason = "a bench may stop at once")]

use std::sync::Arc;
use std::time::Duration;

use roost_fleet::{Claim, DoorName, Fleet, Marks, Recognise, VmId};
use roost_testbed::Site;
use roost_vcenter_sim::{Power, Vcenter};
use tokio::time::{Instant, sleep};

/// VMs in the datacenter, and those that are looked at closely.
const CASES: [(usize, usize); 4] = [(1_000, 50), (10_000, 50), (1_000, 500), (10_000, 500)];
const PATIENCE: Duration = Duration::from_mins(5);

/// Claims the first VMs by their names.
#[derive(Debug)]
struct First(usize);

fn name(number: usize) -> String {
    format!("DC0_C0_RP0_VM{number}")
}

impl Recognise for First {
    fn recognise(&self, vm: &Marks<'_>) -> Option<Claim> {
        let number: usize = vm.name.strip_prefix("DC0_C0_RP0_VM")?.parse().ok()?;
        (number < self.0).then(|| Claim::of(DoorName::new("bench"), "bench"))
    }
}

/// What a step has cost: time, calls, and bytes that the server sent.
struct Cost {
    took: Duration,
    calls: u64,
    bytes: u64,
}

async fn cost(vcenter: &Vcenter, step: impl AsyncFnOnce()) -> Cost {
    let (before, began) = (vcenter.counters(), Instant::now());
    step().await;
    let (took, after) = (began.elapsed(), vcenter.counters());
    let calls = after.total_calls() - before.total_calls();
    Cost { took, calls, bytes: after.bytes_out - before.bytes_out }
}

async fn until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "it does not come about");
        sleep(Duration::from_micros(200)).await;
    }
}

fn id(site: &Site, number: usize) -> VmId {
    VmId::from(&site.find(&format!("/DC0/vm/{}", name(number))))
}

async fn follow(site: &Site, claimed: usize) -> Fleet {
    let fleet = site.open(vec![Arc::new(First(claimed))]).await.unwrap();
    fleet.cover(&site.find("/DC0"));
    let following = fleet.clone();
    tokio::spawn(async move { following.follow().await });
    assert!(fleet.mirror().wait_complete(PATIENCE).await);
    fleet
}

fn show(all: usize, close: usize, step: &str, cost: &Cost) {
    let Cost { took, calls, bytes } = cost;
    let micros = took.as_micros();
    println!("| {all} | {close} | {step} | {micros} us | {calls} | {bytes} |");
}

async fn measure(all: usize, close: usize) {
    let site = Site::new(all);
    let vcenter = &site.vcenter;
    let fleet = follow(&site, close + 1).await;
    let vms: Vec<VmId> = (0..=close).map(|number| id(&site, number)).collect();

    let first = cost(vcenter, async || {
        for vm in &vms[..close] {
            fleet.close_up().look_at(vm).unwrap();
        }
        until(|| fleet.close_up().len() == close).await;
    })
    .await;
    show(all, close, "all of them", &first);

    sleep(Duration::from_secs(1)).await;
    let resyncs = fleet.mirror().stream().borrow().resyncs;
    let one_more = cost(vcenter, async || {
        fleet.close_up().look_at(&vms[close]).unwrap();
        until(|| fleet.close_up().of(&vms[close]).is_some()).await;
    })
    .await;
    show(all, close, "one more", &one_more);
    assert_eq!(fleet.mirror().stream().borrow().resyncs, resyncs, "the mirror was loaded again");

    let (_, generation) = fleet.close_up().changed_since(0);
    let change = cost(vcenter, async || {
        vcenter.set_power(&name(0), Power::Off).unwrap();
        until(|| !fleet.close_up().changed_since(generation).0.is_empty()).await;
    })
    .await;
    show(all, close, "one of them changes", &change);

    let look_away = cost(vcenter, async || {
        fleet.close_up().look_away(&vms[close]);
        until(|| fleet.close_up().len() == close).await;
    })
    .await;
    show(all, close, "one fewer", &look_away);
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("| VMs | in close-up | step | time | calls | bytes |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (all, close) in CASES {
        runtime.block_on(measure(all, close));
    }
}
