use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use roost_vim_wire::{Element, Field, LocalizedMethodFault, MoRef, MoType, Value};
use sha2::{Digest as _, Sha256};

use crate::call::{CallContext, Failure};
use crate::event::Scene;
use crate::property::{Found, no_such};
use crate::store;
use crate::vm::{FilePath, remove_vm};
use crate::world::{Handle, World};

/// How long a lease lives without progress.
const TIMEOUT: Duration = Duration::from_mins(5);

#[derive(Debug, Default)]
pub(crate) struct Leases(BTreeMap<MoRef, Lease>);

#[derive(Debug, Clone)]
pub(super) enum State {
    Initializing,
    Ready,
    Done,
    Error(LocalizedMethodFault),
}

#[derive(Debug)]
pub(super) struct Lease {
    /// The VM that is filled or read.
    pub entity: MoRef,
    pub state: State,
    pub progress: i32,
    pub touched: Timestamp,
    pub files: Vec<LeaseFile>,
    pub is_import: bool,
    pub is_secure: bool,
    pub thumbprint: Option<String>,
}

/// A disk or an image of the VM, as a file that is sent or fetched.
#[derive(Debug, Clone)]
pub(super) struct LeaseFile {
    /// The last part of its address.
    pub name: String,
    /// `/vm-1/VirtualLsiLogicController0:0`
    pub key: String,
    pub import_key: String,
    pub path: FilePath,
    pub is_disk: bool,
    pub capacity_kb: i64,
    pub size: i64,
}

impl Leases {
    pub(super) fn get(&self, lease: &MoRef) -> Option<&Lease> {
        self.0.get(lease)
    }

    pub(super) fn get_mut(&mut self, lease: &MoRef) -> Option<&mut Lease> {
        self.0.get_mut(lease)
    }

    /// Leases are known to one server process.
    pub(crate) fn restarted(world: &mut World) {
        for (lease, _) in std::mem::take(&mut world.leases.0) {
            world.inventory.leave_other(&lease);
        }
    }
}

/// The reference of a lease.
pub(super) fn reference(id: &str) -> MoRef {
    MoRef::new(MoType::from("HttpNfcLease"), id)
}

pub(super) fn open(world: &mut World, handle: &Handle, lease: Lease) -> MoRef {
    let moref = reference(&world.sessions.secret());
    world.inventory.enter_other(&moref);
    world.leases.0.insert(moref.clone(), lease);
    expire_later(handle, moref.clone());
    moref
}

/// A lease without progress ends by itself.
fn expire_later(handle: &Handle, lease: MoRef) {
    handle.after(TIMEOUT, move |world, handle| {
        let Some(row) = world.leases.get(&lease) else { return };
        if !matches!(row.state, State::Initializing | State::Ready) {
            return;
        }
        let now = handle.now();
        let limit = jiff::SignedDuration::try_from(TIMEOUT).unwrap_or_default();
        if now.duration_since(row.touched) < limit {
            return expire_later(handle, lease);
        }
        let late = Failure::of("Timedout", "The lease has timed out.");
        fail(world, &lease, late, now);
    });
}

pub(super) fn set_state(world: &mut World, lease: &MoRef, state: State) {
    if let Some(row) = world.leases.get_mut(lease) {
        row.state = state;
    }
    world.inventory.changes.modified(lease, ["state", "info", "error", "initializeProgress"]);
}

/// Ends a lease; a VM that was being filled is no VM.
pub(super) fn fail(world: &mut World, lease: &MoRef, failure: Failure, now: Timestamp) {
    let half = world.leases.get(lease).filter(|row| row.is_import).map(|row| row.entity.clone());
    set_state(world, lease, State::Error(failure.localized()));
    if let Some(vm) = half.filter(|vm| world.inventory.vms.contains(vm)) {
        remove_vm(world, &Scene::system(now), &vm, true);
    }
}

fn ready<'a>(world: &'a mut World, lease: &MoRef) -> Result<&'a mut Lease, Failure> {
    let row = world.leases.get_mut(lease).ok_or_else(|| Failure::not_found(lease))?;
    match row.state {
        State::Ready => Ok(row),
        _ => Err(Failure::of("InvalidState", "The lease is not ready.")),
    }
}

pub(super) fn progress(
    world: &mut World,
    cx: &CallContext<'_>,
    lease: &MoRef,
    percent: i32,
) -> Result<(), Failure> {
    if !(0..=100).contains(&percent) {
        return Err(Failure::invalid_argument("percent"));
    }
    let row = ready(world, lease)?;
    row.progress = percent;
    row.touched = cx.now;
    world.inventory.changes.modified(lease, ["transferProgress"]);
    Ok(())
}

pub(super) fn complete(world: &mut World, lease: &MoRef) -> Result<(), Failure> {
    ready(world, lease)?;
    set_state(world, lease, State::Done);
    Ok(())
}

pub(super) fn abort(world: &mut World, cx: &CallContext<'_>, lease: &MoRef) -> Result<(), Failure> {
    let row = world.leases.get(lease).ok_or_else(|| Failure::not_found(lease))?;
    if matches!(row.state, State::Done | State::Error(_)) {
        return Err(Failure::of("InvalidState", "The lease has ended."));
    }
    let aborted = Failure::of("RequestCanceled", "The lease was aborted by its client.");
    fail(world, lease, aborted, cx.now);
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The checksums of what has been sent. Disks that nobody filled have none.
pub(super) fn manifest(world: &World, lease: &MoRef) -> Result<Vec<Element>, Failure> {
    let row = world.leases.get(lease).ok_or_else(|| Failure::not_found(lease))?;
    let entry = |file: &LeaseFile| {
        let content = store::content(world, &file.path)?;
        let sha1 = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &content);
        let sum = hex(&Sha256::digest(&content));
        Some(
            Element::new("returnval")
                .with_field("key", &file.key)
                .with_field("sha1", &hex(sha1.as_ref()))
                .with_field("checksum", &sum)
                .with_field("checksumType", &"sha256".to_owned())
                .with_field("size", &i64::try_from(content.len()).unwrap_or(0))
                .with_field("disk", &file.is_disk)
                .with_field("capacity", &file.capacity_kb.saturating_mul(1024)),
        )
    };
    Ok(row.files.iter().filter_map(entry).collect())
}

fn info(moref: &MoRef, row: &Lease) -> Value {
    let scheme = if row.is_secure { "https" } else { "http" };
    let capacity: i64 = row.files.iter().map(|file| file.capacity_kb).sum();
    let mut info = Element::new("info")
        .typed("HttpNfcLeaseInfo")
        .with_field("lease", moref)
        .with_field("entity", &row.entity);
    for file in &row.files {
        // The asterisk stands for the address under which the client knows the server.
        let url = format!("{scheme}://*/nfc/{}/{}", moref.id, file.name);
        let mut device = Element::new("deviceUrl")
            .with_field("key", &file.key)
            .with_field("importKey", &file.import_key)
            .with_field("url", &url)
            .with_field("sslThumbprint", &row.thumbprint.clone().unwrap_or_default())
            .with_field("disk", &file.is_disk)
            .with_field("targetId", &file.name);
        if !row.is_import {
            device = device.with_field("fileSize", &file.size);
        }
        info = info.with(device);
    }
    let info = info
        .with_field("totalDiskCapacityInKB", &capacity)
        .with_field("leaseTimeout", &i32::try_from(TIMEOUT.as_secs()).unwrap_or(300));
    Value::Other(Box::new(info))
}

/// A property of a lease.
pub(crate) fn property(world: &World, lease: &MoRef, path: &str) -> Found {
    let Some(row) = world.leases.get(lease) else { return no_such(path) };
    let word = match &row.state {
        State::Initializing => "initializing",
        State::Ready => "ready",
        State::Done => "done",
        State::Error(_) => "error",
    };
    let (field, rest) = path.split_once('.').unwrap_or((path, ""));
    let value = match field {
        "state" => Some(Value::Enum("HttpNfcLeaseState".into(), word.into())),
        "initializeProgress" => Some(Value::Int(if word == "initializing" { 0 } else { 100 })),
        "transferProgress" => Some(Value::Int(row.progress)),
        "mode" => Some(Value::Enum("HttpNfcLeaseMode".into(), "pushOrGet".into())),
        "info" => matches!(row.state, State::Ready | State::Done).then(|| info(lease, row)),
        "error" => match &row.state {
            State::Error(fault) => fault.to_value(),
            _ => None,
        },
        "capabilities" => Some(Value::Other(Box::new(
            Element::new("capabilities")
                .typed("HttpNfcLeaseCapabilities")
                .with_field("pullModeSupported", &false)
                .with_field("corsSupported", &false),
        ))),
        _ => return no_such(path),
    };
    let parts = rest.split('.').filter(|part| !part.is_empty());
    Ok(value.and_then(|value| parts.into_iter().try_fold(value, |value, part| value.get(part))))
}
