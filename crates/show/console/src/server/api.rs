//! `/api/v1`: all that the commands and the page show.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use http::StatusCode;
use roost_door::{DoorWords, FrontDoor};
use roost_views::{
    AddressView, DecisionQuery, DecisionView, DeletionsDetail, LinkDetail, Overview, PoolView,
    RequestDetail, RequestId, RequestView, SteeringView, VmDetail, VmView,
};
use serde::Deserialize;
use serde_json::Value;

use super::answer::{Fault, named, named_in, text};
use super::app::App;

type Answer<T> = Result<Json<T>, Fault>;

/// What a request without a limit gets: a few screens.
const DECISIONS: usize = 200;

/// What a request can get at once; `after` asks for more.
pub(super) const MAX_DECISIONS: usize = 1_000;

pub(super) async fn overview(State(app): State<Arc<App>>) -> Json<Overview> {
    Json(app.house.overview())
}

/// Of all doors.
pub(super) async fn all_requests(State(app): State<Arc<App>>) -> Json<Vec<RequestView>> {
    Json(app.house.requests())
}

pub(super) async fn requests(
    State(app): State<Arc<App>>,
    nouns: Result<Path<String>, PathRejection>,
) -> Answer<Vec<RequestView>> {
    let door = door(&app, &named(nouns)?)?;
    Ok(Json(door.requests()))
}

pub(super) async fn request(
    State(app): State<Arc<App>>,
    named: Result<Path<(String, String)>, PathRejection>,
) -> Answer<Value> {
    let (nouns, id) = named_in(named)?;
    let door = door(&app, &nouns)?;
    let words = door.words();
    let Some(detail) = door.request(&id) else {
        return Err(Fault::not_found(format!("{} {id} is not known", words.noun)));
    };
    written(&words, detail)
}

/// The same by the door's name.
pub(super) async fn request_of_door(
    State(app): State<Arc<App>>,
    named: Result<Path<(String, String)>, PathRejection>,
) -> Answer<Value> {
    let (door, id) = named_in(named)?;
    let id = which(&app, door, id);
    let found =
        app.house.door(&id.door).and_then(|door| Some((door.words(), door.request(&id.id)?)));
    let Some((words, detail)) = found else {
        let noun = app.house.noun();
        return Err(Fault::not_found(format!("{noun} {id} is not known")));
    };
    written(&words, detail)
}

/// In the place of a door's name: whichever knows the request.
const ANY_DOOR: &str = "-";

pub(super) fn which(app: &App, door: String, id: String) -> RequestId {
    let id = RequestId { door, id };
    if id.door != ANY_DOOR {
        return id;
    }
    let knows = |door: &&Arc<dyn FrontDoor>| door.request(&id.id).is_some();
    let door = app.house.doors.iter().find(knows).or(app.house.doors.first());
    door.map(|door| door.words().request(&*id.id)).unwrap_or(id)
}

/// The request stands under `request`, and under what its door calls it.
fn written(words: &DoorWords, detail: RequestDetail) -> Answer<Value> {
    let mut json = serde_json::to_value(detail).map_err(|_| Fault::broken())?;
    json[words.noun] = json["request"].clone();
    Ok(Json(json))
}

/// The door that calls its requests so.
pub(super) fn door(app: &App, nouns: &str) -> Result<Arc<dyn FrontDoor>, Fault> {
    let door = app.house.door_of(nouns).cloned();
    door.ok_or_else(|| Fault::not_found(format!("there is nothing at /api/v1/{nouns}")))
}

pub(super) async fn vms(State(app): State<Arc<App>>) -> Json<Vec<VmView>> {
    Json(app.house.vms())
}

pub(super) async fn vm(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
) -> Answer<VmDetail> {
    let id = named(id)?;
    let vm = app.house.vm(&id);
    vm.map(Json).ok_or_else(|| Fault::not_found(format!("VM {id} is not one of ours")))
}

pub(super) async fn pools(State(app): State<Arc<App>>) -> Json<Vec<PoolView>> {
    Json(app.house.pools())
}

pub(super) async fn addresses(State(app): State<Arc<App>>) -> Json<Vec<AddressView>> {
    Json(app.house.addresses())
}

pub(super) async fn deletions(State(app): State<Arc<App>>) -> Json<DeletionsDetail> {
    Json(app.house.deletions())
}

pub(super) async fn link(State(app): State<Arc<App>>) -> Json<LinkDetail> {
    Json(app.house.link())
}

pub(super) async fn steering(State(app): State<Arc<App>>) -> Json<SteeringView> {
    Json(app.house.steering())
}

pub(super) async fn config(State(app): State<Arc<App>>) -> Answer<Value> {
    let config = app.house.doors.iter().find_map(|door| door.config());
    config.map(Json).ok_or_else(|| Fault::not_found("this service does not show its configuration"))
}

/// What this API is, for programs.
pub(super) async fn openapi() -> Response {
    text(StatusCode::OK, "application/json", include_str!("../../openapi.json").to_owned())
}

/// As it stands in the address; a form sends what was not filled in as empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Asked {
    subject: String,
    verdict: String,
    bound_by: String,
    after: String,
    limit: String,
}

impl Asked {
    fn validate(self) -> Result<DecisionQuery, Fault> {
        let filled = |text: String| Some(text).filter(|text| !text.is_empty());
        let number = |name: &str, text: String| match filled(text) {
            None => Ok(None),
            Some(text) => text
                .parse::<u64>()
                .map(Some)
                .map_err(|_| Fault::bad_request(format!("{name} must be a number, is {text:?}"))),
        };
        let limit = number("limit", self.limit)?.map_or(DECISIONS, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX).min(MAX_DECISIONS)
        });
        Ok(DecisionQuery {
            subject: filled(self.subject),
            verdict: filled(self.verdict),
            bound_by: filled(self.bound_by),
            after: number("after", self.after)?,
            limit: Some(limit),
        })
    }
}

pub(super) async fn decisions(
    State(app): State<Arc<App>>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Answer<Vec<DecisionView>> {
    let Query(asked) = asked.map_err(|wrong| Fault::bad_request(wrong.body_text()))?;
    Ok(Json(app.house.decisions(&asked.validate()?)))
}
