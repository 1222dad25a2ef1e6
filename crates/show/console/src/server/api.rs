//! `/api/v1`: all that the commands and the page show.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::answer::{Fault, named, text};
use super::app::App;
use crate::views::{
    AddressView, DecisionQuery, DecisionView, DeletionsDetail, JobDetail, JobView, LinkDetail,
    Overview, PoolView, SteeringView, VmDetail, VmView,
};

type Answer<T> = Result<Json<T>, Fault>;

/// What a request without a limit gets: a few screens.
const DECISIONS: usize = 200;

/// What a request can get at once; `after` asks for more.
pub(super) const MAX_DECISIONS: usize = 1_000;

pub(super) async fn overview(State(app): State<Arc<App>>) -> Json<Overview> {
    Json(app.source.overview())
}

pub(super) async fn jobs(State(app): State<Arc<App>>) -> Json<Vec<JobView>> {
    Json(app.source.jobs())
}

pub(super) async fn job(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
) -> Answer<JobDetail> {
    let id = named(id)?;
    let job = app.source.job(&id);
    job.map(Json).ok_or_else(|| Fault::not_found(format!("job {id} is not known")))
}

pub(super) async fn vms(State(app): State<Arc<App>>) -> Json<Vec<VmView>> {
    Json(app.source.vms())
}

pub(super) async fn vm(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
) -> Answer<VmDetail> {
    let id = named(id)?;
    let vm = app.source.vm(&id);
    vm.map(Json).ok_or_else(|| Fault::not_found(format!("VM {id} is not one of ours")))
}

pub(super) async fn pools(State(app): State<Arc<App>>) -> Json<Vec<PoolView>> {
    Json(app.source.pools())
}

pub(super) async fn addresses(State(app): State<Arc<App>>) -> Json<Vec<AddressView>> {
    Json(app.source.addresses())
}

pub(super) async fn deletions(State(app): State<Arc<App>>) -> Json<DeletionsDetail> {
    Json(app.source.deletions())
}

pub(super) async fn link(State(app): State<Arc<App>>) -> Json<LinkDetail> {
    Json(app.source.link())
}

pub(super) async fn steering(State(app): State<Arc<App>>) -> Json<SteeringView> {
    Json(app.source.steering())
}

pub(super) async fn config(State(app): State<Arc<App>>) -> Answer<Value> {
    let config = app.source.config();
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
    Ok(Json(app.source.decisions(&asked.validate()?)))
}
