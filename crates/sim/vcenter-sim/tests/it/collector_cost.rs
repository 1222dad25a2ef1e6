//! What an update costs: work that is counted, so that a slow machine changes nothing.

use crate::lab::Lab;
use roost_vcenter_sim::Options;
use roost_vim_wire::methods::{CreateFilter, WaitForUpdatesEx};
use roost_vim_wire::types::{PropertyFilterSpec, PropertySpec, WaitOptions};

const NARROW: &[&str] = &[
    "name",
    "config.annotation",
    "config.template",
    "config.uuid",
    "summary.config.numCpu",
    "summary.config.memorySizeMB",
    "runtime.powerState",
    "guest.ipAddress",
    "guest.net",
    "guest.guestOperationsReady",
    "guest.toolsRunningStatus",
    "resourcePool",
    "parent",
];

#[tokio::test(start_paused = true)]
async fn one_change_among_10000_vms_reads_one_property() {
    let lab = Lab::start(Options { vms: 10_000, standalone_hosts: 0, ..Options::default() }).await;
    let client = lab.login().await;
    let view = client.view("VirtualMachine").await;
    let spec =
        PropertyFilterSpec::of_view(&view, vec![PropertySpec::new("VirtualMachine", NARROW)]);
    let filter = CreateFilter { this: client.collector(), spec, partial_updates: false };
    client.call(filter).await.unwrap();
    let mut version = None;
    let (mut seen, mut pages) = (0, 0);
    let wait = |version: Option<String>| WaitForUpdatesEx {
        this: client.collector(),
        version,
        options: Some(WaitOptions { max_wait_seconds: Some(0), max_object_updates: None }),
    };
    while let Some(set) = client.call(wait(version.clone())).await.unwrap() {
        seen += set.filter_set.iter().map(|part| part.object_set.len()).sum::<usize>();
        pages += 1;
        version = Some(set.version);
        if set.truncated != Some(true) {
            break;
        }
    }
    assert_eq!((seen, pages), (10_000, 100));
    assert_eq!(lab.vcenter.counters().property_reads, (10_000 * NARROW.len()) as u64);

    let vm = client.find("/DC0/vm/DC0_C0_RP0_VM777").await;
    client.rename(&vm, "seven").await;
    lab.vcenter.reset_counters();
    let set = client.call(wait(version)).await.unwrap().unwrap();
    assert_eq!(set.filter_set[0].object_set.len(), 1);
    assert_eq!(lab.vcenter.counters().property_reads, 1);
    assert!(lab.vcenter.counters().bytes_out < 1500);
}
