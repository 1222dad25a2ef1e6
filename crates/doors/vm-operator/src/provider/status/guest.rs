//! What the guest says of itself: tools, customization, its own bootstrap.

use jiff::Timestamp;
use roost_fleet::Tools;

use super::super::seen::Seen;
use super::conditions;
use crate::api::VirtualMachine;
use crate::api::condition::{
    ConditionType, Reason, Truth, mark_false, mark_text, mark_true, mark_unknown, remove,
};
use crate::api::names::extra_config;

pub(super) fn update_guest_conditions(vm: &mut VirtualMachine, seen: &Seen, now: Timestamp) {
    let all = conditions(vm);
    match seen.row.guest.tools {
        Tools::Running | Tools::ExecutingScripts => {
            mark_true(all, ConditionType::Tools, now);
        }
        Tools::NotRunning => {
            let (kind, reason) = (ConditionType::Tools, Reason::ToolsNotRunning);
            mark_false(all, kind, reason, "VMware Tools do not run", now);
        }
        Tools::Unknown => {
            mark_unknown(all, ConditionType::Tools, Reason::NoGuestInfo, "", now);
        }
    }
    update_customization(vm, seen, now);
    match seen.extra_config(extra_config::BOOTSTRAP_CONDITION).map(parse_bootstrap) {
        Some((truth, reason, message)) => {
            let kind = ConditionType::GuestBootstrap.as_str();
            mark_text(conditions(vm), kind, truth, &reason, &message, now);
        }
        None => {
            remove(conditions(vm), ConditionType::GuestBootstrap);
        }
    }
}

fn update_customization(vm: &mut VirtualMachine, seen: &Seen, now: Timestamp) {
    let (all, kind) = (conditions(vm), ConditionType::GuestCustomization);
    let Some(info) = seen.customization() else {
        mark_unknown(all, kind, Reason::NoGuestInfo, "", now);
        return;
    };
    let status = info.customization_status.strip_prefix("TOOLSDEPLOYPKG_");
    let message = info.error_msg.as_deref().unwrap_or_default();
    let reason = match status.unwrap_or(&info.customization_status) {
        "" | "IDLE" | "SUCCEEDED" => {
            mark_true(all, kind, now);
            return;
        }
        "PENDING" => Reason::CustomizationPending,
        "RUNNING" => Reason::CustomizationRunning,
        "FAILED" => Reason::CustomizationFailed,
        other => {
            mark_unknown(all, kind, Reason::Unknown, other, now);
            return;
        }
    };
    mark_false(all, kind, reason, message, now);
}

/// `bool[,reason[,message]]`.
fn parse_bootstrap(text: &str) -> (Truth, String, String) {
    let mut parts = text.splitn(3, ',').map(str::trim);
    let first = parts.next().unwrap_or_default();
    let truth = Truth::from(extra_config::is_true(first));
    let usual = truth.as_str().to_owned();
    let reason = parts.next().filter(|reason| !reason.is_empty()).map_or(usual, str::to_owned);
    (truth, reason, parts.next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_says_how_its_bootstrap_went() {
        for (text, want) in [
            ("true", (Truth::True, "True", "")),
            ("false", (Truth::False, "False", "")),
            ("TRUE,Done", (Truth::True, "Done", "")),
            ("false,NoNet,no route, no name", (Truth::False, "NoNet", "no route, no name")),
            ("1", (Truth::True, "True", "")),
        ] {
            let (truth, reason, message) = parse_bootstrap(text);
            assert_eq!((truth, reason.as_str(), message.as_str()), want, "{text}");
        }
    }
}
