use jiff::SignedDuration;
use roost_cds::v1::{Model, ModelPath, SpawnError};
use roost_cds::v2::AsCodePath;

use crate::incoming::Incoming;
use crate::reply::{Refusal, Reply};
use crate::world::{ModelRow, World};

/// By name, without those that are disabled or that the hatchery's groups may not see.
pub(crate) fn enabled(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let service = world.access.service_of(incoming.who()?)?;
    let is_seen = |row: &&ModelRow| {
        let groups: Vec<_> = row.model.group.iter().cloned().collect();
        let is_own = groups.iter().any(|group| service.groups.contains(&group.name));
        !row.model.disabled && service.sees(&groups) && (is_own || !row.model.restricted)
    };
    let mut models: Vec<&Model> =
        world.models.v1.values().filter(is_seen).map(|row| &row.model).collect();
    models.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Reply::json(&models))
}

fn path(incoming: &Incoming) -> ModelPath {
    ModelPath { group: incoming.param(0).to_owned(), name: incoming.param(1).to_owned() }
}

fn row<'a>(world: &'a mut World, incoming: &Incoming) -> Result<&'a mut ModelRow, Refusal> {
    let row = world.models.v1.get_mut(&path(incoming));
    row.ok_or_else(|| Refusal::not_found("worker model not found"))
}

pub(crate) fn one(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    Ok(Reply::json(&row(world, incoming)?.model))
}

pub(crate) fn secrets(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    world.access.service_of(incoming.who()?)?;
    Ok(Reply::json(&row(world, incoming)?.secrets))
}

pub(crate) fn book(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let (now, lifetime) = (world.now(), world.options.timings.model_booking);
    let service = world.access.service_of(incoming.who()?)?.service.id;
    let row = row(world, incoming)?;
    if row.booked.is_some_and(|(_, until)| now < until) {
        return Err(Refusal::new(403, 115, "the worker model is booked"));
    }
    let lifetime = SignedDuration::try_from(lifetime).unwrap_or(SignedDuration::MAX);
    row.booked = Some((service, now.saturating_add(lifetime).unwrap_or(jiff::Timestamp::MAX)));
    Ok(Reply::nothing())
}

pub(crate) fn spawn_error(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    world.access.service_of(incoming.who()?)?;
    let error: SpawnError = incoming.json()?;
    let row = row(world, incoming)?;
    if error.error.is_empty() && error.logs.is_none() {
        return Ok(Reply::nothing());
    }
    row.model.nb_spawn_err += 1;
    row.model.last_spawn_err = Some(error.error);
    row.booked = None;
    Ok(Reply::null())
}

pub(crate) fn as_code(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let branch = incoming.query("branch").first().copied().unwrap_or("master");
    let path = AsCodePath {
        project: incoming.param(0).to_owned(),
        vcs: incoming.param(1).to_owned(),
        repository: incoming.param(2).to_owned(),
        name: incoming.param(3).to_owned(),
        branch: branch.to_owned(),
    };
    if !world.models.has_project(&path.project) {
        return Err(Refusal::new(404, 30, format!("project {} not found", path.project)));
    }
    let model = world.models.v2_at(&path);
    model.map(Reply::json).ok_or_else(|| Refusal::not_found(format!("no worker model {path}")))
}
