//! `/folder`: reading and writing datastore files over HTTP.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

use bytes::Bytes;
use http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, RANGE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use percent_encoding::percent_decode_str;
use roost_vim_wire::MoRef;

use super::body::FileBody;
use super::file_ops::{need_unlocked, refresh};
use super::path::parent;
use crate::door::{Body, drain, refuse};
use crate::store::{Content, announce_space, clean_path};
use crate::vm::FilePath;
use crate::world::{Handle, World};

/// `/folder/<path>?dcPath=..&dsName=..`: the door has checked that the caller may.
pub(crate) async fn folder(handle: &Handle, user: &str, request: Request<Body>) -> Response<Body> {
    let Some(file) = handle.with(|world| locate(world, &request)) else {
        return refuse(request, StatusCode::NOT_FOUND).await;
    };
    tracing::debug!(method = %request.method(), path = %file.path, user, "a datastore file is asked for");
    match *request.method() {
        Method::GET => read(handle, &file, request.headers(), true),
        Method::HEAD => read(handle, &file, request.headers(), false),
        Method::PUT | Method::POST => write(handle, &file, request).await,
        _ => refuse(request, StatusCode::METHOD_NOT_ALLOWED).await,
    }
}

pub(crate) fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = status;
    response
}

fn locate(world: &mut World, request: &Request<Body>) -> Option<FilePath> {
    let path = request.uri().path().strip_prefix("/folder")?;
    let path = clean_path(&percent_decode_str(path).decode_utf8().ok()?)?;
    let query = request.uri().query().unwrap_or_default();
    let datacenter = parameter(query, "dcPath").map(|path| world.inventory.by_path(&path));
    let datacenter = match datacenter {
        Some(Some(found)) => Some(found),
        // A host takes its own name for it; an unknown datacenter of a vCenter is an error.
        Some(None) if world.product == crate::options::Product::VirtualCenter => return None,
        _ => None,
    };
    let datastore =
        world.inventory.datastore_named(&parameter(query, "dsName")?, datacenter.as_ref())?;
    accessible(world, &datastore).then(|| FilePath::new(&datastore, path))
}

fn accessible(world: &World, datastore: &MoRef) -> bool {
    world.inventory.datastores.get(datastore).is_some_and(|row| row.accessible)
}

/// A query parameter, with `+` and `%20` both read as a space.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    Some(percent_decode_str(&value.replace('+', " ")).decode_utf8().ok()?.into_owned())
}

/// Answers with a file's bytes, or a part of them.
pub(crate) fn read(
    handle: &Handle,
    file: &FilePath,
    headers: &HeaderMap,
    with_body: bool,
) -> Response<Body> {
    let now = handle.now();
    let found = handle.with(|world| {
        refresh(world, file, now);
        let shelf = world.store.shelf(&file.datastore)?;
        let entry = shelf.get(&file.path).filter(|entry| !entry.content.is_folder())?;
        Some((entry.content.clone(), shelf.real_path(&file.path)))
    });
    let Some((content, real)) = found else { return status(StatusCode::NOT_FOUND) };
    let size = u64::try_from(content.size()).unwrap_or(0);
    let (offset, length, is_part) = match headers.get(RANGE).and_then(|range| range.to_str().ok()) {
        None => (0, size, false),
        Some(range) => match parse_range(range, size) {
            Some((offset, length)) => (offset, length, true),
            None => return status(StatusCode::RANGE_NOT_SATISFIABLE),
        },
    };
    let body = match (content, real) {
        _ if !with_body => Ok(Body::default()),
        (Content::Memory(chunks), _) => Ok(FileBody::of_chunks(&chunks, offset, length).boxed()),
        (Content::Disk(_), Some(path)) => {
            FileBody::of_file(&path, offset, length).map(FileBody::boxed)
        }
        _ => Ok(FileBody::zeros(length).boxed()),
    };
    let Ok(body) = body else { return status(StatusCode::NOT_FOUND) };
    let mut response = Response::new(body);
    let head = response.headers_mut();
    head.insert(CONTENT_LENGTH, length.into());
    head.insert(ACCEPT_RANGES, http::HeaderValue::from_static("bytes"));
    head.insert(CONTENT_TYPE, http::HeaderValue::from_static("application/octet-stream"));
    if is_part {
        if let Ok(range) = format!("bytes {offset}-{}/{size}", offset + length - 1).parse() {
            head.insert(CONTENT_RANGE, range);
        }
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    response
}

/// Offset and length of `bytes=a-b`, `bytes=a-` or `bytes=-n`.
fn parse_range(range: &str, size: u64) -> Option<(u64, u64)> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last) = match (from, to) {
        ("", count) => (size.saturating_sub(count.parse().ok()?), size.checked_sub(1)?),
        (from, "") => (from.parse().ok()?, size.checked_sub(1)?),
        (from, to) => (from.parse().ok()?, to.parse::<u64>().ok()?.min(size.checked_sub(1)?)),
    };
    (first <= last).then(|| (first, last - first + 1))
}

/// Where the bytes of an upload go while they arrive.
enum Sink {
    Memory(Vec<Bytes>),
    Disk { file: File, partial: PathBuf, target: PathBuf, size: u64 },
}

impl Sink {
    fn open(target: Option<PathBuf>) -> io::Result<Self> {
        let Some(target) = target else { return Ok(Self::Memory(Vec::new())) };
        let mut partial = target.clone().into_os_string();
        partial.push(".uploading");
        let partial = PathBuf::from(partial);
        Ok(Self::Disk { file: File::create(&partial)?, partial, target, size: 0 })
    }

    fn write(&mut self, chunk: Bytes) -> io::Result<()> {
        match self {
            Self::Memory(chunks) => {
                chunks.push(chunk);
                Ok(())
            }
            Self::Disk { file, size, .. } => {
                *size += chunk.len() as u64;
                file.write_all(&chunk)
            }
        }
    }

    fn finish(self) -> io::Result<Content> {
        match self {
            Self::Memory(chunks) => Ok(Content::Memory(chunks)),
            Self::Disk { partial, target, size, .. } => {
                std::fs::rename(partial, target)?;
                Ok(Content::Disk(i64::try_from(size).unwrap_or(i64::MAX)))
            }
        }
    }
}

/// Whether a file may be written, and where to.
fn prepare(
    world: &mut World,
    file: &FilePath,
    size: i64,
    now: jiff::Timestamp,
) -> Result<Option<PathBuf>, StatusCode> {
    refresh(world, file, now);
    let row = world.inventory.datastores.get(&file.datastore).ok_or(StatusCode::NOT_FOUND)?;
    let capacity = row.capacity;
    let shelf = world.store.shelf(&file.datastore).ok_or(StatusCode::NOT_FOUND)?;
    if file.path.is_empty() || !shelf.is_folder(parent(&file.path)) {
        return Err(StatusCode::NOT_FOUND);
    }
    let old = shelf.get(&file.path);
    if old.is_some_and(|entry| entry.content.is_folder()) {
        return Err(StatusCode::CONFLICT);
    }
    let grows = size - old.map_or(0, |entry| entry.content.size());
    if grows > world.store.free(&file.datastore, capacity) {
        return Err(StatusCode::INSUFFICIENT_STORAGE);
    }
    need_unlocked(world, file).map_err(|_| StatusCode::LOCKED)?;
    Ok(shelf.real_path(&file.path))
}

/// Takes a request's body in as a file.
pub(crate) async fn write(
    handle: &Handle,
    file: &FilePath,
    request: Request<Body>,
) -> Response<Body> {
    let in_header =
        request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let in_body = request.body().size_hint().exact().and_then(|length| i64::try_from(length).ok());
    let announced = in_header.or(in_body);
    let now = handle.now();
    let target = match handle.with(|world| prepare(world, file, announced.unwrap_or(0), now)) {
        Ok(target) => target,
        Err(refused) => return refuse(request, refused).await,
    };
    let written = match Sink::open(target) {
        Ok(sink) => receive(handle, file, request.into_body(), sink).await,
        Err(error) => Err(error),
    };
    match written {
        Ok(true) => status(StatusCode::CREATED),
        Ok(false) => status(StatusCode::OK),
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            status(StatusCode::INSUFFICIENT_STORAGE)
        }
        Err(error) => {
            tracing::warn!(%error, path = %file.path, "an upload broke off");
            status(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

/// Takes the body in. An upload that breaks off leaves what had arrived, as on a real server. Returns whether the file is new.
async fn receive(
    handle: &Handle,
    file: &FilePath,
    mut body: Body,
    mut sink: Sink,
) -> io::Result<bool> {
    let mut broken = None;
    let mut size = 0_i64;
    let free = handle.with(|world| {
        let capacity =
            world.inventory.datastores.get(&file.datastore).map_or(0, |row| row.capacity);
        world.store.free(&file.datastore, capacity)
    });
    while let Some(frame) = body.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(chunk)) => {
                size = size.saturating_add_unsigned(chunk.len() as u64);
                if size > free {
                    broken =
                        Some(io::Error::new(io::ErrorKind::StorageFull, "the datastore is full"));
                    drain(&mut body).await;
                    break;
                }
                sink.write(chunk)?;
            }
            // Trailers.
            Ok(Err(_)) => {}
            Err(error) => {
                broken = Some(error);
                break;
            }
        }
    }
    let content = sink.finish()?;
    let now = handle.now();
    let is_new = handle.with(|world| {
        let shelf = world.store.shelf_mut(&file.datastore)?;
        let is_new = shelf.get(&file.path).is_none();
        shelf.put(&file.path, content, now);
        announce_space(world, &file.datastore);
        Some(is_new)
    });
    broken.map_or(Ok(is_new.unwrap_or(false)), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_file() {
        assert_eq!(parse_range("bytes=0-3", 10), Some((0, 4)));
        assert_eq!(parse_range("bytes=4-", 10), Some((4, 6)));
        assert_eq!(parse_range("bytes=-3", 10), Some((7, 3)));
        assert_eq!(parse_range("bytes=4-99", 10), Some((4, 6)));
        assert_eq!(parse_range("bytes=10-", 10), None);
        assert_eq!(parse_range("lines=1-2", 10), None);
    }

    #[test]
    fn parameters_are_decoded() {
        assert_eq!(parameter("dcPath=%2FDC0&dsName=a+b%21", "dsName").as_deref(), Some("a b!"));
        assert_eq!(parameter("dcPath=%2FDC0", "dsName"), None);
    }
}
