//! The events of VMs that say nowhere else since when they are workers: those that a CDS hatchery before 0.57 claimed.

use roost_supervise::{Chain, Tasks};
use roost_vim::EventQuery;

use crate::retire::{EventKind, EventTimes, Verdict};
use crate::run::cleanup::Retirer;
use crate::status::task;

/// At one look, so that a datacenter full of such VMs does not become a burst of calls. The rest is asked for at the next.
const AT_ONCE: usize = 20;

/// Reads the events that verdicts wait for, once for each VM and state of its power. One that cannot be read keeps its VM (W22).
pub(super) async fn learn_events(retirer: &Retirer, tasks: &Tasks) {
    let snapshot = retirer.mirror.snapshot();
    if !snapshot.freshness().complete {
        return;
    }
    retirer.deletions.forget_events(|vm| snapshot.vm(vm).is_none());
    let waiting = retirer.judge.fates(&snapshot, retirer.about.now()).into_iter();
    let asked = waiting.filter(|fate| fate.verdict == Verdict::AskEvents).take(AT_ONCE);
    for vm in asked.map(|fate| fate.vm) {
        tasks.beat(task::CLEANUP, retirer.about.patience());
        let query = EventQuery::of(vm.id.moref()).types(&EventKind::ALL.map(EventKind::class));
        match retirer.vcenter.events(&query).await {
            Ok(events) => {
                let read = events.iter().filter_map(|event| {
                    let kind = EventKind::of_class(&event.class)?;
                    let message = event.full_formatted_message.as_deref().unwrap_or_default();
                    Some((kind, event.created_time, message))
                });
                retirer.deletions.keep_events(&vm.id, vm.power, EventTimes::collect(read));
            }
            Err(error) => tracing::warn!(
                vm = %vm.id,
                "the events of {} could not be read: {}",
                vm.name,
                Chain(&error)
            ),
        }
    }
}
