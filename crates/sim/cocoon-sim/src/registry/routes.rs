use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, RANGE, WWW_AUTHENTICATE,
};
use http::{Method, StatusCode};
use serde_json::json;

use super::store::digest;
use super::{Effect, EpochRegistry, Shared};

const LARGEST: usize = 1 << 30;
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

impl EpochRegistry {
    /// All routes. Names of repositories may contain slashes, so paths are taken apart here and not by the router.
    pub fn router(&self) -> Router {
        Router::new().fallback(serve).with_state(self.clone())
    }
}

pub(super) async fn serve(State(registry): State<EpochRegistry>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let effect = {
        let mut shared = registry.shared();
        shared.journal.push(format!("{} {path}", parts.method));
        shared.effect(&parts.method, &path)
    };
    match effect {
        Some(Effect::Status(status)) => return answer(status, Body::from("made to fail")),
        Some(Effect::Hang) => tokio::time::sleep(Duration::from_hours(24)).await,
        _ => {}
    }
    let Ok(body) = to_bytes(body, LARGEST).await else { return error(413, "SIZE_INVALID") };
    let mut shared = registry.shared();
    let is_read = parts.method == Method::GET || parts.method == Method::HEAD;
    let token = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = token.and_then(|value| value.strip_prefix("Bearer "));
    if !is_read && shared.token.is_some() && shared.token.as_deref() != token {
        let mut refused = error(401, "UNAUTHORIZED");
        let challenge = r#"Bearer realm="/v2/token",service="epoch""#;
        refused.headers_mut().insert(WWW_AUTHENTICATE, http::HeaderValue::from_static(challenge));
        return refused;
    }
    let range = parts.headers.get(RANGE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let query = parts.uri.query().unwrap_or_default();
    let done = shared.route(&parts.method, &path, query, range.as_deref(), &body, effect);
    match effect {
        Some(Effect::AfterTheFact(status)) => answer(status, Body::from("the answer is lost")),
        _ => done,
    }
}

impl Shared {
    fn effect(&mut self, method: &Method, path: &str) -> Option<Effect> {
        let fault = self.faults.iter_mut().find(|fault| {
            fault.times > 0 && *method == fault.method.as_str() && path.contains(&fault.path)
        })?;
        fault.times -= 1;
        Some(fault.effect)
    }

    fn route(
        &mut self,
        method: &Method,
        path: &str,
        query: &str,
        range: Option<&str>,
        body: &Bytes,
        effect: Option<Effect>,
    ) -> Response {
        if path == "/healthz" {
            return answer(200, Body::from("ok"));
        }
        let Some(rest) = path.strip_prefix("/v2/") else { return error(404, "NOT_FOUND") };
        if rest.is_empty() {
            return answer(200, Body::from("{}"));
        }
        if let Some((name, upload)) = rest.split_once("/blobs/uploads/") {
            return self.upload(method, name, upload, query, body);
        }
        if let Some((_, wanted)) = rest.rsplit_once("/blobs/") {
            return self.blob(method, wanted, range, body, effect);
        }
        if let Some((name, reference)) = rest.rsplit_once("/manifests/") {
            return self.manifest(method, name, reference, body);
        }
        if let Some(name) = rest.strip_suffix("/tags/list") {
            let tags: Vec<&str> =
                self.store.tags().filter(|(of, _)| *of == name).map(|(_, tag)| tag).collect();
            return answer(200, Body::from(json!({"name": name, "tags": tags}).to_string()));
        }
        error(404, "NOT_FOUND")
    }

    fn manifest(&mut self, method: &Method, name: &str, reference: &str, body: &Bytes) -> Response {
        match *method {
            Method::GET | Method::HEAD => match self.store.manifest(name, reference) {
                Some(content) => Response::builder()
                    .header(CONTENT_TYPE, media_type(content))
                    .header("docker-content-digest", digest(content))
                    .header(CONTENT_LENGTH, content.len())
                    .body(Body::from(if *method == Method::HEAD {
                        Vec::new()
                    } else {
                        content.clone()
                    }))
                    .unwrap_or_default(),
                None => error(404, "MANIFEST_UNKNOWN"),
            },
            Method::PUT => {
                if serde_json::from_slice::<serde_json::Value>(body).is_err() {
                    return error(400, "MANIFEST_INVALID");
                }
                let digest = self.store.put_manifest(name, reference, body.to_vec());
                located(201, &format!("/v2/{name}/manifests/{digest}"))
            }
            Method::DELETE if self.store.delete_manifest(name, reference) => {
                answer(202, Body::empty())
            }
            Method::DELETE => error(404, "MANIFEST_UNKNOWN"),
            _ => error(405, "UNSUPPORTED"),
        }
    }

    fn blob(
        &mut self,
        method: &Method,
        wanted: &str,
        range: Option<&str>,
        body: &Bytes,
        effect: Option<Effect>,
    ) -> Response {
        if *method == Method::PUT {
            if digest(body) != wanted {
                return error(400, "DIGEST_INVALID");
            }
            self.store.put_blob(body.to_vec());
            return located(201, &format!("/v2/blobs/{wanted}"));
        }
        let Some(content) = self.store.blob(wanted) else { return error(404, "BLOB_UNKNOWN") };
        let from = range
            .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok())
            .unwrap_or(0);
        let Some(tail) = content.get(from..) else { return error(416, "RANGE_INVALID") };
        let mut tail = tail.to_vec();
        let length = tail.len();
        let status = if range.is_some() { 206 } else { 200 };
        let response = Response::builder().status(status).header(CONTENT_LENGTH, length);
        if *method == Method::HEAD {
            return response.body(Body::empty()).unwrap_or_default();
        }
        let body = match effect {
            Some(Effect::CutAfter(count)) if count < length => {
                tail.truncate(count);
                let pieces = [Ok(Bytes::from(tail)), Err(std::io::Error::other("cut"))];
                Body::from_stream(stream::iter(pieces))
            }
            Some(Effect::Corrupt) if length > 0 => {
                tail[length / 2] ^= 1;
                Body::from(tail)
            }
            _ => Body::from(tail),
        };
        response.body(body).unwrap_or_default()
    }

    fn upload(
        &mut self,
        method: &Method,
        name: &str,
        upload: &str,
        query: &str,
        body: &Bytes,
    ) -> Response {
        let promised = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("digest="))
            .map(|d| d.replace("%3A", ":"));
        if *method == Method::POST && upload.is_empty() {
            let id = self.store.begin_upload();
            return located(202, &format!("/v2/{name}/blobs/uploads/{id}"));
        }
        let Some(content) = self.store.upload(upload) else {
            return error(404, "BLOB_UPLOAD_UNKNOWN");
        };
        match *method {
            Method::PATCH => {
                content.extend_from_slice(body);
                let last = content.len().saturating_sub(1);
                let mut response = located(202, &format!("/v2/{name}/blobs/uploads/{upload}"));
                set_range(&mut response, last);
                response
            }
            Method::GET => {
                let last = content.len().saturating_sub(1);
                let mut response = answer(204, Body::empty());
                set_range(&mut response, last);
                response
            }
            Method::PUT => {
                content.extend_from_slice(body);
                if promised.as_deref() != Some(digest(content).as_str()) {
                    return error(400, "DIGEST_INVALID");
                }
                let content = self.store.end_upload(upload).unwrap_or_default();
                let digest = self.store.put_blob(content);
                located(201, &format!("/v2/{name}/blobs/{digest}"))
            }
            _ => error(405, "UNSUPPORTED"),
        }
    }
}

fn media_type(manifest: &[u8]) -> String {
    let value: serde_json::Value = serde_json::from_slice(manifest).unwrap_or_default();
    value["mediaType"].as_str().unwrap_or(MANIFEST).to_owned()
}

fn set_range(response: &mut Response, last: usize) {
    if let Ok(value) = format!("0-{last}").parse() {
        response.headers_mut().insert(RANGE, value);
    }
}

fn answer(status: u16, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

fn located(status: u16, at: &str) -> Response {
    let mut response = answer(status, Body::empty());
    if let Ok(value) = at.parse() {
        response.headers_mut().insert(LOCATION, value);
    }
    response
}

fn error(status: u16, code: &str) -> Response {
    answer(status, Body::from(json!({"errors": [{"code": code, "message": code}]}).to_string()))
}
