//! VMs that stop or vanish by themselves. Events are hints: the VM is looked at before anything is believed.

use std::time::Duration;

use futures_util::StreamExt;
use roost_controller::Key;
use roost_microvm::{EventKind, RuntimeError, VmRecord};
use tokio::time::{Instant, sleep};

use super::table::Ending;
use super::work::Shop;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
const RECONNECT: Duration = Duration::from_secs(2);
const SECOND_LOOK: Duration = Duration::from_millis(200);
const LONGEST_LOOK_PAUSE: Duration = Duration::from_secs(30);
/// How long a VM that cannot be looked at is waited for.
const BUDGET: Duration = Duration::from_mins(30);

/// Listens for as long as the kubelet runs. Events that were lost while nobody listened are found by a list at every connection.
pub(crate) async fn follow_vms(shop: Shop) {
    let mut pause = FIRST_PAUSE;
    loop {
        match shop.host.runtime.watch().await {
            Ok(mut events) => {
                pause = FIRST_PAUSE;
                compare(&shop).await;
                while let Some(event) = events.next().await {
                    match event {
                        Ok(event)
                            if event.event == EventKind::Deleted
                                || !event.vm.state.is_running() =>
                        {
                            suspect(&shop, &event.vm);
                        }
                        Ok(_) => {}
                        Err(error) => {
                            tracing::warn!("the runtime's events broke off: {error}");
                            break;
                        }
                    }
                }
                sleep(RECONNECT).await;
            }
            Err(error) => {
                tracing::warn!("the runtime's events are asked for again in {pause:?}: {error}");
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Holds a list beside what is known.
async fn compare(shop: &Shop) {
    let vms = match shop.host.runtime.list().await {
        Ok(vms) => vms,
        Err(error) => {
            tracing::warn!("the VMs cannot be listed: {error}");
            return;
        }
    };
    for (_, pod) in shop.table.all() {
        let Some(vm) = pod.vm.filter(|_| pod.spec.is_none_or(|spec| spec.managed)) else {
            continue;
        };
        let is_well = vms.iter().any(|seen| seen.id == vm.id && seen.state.is_running());
        if !is_well {
            suspect(shop, &vm);
        }
    }
}

/// Something may be wrong with a VM: a task of its own finds out, so that a slow one holds up nobody.
fn suspect(shop: &Shop, vm: &VmRecord) {
    let Some(key) = shop.table.of_vm(&vm.id, vm.name()) else { return };
    let (shop, vm) = (shop.clone(), vm.clone());
    let own = shop.clone();
    own.spawn_look(async move { look(&shop, &key, &vm).await });
}

async fn look(shop: &Shop, key: &Key, vm: &VmRecord) {
    let deadline = Instant::now() + BUDGET;
    let mut pause = SECOND_LOOK;
    loop {
        // What we do to it ourselves is no accident.
        let is_ours = shop.table.get(key).is_some_and(|pod| {
            pod.activity.is_none() && pod.vm.is_some_and(|seen| seen.id == vm.id)
        });
        if !is_ours {
            return;
        }
        match shop.host.runtime.inspect(&vm.id).await {
            Ok(seen) if seen.state.is_running() => return,
            Ok(seen) => {
                change_if_same(shop, key, vm, |pod| pod.vm = Some(seen));
                return;
            }
            Err(RuntimeError::VmNotFound { .. }) => {
                end(shop, key, vm, "VMGone", "vm no longer exists");
                return;
            }
            Err(error) => {
                shop.host.metrics.inspect_failures.inc();
                tracing::warn!(pod = %key, "VM {} cannot be looked at: {error}", vm.name());
            }
        }
        if Instant::now() >= deadline {
            end(shop, key, vm, "VMInspectTimeout", "vm inspect did not resolve within budget");
            return;
        }
        sleep(pause).await;
        pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_LOOK_PAUSE);
    }
}

fn end(shop: &Shop, key: &Key, vm: &VmRecord, reason: &'static str, message: &str) {
    let ending = Ending { reason, message: message.to_owned(), told: false };
    change_if_same(shop, key, vm, |pod| {
        (pod.vm, pod.ending, pod.ready) = (None, Some(ending), false);
    });
}

fn change_if_same(
    shop: &Shop,
    key: &Key,
    vm: &VmRecord,
    change: impl FnOnce(&mut super::table::Tracked),
) {
    let changed = shop.table.change(key, |pod| {
        let is_same =
            pod.activity.is_none() && pod.vm.as_ref().is_some_and(|seen| seen.id == vm.id);
        if is_same {
            change(pod);
        }
        is_same
    });
    if changed == Some(true) {
        shop.trigger.signal(key.clone());
    }
}
