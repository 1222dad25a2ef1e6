//! `/nfc/<lease>/<file>`: the bytes of a disk.

use http::{Method, Request, Response, StatusCode};
use percent_encoding::percent_decode_str;

use super::lease::{LeaseFile, State, reference};
use crate::door::{Body, refuse};
use crate::reply;
use crate::store::{self, Content};
use crate::world::{Handle, World};

/// What an export of a disk gives that nobody ever wrote to: a disk without content is small when it is compressed.
pub(super) const EMPTY_DISK: i64 = 64 << 10;

pub(crate) async fn transfer(handle: &Handle, request: Request<Body>) -> Response<Body> {
    let path = percent_decode_str(request.uri().path()).decode_utf8_lossy().into_owned();
    let Some((lease, name)) = path.strip_prefix("/nfc/").and_then(|rest| rest.split_once('/'))
    else {
        return refuse(request, StatusCode::NOT_FOUND).await;
    };
    let lease = reference(lease);
    let now = handle.now();
    let found = handle.with(|world| {
        let row = world.leases.get_mut(&lease).filter(|row| matches!(row.state, State::Ready))?;
        row.touched = now;
        let file = row.files.iter().find(|file| file.name == name)?.clone();
        Some((file, row.is_import))
    });
    let Some((file, is_import)) = found else {
        return refuse(request, StatusCode::NOT_FOUND).await;
    };
    match (request.method(), is_import) {
        (&Method::GET | &Method::HEAD, false) => {
            if handle.with(|world| is_hollow(world, &file)) {
                let zeros = vec![0; usize::try_from(EMPTY_DISK).unwrap_or(0)];
                return reply::content(
                    StatusCode::OK,
                    "application/x-vnd.vmware-streamVmdk",
                    zeros,
                );
            }
            let with_body = request.method() == Method::GET;
            store::read_file(handle, &file.path, request.headers(), with_body)
        }
        (&Method::PUT | &Method::POST, true) => {
            let answer = store::write_file(handle, &file.path, request).await;
            if answer.status().is_success() {
                return reply::status(StatusCode::CREATED);
            }
            answer
        }
        _ => refuse(request, StatusCode::METHOD_NOT_ALLOWED).await,
    }
}

pub(super) fn is_hollow(world: &World, file: &LeaseFile) -> bool {
    let shelf = world.store.shelf(&file.path.datastore);
    let entry = shelf.and_then(|shelf| shelf.get(&file.path.path));
    entry.is_some_and(|entry| matches!(entry.content, Content::Hollow(_)))
}
