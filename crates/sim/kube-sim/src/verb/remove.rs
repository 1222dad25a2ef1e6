//! Delete and delete collection.

use std::sync::Arc;

use http::StatusCode;
use serde_json::json;

use super::Subject;
use super::read::{presenter, seen, selector};
use crate::builtin::RETURNS_DELETED;
use crate::convert;
use crate::request::{Answer, Request};
use crate::status::ApiError;
use crate::store::{Key, Stored};
use crate::world::{Deleted, Deletion, World};

/// What the body and the query ask for; the body counts more.
pub(crate) fn deletion(request: &Request) -> Result<(Deletion, bool), ApiError> {
    let mut options = if request.body.is_empty() { json!({}) } else { request.object()? };
    let query = &request.query;
    if let Some(policy) = Some(query.get("propagationPolicy")).filter(|policy| !policy.is_empty())
        && options["propagationPolicy"].is_null()
    {
        options["propagationPolicy"] = json!(policy);
    }
    if let Some(seconds) = query.number("gracePeriodSeconds")
        && options["gracePeriodSeconds"].is_null()
    {
        options["gracePeriodSeconds"] = json!(seconds);
    }
    let is_dry_run =
        request.is_dry_run() || options["dryRun"].as_array().is_some_and(|all| !all.is_empty());
    Ok((Deletion::read(&options)?, is_dry_run))
}

impl World {
    pub(crate) fn delete_one(
        &mut self,
        subject: &Subject,
        request: &Request,
    ) -> Result<Answer, ApiError> {
        let Subject { kind, key } = subject;
        let (how, is_dry_run) = deletion(request)?;
        let stored = self.get(kind, key).ok_or_else(|| ApiError::not_found(kind, &key.1))?;
        if kind.is("", "namespaces")
            && matches!(key.1.as_str(), "default" | "kube-system" | "kube-public")
        {
            return Err(ApiError::forbidden(kind, &key.1, "this namespace may not be deleted"));
        }
        let shown = |stored: &Stored| convert::from_storage(kind, &request.target.version, stored);
        let deleted = if is_dry_run {
            self.would_delete(kind, &stored, &how)?
        } else {
            self.delete(kind, key, &how)?
        };
        match deleted {
            Deleted::Pending(pending) => Ok(Answer::json(StatusCode::OK, &shown(&pending))),
            Deleted::Gone(gone) => {
                if kind.built_in().is_some_and(|built_in| built_in.has(RETURNS_DELETED)) {
                    return Ok(Answer::json(StatusCode::OK, &shown(&gone)));
                }
                let mut details = json!({"name": key.1, "kind": kind.plural, "uid": gone.uid()});
                if !kind.group.is_empty() {
                    details["group"] = json!(kind.group);
                }
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
                });
                Ok(Answer::json(StatusCode::OK, &status))
            }
        }
    }

    /// What a deletion of many is about.
    pub(crate) fn doomed(
        &self,
        subject: &Subject,
        request: &Request,
    ) -> Result<Vec<(Key, Arc<Stored>)>, ApiError> {
        let kind = &subject.kind;
        if kind.is("", "namespaces") {
            return Err(ApiError::method_not_allowed());
        }
        let selector = selector(kind, request)?;
        let namespace = Some(request.target.namespace.as_str()).filter(|name| !name.is_empty());
        let objects = self.table(kind).into_iter().flat_map(|table| table.objects(namespace, None));
        Ok(objects
            .filter(|(_, stored)| {
                selector.is_empty() || selector.matches(&seen(kind, request, &stored.value))
            })
            .map(|(key, stored)| (key.clone(), Arc::clone(stored)))
            .collect())
    }

    pub(crate) fn delete_many(
        &mut self,
        subject: &Subject,
        doomed: &[(Key, Arc<Stored>)],
        request: &Request,
    ) -> Result<Answer, ApiError> {
        let kind = &subject.kind;
        let (how, is_dry_run) = deletion(request)?;
        for (key, stored) in doomed {
            let deleted = if is_dry_run {
                self.would_delete(kind, stored, &how)
            } else {
                self.delete(kind, key, &how)
            };
            match deleted {
                Ok(_) => {}
                // One that its owner took along is gone already.
                Err(error) if error.code == StatusCode::NOT_FOUND => {}
                Err(error) => return Err(error),
            }
        }
        let items: Vec<_> = doomed.iter().map(|(_, stored)| Arc::clone(stored)).collect();
        let metadata = json!({"resourceVersion": self.revision.to_string()});
        Ok(Answer::bytes(StatusCode::OK, presenter(self, request).list(kind, &items, &metadata)))
    }
}
