use roost_cds::v2::SignInForm as V2Form;
use roost_cds::{PublicKey, Secret, v1, v2};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::incoming::Incoming;
use crate::reply::{Refusal, Reply};
use crate::world::{ServiceRow, Who, WorkerFor, World};

const SIGNING_KEY: &str = "x-api-pub-signing-key";

/// Services say what they are; people sign in by their token alone.
#[derive(Deserialize)]
struct V1Form {
    token: Secret,
    #[serde(default)]
    service: Option<v1::Service>,
}

pub(crate) fn v1_sign_in(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let V1Form { token, service } = incoming.json()?;
    let consumers = &world.access.consumers;
    let index = consumers
        .iter()
        .position(|consumer| consumer.given.token == token)
        .ok_or_else(|| Refusal::forbidden("invalid signin token"))?;
    let service = match service {
        None if consumers[index].given.service.is_some() => {
            return Err(Refusal::forbidden("signing request doesn't match with consumer"));
        }
        None => None,
        Some(service) => {
            let bound = &consumers[index].given.service;
            if bound.as_ref().is_some_and(|name| *name != service.name) {
                return Err(Refusal::forbidden("signing request doesn't match with consumer"));
            }
            let key = public_key(&service.public_key)?;
            Some(register(world, index, service, key))
        }
    };
    let who = Who::Consumer(index);
    let token = open_session(world, who)?;
    let answer = v1::SignInAnswer { api_url: world.options.url.clone(), token, service };
    Ok(signed_in(world, &answer, &answer.token))
}

/// Both sign-ins also set a cookie. A client that sends it back is refused.
fn signed_in<T: Serialize>(world: &World, answer: &T, token: &Secret) -> Reply {
    Reply::json(answer)
        .header(SIGNING_KEY, world.key.public().to_base64())
        .header("set-cookie", format!("jwt_token={}; Path=/", token.expose()))
}

/// A consumer has one service. A second sign-in renews what it says, except region and the flag that belongs to it.
fn register(world: &mut World, index: usize, new: v1::Service, key: PublicKey) -> v1::Service {
    let now = world.now();
    let known = world.access.consumers[index]
        .service
        .and_then(|id| world.access.services.remove(&id))
        .map(|row| row.service);
    let id = known.as_ref().map_or_else(|| world.number(), |service| service.id);
    let (region, ignore) = known.map_or_else(
        || (new.region.clone(), new.ignore_job_with_no_region),
        |known| (known.region, known.ignore_job_with_no_region),
    );
    let service = v1::Service {
        id,
        region,
        ignore_job_with_no_region: ignore,
        last_heartbeat: Some(now),
        ..new
    };
    let groups = world.access.consumers[index].given.groups.clone();
    let row = ServiceRow { service: service.clone(), key, groups, last_beat: now };
    world.access.services.insert(id, row);
    world.access.consumers[index].service = Some(id);
    adopt_orphans(world, &service);
    service
}

/// Workers of a service that was deleted belong to its successor.
fn adopt_orphans(world: &mut World, service: &v1::Service) {
    for worker in world.workers.values_mut().filter(|row| row.hatchery_name == service.name) {
        match &mut worker.purpose {
            WorkerFor::V1Job { service: of, .. }
            | WorkerFor::V1Registration { service: of, .. } => {
                *of = Some(service.id);
            }
            WorkerFor::V2Job { .. } => {}
        }
    }
}

pub(crate) fn v1_sign_out(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    world.access.close(incoming.token()?);
    Ok(Reply::null())
}

pub(crate) fn v2_sign_in(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let form: V2Form = incoming.json()?;
    // A key that cannot be read is kept as it is: it is the workers that are refused then.
    let key = public_key(&form.public_key).ok();
    let now = world.now();
    let row = world
        .access
        .hatcheries
        .get_mut(&form.name)
        .filter(|row| row.token == form.token)
        .ok_or_else(|| Refusal::forbidden("invalid signin token"))?;
    let region =
        row.region.clone().ok_or_else(|| Refusal::forbidden("no permission to start workers"))?;
    row.hatchery = v2::Hatchery {
        id: row.hatchery.id.clone(),
        name: form.name.clone(),
        model_type: form.model_type,
        config: form.config,
        last_heartbeat: Some(now),
        public_key: form.public_key,
        http_url: form.http_url,
    };
    row.key = key;
    let hatchery = row.hatchery.clone();
    let token = open_session(world, Who::Hatchery(form.name))?;
    let api_url = world.options.url.clone();
    let answer = v2::SignInAnswer { up_to_date: false, api_url, token, region, hatchery };
    Ok(signed_in(world, &answer, &answer.token))
}

/// A new token; the old one is worth nothing from now on. Sessions stay.
pub(crate) fn v2_regenerate(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    if world.access.hatchery_of(incoming.who()?)?.hatchery.name != incoming.param(0) {
        return Err(Refusal::forbidden("another hatchery"));
    }
    let token = regenerate(world, incoming.param(0))?;
    Ok(Reply::json(&json!({"token": token.expose()})))
}

pub(crate) fn regenerate(world: &mut World, name: &str) -> Result<Secret, Refusal> {
    let token = Secret::new(format!("regenerated-{}", world.random.uuid()));
    let row = world.access.hatcheries.get_mut(name);
    row.ok_or_else(|| Refusal::not_found(name))?.token = token.clone();
    Ok(token)
}

fn open_session(world: &mut World, who: Who) -> Result<Secret, Refusal> {
    let (now, lifetime) = (world.now(), world.options.timings.session);
    world.access.open(who, now, lifetime, &mut world.random, &world.key)
}

fn public_key(text: &str) -> Result<PublicKey, Refusal> {
    PublicKey::parse_base64(text).map_err(|error| Refusal::wrong_request(error.to_string()))
}
