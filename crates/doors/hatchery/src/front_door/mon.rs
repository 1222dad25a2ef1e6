//! `/mon/*`: what CDS's operators know from its services, in JSON exactly as CDS writes it.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get};
use axum::{Json, http};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, CONTENT_TYPE,
};
use http::{HeaderValue, StatusCode};
use roost_cds::{Level, MonitoringStatus};
use roost_door::{FrontDoor as _, Route};
use serde::Serialize;

use super::HatcheryDoor;
use crate::metrics::{CONTENT_TYPE as PROMETHEUS, describe};

pub(super) fn routes(door: &Arc<HatcheryDoor>) -> Vec<Route> {
    let route = |path, answer: fn(&HatcheryDoor) -> Response| {
        let door = Arc::clone(door);
        let methods: MethodRouter = get(async move || answer(&door));
        let methods = methods.options(async || StatusCode::NO_CONTENT);
        Route { path, methods: methods.layer(from_fn(share_with_pages)), is_open: true }
    };
    vec![
        route("/mon/version", |door| Json(door.version()).into_response()),
        route("/mon/status", |door| status(&door.window.status())),
        route("/mon/workers", |door| Json(door.window.workers()).into_response()),
        route("/mon/metrics", |door| {
            ([(CONTENT_TYPE, PROMETHEUS)], door.metrics()).into_response()
        }),
        route("/mon/metrics/all", |_| Json(describe()).into_response()),
    ]
}

/// One alert makes the service unavailable, and a warning does not.
fn status(status: &MonitoringStatus) -> Response {
    let code = match status.level() {
        Level::Alert => StatusCode::SERVICE_UNAVAILABLE,
        Level::Ok | Level::Warn => StatusCode::OK,
    };
    (code, Json(status)).into_response()
}

/// `/mon/version`. CDS services with a database have one more field.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names are those of CDS")]
struct Version {
    version: String,
    architecture: &'static str,
    os: &'static str,
    git_hash: String,
    build_time: String,
}

impl HatcheryDoor {
    fn version(&self) -> Version {
        Version {
            version: self.window.version().to_owned(),
            architecture: std::env::consts::ARCH,
            os: std::env::consts::OS,
            git_hash: self.build.git_hash.clone(),
            build_time: self.build.build_time.clone(),
        }
    }
}

/// CDS lets any page in any browser read what is below `/mon`. Nothing else is shared so.
async fn share_with_pages(request: Request, next: Next) -> Response {
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let methods = HeaderValue::from_static("GET, HEAD, OPTIONS");
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
    answer
}

#[cfg(test)]
mod tests {
    use roost_cds::MonitoringLine;

    use super::*;

    #[test]
    fn one_alert_makes_the_status_unavailable_and_a_warning_does_not() {
        for (level, code) in [(Level::Ok, 200), (Level::Warn, 200), (Level::Alert, 503)] {
            let line = MonitoringLine { status: level, ..MonitoringLine::default() };
            let answer = status(&MonitoringStatus { now: None, lines: Some(vec![line]) });
            assert_eq!(answer.status().as_u16(), code, "{level:?}");
        }
    }
}
