//! VMs that stop or vanish by themselves. Events are hints: the VM is looked at before anything is believed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use roost_controller::Key;
use roost_microvm::{EventKind, RuntimeError, VmRecord, process_ended};
use roost_views::Verdict;
use tokio::time::{Instant, sleep};

use super::host::Stranger;
use super::start::{OrphanPolicy, orphan};
use super::table::Ending;
use super::work::PodWork;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
const RECONNECT: Duration = Duration::from_secs(2);
const SECOND_LOOK: Duration = Duration::from_millis(200);
const LONGEST_LOOK_PAUSE: Duration = Duration::from_secs(30);
/// How long a VM that cannot be looked at is waited for.
const BUDGET: Duration = Duration::from_mins(30);
/// How long a VM is there without a pod before it counts as an orphan.
const STRANGER_GRACE: Duration = Duration::from_mins(5);

/// Listens for as long as the kubelet runs. Events that were lost while nobody listened are found by a list at every connection.
pub(crate) async fn follow_vms(work: PodWork) {
    let mut pause = FIRST_PAUSE;
    loop {
        match work.host.runtime.watch().await {
            Ok(mut events) => {
                pause = FIRST_PAUSE;
                compare(&work).await;
                while let Some(event) = events.next().await {
                    match event {
                        Ok(event)
                            if event.event == EventKind::Deleted
                                || !event.vm.state.is_running() =>
                        {
                            suspect(&work, &event.vm);
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
async fn compare(work: &PodWork) {
    let vms = match work.host.runtime.list().await {
        Ok(vms) => vms,
        Err(error) => {
            tracing::warn!("the VMs cannot be listed: {error}");
            return;
        }
    };
    compare_with(work, &vms);
}

/// Whoever has a list may have it held beside what is known: an event that was lost is found so.
pub(crate) fn compare_with(work: &PodWork, vms: &[VmRecord]) {
    judge_strangers(work, vms);
    for (_, pod) in work.table.all() {
        let Some(vm) = pod.vm.filter(|_| pod.spec.is_none_or(|spec| spec.managed)) else {
            continue;
        };
        let is_well = vms.iter().any(|seen| seen.id == vm.id && seen.state.is_running());
        if !is_well {
            suspect(work, &vm);
        }
    }
}

/// A command may finish after the process that called it has died, and make a VM that nobody wants any more. It is seen for a while before
/// anything is done, because what is wanted is not known at once either.
fn judge_strangers(work: &PodWork, vms: &[VmRecord]) {
    let (claims, now) = (work.table.claims(), Instant::now());
    let mut due = Vec::new();
    let mut strangers = work.host.strangers.0.lock().unwrap_or_else(PoisonError::into_inner);
    strangers.retain(|id, _| vms.iter().any(|vm| vm.id == *id));
    for vm in vms {
        if claims.contains(&vm.id) || claims.contains(vm.name()) {
            strangers.remove(&vm.id);
            continue;
        }
        let stranger =
            strangers.entry(vm.id.clone()).or_insert(Stranger { since: now, told: false });
        if !stranger.told && now >= stranger.since + STRANGER_GRACE {
            // If it cannot be dealt with, it is tried again after as long.
            *stranger = Stranger { since: now, told: work.host.orphans != OrphanPolicy::Destroy };
            due.push(vm.clone());
        }
    }
    drop(strangers);
    for vm in due {
        let host = Arc::clone(&work.host);
        work.spawn_look(async move {
            orphan(&host, &vm).await;
        });
    }
}

/// Follows the VM's own process, which ends before the runtime's events tell of it. For as long as it is the pod's VM and the same process.
pub(super) async fn follow_process(work: PodWork, vm: VmRecord) {
    match process_ended(vm.pid).await {
        Ok(()) => suspect(&work, &vm),
        // Events and lists find it, too.
        Err(error) => tracing::debug!(vm = vm.name(), "process {}: {error}", vm.pid),
    }
}

/// Something may be wrong with a VM: a task of its own finds out, so that a slow one holds up nobody.
fn suspect(work: &PodWork, vm: &VmRecord) {
    let Some(key) = work.table.of_vm(&vm.id, vm.name()) else { return };
    // One look at a time: it goes on until it knows.
    let Some(looking) = Looking::begin(&work.suspects, &vm.id) else { return };
    let (work, vm) = (work.clone(), vm.clone());
    let own = work.clone();
    own.spawn_look(async move {
        look(&work, &key, &vm).await;
        drop(looking);
    });
}

/// VMs that are being looked at, by id.
pub(super) type Suspects = Arc<Mutex<BTreeSet<String>>>;

/// One of them, until this is dropped.
struct Looking {
    suspects: Suspects,
    vm: String,
}

impl Looking {
    /// `None` if somebody looks at it already.
    fn begin(suspects: &Suspects, vm: &str) -> Option<Self> {
        let is_new = suspects.lock().unwrap_or_else(PoisonError::into_inner).insert(vm.to_owned());
        is_new.then(|| Self { suspects: Arc::clone(suspects), vm: vm.to_owned() })
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        self.suspects.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.vm);
    }
}

async fn look(work: &PodWork, key: &Key, vm: &VmRecord) {
    let deadline = Instant::now() + BUDGET;
    let mut pause = SECOND_LOOK;
    loop {
        // What we do to it ourselves is no accident.
        let is_ours = work.table.get(key).is_some_and(|pod| {
            pod.activity.is_none() && pod.vm.is_some_and(|seen| seen.id == vm.id)
        });
        if !is_ours {
            return;
        }
        match work.host.runtime.inspect(&vm.id).await {
            Ok(seen) if seen.state.is_running() => return,
            Ok(seen) => {
                change_if_same(work, key, vm, |pod| pod.vm = Some(seen));
                return;
            }
            Err(RuntimeError::VmNotFound { .. }) => {
                end(work, key, vm, "VMGone", "vm no longer exists");
                return;
            }
            Err(error) => {
                work.host.metrics.inspect_failures.inc();
                tracing::warn!(pod = %key, "VM {} cannot be looked at: {error}", vm.name());
            }
        }
        if Instant::now() >= deadline {
            end(work, key, vm, "VMInspectTimeout", "vm inspect did not resolve within budget");
            return;
        }
        sleep(pause).await;
        pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_LOOK_PAUSE);
    }
}

fn end(work: &PodWork, key: &Key, vm: &VmRecord, reason: &'static str, message: &str) {
    let ending = Ending { reason, message: message.to_owned(), told: false };
    let subject = key.to_string();
    work.host.journal.pod(Verdict::Failed, &subject, Some(vm.name()), message);
    change_if_same(work, key, vm, |pod| {
        (pod.vm, pod.ending, pod.ready) = (None, Some(ending), false);
    });
}

fn change_if_same(
    work: &PodWork,
    key: &Key,
    vm: &VmRecord,
    change: impl FnOnce(&mut super::table::Tracked),
) {
    let changed = work.table.change(key, |pod| {
        let is_same =
            pod.activity.is_none() && pod.vm.as_ref().is_some_and(|seen| seen.id == vm.id);
        if is_same {
            change(pod);
        }
        is_same
    });
    if changed == Some(true) {
        work.trigger.signal(key.clone());
    }
}
