//! Readiness by what the VM itself says. Sockets are tried elsewhere.

use jiff::Timestamp;
use roost_fleet::Power;

use super::super::seen::Seen;
use super::conditions;
use crate::api::VirtualMachine;
use crate::api::condition::{ConditionType, Reason, mark_false, mark_true, mark_unknown, remove};
use crate::api::names::extra_config::GUESTINFO_PREFIX;
use crate::api::vm::{HeartbeatStatus, ReadinessProbe};

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Probed {
    Ready,
    NotReady(String),
    Unknown(String),
}

pub(super) fn update_probe_status(vm: &mut VirtualMachine, seen: &Seen, now: Timestamp) {
    let Some(probe) = vm.spec.readiness_probe.clone() else {
        remove(conditions(vm), ConditionType::Ready);
        return;
    };
    if let Some(probed) = probe_vm(&probe, seen) {
        mark_ready(vm, &probed, now);
    }
}

pub(crate) fn mark_ready(vm: &mut VirtualMachine, probed: &Probed, now: Timestamp) {
    let (all, kind) = (conditions(vm), ConditionType::Ready);
    match probed {
        Probed::Ready => mark_true(all, kind, now),
        Probed::NotReady(why) => mark_false(all, kind, Reason::NotReady, why, now),
        Probed::Unknown(why) => mark_unknown(all, kind, Reason::Unknown, why, now),
    };
}

/// `None`: somebody else probes it.
fn probe_vm(probe: &ReadinessProbe, seen: &Seen) -> Option<Probed> {
    if probe.tcp_socket.is_some() {
        return None;
    }
    if seen.power() != Power::On {
        return Some(Probed::NotReady("not powered on".to_owned()));
    }
    if let Some(heartbeat) = &probe.guest_heartbeat {
        let threshold = heartbeat.threshold_status.unwrap_or(HeartbeatStatus::Green);
        let beats = seen.text("guestHeartbeatStatus").unwrap_or_default();
        return Some(probe_heartbeat(beats, threshold));
    }
    let pairs = probe.guest_info.iter();
    let value = |key: &str| seen.extra_config(&format!("{GUESTINFO_PREFIX}{key}"));
    Some(probe_guest_info(pairs.map(|pair| (pair.key.as_str(), pair.value.as_str())), value))
}

fn probe_heartbeat(beats: &str, threshold: HeartbeatStatus) -> Probed {
    let rank = match beats {
        "green" => 3,
        "yellow" => 2,
        "red" => 1,
        "gray" => 0,
        _ => return Probed::Unknown("the guest has no heartbeat".to_owned()),
    };
    let least = match threshold {
        HeartbeatStatus::Green => 3,
        HeartbeatStatus::Yellow => 2,
    };
    if rank >= least {
        Probed::Ready
    } else {
        Probed::NotReady(format!("the heartbeat is {beats}, wanted is {threshold}"))
    }
}

/// All keys must be there and match; an empty or bad expression matches everything.
fn probe_guest_info<'a>(
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
    value: impl Fn(&str) -> Option<&'a str>,
) -> Probed {
    for (key, wanted) in pairs {
        let Some(is) = value(key) else {
            return Probed::NotReady(format!("{GUESTINFO_PREFIX}{key} is not set"));
        };
        let matches = regex::Regex::new(wanted).map_or(true, |regex| regex.is_match(is));
        if !matches {
            return Probed::NotReady(format!("{GUESTINFO_PREFIX}{key} does not match {wanted}"));
        }
    }
    Probed::Ready
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_counts_from_its_threshold_on() {
        use HeartbeatStatus::{Green, Yellow};
        for (beats, threshold, is_ready) in [
            ("green", Green, true),
            ("yellow", Green, false),
            ("yellow", Yellow, true),
            ("red", Yellow, false),
            ("gray", Yellow, false),
        ] {
            let probed = probe_heartbeat(beats, threshold);
            assert_eq!(probed == Probed::Ready, is_ready, "{beats} {threshold}");
        }
        assert!(matches!(probe_heartbeat("", Green), Probed::Unknown(_)));
    }

    #[test]
    fn guest_info_must_have_every_key_and_match() {
        let value = |key: &str| (key == "ready").then_some("true now");
        for (pairs, is_ready) in [
            (vec![("ready", "true")], true),
            (vec![("ready", "^true$")], false),
            (vec![("ready", "")], true),
            (vec![("ready", "(")], true),
            (vec![("ready", "true"), ("other", "")], false),
        ] {
            let probed = probe_guest_info(pairs.clone().into_iter(), value);
            assert_eq!(probed == Probed::Ready, is_ready, "{pairs:?}");
        }
    }
}
