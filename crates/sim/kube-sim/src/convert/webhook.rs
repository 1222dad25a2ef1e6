//! Asking a conversion webhook.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{is_missing, is_needed, rename_version, with_metadata};
use crate::kind::Kind;
use crate::object;
use crate::path::Target;
use crate::request::Request;
use crate::sim::KubeSim;
use crate::status::ApiError;
use crate::store::Stored;
use crate::verb::{Draft, Subject};
use crate::world::World;

/// As long as the real server waits.
const LIMIT: Duration = Duration::from_secs(30);

impl World {
    /// States that this request may show and that a webhook has to convert first.
    fn unconverted(&self, subject: &Subject, target: &Target) -> Vec<Arc<Stored>> {
        let kind = &subject.kind;
        if kind.conversion.is_none() {
            return Vec::new();
        }
        let Some(table) = self.table(kind) else { return Vec::new() };
        let known: Vec<_> = if target.name.is_empty() {
            table.states().cloned().collect()
        } else {
            table.get(&subject.key).cloned().into_iter().collect()
        };
        known.into_iter().filter(|stored| is_missing(kind, &target.version, stored)).collect()
    }
}

impl KubeSim {
    /// Does something to the world once everything that it may show is known in the version of the request.
    pub(crate) async fn with_converted<T>(
        &self,
        subject: &Subject,
        request: &Request,
        mut work: impl FnMut(&mut World) -> T,
    ) -> Result<T, ApiError> {
        loop {
            let missing = {
                let mut world = self.world();
                let missing = world.unconverted(subject, &request.target);
                if missing.is_empty() {
                    return Ok(work(&mut world));
                }
                missing
            };
            self.convert_states(&subject.kind, &request.target.version, &missing).await?;
        }
    }

    /// Lets these states know what they are in another version.
    pub(crate) async fn convert_states(
        &self,
        kind: &Kind,
        version: &str,
        states: &[Arc<Stored>],
    ) -> Result<(), ApiError> {
        let missing: Vec<_> =
            states.iter().filter(|stored| is_missing(kind, version, stored)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let objects = missing.iter().map(|stored| stored.value.clone()).collect();
        let converted = self.convert(kind, version, objects).await?;
        for (stored, value) in missing.into_iter().zip(converted) {
            stored.keep_converted(version, value);
        }
        Ok(())
    }

    /// What a draft is in storage, and what whoever made it will see of that.
    pub(crate) async fn convert_draft(&self, draft: &mut Draft) -> Result<(), ApiError> {
        let kind = Arc::clone(&draft.subject.kind);
        let storage = kind.storage_version().name.clone();
        if kind.conversion.is_none() || draft.version == storage {
            return Ok(());
        }
        let one = |mut all: Vec<Value>| all.pop().unwrap_or_default();
        let stored = one(self.convert(&kind, &storage, vec![draft.new.clone()]).await?);
        let shown = one(self.convert(&kind, &draft.version, vec![stored.clone()]).await?);
        draft.converted = Some((stored, shown));
        Ok(())
    }

    /// An object in another version; nothing stays nothing.
    pub(crate) async fn convert_one(
        &self,
        kind: &Kind,
        version: &str,
        object: Value,
    ) -> Result<Value, ApiError> {
        if object.is_null() || !is_needed(kind, version, &object) || !kind.is_custom() {
            return Ok(object);
        }
        if kind.conversion.is_none() {
            return Ok(rename_version(kind, version, &object));
        }
        Ok(self.convert(kind, version, vec![object]).await?.pop().unwrap_or_default())
    }

    async fn convert(
        &self,
        kind: &Kind,
        version: &str,
        objects: Vec<Value>,
    ) -> Result<Vec<Value>, ApiError> {
        let wanted = kind.api_version(version);
        let from = objects.first().and_then(|object| object["apiVersion"].as_str());
        let failed = |why: &str| {
            let from = from.unwrap_or_default();
            ApiError::internal(format!(
                "conversion webhook for {from}, Kind={} failed: {why}",
                kind.kind
            ))
        };
        let uid = self.world().random.uuid();
        let review = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": objects},
        });
        let Some(client_config) = &kind.conversion else { return Err(failed("there is none")) };
        let answer = tokio::time::timeout(LIMIT, self.call(client_config, review)).await;
        let answer =
            answer.map_err(|_| failed("context deadline exceeded"))?.map_err(|why| failed(&why))?;
        let response = &answer["response"];
        if response["result"]["status"] != "Success" {
            let message = response["result"]["message"].as_str().unwrap_or("no reason given");
            return Err(failed(message));
        }
        if response["uid"] != uid.as_str() {
            return Err(failed("the response is to another request"));
        }
        let converted = response["convertedObjects"].as_array().cloned().unwrap_or_default();
        if converted.len() != objects.len() {
            let (got, want) = (converted.len(), objects.len());
            return Err(failed(&format!("{got} converted objects for {want}")));
        }
        let schema = kind.version(version).and_then(crate::kind::Version::schema);
        let mut results = Vec::with_capacity(converted.len());
        for (original, converted) in objects.iter().zip(converted) {
            let same = ["name", "namespace", "uid"]
                .iter()
                .all(|field| converted["metadata"][field] == original["metadata"][field]);
            if converted["apiVersion"] != wanted.as_str() || !same {
                let name = object::name(original);
                return Err(failed(&format!("{name} came back as another object or version")));
            }
            let mut value = with_metadata(converted, original);
            if let Some(schema) = &schema {
                schema.prune(&mut value);
                schema.set_defaults(&mut value);
            }
            results.push(value);
        }
        Ok(results)
    }
}
