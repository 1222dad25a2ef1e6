//! The control endpoint: what the typed API of [`Vcenter`] does, as JSON over HTTP, for tests in other processes.
//!
//! It is off unless the options say so, and it asks for no password: it belongs on loopback.

mod json_rule;

use std::io;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use roost_vim_wire::{MoRef, MoType};
use serde::Deserialize;
use serde_json::{Value, json};

use self::json_rule::JsonRule;
use crate::door::{Body, Vcenter};
use crate::fault_rules::{Outage, RuleId};
use crate::reply;

const MAX_BODY: usize = 1 << 20;

pub(crate) async fn answer(vcenter: &Vcenter, request: Request<Body>) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        return Ok(reply::status(StatusCode::PAYLOAD_TOO_LARGE));
    };
    let path = head.uri.path().trim_start_matches("/roost/control").trim_matches('/').to_owned();
    let path: Vec<&str> = path.split('/').collect();
    Ok(match carry_out(vcenter, &head.method, &path, &body.to_bytes()) {
        Ok(value) => reply::json(StatusCode::OK, &value),
        Err(Refusal::NotFound) => reply::status(StatusCode::NOT_FOUND),
        Err(Refusal::Bad(words)) => reply::json(StatusCode::BAD_REQUEST, &json!({ "error": words })),
    })
}

#[derive(Debug)]
enum Refusal {
    NotFound,
    Bad(String),
}

fn carry_out(vcenter: &Vcenter, method: &Method, path: &[&str], body: &[u8]) -> Result<Value, Refusal> {
    match (method.as_str(), path) {
        ("GET", ["counters"]) => Ok(json!(vcenter.counters())),
        ("DELETE", ["counters"]) => done(vcenter.reset_counters()),
        ("GET", ["rules"]) => {
            let rules = vcenter.faults().list();
            Ok(json!(rules.iter().map(json_rule::report).collect::<Vec<_>>()))
        }
        ("POST", ["rules"]) => {
            let rule: JsonRule = parse(body)?;
            Ok(json!({ "id": vcenter.faults().add(rule.into_rule().map_err(Refusal::Bad)?).0 }))
        }
        ("DELETE", ["rules"]) => done(vcenter.faults().clear()),
        ("DELETE", ["rules", id]) => {
            let id = id.parse().map_err(|_| Refusal::NotFound)?;
            if vcenter.faults().remove(RuleId(id)) { done(()) } else { Err(Refusal::NotFound) }
        }
        ("POST", ["restart"]) => {
            let asked: JsonOutage = parse(body)?;
            done(vcenter.restart(asked.into()))
        }
        ("GET", ["sessions"]) => {
            let shown = |session: &crate::session::Session| {
                let session = session.as_user_session();
                json!({ "key": session.key, "user": session.user_name, "calls": session.call_count })
            };
            Ok(vcenter.handle.with(|world| json!(world.sessions.iter().map(shown).collect::<Vec<_>>())))
        }
        ("DELETE", ["sessions"]) => done(vcenter.expire_sessions()),
        ("GET", ["permissions"]) => {
            let denials = vcenter.denials();
            let shown = denials.iter().map(|denial| {
                json!({ "privilege": denial.privilege, "below": denial.below.as_ref().map(ToString::to_string) })
            });
            Ok(json!(shown.collect::<Vec<_>>()))
        }
        ("POST", ["permissions", what @ ("deny" | "allow")]) => {
            let asked: JsonDenial = parse(body)?;
            let below = asked.below.as_deref().map(|text| object(vcenter, text)).transpose()?;
            done(if *what == "deny" {
                vcenter.deny(&asked.privilege, below);
            } else {
                vcenter.allow(&asked.privilege, below);
            })
        }
        ("DELETE", ["permissions"]) => done(vcenter.handle.with(|world| world.permissions.clear())),
        _ => Err(Refusal::NotFound),
    }
}

fn done((): ()) -> Result<Value, Refusal> {
    Ok(json!({}))
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
