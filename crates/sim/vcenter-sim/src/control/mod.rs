//! The control endpoint: what the typed API of [`Vcenter`] does, as JSON over HTTP, for tests in other processes.
//!
//! It is off unless the options say so, and it asks for no password: it belongs on loopback.

mod json_guest;
mod json_rule;

use std::io;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use percent_encoding::percent_decode_str;
use roost_vim_wire::types::UserSession;
use roost_vim_wire::{MoRef, MoType};
use serde::Deserialize;
use serde_json::{Value, json};

use self::json_guest::{JsonBehaviour, JsonScript};
use self::json_rule::JsonRule;
use crate::door::{Body, Vcenter};
use crate::fault_rules::{Outage, RuleId};
use crate::guest::GuestProgram;
use crate::inventory::HostConnection;
use crate::permission::Denial;
use crate::vm::Power;
use crate::world::{Handle, World};
use crate::{outage, reply};

const MAX_BODY: usize = 1 << 20;

/// So that who asked for a restart gets an answer before it is cut off like everybody else.
const BEFORE_RESTART: Duration = Duration::from_millis(20);

pub(crate) async fn answer(
    vcenter: &Vcenter,
    request: Request<Body>,
) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        return Ok(reply::status(StatusCode::PAYLOAD_TOO_LARGE));
    };
    let path = head.uri.path().strip_prefix("/roost/control").unwrap_or_default().trim_matches('/');
    let path: Vec<_> =
        path.split('/').map(|part| percent_decode_str(part).decode_utf8_lossy()).collect();
    let path: Vec<&str> = path.iter().map(|part| &**part).collect();
    Ok(match carry_out(vcenter, &head.method, &path, &body.to_bytes()) {
        Ok(value) => reply::json(StatusCode::OK, &value),
        Err(Refusal::NotFound) => reply::status(StatusCode::NOT_FOUND),
        Err(Refusal::Bad(words)) => {
            reply::json(StatusCode::BAD_REQUEST, &json!({ "error": words }))
        }
    })
}

#[derive(Debug)]
enum Refusal {
    NotFound,
    Bad(String),
}

fn carry_out(
    vcenter: &Vcenter,
    method: &Method,
    path: &[&str],
    body: &[u8],
) -> Result<Value, Refusal> {
    match (method.as_str(), path) {
        ("GET", ["counters"]) => return Ok(json!(vcenter.counters())),
        ("DELETE", ["counters"]) => vcenter.reset_counters(),
        ("GET", ["rules"]) => {
            let rules = vcenter.faults().list();
            return Ok(json!(rules.iter().map(json_rule::report).collect::<Vec<_>>()));
        }
        ("POST", ["rules"]) => {
            let rule: JsonRule = parse(body)?;
            let id = vcenter.faults().add(rule.into_rule().map_err(Refusal::Bad)?);
            return Ok(json!({ "id": id.0 }));
        }
        ("DELETE", ["rules"]) => vcenter.faults().clear(),
        ("DELETE", ["rules", id]) => {
            let id = id.parse().map_err(|_| Refusal::NotFound)?;
            if !vcenter.faults().remove(RuleId(id)) {
                return Err(Refusal::NotFound);
            }
        }
        ("POST", ["restart"]) => {
            let outage = Outage::from(parse::<JsonOutage>(body)?);
            let restart =
                move |world: &mut World, handle: &Handle| outage::restart(world, handle, outage);
            vcenter.handle.after(BEFORE_RESTART, restart);
        }
        ("GET", ["sessions"]) => return Ok(sessions(vcenter)),
        ("DELETE", ["sessions"]) => vcenter.expire_sessions(),
        ("GET", ["permissions"]) => return Ok(permissions(vcenter)),
        ("POST", ["permissions", what @ ("deny" | "allow")]) => {
            let asked: JsonDenial = parse(body)?;
            let below = asked.below.as_deref().map(|text| object(vcenter, text)).transpose()?;
            match *what {
                "deny" => vcenter.deny(&asked.privilege, below),
                _ => vcenter.allow(&asked.privilege, below),
            }
        }
        ("DELETE", ["permissions"]) => vcenter.handle.with(|world| world.permissions.clear()),
        _ => return steer(vcenter, method, path, body),
    }
    Ok(json!({}))
}

/// What moves the world itself: guests, VMs, hosts, datastores.
fn steer(vcenter: &Vcenter, method: &Method, path: &[&str], body: &[u8]) -> Result<Value, Refusal> {
    let steered = match (method.as_str(), path) {
        ("GET", ["guests", "programs"]) => {
            let programs = vcenter.guest_programs();
            return Ok(json!(programs.iter().map(json_guest::program).collect::<Vec<_>>()));
        }
        ("GET", ["guests", "boots"]) => return Ok(json!(vcenter.guest_boots())),
        ("PUT", ["guests", "scripts"]) => {
            let scripts: Vec<JsonScript> = parse(body)?;
            let first = move |program: &GuestProgram| {
                scripts.iter().find_map(|script| script.reply_to(program))
            };
            vcenter.script_guests(first);
            Ok(())
        }
        ("PUT", ["guests", vm, "behaviour"]) => {
            vcenter.set_guest_behaviour(vm, parse::<JsonBehaviour>(body)?.into())
        }
        ("PUT", ["vms", vm, "power", state]) => {
            let power = match *state {
                "on" => Power::On,
                "off" => Power::Off,
                "suspended" => Power::Suspended,
                _ => return Err(Refusal::NotFound),
            };
            vcenter.set_power(vm, power)
        }
        ("DELETE", ["vms", vm]) => vcenter.kill_vm(vm),
        ("PUT", ["hosts", host, "connection", state]) => {
            let connection = match *state {
                "connected" => HostConnection::Connected,
                "disconnected" => HostConnection::Disconnected,
                "notResponding" => HostConnection::NotResponding,
                _ => return Err(Refusal::NotFound),
            };
            vcenter.set_host_connection(host, connection)
        }
        ("PUT", ["datastores", name, "free", bytes]) => {
            vcenter.fill_datastore(name, bytes.parse().map_err(|_| Refusal::NotFound)?)
        }
        _ => return Err(Refusal::NotFound),
    };
    steered.map_err(|error| Refusal::Bad(error.to_string())).map(|()| json!({}))
}

fn sessions(vcenter: &Vcenter) -> Value {
    let shown = |session: &UserSession| json!({ "key": session.key, "user": session.user_name, "calls": session.call_count });
    json!(vcenter.sessions().iter().map(shown).collect::<Vec<_>>())
}

fn permissions(vcenter: &Vcenter) -> Value {
    let shown = |denial: &Denial| {
        let below = denial.below.as_ref().map(ToString::to_string);
        json!({ "privilege": denial.privilege, "below": below })
    };
    json!(vcenter.denials().iter().map(shown).collect::<Vec<_>>())
}

fn parse<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Result<T, Refusal> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|error| Refusal::Bad(error.to_string()))
}

/// An object by its reference, `VirtualMachine:vm-12`, or by its inventory path.
fn object(vcenter: &Vcenter, text: &str) -> Result<MoRef, Refusal> {
    let unknown = || Refusal::Bad(format!("there is no object {text}"));
    if text.starts_with('/') {
        return vcenter.find(text).ok_or_else(unknown);
    }
    let (kind, id) = text.split_once(':').ok_or_else(unknown)?;
    let obj = MoRef::new(MoType::from(kind), id);
    vcenter.handle.with(|world| world.inventory.contains(&obj)).then_some(obj).ok_or_else(unknown)
}

#[derive(Debug, Clone, Copy, Default, Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct JsonOutage {
    lasts_ms: u64,
    refuses: bool,
}

impl From<JsonOutage> for Outage {
    fn from(json: JsonOutage) -> Self {
        Self { lasts: Duration::from_millis(json.lasts_ms), refuses: json.refuses }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct JsonDenial {
    privilege: String,
    below: Option<String>,
}
