//! What a VsphereAgent needs next, from what is seen. Rows in the order in which they are asked.

use std::time::Duration;

use jiff::Timestamp;
use roost_fleet::VmId;

use crate::api::{OwnedVm, Phase, PoolDefaults, Reason, VsphereAgent, VsphereAgentPool};
use crate::control::conditions::{READY, Wanted};
use crate::plan::since_then;
use crate::planted::{self, Bug};

/// After a failure that may pass.
pub(super) const AGAIN: Duration = Duration::from_secs(30);
pub(super) const RESYNC: Duration = Duration::from_mins(1);
/// A create request that nobody heard the end of may lead to a VM for this long.
pub(super) const IN_FLIGHT: Duration = Duration::from_mins(10);

/// A vCenter and what it shows of this VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sight {
    /// It cannot be looked at, so nothing is known.
    Blind {
        why: String,
    },
    /// It is certain that there is none.
    Absent,
    There(Row),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) vm: VmId,
    pub(super) is_on: bool,
    /// Our marker is in it.
    pub(super) is_marked: bool,
}

/// The ISO to boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Iso {
    Ready(String),
    NoInfraEnv { why: String },
    NotYet { why: String },
}

/// How the last work on this VM ended, if it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) reason: &'static str,
    pub(super) why: String,
    pub(super) at: Timestamp,
}

#[derive(Debug, Clone)]
pub(super) struct Seen<'a> {
    pub(super) agent: &'a VsphereAgent,
    pub(super) pool: Option<&'a VsphereAgentPool>,
    /// Why nothing may be changed.
    pub(super) held: Option<String>,
    pub(super) sight: Sight,
    pub(super) iso: Iso,
    /// Something is being done.
    pub(super) is_busy: bool,
    pub(super) failure: Option<Failure>,
    /// Its AgentMachine waits for an Agent.
    pub(super) is_wanted: bool,
    /// There is no AgentMachine that it was made for, or it goes.
    pub(super) is_pointless: bool,
    /// The Agent says that the installation is done.
    pub(super) is_installed: bool,
    /// Another VsphereAgent stands for the same VM.
    pub(super) is_shared: bool,
    pub(super) now: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// Only the record.
    Adopt,
    Make {
        iso_path: String,
    },
    /// Tags, power and identity of a VM that an earlier attempt made.
    Finish(VmId),
    PowerOn(VmId),
    /// Writes our marker into a VM whose uuid is recorded.
    Mark(VmId),
    Eject(VmId),
    /// The VM registered no Agent: another one is made in its place.
    Replace(VmId),
    /// The VM is gone and is wanted: start from the beginning.
    Renew,
    /// Nobody wants it, and there is nothing to clean up.
    Withdraw,
    /// Power off and another name, so that it can be had back for a while.
    Quarantine(VmId),
    Destroy(VmId),
    /// Nothing of it is left, or is ours to delete.
    Release {
        is_pool_missing: bool,
    },
}

/// What to do and what to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) step: Step,
    /// `None` leaves it as it is.
    pub(super) ready: Option<Wanted>,
    pub(super) look_again: Option<Duration>,
}

fn plan_of(step: Step) -> Plan {
    Plan { step, ready: None, look_again: None }
}

impl Plan {
    fn saying(mut self, reason: &'static str, why: impl Into<String>) -> Self {
        self.ready = Some(Wanted::no(READY, reason, why));
        self
    }

    fn ready(mut self, reason: &'static str, why: &str) -> Self {
        self.ready = Some(Wanted::yes(READY, reason, why));
        self
    }

    fn again(mut self, after: Duration) -> Self {
        self.look_again = Some(after);
        self
    }
}

pub(super) fn plan(seen: &Seen<'_>) -> Plan {
    if seen.agent.is_deleting() { deleting(seen) } else { living(seen) }
}

fn deleting(seen: &Seen<'_>) -> Plan {
    let agent = seen.agent;
    let release = |is_pool_missing| plan_of(Step::Release { is_pool_missing });
    // It may make a VM yet.
    if seen.is_busy {
        return plan_of(Step::Nothing);
    }
    let Some(pool) = seen.pool else { return release(true) };
    if pool.retains() || seen.is_shared || planted::is(Bug::LeavesVms) {
        return release(false);
    }
    let Some(record) = agent.recorded() else { return release(false) };
    let is_kept = record.is_in_use() && !planted::is(Bug::DestroysBound);
    if is_kept && !agent.is_forced() && !pool.is_forced() {
        let why = "the VM is a bound worker; it is kept until the Machine is deleted or agent-forge.containeroo.ch/force-delete=true is set";
        return plan_of(Step::Nothing).saying("DeletionBlocked", why).again(RESYNC);
    }
    if let Some(why) = &seen.held {
        return plan_of(Step::Nothing).saying("Paused", why.clone()).again(RESYNC);
    }
    if let Some(failure) = recent(seen) {
        return plan_of(Step::Nothing).saying(failure.reason, failure.why.clone()).again(AGAIN);
    }
    match &seen.sight {
        Sight::Blind { why } => {
            plan_of(Step::Nothing).saying("ProviderUnavailable", why.clone()).again(AGAIN)
        }
        Sight::There(row) => leave(seen, pool, &row.vm),
        Sight::Absent => {
            let asked = record.last_transition_time.as_ref().map(|time| time.0);
            let age = asked.map_or(IN_FLIGHT, |asked| since_then(asked, seen.now));
            if record.bios_uuid.is_empty() && !agent.is_adopted() && age < IN_FLIGHT {
                let why = "a create request may still be under way";
                return plan_of(Step::Nothing)
                    .saying("VMCreatePending", why)
                    .again(IN_FLIGHT.saturating_sub(age));
            }
            release(false)
        }
    }
}

/// The VM goes: at once, or after its quarantine. Nobody waits for its object to be gone, or it goes at once.
fn leave(seen: &Seen<'_>, pool: &VsphereAgentPool, vm: &VmId) -> Plan {
    let is_forced = seen.agent.is_forced() || pool.is_forced();
    let quarantine = pool.quarantine().filter(|_| !is_forced && !seen.is_wanted);
    let Some(quarantine) = quarantine else {
        return plan_of(Step::Destroy(vm.clone())).again(AGAIN);
    };
    let Some(since) = seen.agent.status.quarantined_at.as_ref().map(|time| time.0) else {
        return plan_of(Step::Quarantine(vm.clone())).again(AGAIN);
    };
    let left = quarantine.saturating_sub(since_then(since, seen.now));
    if left.is_zero() {
        return plan_of(Step::Destroy(vm.clone())).again(AGAIN);
    }
    let why = "the VM is powered off and renamed; it is destroyed when spec.cleanup.quarantine is over, or at once with agent-forge.containeroo.ch/force-delete=true";
    plan_of(Step::Nothing).saying("Quarantined", why).again(left.min(RESYNC))
}

fn living(seen: &Seen<'_>) -> Plan {
    let agent = seen.agent;
    let Some(pool) = seen.pool else {
        let why = format!("VsphereAgentPool {} does not exist", agent.spec.pool_ref.name);
        return plan_of(Step::Nothing).saying("PoolNotFound", why).again(RESYNC);
    };
    if seen.is_busy {
        return plan_of(Step::Nothing);
    }
    let Some(record) = agent.recorded() else {
        if agent.is_adopted() {
            return plan_of(Step::Adopt).ready("VMAdopted", "the VM was adopted");
        }
        return create(seen);
    };
    match &seen.sight {
        Sight::There(row) => there(seen, pool, record, row),
        Sight::Blind { why } if record.bios_uuid.is_empty() && !agent.is_adopted() => {
            plan_of(Step::Nothing).saying("ProviderUnavailable", why.clone()).again(AGAIN)
        }
        Sight::Blind { .. } => plan_of(Step::Nothing).again(AGAIN),
        Sight::Absent => absent(seen, record),
    }
}

fn there(seen: &Seen<'_>, pool: &VsphereAgentPool, record: &OwnedVm, row: &Row) -> Plan {
    let vm = row.vm.clone();
    if seen.held.is_some() {
        return plan_of(Step::Nothing).again(RESYNC);
    }
    if let Some(failure) = recent(seen) {
        return plan_of(Step::Nothing).saying(failure.reason, failure.why.clone()).again(AGAIN);
    }
    if !row.is_marked {
        return plan_of(Step::Mark(vm));
    }
    if record.bios_uuid.is_empty() || record.reason == Some(Reason::VmReplacing) {
        // A VM that is still there from before its replacement goes first.
        if record.reason == Some(Reason::VmReplacing)
            && record.bios_uuid.is_empty()
            && seen.agent.status.next_attempt_at.is_some()
        {
            return plan_of(Step::Destroy(vm))
                .saying("VMReplacing", "the VM that registered no Agent is deleted")
                .again(AGAIN);
        }
        return plan_of(Step::Finish(vm));
    }
    let is_expired = record.is(Phase::Orphaned, Reason::AgentDiscoveryExpired);
    if is_expired && seen.is_wanted && !pool.retains() && !seen.agent.is_protected() {
        if seen.agent.status.attempts >= pool.max_attempts() {
            let why = format!(
                "{} VMs registered no Agent; delete this object to start over",
                seen.agent.status.attempts.saturating_add(1)
            );
            return plan_of(Step::Nothing).saying("DiscoveryFailed", why).again(RESYNC);
        }
        return plan_of(Step::Replace(vm))
            .saying("VMReplacing", "the VM registered no Agent in time");
    }
    let is_new = matches!(record.phase, Some(Phase::Provisioning | Phase::Available));
    if !row.is_on {
        if is_new {
            return plan_of(Step::PowerOn(vm));
        }
        return plan_of(Step::Nothing)
            .saying("VMPoweredOff", "the VM is powered off")
            .again(RESYNC);
    }
    let is_bound = record.phase == Some(Phase::Bound);
    if is_bound && seen.is_installed && pool.ejects() && !seen.agent.status.iso_ejected {
        return plan_of(Step::Eject(vm));
    }
    plan_of(Step::Nothing).ready("VMCreated", "the VM is there").again(RESYNC)
}

fn absent(seen: &Seen<'_>, record: &OwnedVm) -> Plan {
    if seen.agent.is_adopted() {
        if record.bios_uuid.is_empty() {
            return plan_of(Step::Nothing).ready("VMAdopted", "the VM was adopted").again(RESYNC);
        }
        return plan_of(Step::Nothing)
            .saying("VMMissing", "the VM is not in the vCenter")
            .again(RESYNC);
    }
    // It was asked for, and never seen.
    if record.bios_uuid.is_empty() {
        return create(seen);
    }
    if seen.is_wanted && seen.held.is_none() && record.phase != Some(Phase::Bound) {
        return plan_of(Step::Renew).saying("VMMissing", "the VM is gone and is made anew");
    }
    plan_of(Step::Nothing).saying("VMMissing", "the VM is not in the vCenter").again(RESYNC)
}

fn create(seen: &Seen<'_>) -> Plan {
    let agent = seen.agent;
    // Asked for, never made, and by now nothing can come of it: a name that somebody else has, a place that is gone.
    let asked = agent.recorded().and_then(|vm| vm.last_transition_time.as_ref());
    let is_over = asked.is_none_or(|asked| since_then(asked.0, seen.now) >= IN_FLIGHT);
    let is_nothing = agent.recorded().is_none() || seen.sight == Sight::Absent && is_over;
    if seen.is_pointless && is_nothing {
        return plan_of(Step::Withdraw);
    }
    if let Some(why) = &seen.held {
        return plan_of(Step::Nothing).saying("Paused", why.clone()).again(RESYNC);
    }
    if let Iso::NoInfraEnv { why } = &seen.iso {
        return plan_of(Step::Nothing).saying("InfraEnvUnavailable", why.clone()).again(AGAIN);
    }
    match &seen.sight {
        Sight::Blind { why } => {
            return plan_of(Step::Nothing).saying("ProviderUnavailable", why.clone()).again(AGAIN);
        }
        // Ours from an attempt that left no record.
        Sight::There(row) => return plan_of(Step::Finish(row.vm.clone())),
        Sight::Absent => {}
    }
    if let Some(failure) = recent(seen) {
        return plan_of(Step::Nothing).saying(failure.reason, failure.why.clone()).again(AGAIN);
    }
    if let Some(at) = agent.status.next_attempt_at.as_ref().map(|time| time.0)
        && seen.now < at
    {
        let why = format!("attempt {} begins at {at:.0}", agent.status.attempts.saturating_add(1));
        return plan_of(Step::Nothing).saying("VMReplacing", why).again(since_then(seen.now, at));
    }
    match &seen.iso {
        Iso::Ready(path) => plan_of(Step::Make { iso_path: path.clone() }),
        Iso::NotYet { why } | Iso::NoInfraEnv { why } => {
            plan_of(Step::Nothing).saying("ISORefreshFailed", why.clone()).again(AGAIN)
        }
    }
}

/// A failure that is too young for another try.
fn recent<'a>(seen: &'a Seen<'_>) -> Option<&'a Failure> {
    seen.failure.as_ref().filter(|failure| since_then(failure.at, seen.now) < AGAIN)
}
