//! The appliance: which ways of getting into it are open, and when it shuts down.

use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Ask, INVALID, NOT_FOUND, Outcome, text};
use crate::call::CallContext;
use crate::world::World;

#[derive(Debug, Default)]
pub(super) struct Appliance {
    console_cli: bool,
    dcui: bool,
    shell: Shell,
    ssh: bool,
    shutdown: Option<Shutdown>,
}

#[derive(Debug, Default)]
struct Shell {
    is_open: bool,
    timeout_secs: i64,
}

/// A shutdown that is planned. It is shown and can be cancelled; the server of a test goes on.
#[derive(Debug)]
struct Shutdown {
    action: &'static str,
    reason: String,
    at: Timestamp,
}

/// `path` is what follows `appliance/`.
pub(super) fn carry_out(
    world: &mut World,
    cx: &CallContext<'_>,
    ask: &Ask<'_>,
    path: &[&str],
) -> Outcome {
    let appliance = &mut world.rest.appliance;
    match path {
        ["access", "consolecli"] => access(&mut appliance.console_cli, ask),
        ["access", "dcui"] => access(&mut appliance.dcui, ask),
        ["access", "ssh"] => access(&mut appliance.ssh, ask),
        ["access", "shell"] => shell(&mut appliance.shell, ask),
        ["shutdown"] => shutdown(&mut appliance.shutdown, cx, ask),
        _ => NOT_FOUND,
    }
}

fn access(is_open: &mut bool, ask: &Ask<'_>) -> Outcome {
    match *ask.method {
        Method::GET => Outcome::Value(json!(*is_open)),
        Method::PUT => match ask.body.get("enabled").and_then(Value::as_bool) {
            Some(wanted) => {
                *is_open = wanted;
                Outcome::Nothing
            }
            None => INVALID,
        },
        _ => NOT_FOUND,
    }
}

fn shell(shell: &mut Shell, ask: &Ask<'_>) -> Outcome {
    match *ask.method {
        Method::GET => {
            Outcome::Value(json!({ "enabled": shell.is_open, "timeout": shell.timeout_secs }))
        }
        Method::PUT => match ask.body.get("enabled").and_then(Value::as_bool) {
            Some(wanted) => {
                let timeout_secs = ask.body.get("timeout").and_then(Value::as_i64).unwrap_or(0);
                *shell = Shell { is_open: wanted, timeout_secs };
                Outcome::Nothing
            }
            None => INVALID,
        },
        _ => NOT_FOUND,
    }
}

fn shutdown(planned: &mut Option<Shutdown>, cx: &CallContext<'_>, ask: &Ask<'_>) -> Outcome {
    match (ask.method.as_str(), ask.action.as_deref()) {
        ("GET", _) => Outcome::Value(match planned {
            Some(one) => json!({
                "action": one.action, "reason": one.reason, "shutdown_time": one.at.to_string(),
            }),
            None => json!({ "action": "", "reason": "", "shutdown_time": "" }),
        }),
        ("POST", Some("cancel")) => {
            *planned = None;
            Outcome::Nothing
        }
        ("POST", Some(action @ ("poweroff" | "reboot"))) => {
            let minutes = ask.body.get("delay").and_then(Value::as_i64).unwrap_or(0);
            let Ok(at) = cx.now.checked_add(SignedDuration::from_mins(minutes)) else {
                return INVALID;
            };
            let action = if action == "reboot" { "reboot" } else { "poweroff" };
            *planned = Some(Shutdown { action, reason: text(&ask.body, "reason"), at });
            Outcome::Nothing
        }
        _ => NOT_FOUND,
    }
}
