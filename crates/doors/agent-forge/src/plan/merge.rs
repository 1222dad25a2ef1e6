use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::phases::whole_seconds;
use crate::api::{OwnedVm, Phase, Reason};
use crate::identity::same_machine;
use crate::names::label_value;

/// One VM of a pool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    pub vm: OwnedVm,
    /// A VsphereAgent of this pool stands for it. Others were only seen: they are shown and prepared, never deleted.
    pub managed: bool,
    /// The VM is known to exist, so that its Agent can be waited for.
    pub made: bool,
    pub protected: bool,
    /// It was made ahead of demand, and nobody has it yet.
    pub is_spare: bool,
    /// The AgentMachine that has it, where its VM was made for another or for nobody.
    pub claimed_by: Option<String>,
    /// A new VM would get other hardware.
    pub is_outdated: bool,
}

impl Record {
    /// The host name of its node.
    pub fn hostname(&self) -> &str {
        self.claimed_by.as_deref().unwrap_or(&self.vm.name)
    }

    /// Its Agent was prepared in this pass. The next pass finds it available.
    pub(crate) fn prepared(&mut self, now: Timestamp) {
        if self.vm.phase == Some(Phase::Available) {
            self.vm.reason = Some(Reason::AgentPrepared);
            self.vm.last_transition_time = Some(Time(whole_seconds(now)));
        }
    }

    /// The label by which an AgentMachine finds its Agent; a spare has none.
    pub fn pin(&self) -> Option<String> {
        (!self.is_spare).then(|| label_value(self.hostname()))
    }
}

/// Joins what VsphereAgents say now with what the pool remembered. The pool's memory of phases wins, because VsphereAgents copy it
/// from there; a VM that was made anew has no memory.
pub fn merge(previous: &[OwnedVm], current: Vec<Record>) -> Vec<Record> {
    let join = |mut record: Record| {
        let now = &record.vm;
        let found = previous.iter().find(|old| old.name == now.name && !now.name.is_empty());
        let found = found.or_else(|| previous.iter().find(|old| same_machine(old, now)));
        let Some(old) = found else { return record };
        let is_another =
            !old.bios_uuid.is_empty() && !now.bios_uuid.is_empty() && !same_machine(old, now);
        if is_another || now.reason == Some(Reason::VmReplacing) {
            return record;
        }
        let fill = |new: &str, old: &str| {
            if new.is_empty() { old.to_owned() } else { new.to_owned() }
        };
        record.vm = OwnedVm {
            name: now.name.clone(),
            bios_uuid: fill(&now.bios_uuid, &old.bios_uuid),
            mac_address: fill(&now.mac_address, &old.mac_address),
            failure_domain: fill(&now.failure_domain, &old.failure_domain),
            ..old.clone()
        };
        record
    };
    current.into_iter().map(join).collect()
}
