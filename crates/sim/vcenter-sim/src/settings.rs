//! The option manager: settings of the server that clients may read and change.

use std::collections::BTreeMap;
use std::time::Duration;

use roost_vim_wire::methods::{QueryOptions, UpdateOptions};
use roost_vim_wire::types::OptionValue;
use roost_vim_wire::{Array, Method, MoRef, Request, Value};

use crate::call::{CallContext, CallResult, Failure, ReplyBody, decode};
use crate::host_config;
use crate::options::Options;
use crate::property::{Found, no_such};
use crate::session;
use crate::world::World;

/// Minutes on vCenter; vcsim takes `2s` and the like, and so do we.
const SESSION_TIMEOUT: &str = "config.vmacore.soap.sessionTimeout";

#[derive(Debug)]
pub(crate) struct Settings(BTreeMap<String, Value>);

impl Settings {
    pub(crate) fn new(options: &Options) -> Self {
        let minutes = i32::try_from(options.session_idle_limit.as_secs() / 60).unwrap_or(i32::MAX);
        Self(BTreeMap::from([
            (SESSION_TIMEOUT.into(), Value::Int(minutes)),
            ("VirtualCenter.InstanceName".into(), Value::string("roost-vcenter-sim")),
            ("event.maxAge".into(), Value::Int(30)),
            ("event.maxAgeEnabled".into(), Value::Bool(true)),
            ("task.maxAge".into(), Value::Int(30)),
            ("task.maxAgeEnabled".into(), Value::Bool(true)),
        ]))
    }

    /// The setting of this name, or all below it when it ends with a dot.
    fn query(&self, name: &str) -> Vec<OptionValue> {
        select(&self.0, name)
    }

    pub(crate) fn property(&self, path: &str) -> Found {
        match path {
            "setting" => Ok(Some(as_array(&self.0))),
            "supportedOption" => Ok(None),
            _ => no_such(path),
        }
    }
}

fn select(options: &BTreeMap<String, Value>, name: &str) -> Vec<OptionValue> {
    let fits = |key: &str| {
        key == name || name.is_empty() || (name.ends_with('.') && key.starts_with(name))
    };
    let found = options.iter().filter(|(key, _)| fits(key));
    found.map(|(key, value)| OptionValue { key: key.clone(), value: Some(value.clone()) }).collect()
}

/// All options, as the property `setting` has them.
pub(crate) fn as_array(options: &BTreeMap<String, Value>) -> Value {
    let all = select(options, "").into_iter().map(Value::data).collect();
    Value::Array(Array::new("OptionValue", all))
}

/// A host has an option manager of its own.
pub(crate) fn call(
    request: &Request<'_>,
    this: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    Some(match request.method {
        QueryOptions::NAME => query(request, this, world),
        UpdateOptions::NAME => update(request, this, world, cx),
        _ => return None,
    })
}

fn query(request: &Request<'_>, this: &MoRef, world: &World) -> CallResult {
    let asked: QueryOptions = decode(request)?;
    let name = asked.name.unwrap_or_default();
    let found = match host_config::options(world, this) {
        Some(of_host) => select(&of_host, &name),
        None => world.settings.query(&name),
    };
    if found.is_empty() {
        let fault = Failure::of("InvalidName", format!("The name '{name}' is invalid."))
            .with("name", &name);
        return Err(fault);
    }
    Ok(ReplyBody::of::<QueryOptions>(&found))
}

/// All or none, as the schema says.
fn update(
    request: &Request<'_>,
    this: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> CallResult {
    let asked: UpdateOptions = decode(request)?;
    if host_config::options(world, this).is_some() {
        let changed = asked.changed_value.into_iter();
        let changed = changed.filter_map(|option| Some((option.key, option.value?)));
        host_config::set_options(world, this, changed);
        return Ok(ReplyBody::of::<UpdateOptions>(&()));
    }
    let mut idle_limit = None;
    for option in &asked.changed_value {
        let Some(value) = &option.value else { return Err(Failure::invalid_argument(&option.key)) };
        if option.key == SESSION_TIMEOUT {
            let Some(limit) = duration(value) else {
                return Err(Failure::invalid_argument(&option.key));
            };
            idle_limit = Some(limit);
        }
    }
    for option in asked.changed_value {
        world.settings.0.extend(option.value.map(|value| (option.key, value)));
    }
    if let Some(limit) = idle_limit {
        session::set_idle_limit(world, cx.handle, limit);
    }
    Ok(ReplyBody::of::<UpdateOptions>(&()))
}

/// A whole number is minutes; text may name its units: `90s`, `1m30s`, `500ms`.
fn duration(value: &Value) -> Option<Duration> {
    let minutes = |count: u64| Duration::from_secs(count.saturating_mul(60));
    if let Some(count) = value.as_i64() {
        return u64::try_from(count).ok().filter(|count| *count > 0).map(minutes);
    }
    let text = value.as_str()?.trim();
    if let Ok(count) = text.parse() {
        return Some(minutes(count)).filter(|limit| !limit.is_zero());
    }
    let (mut total, mut rest) = (Duration::ZERO, text);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|digits| *digits > 0)?;
        let count: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        total += match &rest[..letters] {
            "ms" => Duration::from_millis(count),
            "s" => Duration::from_secs(count),
            "m" => minutes(count),
            "h" => minutes(count.checked_mul(60)?),
            _ => return None,
        };
        rest = &rest[letters..];
    }
    Some(total).filter(|limit| !limit.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_minutes_or_names_its_units() {
        for (value, seconds) in [
            (Value::Int(30), Some(1800.0)),
            (Value::string("5"), Some(300.0)),
            (Value::string("2s"), Some(2.0)),
            (Value::string("1m30s"), Some(90.0)),
            (Value::string("500ms"), Some(0.5)),
            (Value::string("0"), None),
            (Value::string("soon"), None),
            (Value::Int(-1), None),
        ] {
            assert_eq!(duration(&value).map(|limit| limit.as_secs_f64()), seconds, "{value:?}");
        }
    }
}
