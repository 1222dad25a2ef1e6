//! `/api/v1`: all that the commands and the page show.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use http::header::CONTENT_DISPOSITION;
use http::{HeaderValue, StatusCode};
use roost_door::{DoorWords, FrontDoor, Meant, NotMeant};
use roost_views::{
    AddressView, DecisionQuery, DeletionsDetail, HistoryView, LinkDetail, Overview, PoolView,
    RequestDetail, RequestId, RequestView, SteeringView, VmDetail,
};
use serde::Deserialize;
use serde_json::Value;

use super::answer::{Fault, named, named_in, text};
use super::app::App;
use crate::page::{self, decisions_csv, requests_csv, requests_wanted, vms_csv, vms_wanted};

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

/// As the door lists them; with a filter or an order, as the page shows them.
pub(super) async fn requests(
    State(app): State<Arc<App>>,
    nouns: Result<Path<String>, PathRejection>,
    Query(asked): Query<List>,
) -> Result<Response, Fault> {
    let nouns = named(nouns)?;
    let all = app.house.requests_of(door(&app, &nouns)?.as_ref());
    let found = if asked.is_plain() { all } else { requests_wanted(all, &asked.asked()) };
    Ok(if asked.wants_csv()? {
        csv(&nouns, requests_csv(&found))
    } else {
        Json(found).into_response()
    })
}

/// What narrows a list, and how it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct List {
    q: String,
    state: String,
    kind: String,
    phase: String,
    sort: String,
    format: String,
}

impl List {
    fn is_plain(&self) -> bool {
        let Self { q, state, kind, phase, sort, .. } = self;
        [q, state, kind, phase, sort].iter().all(|text| text.is_empty())
    }

    fn asked(&self) -> page::Asked {
        page::Asked {
            q: self.q.clone(),
            state: self.state.clone(),
            kind: self.kind.clone(),
            phase: self.phase.clone(),
            sort: self.sort.clone(),
            ..page::Asked::default()
        }
    }

    fn wants_csv(&self) -> Result<bool, Fault> {
        wants_csv(&self.format)
    }
}

fn wants_csv(format: &str) -> Result<bool, Fault> {
    match format {
        "" | "json" => Ok(false),
        "csv" => Ok(true),
        other => Err(Fault::bad_request(format!("format must be json or csv, is {other:?}"))),
    }
}

fn csv(name: &str, body: String) -> Response {
    let mut answer = text(StatusCode::OK, "text/csv; charset=utf-8", body);
    let file = format!("attachment; filename=\"{name}.csv\"");
    if let Ok(file) = HeaderValue::try_from(file) {
        answer.headers_mut().insert(CONTENT_DISPOSITION, file);
    }
    answer
}

/// How many minutes are asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Minutes {
    minutes: Option<usize>,
}

pub(super) async fn history(
    State(app): State<Arc<App>>,
    asked: Result<Query<Minutes>, QueryRejection>,
) -> Answer<HistoryView> {
    let Query(asked) = asked.map_err(|wrong| Fault::bad_request(wrong.body_text()))?;
    Ok(Json(app.house.history.view(asked.minutes.unwrap_or(usize::MAX))))
}

pub(super) async fn search(
    State(app): State<Arc<App>>,
    Query(asked): Query<List>,
) -> Json<Vec<page::Hit>> {
    Json(page::search(&app.house, &asked.q))
}

pub(super) async fn request(
    State(app): State<Arc<App>>,
    named: Result<Path<(String, String)>, PathRejection>,
) -> Answer<Value> {
    let (nouns, id) = named_in(named)?;
    let words = door(&app, &nouns)?.words();
    detail(&app, &meant(&app, &words, &id)?)
}

/// The same by the door's name.
pub(super) async fn request_of_door(
    State(app): State<Arc<App>>,
    named: Result<Path<(String, String)>, PathRejection>,
) -> Answer<Value> {
    let (door, id) = named_in(named)?;
    detail(&app, &which(&app, &door, &id)?)
}

fn detail(app: &App, id: &RequestId) -> Answer<Value> {
    let door = app.house.door(&id.door);
    let found = door.and_then(|door| Some((door.words(), app.house.request(id)?)));
    // It may have gone between the two looks.
    let Some((words, detail)) = found else {
        let noun = app.house.noun();
        return Err(Fault::not_found(format!("{noun} {id} is not known")));
    };
    written(&words, detail)
}

/// A request of this door, by its id or the beginning of it.
fn meant(app: &App, words: &DoorWords, id: &str) -> Result<RequestId, Fault> {
    Ok(app.house.request_meant(Some(words.name), id).or_words(words.noun, id)?)
}

/// In the place of a door's name: whichever knows the request.
pub(super) const ANY_DOOR: &str = "-";

fn which(app: &App, door: &str, id: &str) -> Result<RequestId, Fault> {
    let house = &app.house;
    if door != ANY_DOOR {
        return Ok(house.request_meant(Some(door), id).or_words(house.noun(), id)?);
    }
    // Whoever does not name a door may mean a VM as well.
    match (house.request_meant(None, id), house.vm_meant(id)) {
        (Meant::Nothing { nearest: None }, Meant::Nothing { nearest }) => {
            let nearest = nearest.map(|name| format!("; do you mean {name}?")).unwrap_or_default();
            let noun = house.noun();
            Err(Fault::not_found(format!("{id} is neither a {noun} nor a VM of ours{nearest}")))
        }
        (request, _) => Ok(request.or_words(house.noun(), id)?),
    }
}

/// The request stands under `request`, and under what its door calls it.
fn written(words: &DoorWords, detail: RequestDetail) -> Answer<Value> {
    let mut json = serde_json::to_value(detail).map_err(|_| Fault::broken())?;
    json[words.noun.to_ascii_lowercase()] = json["request"].clone();
    Ok(Json(json))
}

/// The door that calls its requests so.
pub(super) fn door(app: &App, nouns: &str) -> Result<Arc<dyn FrontDoor>, Fault> {
    let door = app.house.door_of(nouns).cloned();
    door.ok_or_else(|| Fault::not_found(format!("there is nothing at /api/v1/{nouns}")))
}

pub(super) async fn vms(
    State(app): State<Arc<App>>,
    Query(asked): Query<List>,
) -> Result<Response, Fault> {
    let all = app.house.vms();
    let found = if asked.is_plain() { all } else { vms_wanted(all, &asked.asked()) };
    Ok(if asked.wants_csv()? { csv("vms", vms_csv(&found)) } else { Json(found).into_response() })
}

pub(super) async fn vm(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
) -> Answer<VmDetail> {
    let id = named(id)?;
    let vm = app.house.vm(&vm_meant(&app, &id)?);
    vm.map(Json).ok_or_else(|| Fault::not_found(format!("VM {id} is not one of ours")))
}

/// A VM by its name, its id, or the beginning of its name.
fn vm_meant(app: &App, id: &str) -> Result<String, Fault> {
    match app.house.vm_meant(id) {
        Meant::Nothing { nearest: None } => {
            Err(Fault::not_found(format!("VM {id} is not one of ours")))
        }
        meant => Ok(meant.or_words("VM", id)?),
    }
}

pub(super) async fn pools(State(app): State<Arc<App>>) -> Json<Vec<PoolView>> {
    Json(app.house.pools())
}

pub(super) async fn addresses(State(app): State<Arc<App>>) -> Json<Vec<AddressView>> {
    Json(app.house.addresses())
}

/// With `format=csv`, what was deleted and kept.
pub(super) async fn deletions(
    State(app): State<Arc<App>>,
    Query(asked): Query<List>,
) -> Result<Response, Fault> {
    let detail: DeletionsDetail = app.house.deletions();
    Ok(if asked.wants_csv()? {
        csv("deletions", decisions_csv(&detail.decisions))
    } else {
        Json(detail).into_response()
    })
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
    events: String,
    after: String,
    limit: String,
    format: String,
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
            events: matches!(self.events.as_str(), "true" | "1"),
            after: number("after", self.after)?,
            limit: Some(limit),
        })
    }
}

pub(super) async fn decisions(
    State(app): State<Arc<App>>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Response, Fault> {
    let Query(asked) = asked.map_err(|wrong| Fault::bad_request(wrong.body_text()))?;
    let format = asked.format.clone();
    let query = asked.validate()?;
    let found = app.house.decisions(&query);
    if let Some(text) = query.subject.as_deref().filter(|_| found.is_empty())
        && let Some(several @ NotMeant::Several(_)) = app.house.not_a_subject(text)
    {
        return Err(several.into());
    }
    Ok(if wants_csv(&format)? {
        csv("decisions", decisions_csv(&found))
    } else {
        Json(found).into_response()
    })
}
