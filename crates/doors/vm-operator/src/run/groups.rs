//! `VirtualMachineGroup` objects: a change of their power state goes to their members, each at its time in the boot order. A group that is a member hands it
//! on to its own, whose delays count from the time that it was given.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use roost_controller::{Draft, Key, Next, Pass, Reconciler, Store};

use crate::api::condition::{ConditionType, Reason, mark_false, mark_true};
use crate::api::names::{annotation, finalizer};
use crate::api::{
    GroupMember, GroupMemberStatus, MemberKind, PowerState, VirtualMachine, VirtualMachineGroup,
    VirtualMachineGroupSpec,
};
use crate::flow::{Context, PassError};

/// The power state that was last handed to members. Without it a restart would overrule whoever has changed a member since.
const APPLIED: &str = "roost.dev/applied-power-state";

/// What a person writes to have members brought in line at once.
const NOW: &str = "now";

pub(crate) struct Groups {
    pub(crate) cx: Arc<Context>,
    pub(crate) vms: Store<VirtualMachine>,
}

/// When each member changes: delays add up along the boot order, and backwards for the way down.
pub(crate) fn member_times(
    group: &VirtualMachineGroupSpec,
    wanted: PowerState,
    base: Timestamp,
) -> Vec<(GroupMember, Timestamp)> {
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
        all.extend(step.members.iter().map(|member| (member.clone(), at)));
    }
    all
}

impl Reconciler for Groups {
    type Object = VirtualMachineGroup;
    type Error = PassError;

    async fn reconcile(&self, pass: &Pass<VirtualMachineGroup>) -> Result<Next, PassError> {
        let Some(mut group) = pass.draft() else { return Ok(Next::AwaitChange) };
        if group.is_being_deleted() {
            // Members stay: they belong to themselves.
            if group.remove_finalizer(finalizer::GROUP) {
                self.cx.writer.save(&mut group).await?;
            }
            return Ok(Next::AwaitChange);
        }
        group.add_finalizer(finalizer::GROUP);
        if group.spec.next_force_power_state_sync_time == NOW {
            group.spec.next_force_power_state_sync_time = self.cx.now().to_string();
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
    (applied != Some(&handed_over(&group.spec, wanted))).then_some(wanted)
}

/// The note of what members were given: a wish to bring them in line once more is another one.
fn handed_over(group: &VirtualMachineGroupSpec, wanted: PowerState) -> String {
    let wish = &group.next_force_power_state_sync_time;
    if wish.is_empty() { wanted.to_string() } else { format!("{wanted} {wish}") }
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
        // The group that this one is in may have given it a time.
        let given = group.annotations().get(annotation::APPLY_POWER_STATE_TIME);
        let given = given.and_then(|at| at.parse::<Timestamp>().ok());
        let base = given.filter(|at| *at > now).unwrap_or(now);
        for (member, at) in member_times(&group.spec, wanted, base) {
            let key = Key::new(&namespace, &member.name);
            let at = Some(at).filter(|at| *at > now);
            match member.kind {
                MemberKind::VirtualMachine => self.give_vm(group, &key, wanted, at).await?,
                MemberKind::VirtualMachineGroup => self.give_group(group, &key, wanted, at).await?,
            }
        }
        let applied = handed_over(&group.spec, wanted);
        let notes = group.annotations_mut();
        notes.remove(annotation::APPLY_POWER_STATE_TIME);
        notes.insert(APPLIED.to_owned(), applied);
        let key = annotation::LAST_UPDATED_POWER_STATE_TIME.to_owned();
        notes.insert(key, now.to_string());
        let whole = Timestamp::from_second(now.as_second()).unwrap_or(now);
        group.status_mut().last_updated_power_state_time = Some(Time(whole));
        Ok(())
    }

    async fn give_vm(
        &self,
        group: &VirtualMachineGroup,
        key: &Key,
        wanted: PowerState,
        at: Option<Timestamp>,
    ) -> Result<(), PassError> {
        let Some(vm) = self.vms.get(key) else { return Ok(()) };
        if vm.spec.group_name != group.name_any() || vm.is_being_deleted() {
            return Ok(());
        }
        let mut member = Draft::of(vm, ());
        member.spec.power_state = Some(wanted);
        if group.spec.power_off_mode.is_some() {
            member.spec.power_off_mode = group.spec.power_off_mode;
        }
        if group.spec.suspend_mode.is_some() {
            member.spec.suspend_mode = group.spec.suspend_mode;
        }
        note_time(&mut *member, at);
        self.cx.writer.save(&mut member).await?;
        Ok(())
    }

    async fn give_group(
        &self,
        group: &VirtualMachineGroup,
        key: &Key,
        wanted: PowerState,
        at: Option<Timestamp>,
    ) -> Result<(), PassError> {
        let groups = &self.cx.stores.groups;
        let Some(inner) = groups.get(key) else { return Ok(()) };
        let is_ours = inner.spec.group_name == group.name_any()
            && inner.metadata.deletion_timestamp.is_none()
            && !is_above(group, &inner.name_any(), |name| {
                groups.get(&Key::new(&group.namespace().unwrap_or_default(), name))
            });
        if !is_ours {
            return Ok(());
        }
        let mut member = Draft::of(inner, ());
        member.spec.power_state = Some(wanted);
        if group.spec.power_off_mode.is_some() {
            member.spec.power_off_mode = group.spec.power_off_mode;
        }
        if group.spec.suspend_mode.is_some() {
            member.spec.suspend_mode = group.spec.suspend_mode;
        }
        // It may have been given the same state before, and its members changed since.
        member.spec.next_force_power_state_sync_time = self.cx.now().to_string();
        note_time(&mut *member, at);
        self.cx.writer.save(&mut member).await?;
        Ok(())
    }

    fn update_members(&self, group: &mut Draft<VirtualMachineGroup>) {
        let (namespace, own) = (group.namespace().unwrap_or_default(), group.name_any());
        let members = group.spec.boot_order.iter().flat_map(|order| &order.members);
        let known = group.status.as_ref().map(|status| status.members.clone()).unwrap_or_default();
        let members: Vec<GroupMemberStatus> = members
            .map(|member| {
                let is_same =
                    |of: &&GroupMemberStatus| of.name == member.name && of.kind == member.kind;
                let before = known.iter().find(is_same).cloned().unwrap_or_default();
                let key = Key::new(&namespace, &member.name);
                let (uid, power_state, is_in) = match member.kind {
                    MemberKind::VirtualMachine => match self.vms.get(&key) {
                        Some(vm) => (vm.uid(), vm.current_power_state(), vm.spec.group_name == own),
                        None => (None, None, false),
                    },
                    MemberKind::VirtualMachineGroup => match self.cx.stores.groups.get(&key) {
                        Some(inner) => (inner.uid(), None, inner.spec.group_name == own),
                        None => (None, None, false),
                    },
                };
                let mut conditions = before.conditions;
                let (kind, now) = (ConditionType::GroupLinked, self.cx.now());
                match (&uid, is_in) {
                    (None, _) => mark_false(&mut conditions, kind, Reason::NotFound, "", now),
                    (_, false) => mark_false(&mut conditions, kind, Reason::NotMember, "", now),
                    (_, true) => mark_true(&mut conditions, kind, now),
                };
                GroupMemberStatus {
                    name: member.name.clone(),
                    kind: member.kind,
                    uid: uid.unwrap_or_default(),
                    power_state,
                    conditions,
                    placement: before.placement,
                }
            })
            .collect();
        if members != known {
            group.status_mut().members = members;
        }
    }
}

/// When a member changes; none is at once.
fn note_time(member: &mut impl kube::Resource, at: Option<Timestamp>) {
    let notes = member.annotations_mut();
    match at {
        Some(at) => {
            notes.insert(annotation::APPLY_POWER_STATE_TIME.to_owned(), at.to_string());
        }
        None => {
            notes.remove(annotation::APPLY_POWER_STATE_TIME);
        }
    }
}

/// Whether a group of this name is the given one, or one that it is in: groups that contain each other would hand their state round for ever.
fn is_above(
    group: &VirtualMachineGroup,
    name: &str,
    find: impl Fn(&str) -> Option<Arc<VirtualMachineGroup>>,
) -> bool {
    let mut seen = BTreeSet::from([group.name_any()]);
    let mut above = group.spec.group_name.clone();
    while !above.is_empty() && seen.insert(above.clone()) {
        above = find(&above).map(|group| group.spec.group_name.clone()).unwrap_or_default();
    }
    seen.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{BootOrderGroup, GoDuration};

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
            times.into_iter().map(|(member, at)| (member.name, at.as_second())).collect()
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
        group.annotations_mut().insert(APPLIED.into(), "PoweredOff".into());
        group.spec.next_force_power_state_sync_time = "2026-11-01T00:00:00Z".into();
        assert_eq!(needs_hand_over(&group), Some(PowerState::PoweredOff), "asked for once more");
    }

    #[test]
    fn groups_that_contain_each_other_are_noticed() {
        let group = |name: &str, within: &str| {
            let mut group = VirtualMachineGroup::new(name, VirtualMachineGroupSpec::default());
            group.spec.group_name = within.into();
            Arc::new(group)
        };
        let all = [group("a", "b"), group("b", "c"), group("c", "a"), group("leaf", "a")];
        let find = |name: &str| all.iter().find(|group| group.name_any() == name).cloned();
        for (name, is) in [("a", true), ("c", true), ("leaf", false), ("elsewhere", false)] {
            assert_eq!(is_above(&all[0], name, find), is, "{name}");
        }
    }
}
