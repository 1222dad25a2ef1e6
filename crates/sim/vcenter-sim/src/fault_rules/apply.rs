//! Rules at work on calls: what happens before one is carried out, and to its answer.

use std::future::pending;
use std::io;

use http::StatusCode;
use roost_vim_wire::{Element, MoRef, Request};

use super::{Action, Facts, RuleId};
use crate::dispatch::Caller;
use crate::world::{Handle, World};
use crate::{outage, session};

/// What a rule says about this call.
pub(crate) fn decide(
    world: &mut World,
    request: &Request<'_>,
    this: &MoRef,
    body: &[u8],
) -> Option<(RuleId, Action)> {
    if world.rules.is_empty() {
        return None;
    }
    let objects =
        if world.rules.look_at_objects() { objects_of(world, this, body) } else { Vec::new() };
    world.rules.for_call(&Facts { method: request.method, objects })
}

/// Ids and names of what the call is about, and the name that it is to give.
fn objects_of(world: &World, this: &MoRef, body: &[u8]) -> Vec<String> {
    let (mut about, mut names) = (vec![this.clone()], Vec::new());
    for argument in arguments(body).iter().flat_map(|call| &call.children) {
        match argument.name.as_str() {
            "vm" | "entity" => about.extend(argument.moref()),
            "name" | "newName" => names.push(argument.text.clone()),
            "config" => names.extend(argument.text_of("name").map(ToOwned::to_owned)),
            _ => {}
        }
    }
    for obj in about {
        names.extend(world.inventory.name(&obj).map(ToOwned::to_owned));
        names.push(obj.id.to_string());
    }
    names
}

fn arguments(body: &[u8]) -> Option<Element> {
    let envelope = Element::parse(body).ok()?;
    envelope.child("Body")?.children.first().cloned()
}

/// What happens before the call is carried out. `Some`: it is not.
pub(crate) async fn before(
    handle: &Handle,
    caller: &Caller,
    action: &Action,
) -> io::Result<Option<StatusCode>> {
    match action {
        Action::Status(status) => {
            return Ok(Some(
                StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            ));
        }
        Action::Fault(_) => return Ok(Some(StatusCode::INTERNAL_SERVER_ERROR)),
        Action::Hang => pending().await,
        Action::CutBefore => return Err(cut()),
        Action::Delay(by) => tokio::time::sleep(*by).await,
        Action::LoseSession => handle.with(|world| {
            let lost = caller
                .cookie
                .as_deref()
                .and_then(|cookie| world.sessions.of_cookie(cookie))
                .cloned();
            lost.map(|key| session::end(world, &key));
        }),
        Action::Restart(outage) => {
            handle.with(|world| outage::restart(world, handle, *outage));
            return Err(cut());
        }
        _ => {}
    }
    Ok(None)
}

/// What happens to the answer.
pub(crate) async fn after(action: &Action) -> io::Result<()> {
    match action {
        Action::CutAfter => Err(cut()),
        Action::LateAnswer(by) => {
            tokio::time::sleep(*by).await;
            Ok(())
        }
        _ => Ok(()),
    }
}

pub(crate) fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the simulated server cut the connection")
}
