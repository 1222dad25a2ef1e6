//! What a person can tell the service to do. Whether they may was checked before anything here is reached.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{Extension, Path, State};
use http::StatusCode;
use roost_door::{Action, Found, Order, Person, Refused};
use serde::{Deserialize, Serialize};

use super::answer::{Fault, named, named_in};
use super::api::{door, which};
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

pub(super) async fn delete_vm(
    State(app): State<Arc<App>>,
    by: Option<Extension<Person>>,
    vm: Name,
    body: Body,
) -> Answer {
    carry_out(&app, by, Action::DeleteVm { vm: named(vm)? }, said(body)?).await
}

pub(super) async fn refill_pool(
    State(app): State<Arc<App>>,
    by: Option<Extension<Person>>,
    pool: Name,
    body: Body,
) -> Answer {
    carry_out(&app, by, Action::RefillPool { pool: named(pool)? }, said(body)?).await
}

pub(super) async fn recheck(
    State(app): State<Arc<App>>,
    by: Option<Extension<Person>>,
    parts: Result<Path<(String, String)>, PathRejection>,
    body: Body,
) -> Answer {
    let (nouns, id) = named_in(parts)?;
    let request = door(&app, &nouns)?.words().request(id);
    carry_out(&app, by, Action::Recheck { request }, said(body)?).await
}

pub(super) async fn recheck_of_door(
    State(app): State<Arc<App>>,
    by: Option<Extension<Person>>,
    parts: Result<Path<(String, String)>, PathRejection>,
    body: Body,
) -> Answer {
    let (door, id) = named_in(parts)?;
    let request = which(&app, door, id);
    carry_out(&app, by, Action::Recheck { request }, said(body)?).await
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
