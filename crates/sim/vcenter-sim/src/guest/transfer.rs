//! File transfers: a token from the API, then one HTTP request.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use jiff::{SignedDuration, Timestamp};
use roost_vim_wire::MoRef;

use crate::door::{Body, drain, refuse};
use crate::guest::Guests;
use crate::store::{parameter, status};
use crate::vm::Power;
use crate::world::Handle;

/// How long a URL that was handed out works.
const LIFETIME: Duration = Duration::from_mins(10);

#[derive(Debug, Default)]
pub(super) struct Transfers {
    open: HashMap<String, Transfer>,
}

#[derive(Debug, Clone)]
pub(super) struct Transfer {
    pub vm: MoRef,
    pub path: String,
    pub direction: Direction,
    pub session: String,
    pub begun: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    ToGuest { size: i64, permissions: i64 },
    FromGuest,
}

impl Transfers {
    pub(super) fn begin(&mut self, token: String, transfer: Transfer) {
        self.open.insert(token, transfer);
    }

    pub(super) fn end_session(&mut self, session: &str) {
        self.open.retain(|_, transfer| transfer.session != session);
    }
}

impl Guests {
    /// A token is good for one request.
    fn redeem(&mut self, token: &str, now: Timestamp) -> Option<Transfer> {
        let lifetime = SignedDuration::try_from(LIFETIME).unwrap_or(SignedDuration::MAX);
        self.transfers
            .open
            .remove(token)
            .filter(|transfer| now.duration_since(transfer.begun) < lifetime)
    }
}

/// `/guestFile?id=..&token=..`: the token says who may. 401 when it is unknown or its session has ended.
pub(crate) async fn guest_file(handle: &Handle, request: Request<Body>) -> Response<Body> {
    let token = parameter(request.uri().query().unwrap_or_default(), "token").unwrap_or_default();
    let now = handle.now();
    let Some(transfer) = handle.with(|world| world.guests.redeem(&token, now)) else {
        return refuse(request, StatusCode::UNAUTHORIZED).await;
    };
    let is_on = handle.with(|world| {
        world.inventory.vms.get(&transfer.vm).is_some_and(|vm| vm.power == Power::On)
    });
    if !is_on {
        return refuse(request, StatusCode::SERVICE_UNAVAILABLE).await;
    }
    match (request.method(), transfer.direction) {
        (&Method::GET, Direction::FromGuest) => download(handle, &transfer),
        (&Method::PUT, Direction::ToGuest { size, permissions }) => {
            upload(handle, &transfer, request.into_body(), size, permissions).await
        }
        _ => refuse(request, StatusCode::METHOD_NOT_ALLOWED).await,
    }
}

fn download(handle: &Handle, transfer: &Transfer) -> Response<Body> {
    let content =
        handle.with(|world| world.guests.machine_mut(&transfer.vm).files.read(&transfer.path));
    let Some(content) = content else { return status(StatusCode::NOT_FOUND) };
    let length = content.len();
    let body = Full::new(content).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    response
        .headers_mut()
        .insert(CONTENT_TYPE, http::HeaderValue::from_static("application/octet-stream"));
    response
}

async fn upload(
    handle: &Handle,
    transfer: &Transfer,
    mut body: Body,
    size: i64,
    permissions: i64,
) -> Response<Body> {
    // More than was announced is refused before it fills the memory.
    let limit = usize::try_from(size).unwrap_or(0);
    let content = match Limited::new(&mut body, limit).collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) => {
            tracing::warn!(%error, path = %transfer.path, "an upload into a guest broke off");
            drain(&mut body).await;
            return status(StatusCode::BAD_REQUEST);
        }
    };
    if content.len() != limit {
        return status(StatusCode::BAD_REQUEST);
    }
    match keep(handle, transfer, content, permissions) {
        Ok(()) => status(StatusCode::OK),
        Err(error) => {
            tracing::warn!(%error, path = %transfer.path, "a guest could not write a file");
            status(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

fn keep(
    handle: &Handle,
    transfer: &Transfer,
    content: Bytes,
    permissions: i64,
) -> std::io::Result<()> {
    let now = handle.now();
    handle.with(|world| {
        let machine = world.guests.machine_mut(&transfer.vm);
        machine.uploaded.insert(transfer.path.clone());
        machine.files.write(&transfer.path, content, permissions, now)
    })
}
