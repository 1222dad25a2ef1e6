//! `vm status --event`: the difference between two looks at the host, one line each.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use roost_microvm::{EventKind, VmEvent, VmRecord};

use super::folder::Folder;
use crate::host::Refusal;

const PAUSE: Duration = Duration::from_millis(50);

pub(super) fn follow(folder: &Folder) -> Result<ExitCode, Refusal> {
    let mut known: BTreeMap<String, VmRecord> = BTreeMap::new();
    loop {
        let seen: BTreeMap<String, VmRecord> = {
            let host = folder.lock()?;
            host.model.vms().map(|vm| (vm.id.clone(), host.seen(vm))).collect()
        };
        let mut out = io::stdout().lock();
        for event in difference(&known, &seen) {
            let line = serde_json::to_string(&event).unwrap_or_default();
            if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
                return Ok(ExitCode::SUCCESS);
            }
        }
        drop(out);
        known = seen;
        std::thread::sleep(PAUSE);
    }
}

fn difference(
    before: &BTreeMap<String, VmRecord>,
    after: &BTreeMap<String, VmRecord>,
) -> Vec<VmEvent> {
    let mut events = Vec::new();
    for (id, vm) in after {
        let kind = match before.get(id) {
            None => EventKind::Added,
            Some(old) if old != vm => EventKind::Modified,
            Some(_) => continue,
        };
        events.push(VmEvent { event: kind, vm: vm.clone() });
    }
    let gone = before.iter().filter(|(id, _)| !after.contains_key(*id));
    events.extend(gone.map(|(_, vm)| VmEvent { event: EventKind::Deleted, vm: vm.clone() }));
    events
}
