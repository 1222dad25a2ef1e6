//! Getting files into an item and out of it: sessions that name files, and `/cls/data` through which their bytes go.

use std::io;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};

use super::library_item::SUBSCRIBED;
use super::{Ask, NOT_FOUND, Outcome, invalid, not_allowed, text};
use crate::call::CallContext;
use crate::door::{Body, refuse};
use crate::library::{self, DownloadSession, ItemFile, SessionFile, SessionState, UpdateSession};
use crate::vm::FilePath;
use crate::world::{Handle, World};
use crate::{reply, store};

/// How long a session lives that nobody touches.
const IDLE_LIMIT: Duration = Duration::from_mins(5);

/// `path` begins with the word for the kind of session. The older spelling has files in a place of their own, the newer one
/// below the session.
pub(super) fn carry_out(
    world: &mut World,
    cx: &CallContext<'_>,
    ask: &Ask<'_>,
    path: &[&str],
) -> Outcome {
    let named = |parameter: &str| ask.parameter(parameter).unwrap_or_default();
    match path {
        ["update-session"] if ask.method == Method::POST => update(world, cx, ask),
        ["update-session"] => {
            Outcome::Value(json!(world.libraries.updates.keys().collect::<Vec<_>>()))
        }
        ["update-session", id] => one_update(world, cx, ask, id),
        ["updatesession", "file"] if ask.is("probe") => Outcome::Value(probe(&text(
            ask.body.get("source_endpoint").unwrap_or(&ask.body),
            "uri",
        ))),
        ["updatesession", "file"] => update_files(world, ask, &named("update_session_id"), None),
        ["updatesession", "file", id] | ["update-session", id, "file"] => {
            update_file(world, cx, ask, id)
        }
        ["update-session", id, "file", name] => match *ask.method {
            Method::DELETE => remove(world, id, name),
            _ => update_files(world, ask, id, Some(name)),
        },
        ["download-session"] if ask.method == Method::POST => download(world, cx, ask),
        ["download-session"] => {
            Outcome::Value(json!(world.libraries.downloads.keys().collect::<Vec<_>>()))
        }
        ["download-session", id] => one_download(world, ask, id),
        ["downloadsession", "file"] => {
            download_files(world, ask, &named("download_session_id"), None)
        }
        ["downloadsession", "file", id] | ["download-session", id, "file"] => {
            let by_body = text(&ask.body, "file_name");
            let name = if by_body.is_empty() { named("file_name") } else { by_body };
            download_files(
                world,
                ask,
                id,
                Some(&name).filter(|name| !name.is_empty()).map(String::as_str),
            )
        }
        _ => NOT_FOUND,
    }
}

/// Whether files could be pulled from an address: of a scheme that is spoken here.
fn probe(uri: &str) -> Value {
    let is_spoken = ["https://", "http://", "ds://"].iter().any(|scheme| uri.starts_with(scheme));
    if is_spoken {
        return json!({ "status": "SUCCESS" });
    }
    let message = json!({
        "id": "com.vmware.vdcs.cls-main.invalid_url",
        "default_message": format!("The address {uri} is not valid."),
        "args": [],
    });
    json!({ "status": "INVALID_URL", "error_messages": [message] })
}

fn expires(cx: &CallContext<'_>) -> jiff::Timestamp {
    let limit = jiff::SignedDuration::try_from(IDLE_LIMIT).unwrap_or_default();
    cx.now.saturating_add(limit).unwrap_or(cx.now)
}

fn update(world: &mut World, cx: &CallContext<'_>, ask: &Ask<'_>) -> Outcome {
    let item = text(ask.spec("create_spec"), "library_item_id");
    let Some(row) = world.libraries.item(&item) else { return NOT_FOUND };
    if world.libraries.library(&row.library).is_some_and(|row| row.subscription.is_some()) {
        return SUBSCRIBED;
    }
    let id = world.libraries.new_id();
    let session = UpdateSession {
        item,
        state: SessionState::Active,
        expires: expires(cx),
        files: std::collections::BTreeMap::new(),
    };
    world.libraries.updates.insert(id.clone(), session);
    Outcome::Value(json!(id))
}

fn shown_session(id: &str, item: &str, state: &SessionState, expires: jiff::Timestamp) -> Value {
    let mut shown = json!({
        "id": id,
        "library_item_id": item,
        "library_item_content_version": "1",
        "client_progress": if *state == SessionState::Done { 100 } else { 0 },
        "state": state.word(),
        "expiration_time": expires.to_string(),
    });
    if let SessionState::Failed(words) = state {
        shown["error_message"] = json!({
            "id": "com.vmware.vdcs.cls-main.update_session_failed",
            "default_message": words,
            "args": [],
        });
    }
    shown
}

fn one_update(world: &mut World, cx: &CallContext<'_>, ask: &Ask<'_>, id: &str) -> Outcome {
    let Some(session) = world.libraries.updates.get_mut(id) else { return NOT_FOUND };
    match (ask.method.as_str(), ask.action.as_deref()) {
        ("GET", _) => {
            Outcome::Value(shown_session(id, &session.item, &session.state, session.expires))
        }
        ("DELETE", _) => {
            world.libraries.updates.remove(id);
            Outcome::Nothing
        }
        ("POST", Some("keep-alive")) => {
            session.expires = expires(cx);
            Outcome::Nothing
        }
        ("POST", Some("cancel")) => {
            session.state = SessionState::Canceled;
            Outcome::Nothing
        }
        ("POST", Some("fail")) => {
            session.state = SessionState::Failed(text(&ask.body, "client_error_message"));
            Outcome::Nothing
        }
        ("POST", Some("complete")) => complete(world, cx, id),
        _ => NOT_FOUND,
    }
}

/// The files become the item's, if all of them are there.
fn complete(world: &mut World, cx: &CallContext<'_>, id: &str) -> Outcome {
    let Some(session) = world.libraries.updates.get_mut(id) else { return NOT_FOUND };
    if session.state != SessionState::Active {
        return not_allowed("The session is not active.");
    }
    let missing = session.files.iter().find(|(_, file)| file.received.is_none());
    if let Some((name, file)) = missing {
        let words = format!("The file {name} has not been received.");
        if file.is_pulled {
            session.state = SessionState::Failed(words);
            return Outcome::Nothing;
        }
        return not_allowed(words);
    }
    session.state = SessionState::Done;
    let item = session.item.clone();
    let files: Vec<(String, ItemFile)> = session
        .files
        .iter()
        .map(|(name, file)| {
            let row = ItemFile {
                path: file.path.clone(),
                size: file.received.unwrap_or(0),
                version: 1,
                checksum: file.checksum.clone(),
            };
            (name.clone(), row)
        })
        .collect();
    let Some(row) = world.libraries.item_mut(&item) else { return NOT_FOUND };
    row.content_version += 1;
    row.version += 1;
    row.modified = cx.now;
    for (name, file) in files {
        if row.kind.is_empty() {
            row.kind = kind_of(&name).into();
        }
        row.files.insert(name, ItemFile { version: row.content_version, ..file });
    }
    let library = row.library.clone();
    world.libraries.touch_library(&library, cx.now);
    Outcome::Nothing
}

fn kind_of(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("ovf") => "ovf",
        Some("iso") => "iso",
        _ => "",
    }
}

fn update_file(world: &mut World, cx: &CallContext<'_>, ask: &Ask<'_>, id: &str) -> Outcome {
    let Some(session) = world.libraries.updates.get(id) else { return NOT_FOUND };
    match ask.action.as_deref() {
        Some("get") => update_files(world, ask, id, Some(&text(&ask.body, "file_name"))),
        Some("list") | None if ask.method == Method::GET => update_files(world, ask, id, None),
        Some("validate") => {
            let missing: Vec<String> = missing_disks(world, session);
            Outcome::Value(json!({ "has_errors": !missing.is_empty(), "missing_files": missing }))
        }
        Some("remove") => {
            let name = text(&ask.body, "file_name");
            remove(world, id, &name)
        }
        Some("add") | None => add(world, cx, ask, id),
        _ => NOT_FOUND,
    }
}

/// The disks that a descriptor of the session names and that nobody has added.
fn missing_disks(world: &World, session: &UpdateSession) -> Vec<String> {
    let descriptor = session.files.iter().find(|(name, _)| library::has_extension(name, "ovf"));
    let bytes = descriptor.and_then(|(_, file)| store::content(world, &file.path));
    let envelope = bytes.and_then(|bytes| crate::ovf::Envelope::parse(&bytes).ok());
    let named = envelope.into_iter().flat_map(|envelope| envelope.files).map(|file| file.href);
    named.filter(|name| !session.files.contains_key(name)).collect()
}

fn remove(world: &mut World, id: &str, name: &str) -> Outcome {
    let Some(session) = world.libraries.updates.get_mut(id) else { return NOT_FOUND };
    if session.state != SessionState::Active {
        let kind = "com.vmware.vapi.std.errors.not_allowed_in_current_state";
        return Outcome::Error(StatusCode::INTERNAL_SERVER_ERROR, kind);
    }
    session.files.remove(name).map_or(NOT_FOUND, |_| Outcome::Nothing)
}

fn add(world: &mut World, cx: &CallContext<'_>, ask: &Ask<'_>, id: &str) -> Outcome {
    let spec = ask.spec("file_spec");
    let name = text(spec, "name");
    let Some(session) = world.libraries.updates.get(id) else { return NOT_FOUND };
    if session.state != SessionState::Active {
        return not_allowed("The session is not active.");
    }
    if name.is_empty() || store::clean_path(&name).as_deref() != Some(name.as_str()) {
        return invalid("The name is not that of a file.");
    }
    let item = session.item.clone();
    let Some(library) = world.libraries.item(&item).map(|item| item.library.clone()) else {
        return NOT_FOUND;
    };
    library::make_directory(world, &library, &item, cx.now);
    let Some(path) = library::file_path(world, &library, &item, &name) else { return NOT_FOUND };
    let is_pulled = text(spec, "source_type") == "PULL";
    let received = if is_pulled {
        let uri = spec.get("source_endpoint").map(|source| text(source, "uri")).unwrap_or_default();
        pull(world, cx, &uri, &path)
    } else {
        None
    };
    let file = SessionFile {
        path,
        announced: spec.get("size").and_then(Value::as_i64),
        received,
        checksum: spec.get("checksum_info").filter(|info| info.is_object()).cloned(),
        is_pulled,
    };
    if let Some(session) = world.libraries.updates.get_mut(id) {
        session.files.insert(name.clone(), file);
    }
    update_files(world, ask, id, Some(&name))
}

/// Only the files of this server's own datastores can be pulled: a stand-in calls nobody.
fn pull(world: &mut World, cx: &CallContext<'_>, uri: &str, to: &FilePath) -> Option<i64> {
    let uri: http::Uri = uri.parse().ok()?;
    let path = uri.path().strip_prefix("/folder/")?;
    let path = store::clean_path(&percent_decode_str(path).decode_utf8().ok()?)?;
    let datastore = match reply::query(&uri, "dsName") {
        Some(name) => world.inventory.datastore_named(&name, None)?,
        None => world.inventory.datastores.refs().next()?.clone(),
    };
    store::copy(world, &FilePath::new(&datastore, path), to, true, cx.now).ok()?;
    store::size(world, to)
}

fn shown_update(session: &str, name: &str, file: &SessionFile, ask: &Ask<'_>) -> Value {
    let status = match (file.received, file.is_pulled) {
        (Some(_), _) => "READY",
        (None, true) => "ERROR",
        (None, false) => "WAITING_FOR_TRANSFER",
    };
    let mut shown = json!({
        "name": name,
        "source_type": if file.is_pulled { "PULL" } else { "PUSH" },
        "status": status,
        "bytes_transferred": file.received.unwrap_or(0),
    });
    if let Some(size) = file.received.or(file.announced) {
        shown["size"] = json!(size);
    }
    if let Some(checksum) = &file.checksum {
        shown["checksum_info"] = checksum.clone();
    }
    if file.is_pulled {
        if file.received.is_none() {
            shown["error_message"] = json!({
                "id": "com.vmware.vdcs.cls-main.transfer_failed",
                "default_message": "The address cannot be reached.",
                "args": [],
            });
        }
    } else {
        shown["upload_endpoint"] = json!({ "uri": endpoint(ask, session, name) });
    }
    shown
}

fn endpoint(ask: &Ask<'_>, session: &str, name: &str) -> String {
    let name = utf8_percent_encode(name, NON_ALPHANUMERIC)
        .to_string()
        .replace("%2E", ".")
        .replace("%2D", "-")
        .replace("%5F", "_");
    format!("{}/cls/data/{session}/{name}", ask.base)
}

/// All files of an update session, or the one of this name.
fn update_files(world: &World, ask: &Ask<'_>, id: &str, name: Option<&str>) -> Outcome {
    let Some(session) = world.libraries.updates.get(id) else { return NOT_FOUND };
    if let Some(name) = name {
        let file = session.files.get(name);
        return file.map_or(NOT_FOUND, |file| Outcome::Value(shown_update(id, name, file, ask)));
    }
    let all = session.files.iter().map(|(name, file)| shown_update(id, name, file, ask));
    Outcome::Value(json!(all.collect::<Vec<_>>()))
}

fn download(world: &mut World, cx: &CallContext<'_>, ask: &Ask<'_>) -> Outcome {
    let item = text(ask.spec("create_spec"), "library_item_id");
    if world.libraries.item(&item).is_none() {
        return NOT_FOUND;
    }
    let id = world.libraries.new_id();
    let session = DownloadSession { item, state: SessionState::Active, expires: expires(cx) };
    world.libraries.downloads.insert(id.clone(), session);
    Outcome::Value(json!(id))
}

fn one_download(world: &mut World, ask: &Ask<'_>, id: &str) -> Outcome {
    let Some(session) = world.libraries.downloads.get_mut(id) else { return NOT_FOUND };
    match (ask.method.as_str(), ask.action.as_deref()) {
        ("GET", _) => {
            Outcome::Value(shown_session(id, &session.item, &session.state, session.expires))
        }
        ("DELETE", _) => {
            world.libraries.downloads.remove(id);
            Outcome::Nothing
        }
        ("POST", Some("cancel")) => {
            session.state = SessionState::Canceled;
            Outcome::Nothing
        }
        ("POST", Some("keep-alive" | "fail")) => Outcome::Nothing,
        _ => NOT_FOUND,
    }
}

/// What can be fetched. A file that is asked for is prepared at once.
fn download_files(world: &World, ask: &Ask<'_>, id: &str, name: Option<&str>) -> Outcome {
    let Some(session) = world.libraries.downloads.get(id) else { return NOT_FOUND };
    let Some(item) = world.libraries.item(&session.item) else { return NOT_FOUND };
    let shown = |name: &String, file: &ItemFile| {
        json!({
            "name": name,
            "size": file.size,
            "bytes_transferred": 0,
            "status": "PREPARED",
            "checksum_info": file.checksum,
            "download_endpoint": { "uri": endpoint(ask, id, name) },
        })
    };
    if let Some(name) = name {
        let found = item.files.get_key_value(name);
        return found.map_or(NOT_FOUND, |(name, file)| Outcome::Value(shown(name, file)));
    }
    Outcome::Value(json!(
        item.files.iter().map(|(name, file)| shown(name, file)).collect::<Vec<_>>()
    ))
}

/// `/cls/data/<session>/<name>`: the bytes themselves. Knowing the session is what opens it.
pub(crate) async fn transfer(
    handle: &Handle,
    request: Request<Body>,
) -> io::Result<Response<Body>> {
    let path = percent_decode_str(request.uri().path()).decode_utf8_lossy().into_owned();
    let Some((session, name)) =
        path.strip_prefix("/cls/data/").and_then(|rest| rest.split_once('/'))
    else {
        return Ok(refuse(request, StatusCode::NOT_FOUND).await);
    };
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        let file = handle.with(|world| {
            let session = world.libraries.downloads.get(session)?;
            let item = world.libraries.item(&session.item)?;
            item.files.get(name).map(|file| file.path.clone())
        });
        let with_body = request.method() == Method::GET;
        return Ok(match file {
            Some(file) => store::read_file(handle, &file, request.headers(), with_body),
            None => reply::status(StatusCode::NOT_FOUND),
        });
    }
    let file = handle.with(|world| {
        let session = world.libraries.updates.get(session)?;
        let is_open = session.state == SessionState::Active;
        session.files.get(name).filter(|_| is_open).map(|file| file.path.clone())
    });
    let Some(file) = file else { return Ok(refuse(request, StatusCode::NOT_FOUND).await) };
    let response = store::write_file(handle, &file, request).await;
    if response.status().is_success() {
        handle.with(|world| {
            let size = store::size(world, &file);
            let session = world.libraries.updates.get_mut(session);
            if let Some(file) = session.and_then(|session| session.files.get_mut(name)) {
                file.received = size;
            }
        });
        return Ok(reply::status(StatusCode::OK));
    }
    Ok(response)
}
