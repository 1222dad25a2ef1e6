use roost_cds::{Level, MonitoringStatus};
use serde_json::json;

use crate::incoming::Incoming;
use crate::reply::{Refusal, Reply};
use crate::world::World;

pub(crate) fn v1_heartbeat(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let mut status: MonitoringStatus = incoming.json()?;
    let now = world.now();
    warn_of_other_version(&mut status, &world.options.version);
    let row = world.access.service_of_mut(incoming.who()?)?;
    row.last_beat = now;
    row.service.last_heartbeat = Some(now);
    row.service.monitoring_status = status;
    Ok(Reply::nothing())
}

fn warn_of_other_version(status: &mut MonitoringStatus, version: &str) {
    for line in status.lines.iter_mut().flatten() {
        if line.component == "Version" && line.value != version {
            line.status = Level::Warn;
        }
    }
}

pub(crate) fn v2_heartbeat(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let _: MonitoringStatus = incoming.json()?;
    let now = world.now();
    world.access.hatchery_of_mut(incoming.who()?)?.hatchery.last_heartbeat = Some(now);
    Ok(Reply::nothing())
}

pub(crate) fn cdn_config(world: &mut World, _: &Incoming) -> Result<Reply, Refusal> {
    let cdn = world.options.cdn.as_ref();
    cdn.map(Reply::json).ok_or_else(|| Refusal::not_found("no CDN service"))
}

#[expect(clippy::unnecessary_wraps, reason = "all handlers have one signature")]
pub(crate) fn version(world: &mut World, _: &Incoming) -> Result<Reply, Refusal> {
    Ok(Reply::json(
        &json!({"version": world.options.version, "os": "linux", "architecture": "amd64"}),
    ))
}

/// Guests name their architecture as `uname -m` does.
pub(crate) fn download_worker(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    match (incoming.param(0), incoming.param(1)) {
        ("linux", "amd64" | "x86_64" | "arm64" | "aarch64") => {
            Ok(Reply::bytes(world.options.worker_binary.clone()))
        }
        (os, arch) => Err(Refusal::not_found(format!("no worker for {os}/{arch}"))),
    }
}
