//! The guest operations managers.

use jiff::Timestamp;
use roost_vim_wire::types::{
    FileTransferInformation, GuestFileAttributes, GuestFileInfo, GuestListFileInfo,
    NamePasswordAuthentication,
};
use roost_vim_wire::{MoRef, Request, methods};

use crate::call::{CallContext, CallResult, Failure};
use crate::guest::file::FileFacts;
use crate::guest::transfer::{Direction, Transfer};
use crate::guest::{ToolsState, guest_path, process};
use crate::model::calls;
use crate::store::matches;
use crate::vm::Power;
use crate::vm::fault::{need_connected, need_power, vm};
use crate::world::World;

pub(crate) fn call(
    request: &Request<'_>,
    _: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    calls! { request;
        StartProgramInGuest => |call| {
            enter(world, &call.vm, &call.auth)?;
            process::start(world, cx, &call.vm, &call.auth.username, call.spec)
        },
        ListProcessesInGuest => |call| {
            enter(world, &call.vm, &call.auth)?;
            Ok(process::list(world, cx.now, &call.vm, &call.pids))
        },
        TerminateProcessInGuest => |call| {
            enter(world, &call.vm, &call.auth)?;
            process::terminate(world, cx.now, &call.vm, call.pid)
        },
        ReadEnvironmentVariableInGuest => |call| {
            enter(world, &call.vm, &call.auth)?;
            let all = process::default_environment(&call.auth.username);
            let is_asked = |pair: &String| {
                let name = pair.split_once('=').map_or("", |(name, _)| name);
                call.names.is_empty() || call.names.iter().any(|asked| asked == name)
            };
            Ok(all.into_iter().filter(is_asked).collect())
        },
        ValidateCredentialsInGuest => |call| enter(world, &call.vm, &call.auth),
        InitiateFileTransferToGuest => |call| upload(world, cx, &call),
        InitiateFileTransferFromGuest => |call| download(world, cx, &call),
        MakeDirectoryInGuest => |call| {
            enter(world, &call.vm, &call.auth)?;
            make_directory(world, cx.now, &call)
        },
        DeleteFileInGuest => |call| {
            enter(world, &call.vm, &call.auth)?;
            let path = checked(&call.file_path)?;
            let machine = world.guests.machine_mut(&call.vm);
            if machine.files.facts(&path).is_none() {
                return Err(not_found(&path));
            }
            machine.uploaded.remove(&path);
            machine.files.remove(&path).map_err(|error| broken(&path, &error))
        },
        ListFilesInGuest => |call| {
            enter(world, &call.vm, &call.auth)?;
            list_files(world, &call)
        },
        CreateTemporaryFileInGuest => |call| {
            enter(world, &call.vm, &call.auth)?;
            let directory = checked(call.directory_path.as_deref().filter(|path| !path.is_empty()).unwrap_or("/tmp"))?;
            let random = format!("{:08x}", world.random.next_u64() >> 32);
            let path = format!("{directory}/{}{random}{}", call.prefix, call.suffix);
            let machine = world.guests.machine_mut(&call.vm);
            machine.uploaded.insert(path.clone());
            let written = machine.files.write(&path, bytes::Bytes::new(), 0o600, cx.now);
            written.map(|()| path.clone()).map_err(|error| broken(&path, &error))
        },
    }
}

/// Whether guest operations work in this VM, and for this user.
fn enter(world: &World, this: &MoRef, auth: &NamePasswordAuthentication) -> Result<(), Failure> {
    need_connected(world, this)?;
    need_power(world, this, Power::On)?;
    let row = vm(world, this)?;
    if !row.guest.is_ready || row.guest.tools != ToolsState::Running {
        let message = "The guest operations agent could not be contacted.";
        return Err(Failure::of("GuestOperationsUnavailable", message));
    }
    let is_known = match &row.behaviour.credentials {
        Some(known) => known.user == auth.username && known.password == auth.password.0,
        None => !auth.username.is_empty() && !auth.password.0.is_empty(),
    };
    if is_known {
        Ok(())
    } else {
        Err(Failure::of(
            "InvalidGuestLogin",
            "Failed to authenticate with the guest operating system.",
        ))
    }
}

fn checked(path: &str) -> Result<String, Failure> {
    guest_path(path).ok_or_else(|| {
        Failure::of("InvalidArgument", format!("The guest path '{path}' is not absolute."))
            .with("invalidProperty", &"guestFilePath".to_owned())
    })
}

fn not_found(path: &str) -> Failure {
    Failure::of("FileNotFound", format!("File {path} was not found")).with("file", &path.to_owned())
}

fn exists(path: &str) -> Failure {
    Failure::of("FileAlreadyExists", format!("The file {path} already exists"))
        .with("file", &path.to_owned())
}

fn broken(path: &str, error: &std::io::Error) -> Failure {
    Failure::of("CannotAccessFile", format!("Unable to access file {path}: {error}"))
        .with("file", &path.to_owned())
}

/// A URL with `*` for a host: the client puts in the one it talks to. The port is there, because some clients put in a bare name.
fn hand_out(
    world: &mut World,
    cx: &CallContext<'_>,
    vm: &MoRef,
    path: String,
    direction: Direction,
) -> String {
    let token = world.sessions.secret();
    let id = vm.id.rsplit('-').next().unwrap_or_default().to_owned();
    let transfer =
        Transfer { vm: vm.clone(), path, direction, session: cx.session.into(), begun: cx.now };
    world.guests.transfers.begin(token.clone(), transfer);
    let scheme = if cx.secure { "https" } else { "http" };
    let port = cx.handle.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://*{port}/guestFile?id={id}&token={token}")
}

fn upload(
    world: &mut World,
    cx: &CallContext<'_>,
    call: &methods::InitiateFileTransferToGuest,
) -> Result<String, Failure> {
    enter(world, &call.vm, &call.auth)?;
    let path = checked(&call.guest_file_path)?;
    if call.file_size < 0 {
        return Err(Failure::invalid_argument("fileSize"));
    }
    match world.guests.machine_mut(&call.vm).files.facts(&path) {
        Some(facts) if facts.is_directory || !call.overwrite => return Err(exists(&path)),
        _ => {}
    }
    let permissions = call.file_attributes.permissions.unwrap_or(0o644);
    let direction = Direction::ToGuest { size: call.file_size, permissions };
    Ok(hand_out(world, cx, &call.vm, path, direction))
}

fn download(
    world: &mut World,
    cx: &CallContext<'_>,
    call: &methods::InitiateFileTransferFromGuest,
) -> Result<FileTransferInformation, Failure> {
    enter(world, &call.vm, &call.auth)?;
    let path = checked(&call.guest_file_path)?;
    let facts =
        world.guests.machine_mut(&call.vm).files.facts(&path).filter(|facts| !facts.is_directory);
    let Some(facts) = facts else { return Err(not_found(&path)) };
    let url = hand_out(world, cx, &call.vm, path, Direction::FromGuest);
    Ok(FileTransferInformation { attributes: attributes(facts), size: facts.size, url })
}

fn attributes(facts: FileFacts) -> GuestFileAttributes {
    GuestFileAttributes {
        modification_time: Some(facts.modified),
        access_time: Some(facts.modified),
        owner_id: Some(0),
        group_id: Some(0),
        permissions: Some(facts.permissions),
        ..GuestFileAttributes::of("GuestPosixFileAttributes")
    }
}

fn make_directory(
    world: &mut World,
    now: Timestamp,
    call: &methods::MakeDirectoryInGuest,
) -> Result<(), Failure> {
    let path = checked(&call.directory_path)?;
    let files = &mut world.guests.machine_mut(&call.vm).files;
    if files.facts(&path).is_some() {
        return Err(exists(&path));
    }
    let above =
        path.rsplit_once('/').map_or("/", |(above, _)| if above.is_empty() { "/" } else { above });
    if !call.create_parent_directories && files.facts(above).is_none_or(|facts| !facts.is_directory)
    {
        return Err(not_found(above));
    }
    files.make_directory(&path, now).map_err(|error| broken(&path, &error))
}

fn list_files(
    world: &mut World,
    call: &methods::ListFilesInGuest,
) -> Result<GuestListFileInfo, Failure> {
    let path = checked(&call.file_path)?;
    let files = &world.guests.machine_mut(&call.vm).files;
    let Some(facts) = files.facts(&path) else { return Err(not_found(&path)) };
    let mut rows: Vec<(String, FileFacts)> = if facts.is_directory {
        let names = files.list(&path);
        let at = |name: &String| format!("{}/{name}", path.trim_end_matches('/'));
        names
            .into_iter()
            .filter_map(|name| Some((name.clone(), files.facts(&at(&name))?)))
            .collect()
    } else {
        vec![(path.rsplit('/').next().unwrap_or_default().to_owned(), facts)]
    };
    if let Some(pattern) = call.match_pattern.as_deref().filter(|pattern| !pattern.is_empty()) {
        // The API takes a regular expression; of those, the ones that clients send are a star with or without a dot.
        let pattern = pattern.trim_matches(['^', '$']).replace(".*", "*").replace("\\.", ".");
        rows.retain(|(name, _)| matches(&pattern, name));
    }
    let from = usize::try_from(call.index.unwrap_or(0)).unwrap_or(0).min(rows.len());
    let most = usize::try_from(call.max_results.unwrap_or(50)).unwrap_or(50);
    let left = rows.len() - from;
    let shown = rows.drain(from..).take(most).map(|(name, facts)| GuestFileInfo {
        path: name,
        kind: if facts.is_directory { "directory" } else { "file" }.into(),
        size: facts.size,
        attributes: attributes(facts),
    });
    let files: Vec<_> = shown.collect();
    Ok(GuestListFileInfo { remaining: i32::try_from(left - files.len()).unwrap_or(0), files })
}
