use roost_fleet::VmId;
use roost_vim::{EventError, EventQuery};

use super::WorkerVms;

const POWERED_ON: &str = "VmPoweredOnEvent";
const POWERED_OFF: &str = "VmPoweredOffEvent";
const RENAMED: &str = "VmRenamedEvent";

impl WorkerVms {
    /// Whether the VM has had power since it has its name, by its events. A spare gets the worker's name with its claim; what happened to it
    /// before says nothing. Told by order and not by time, because clocks differ.
    pub(crate) async fn has_run(&self, vm: &VmId) -> Result<bool, EventError> {
        let types = [POWERED_ON, POWERED_OFF, RENAMED];
        let query =
            EventQuery { without_message: true, ..EventQuery::of(vm.moref()).types(&types) };
        let events = self.vcenter.events(&query).await?;
        let since = events.iter().rposition(|event| event.class == RENAMED).map_or(0, |at| at + 1);
        Ok(since < events.len())
    }
}
