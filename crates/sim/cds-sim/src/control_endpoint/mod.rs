//! The control endpoint: what the typed API of [`CdsApi`] does, as JSON over HTTP, for tests and scripts in other processes.
//!
//! It is off unless the options say so. No fault reaches it, and it answers while the API is down.

mod json_demand;
mod json_fault;
mod json_report;

use bytes::Bytes;
use http::{Response, StatusCode};
use percent_encoding::percent_decode_str;
use roost_cds::JobId;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::json_demand::JsonDemand;
use self::json_fault::JsonFault;
use crate::api::CdsApi;

pub(crate) const PREFIX: &str = "/roost/control/";

#[derive(Debug)]
enum Refusal {
    NotFound,
    Bad(String),
}

/// `place` is what follows [`PREFIX`].
pub(crate) fn answer(api: &CdsApi, method: &str, place: &str, body: &[u8]) -> Response<Bytes> {
    let steps: Vec<_> = place
        .trim_end_matches('/')
        .split('/')
        .map(|step| percent_decode_str(step).decode_utf8_lossy())
        .collect();
    let steps: Vec<&str> = steps.iter().map(|step| &**step).collect();
    let (status, value) = match carry_out(api, method, &steps, body) {
        Ok(value) => (StatusCode::OK, value),
        Err(Refusal::NotFound) => {
            (StatusCode::NOT_FOUND, json!({"error": format!("there is no {method} {place}")}))
        }
        Err(Refusal::Bad(words)) => (StatusCode::BAD_REQUEST, json!({"error": words})),
    };
    let mut response = Response::new(Bytes::from(value.to_string()));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}

fn carry_out(api: &CdsApi, method: &str, steps: &[&str], body: &[u8]) -> Result<Value, Refusal> {
    match (method, steps) {
        ("GET", ["summary"]) => return Ok(json!(api.summary())),
        ("GET", ["jobs"]) => {
            return Ok(api.jobs().iter().map(json_report::job).collect());
        }
        ("GET", ["jobs", id]) => {
            let report = api.job(&job_id(id)?).ok_or(Refusal::NotFound)?;
            return Ok(json_report::job(&report));
        }
        ("POST", ["jobs"]) => {
            let id = parse::<JsonDemand>(body)?.queue(api).map_err(Refusal::Bad)?;
            return Ok(json!({"id": id.to_string()}));
        }
        ("POST", ["jobs", id, "stop"]) => {
            let id = job_id(id)?;
            api.job(&id).ok_or(Refusal::NotFound)?;
            api.stop_job(&id);
        }
        ("GET", ["workers"]) => {
            return Ok(api.workers().iter().map(json_report::worker).collect());
        }
        ("POST", ["workers", name, "disable"]) => {
            let is_known = api.workers().iter().any(|worker| worker.name == *name);
            is_known.then(|| api.disable_worker(name)).ok_or(Refusal::NotFound)?;
        }
        ("GET", ["double_workers"]) => {
            return Ok(api.double_workers().iter().map(json_report::double_worker).collect());
        }
        ("GET", ["calls"]) => return Ok(json!(api.lock().calls)),
        ("GET", ["counters"]) => return Ok(json!({"clients": api.clients()})),
        ("DELETE", ["counters"]) => api.reset_clients(),
        ("POST", ["faults"]) => {
            parse::<JsonFault>(body)?.inject(api).map_err(Refusal::Bad)?;
        }
        ("DELETE", ["faults"]) => api.clear_faults(),
        ("POST", ["down"]) => api.go_down(),
        ("POST", ["up"]) => api.come_back(),
        ("DELETE", ["sessions"]) => api.forget_sessions(),
        ("POST", ["websockets", "close"]) => {
            api.close_websockets(parse::<JsonClose>(body)?.code);
        }
        _ => return Err(Refusal::NotFound),
    }
    Ok(json!({}))
}

fn job_id(text: &str) -> Result<JobId, Refusal> {
    JobId::parse(text).ok_or(Refusal::NotFound)
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|error| Refusal::Bad(error.to_string()))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct JsonClose {
    code: u16,
}

impl Default for JsonClose {
    fn default() -> Self {
        Self { code: roost_cds::SocketClosed::ABNORMAL }
    }
}
