//! `VirtualMachineGroup` objects: a change of their power state goes to their members, each at its time in the boot order.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use roost_controller::{Draft, Key, Next, Pass, Reconciler, Store};

use crate::api::names::annotation;
use crate::api::{
    GroupMemberStatus, MemberKind, PowerState, VirtualMachine, VirtualMachineGroup,
    VirtualMachineGroupSpec,
};
use crate::flow::{Context, PassError};

/// The power state that was last handed to members. Without it a restart would overrule whoever has changed a member since.
const APPLIED: &str = "roost.dev/applied-power-state";

pub(crate) struct Groups {
    pub(crate) cx: Arc<Context>,
    pub(crate) vms: Store<VirtualMachine>,
}

/// When each member changes: delays add up along the boot order, and backwards for the way down.
pub(crate) fn member_times(
    group: &VirtualMachineGroupSpec,
    wanted: PowerState,
    base: Timestamp,
) -> Vec<(String, Timestamp)> {
    let mut at = base;
    let mut all = Vec::new();
    let is_up = wanted == PowerState::PoweredOn;
    let order: Vec<_> = if is_up {
        group.boot_order.iter().collect()
    } else {
        group.boot_order.iter().rev().collect()
    };
    for step in order {
        let delay = if is_up { &step.power_on_delay } else { &step.power_off_delay };
        let delay = delay.as_ref().and_then(|delay| delay.parse().ok());
        at += delay.unwrap_or(Duration::ZERO);
        let vms = step.members.iter().filter(|member| member.kind == MemberKind::VirtualMachine);
        all.extend(vms.map(|member| (member.name.clone(), at)));
    }
    all
}

impl Reconciler for Groups {
    type Object = VirtualMachineGroup;
    type Error = PassError;

    async fn reconcile(&self, pass: &Pass<VirtualMachineGroup>) -> Result<Next, PassError> {
        let Some(mut group) = pass.draft() else { return Ok(Next::AwaitChange) };
        if group.is_being_deleted() {
            return Ok(Next::AwaitChange);
        }
        if let Some(wanted) = needs_hand_over(&group) {
            self.hand_over(&mut group, wanted).await?;
        }
        self.update_members(&mut group);
        self.cx.writer.save(&mut group).await?;
        Ok(Next::AwaitChange)
    }
}

/// The power state that members have not been given yet.
fn needs_hand_over(group: &VirtualMachineGroup) -> Option<PowerState> {
    let wanted = group.spec.power_state?;
    let applied = group.annotations().get(APPLIED);
    (applied.map(String::as_str) != Some(wanted.as_str())).then_some(wanted)
}

impl Groups {
    /// Members first, then the note that it is done: a crash in between hands it over once more.
    async fn hand_over(
        &self,
        group: &mut Draft<VirtualMachineGroup>,
        wanted: PowerState,
    ) -> Result<(), PassError> {
        let now = self.cx.now();
        let namespace = group.namespace().unwrap_or_default();
        for (name, at) in member_times(&group.spec, wanted, now) {
            let Some(vm) = self.vms.get(&Key::new(&namespace, &name)) else { continue };
            let is_ours = vm.spec.group_name == group.name_any() && !vm.is_being_deleted();
            if !is_ours {
                continue;
            }
            let mut member = Draft::of(vm, ());
            member.spec.power_state = Some(wanted);
            if group.spec.power_off_mode.is_some() {
                member.spec.power_off_mode = group.spec.power_off_mode;
            }
            if group.spec.suspend_mode.is_some() {
                member.spec.suspend_mode = group.spec.suspend_mode;
            }
            if at > now {
                let key = annotation::APPLY_POWER_STATE_TIME.to_owned();
                member.annotations_mut().insert(key, at.to_string());
            }
            self.cx.writer.save(&mut member).await?;
        }
        let notes = group.annotations_mut();
        notes.insert(APPLIED.to_owned(), wanted.to_string());
        let key = annotation::LAST_UPDATED_POWER_STATE_TIME.to_owned();
        notes.insert(key, now.to_string());
        let whole = Timestamp::from_second(now.as_second()).unwrap_or(now);
        group.status_mut().last_updated_power_state_time = Some(Time(whole));
        Ok(())
    }

    fn update_members(&self, group: &mut Draft<VirtualMachineGroup>) {
        let namespace = group.namespace().unwrap_or_default();
        let members = group.spec.boot_order.iter().flat_map(|order| &order.members);
        let known = group.status.as_ref().map(|status| status.members.clone()).unwrap_or_default();
        let members: Vec<GroupMemberStatus> = members
            .map(|member| {
                let is_same =
                    |of: &&GroupMemberStatus| of.name == member.name && of.kind == member.kind;
                let before = known.iter().find(is_same).cloned().unwrap_or_default();
                let is_vm = member.kind == MemberKind::VirtualMachine;
                let vm = self.vms.get(&Key::new(&namespace, &member.name)).filter(|_| is_vm);
                GroupMemberStatus {
                    name: member.name.clone(),
                    kind: member.kind,
                    uid: vm.as_ref().and_then(|vm| vm.uid()).unwrap_or_default(),
                    power_state: vm.as_ref().and_then(|vm| vm.current_power_state()),
                    ..before
                }
            })
            .collect();
        if members != known {
            group.status_mut().members = members;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{BootOrderGroup, GoDuration, GroupMember};

    #[test]
    fn delays_add_up_along_the_order_and_backwards_on_the_way_down() {
        let step = |names: &[&str], on: &str, off: &str| BootOrderGroup {
            members: names
                .iter()
                .map(|name| GroupMember { kind: MemberKind::VirtualMachine, name: (*name).into() })
                .collect(),
            power_on_delay: Some(GoDuration::new(on)),
            power_off_delay: Some(GoDuration::new(off)),
            ..BootOrderGroup::default()
        };
        let boot_order = vec![
            step(&["db"], "0s", "5s"),
            step(&["a", "b"], "30s", "0s"),
            step(&["c"], "10s", "1s"),
        ];
        let group = VirtualMachineGroupSpec { boot_order, ..VirtualMachineGroupSpec::default() };
        let at = |wanted| -> Vec<(String, i64)> {
            let times = member_times(&group, wanted, Timestamp::UNIX_EPOCH);
            times.into_iter().map(|(name, at)| (name, at.as_second())).collect()
        };
        let owned = |all: &[(&str, i64)]| -> Vec<(String, i64)> {
            all.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect()
        };
        assert_eq!(at(PowerState::PoweredOn), owned(&[("db", 0), ("a", 30), ("b", 30), ("c", 40)]));
        assert_eq!(at(PowerState::PoweredOff), owned(&[("c", 1), ("a", 1), ("b", 1), ("db", 6)]));
    }

    #[test]
    fn a_power_state_is_handed_over_once() {
        let mut group = VirtualMachineGroup::default();
        assert_eq!(needs_hand_over(&group), None, "the group says nothing");
        group.spec.power_state = Some(PowerState::PoweredOn);
        assert_eq!(needs_hand_over(&group), Some(PowerState::PoweredOn));
        group.annotations_mut().insert(APPLIED.into(), "PoweredOn".into());
        assert_eq!(needs_hand_over(&group), None);
        group.spec.power_state = Some(PowerState::PoweredOff);
        assert_eq!(needs_hand_over(&group), Some(PowerState::PoweredOff));
    }
}
