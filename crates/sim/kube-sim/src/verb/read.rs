//! Get, list and watch.

use std::sync::Arc;
use std::time::Duration;

use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use base64::{DecodeError, Engine as _};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Draft, Subject, wish};
use crate::convert;
use crate::kind::Kind;
use crate::present::Presenter;
use crate::request::{Answer, Body, Request};
use crate::selector::Selector;
use crate::status::ApiError;
use crate::store::{Key, Stored};
use crate::watch::{self, Disturbance, Watch};
use crate::world::World;

/// A watch without a wish ends by itself after 30 to 60 minutes.
const WATCH_ENDS: (Duration, Duration) = (Duration::from_mins(30), Duration::from_hours(1));

/// Fields that every kind can be selected by.
const COMMON_FIELDS: [&str; 2] = ["metadata.name", "metadata.namespace"];

pub(super) fn presenter(world: &World, request: &Request) -> Presenter {
    Presenter::new(
        Arc::clone(&world.clock),
        &request.accept,
        &request.target.version,
        request.query.get("includeObject"),
    )
}

impl World {
    pub(crate) fn get_one(&self, subject: &Subject, request: &Request) -> Result<Answer, ApiError> {
        let Subject { kind, key } = subject;
        let stored = self.get(kind, key).ok_or_else(|| ApiError::not_found(kind, &key.1))?;
        let body = match request.target.subresource.as_str() {
            "scale" => return self.get_scale(subject, request, &stored),
            "" | "status" | "approval" | "finalize" | "ephemeralcontainers" | "resize" => {
                presenter(self, request).object(kind, &stored)
            }
            _ => return Err(ApiError::method_not_allowed()),
        };
        Ok(Answer::bytes(StatusCode::OK, body))
    }

    /// What a writer gets to see of what was stored.
    pub(crate) fn show(
        &self,
        draft: &Draft,
        request: &Request,
        stored: &Stored,
        code: StatusCode,
    ) -> Result<Answer, ApiError> {
        let mut answer = if request.target.subresource == "scale" {
            self.get_scale(&draft.subject, request, stored)?
        } else {
            Answer::bytes(code, presenter(self, request).object(&draft.subject.kind, stored))
        };
        answer.code = code;
        Ok(answer)
    }

    pub(crate) fn list(
        &mut self,
        subject: &Subject,
        request: &Request,
    ) -> Result<Answer, ApiError> {
        let kind = &subject.kind;
        wish::check_version_match(request, false)?;
        let selector = selector(kind, request)?;
        let namespace = Some(request.target.namespace.as_str()).filter(|name| !name.is_empty());
        let page = Page::of(request, self.revision)?;
        // What may be as old as it likes comes from a cache, which knows no pages.
        let is_from_cache = page.after.is_none() && request.query.get("resourceVersion") == "0";
        let limit = request.query.number("limit").filter(|limit| *limit > 0 && !is_from_cache);
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let matches = |stored: &Arc<Stored>| {
            selector.is_empty() || selector.matches(&seen(kind, request, &stored.value))
        };
        let revision = page.revision.unwrap_or(self.revision);
        let mut found: Vec<(Key, Arc<Stored>)> = Vec::new();
        let mut left = 0_usize;
        if let Some(table) = self.table(kind) {
            if page.revision.is_some_and(|revision| table.changed_since(revision)) {
                let snapshot = table.objects_at(revision).ok_or_else(|| expired_page(&page))?;
                let wanted = snapshot.iter().filter(|(key, stored)| {
                    page.after.as_ref().is_none_or(|after| *key > after)
                        && namespace.is_none_or(|namespace| key.0 == namespace)
                        && matches(stored)
                });
                for (key, stored) in wanted {
                    if found.len() < limit {
                        found.push((key.clone(), Arc::clone(stored)));
                    } else {
                        left += 1;
                    }
                }
            } else {
                for (key, stored) in table.objects(namespace, page.after.as_ref()) {
                    if !matches(stored) {
                        continue;
                    }
                    if found.len() < limit {
                        found.push((key.clone(), Arc::clone(stored)));
                    } else {
                        left += 1;
                    }
                }
            }
        }
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if kind.is_custom() {
            metadata["continue"] = json!("");
        }
        if let Some((last, _)) = found.last().filter(|_| left > 0) {
            metadata["continue"] = json!(Page::token(revision, last));
            if selector.is_empty() {
                metadata["remainingItemCount"] = json!(left);
            }
        }
        let items: Vec<_> = found.into_iter().map(|(_, stored)| stored).collect();
        Ok(Answer::bytes(StatusCode::OK, presenter(self, request).list(kind, &items, &metadata)))
    }

    pub(crate) fn watch(
        &mut self,
        subject: &Subject,
        request: &Request,
        disturbance: Disturbance,
    ) -> Result<Answer, ApiError> {
        let kind = &subject.kind;
        let mut selector = selector(kind, request)?;
        let query = &request.query;
        let name = &request.target.name;
        if !name.is_empty() {
            selector.fields.push(("metadata.name".into(), true, name.clone()));
        }
        let namespace = Some(request.target.namespace.clone()).filter(|name| !name.is_empty());
        let from = query.get("resourceVersion");
        let sends_initial = query.is_set("sendInitialEvents");
        wish::check_version_match(request, true)?;
        let current = self.revision;
        let from_state =
            (from.is_empty() || from == "0") && query.get("sendInitialEvents").is_empty();
        let since = if from_state || sends_initial {
            current
        } else {
            match from {
                "" | "0" => current,
                _ => from.parse().map_err(|_| {
                    ApiError::bad_request(format!(
                        "Invalid value: {from:?}: the resource version is not a number"
                    ))
                })?,
            }
        };
        let (low, high) = WATCH_ENDS;
        let lasts = match query.number("timeoutSeconds") {
            Some(seconds) => Duration::from_secs(seconds),
            None => self.random.duration(low, high),
        };
        let presenter = presenter(self, request);
        let table = self.table_mut(kind);
        let Some((missed, changes)) = table.watch(namespace.clone(), since) else {
            return Ok(Answer {
                code: StatusCode::OK,
                body: Body::Refused(watch::gone(since)),
                warnings: Vec::new(),
            });
        };
        let initial = if from_state || sends_initial {
            table
                .objects(namespace.as_deref(), None)
                .map(|(_, stored)| Arc::clone(stored))
                .collect()
        } else {
            Vec::new()
        };
        let watch = Watch {
            kind: Arc::clone(kind),
            selector,
            presenter,
            initial,
            missed,
            changes,
            bookmarks: query.is_set("allowWatchBookmarks"),
            marks_initial_end: sends_initial && query.is_set("allowWatchBookmarks"),
            revision: current.max(since),
            ends: Instant::now() + lasts,
            disturbance,
            converter: None,
        };
        Ok(Answer {
            code: StatusCode::OK,
            body: Body::Watch(Box::new(watch)),
            warnings: Vec::new(),
        })
    }
}

/// Selectors of the newer events name fields as these have them.
pub(super) fn seen<'a>(
    kind: &Kind,
    request: &Request,
    value: &'a Value,
) -> std::borrow::Cow<'a, Value> {
    if kind.is("events.k8s.io", "events") {
        return std::borrow::Cow::Owned(convert::rename_version(
            kind,
            &request.target.version,
            value,
        ));
    }
    std::borrow::Cow::Borrowed(value)
}

pub(super) fn selector(kind: &Kind, request: &Request) -> Result<Selector, ApiError> {
    let selector =
        Selector::parse(request.query.get("labelSelector"), request.query.get("fieldSelector"))
            .map_err(ApiError::bad_request)?;
    if let Some(built_in) = kind.built_in() {
        let own = built_in.selectable_fields();
        for (path, _, _) in &selector.fields {
            if COMMON_FIELDS.contains(&path.as_str()) || own.contains(&path.as_str()) {
                continue;
            }
            return Err(ApiError::bad_request(if own.is_empty() {
                format!(
                    "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            } else {
                format!("field label not supported: {path}")
            }));
        }
    } else {
        let selectable = kind
            .version(&request.target.version)
            .map(|version| version.selectable_fields.as_slice());
        for (path, _, _) in &selector.fields {
            let is_known = COMMON_FIELDS.contains(&path.as_str())
                || selectable.is_some_and(|fields| fields.contains(path));
            if !is_known {
                return Err(ApiError::bad_request(format!("field label not supported: {path}")));
            }
        }
    }
    Ok(selector)
}

/// Where a list goes on, and at which revision.
#[derive(Debug, Default)]
struct Page {
    after: Option<Key>,
    revision: Option<u64>,
}

impl Page {
    fn of(request: &Request, current: u64) -> Result<Self, ApiError> {
        let token = request.query.get("continue");
        if token.is_empty() {
            let said = request.query.get("resourceVersion");
            if !said.is_empty() && said.parse::<u64>().is_err() {
                return Err(ApiError::bad_request(format!(
                    "invalid resource version: resourceVersion: Invalid value: {said:?}: strconv.ParseUint: parsing {said:?}: invalid syntax"
                )));
            }
            let revision = request.query.number("resourceVersion").filter(|revision| *revision > 0);
            if revision.is_some_and(|revision| revision > current) {
                let mut error = ApiError::new(
                    StatusCode::GATEWAY_TIMEOUT,
                    "Timeout",
                    format!(
                        "Too large resource version: {}, current: {current}",
                        revision.unwrap_or_default()
                    ),
                );
                error.details.insert("retryAfterSeconds".into(), 1.into());
                return Err(error);
            }
            let exact = request.query.get("resourceVersionMatch") == "Exact";
            return Ok(Self { after: None, revision: revision.filter(|_| exact) });
        }
        if !matches!(request.query.get("resourceVersion"), "" | "0") {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let invalid = |why: &str| {
            ApiError::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let bytes = BASE64.decode(token).map_err(|error| match error {
            DecodeError::InvalidByte(at, _) => {
                invalid(&format!("illegal base64 data at input byte {at}"))
            }
            other => invalid(&other.to_string()),
        })?;
        let wrong = || invalid("the token cannot be read");
        let token: Value = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
        let text = |name: &str| token[name].as_str().map(ToOwned::to_owned).ok_or_else(wrong);
        let revision = token["rv"].as_u64().ok_or_else(wrong)?;
        Ok(Self { after: Some((text("namespace")?, text("name")?)), revision: Some(revision) })
    }

    fn token(revision: u64, last: &Key) -> String {
        BASE64.encode(
            json!({"v": "meta.k8s.io/v1", "rv": revision, "namespace": last.0, "name": last.1})
                .to_string(),
        )
    }
}

fn expired_page(page: &Page) -> ApiError {
    if page.after.is_none() {
        return ApiError::expired(format!(
            "The resourceVersion for the provided list is too old: {:?}",
            page.revision
        ));
    }
    ApiError::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
    )
}
