//! What a person can tell the service to do. Whether they may was checked before anything here is reached.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{Extension, Path, State};
use http::StatusCode;
use roost_door::{Action, Found, Meant, Order, Person, Refused};
use roost_views::RequestId;
use serde::{Deserialize, Serialize};

use super::answer::{Fault, named, named_in};
use super::api::{ANY_DOOR, door};
use super::app::App;

type Answer = Result<Json<Done>, Fault>;
type Name = Result<Path<String>, PathRejection>;
type Body = Result<Bytes, BytesRejection>;

/// Longer words are cut: they stand in a journal that is kept in memory.
const MAX_REASON: usize = 200;

/// What may come with an action. No body at all is fine, too.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(super) struct Said {
    /// Why, in words; it is recorded.
    reason: Option<String>,
    /// For `thaw`: what was found.
    found: Option<Found>,
}

/// An action was done.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Done {
    /// Always true; what is not done is an error.
    done: bool,
    /// What came of it.
    words: String,
}

pub(super) async fn service_wide(
    State(app): State<Arc<App>>,
    by: Option<Extension<Person>>,
    name: Name,
    body: Body,
) -> Answer {
    let (name, said) = (named(name)?, said(body)?);
    let action = match name.as_str() {
        "pause" => Action::PauseSpawning,
        "resume" => Action::ResumeSpawning,
        "drain" => Action::Drain,
        "freeze" => Action::FreezeDeletions,
        "thaw" => Action::ResumeDeletions { found: said.found.unwrap_or_default() },
        _ => return Err(Fault::not_found(format!("there is no action {name:?}"))),
    };
    carry_out(&app, by, action, said).await
}

/// Breaks something in the world of a demo.
pub(super) async fn demo(State(app): State<Arc<App>>, name: Name) -> Answer {
    let name = named(name)?;
    let Some(demo) = &app.house.demonstration else {
        return Err(Fault::not_found("this service is no demo"));
    };
    match demo.play(&name) {
        Ok(words) => Ok(Json(Done { done: true, words })),
        Err(refused @ Refused::Unknown { .. }) => Err(Fault::not_found(refused.to_string())),
        Err(refused @ Refused::NotNow { .. }) => {
            Err(Fault::new(StatusCode::CONFLICT, refused.to_string()))
        }
    }
}

pub(super) async fn delete_vm(
    State(app): State<Arc<App>>,
    by: Option<Extension<Person>>,
    vm: Name,
    body: Body,
) -> Answer {
    // The door says why it does not touch what is not its own.
    let vm = named(vm)?;
    let vm = match app.house.vm_meant(&vm) {
        Meant::One(meant) => meant,
        Meant::Nothing { .. } => vm,
        several @ Meant::Several(_) => several.or_words("VM", &vm)?,
    };
    carry_out(&app, by, Action::DeleteVm { vm }, said(body)?).await
}

pub(super) async fn refill_pool(
    State(app): State<Arc<App>>,
    by: Option<Extension<Person>>,
    pool: Name,
    body: Body,
) -> Answer {
    carry_out(&app, by, Action::RefillPool { pool: named(pool)? }, said(body)?).await
}

type Parts = Result<Path<(String, String)>, PathRejection>;

macro_rules! on_a_request {
    ($($name:ident, $of_door:ident => $action:ident;)*) => { $(
        pub(super) async fn $name(
            State(app): State<Arc<App>>,
            by: Option<Extension<Person>>,
            parts: Parts,
            body: Body,
        ) -> Answer {
            let request = by_nouns(&app, parts)?;
            carry_out(&app, by, Action::$action { request }, said(body)?).await
        }

        pub(super) async fn $of_door(
            State(app): State<Arc<App>>,
            by: Option<Extension<Person>>,
            parts: Parts,
            body: Body,
        ) -> Answer {
            let request = by_door(&app, parts)?;
            carry_out(&app, by, Action::$action { request }, said(body)?).await
        }
    )* };
}

on_a_request! {
    recheck, recheck_of_door => Recheck;
    pause, pause_of_door => PauseRequest;
    resume, resume_of_door => ResumeRequest;
}

fn by_nouns(app: &App, parts: Parts) -> Result<RequestId, Fault> {
    let (nouns, id) = named_in(parts)?;
    let words = door(app, &nouns)?.words();
    meant(app, Some(words.name), id)
}

fn by_door(app: &App, parts: Parts) -> Result<RequestId, Fault> {
    let (door, id) = named_in(parts)?;
    meant(app, Some(&*door).filter(|door| *door != ANY_DOOR), id)
}

/// The request by its id or the beginning of it. What nobody shows is passed on as it was said: its door answers for that.
fn meant(app: &App, door: Option<&str>, id: String) -> Result<RequestId, Fault> {
    match app.house.request_meant(door, &id) {
        Meant::One(meant) => Ok(meant),
        Meant::Nothing { .. } => {
            let first = app.house.doors.first().map(|door| door.words().name);
            Ok(RequestId::new(door.or(first).unwrap_or_default(), id))
        }
        several @ Meant::Several(_) => Ok(several.or_words(app.house.noun(), &id)?),
    }
}

fn said(body: Body) -> Result<Said, Fault> {
    let body = body.map_err(|wrong| Fault::new(wrong.status(), wrong.body_text()))?;
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Said::default());
    }
    let mut said: Said = serde_json::from_slice(&body).map_err(|wrong| {
        Fault::bad_request(format!("the body is not what it should be: {wrong}"))
    })?;
    said.reason = said.reason.as_deref().and_then(in_one_line);
    Ok(said)
}

fn in_one_line(reason: &str) -> Option<String> {
    let plain = reason.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let plain: String = plain.take(MAX_REASON).collect();
    Some(plain.trim().to_owned()).filter(|reason| !reason.is_empty())
}

async fn carry_out(app: &App, by: Option<Extension<Person>>, action: Action, said: Said) -> Answer {
    if !app.house.can_be_steered() {
        let words = "this service can only be looked at";
        return Err(Fault::new(StatusCode::NOT_IMPLEMENTED, words));
    }
    let Some(Extension(by)) = by else {
        return Err(Fault::new(StatusCode::FORBIDDEN, "nobody knows where this came from"));
    };
    let order = Order { action, by, reason: said.reason };
    tracing::info!(action = ?order.action, by = %order, "told to act");
    match app.house.act(order).await {
        Ok(words) => Ok(Json(Done { done: true, words })),
        Err(refused @ Refused::Unknown { .. }) => Err(Fault::not_found(refused.to_string())),
        Err(refused @ Refused::NotNow { .. }) => {
            Err(Fault::new(StatusCode::CONFLICT, refused.to_string()))
        }
    }
}
