//! Reviews in and out of JSON. Every answer is a complete review, also to what cannot be read.

use kube::Resource;
use kube::core::admission::{AdmissionRequest, AdmissionReview, Operation as Verb};
use kube::core::conversion::{ConversionRequest, ConversionResponse, ConversionReview};
use kube::core::response::{Status, StatusSummary};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::diff::{apply, merge_patch};
use crate::key::Key;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// Who asks for the change.
#[derive(Debug, Clone, Default)]
pub struct User {
    pub name: String,
    pub groups: Vec<String>,
}

impl User {
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }
}

/// What a webhook is asked about.
#[derive(Debug, Clone)]
pub struct Review<K> {
    pub key: Key,
    pub operation: Operation,
    pub user: User,
    /// As it is wanted; `None` for a deletion.
    pub object: Option<K>,
    /// As it is; `None` for a creation.
    pub old: Option<K>,
    pub subresource: Option<String>,
    pub is_dry_run: bool,
}

/// Yes, with warnings that `kubectl` shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    pub warnings: Vec<String>,
}

impl Verdict {
    pub fn allow() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }
}

/// No: every reason, each led by the field it is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Denial {
    pub reasons: Vec<String>,
}

impl Denial {
    pub fn because(reason: impl Into<String>) -> Self {
        Self { reasons: vec![reason.into()] }
    }

    /// `Ok` if there are no reasons.
    pub fn unless_empty(reasons: Vec<String>) -> Result<Verdict, Self> {
        if reasons.is_empty() { Ok(Verdict::allow()) } else { Err(Self { reasons }) }
    }
}

struct Asked<K> {
    uid: String,
    raw: Value,
    review: Review<K>,
}

fn read<K: Resource + DeserializeOwned>(body: Value) -> Result<Asked<K>, Value> {
    let uid = body["request"]["uid"].as_str().unwrap_or_default().to_owned();
    let raw = body["request"]["object"].clone();
    let unreadable = |error: String| answer(&uid, Err(Denial::because(error)), 400, None);
    let review: AdmissionReview<K> = serde_json::from_value(body)
        .map_err(|error| unreadable(format!("the object cannot be read: {error}")))?;
    let request: AdmissionRequest<K> =
        review.try_into().map_err(|_| unreadable("the review holds no request".to_owned()))?;
    let operation = match request.operation {
        Verb::Create => Operation::Create,
        Verb::Update => Operation::Update,
        Verb::Delete => Operation::Delete,
        Verb::Connect => Operation::Connect,
    };
    let key = match request.namespace.as_deref() {
        Some(namespace) if !namespace.is_empty() => Key::new(namespace, &request.name),
        _ => Key::cluster(&request.name),
    };
    let user = User {
        name: request.user_info.username.unwrap_or_default(),
        groups: request.user_info.groups.unwrap_or_default(),
    };
    let review = Review {
        key,
        operation,
        user,
        object: request.object,
        old: request.old_object,
        subresource: request.sub_resource.filter(|name| !name.is_empty()),
        is_dry_run: request.dry_run,
    };
    Ok(Asked { uid, raw, review })
}

fn answer(uid: &str, outcome: Result<Verdict, Denial>, code: u16, patch: Option<Value>) -> Value {
    let mut response = json!({ "uid": uid });
    match outcome {
        Ok(verdict) => {
            response["allowed"] = true.into();
            if !verdict.warnings.is_empty() {
                response["warnings"] = verdict.warnings.into();
            }
            if let Some(patch) = patch {
                response["patchType"] = "JSONPatch".into();
                response["patch"] = BASE64_STANDARD.encode(patch.to_string()).into();
            }
        }
        Err(denial) => {
            response["allowed"] = false.into();
            response["status"] = json!({"code": code, "message": denial.reasons.join(", ")});
        }
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

/// The answer of a webhook that panicked at this review.
pub(super) fn panicked(body: &Value) -> Value {
    let (uid, message) = (&body["request"]["uid"], "the webhook panicked");
    if body["kind"] == "ConversionReview" {
        let result = json!({"status": "Failure", "code": 500, "message": message});
        let response = json!({"uid": uid, "convertedObjects": [], "result": result});
        let api_version = "apiextensions.k8s.io/v1";
        return json!({"apiVersion": api_version, "kind": "ConversionReview", "response": response});
    }
    answer(uid.as_str().unwrap_or_default(), Err(Denial::because(message)), 500, None)
}

pub(super) async fn validate<K, F>(body: Value, decide: &(impl Fn(Review<K>) -> F + Sync)) -> Value
where
    K: Resource + DeserializeOwned,
    F: Future<Output = Result<Verdict, Denial>>,
{
    match read(body) {
        Ok(asked) => answer(&asked.uid, decide(asked.review).await, 403, None),
        Err(unreadable) => unreadable,
    }
}

pub(super) async fn mutate<K, F>(body: Value, change: &(impl Fn(Review<K>) -> F + Sync)) -> Value
where
    K: Resource + DeserializeOwned + Serialize + Clone,
    F: Future<Output = Result<(K, Verdict), Denial>>,
{
    let asked: Asked<K> = match read(body) {
        Ok(asked) => asked,
        Err(unreadable) => return unreadable,
    };
    let before = asked.review.object.clone();
    match change(asked.review).await {
        Ok((after, verdict)) => match patch(&asked.raw, before.as_ref(), &after) {
            Ok(patch) => answer(&asked.uid, Ok(verdict), 200, patch),
            Err(error) => answer(&asked.uid, Err(Denial::because(error.to_string())), 500, None),
        },
        Err(denial) => answer(&asked.uid, Err(denial), 403, None),
    }
}

/// The difference that the change made, on top of the object as it was sent.
fn patch<K: Serialize>(
    raw: &Value,
    before: Option<&K>,
    after: &K,
) -> serde_json::Result<Option<Value>> {
    let before = serde_json::to_value(before)?;
    let Some(difference) = merge_patch(&before, &serde_json::to_value(after)?) else {
        return Ok(None);
    };
    let mut wanted = raw.clone();
    apply(&mut wanted, &difference);
    let patch = json_patch::diff(raw, &wanted);
    if patch.0.is_empty() { Ok(None) } else { serde_json::to_value(patch).map(Some) }
}

pub(super) fn convert(
    body: Value,
    convert: &(impl Fn(Value, &str) -> Result<Value, String> + ?Sized),
) -> Value {
    let review: Result<ConversionReview, _> = serde_json::from_value(body);
    let request = review.map_err(|error| error.to_string()).and_then(|review| {
        ConversionRequest::from_review(review).map_err(|error| error.to_string())
    });
    let response = match request {
        Err(error) => ConversionResponse::invalid(failure(error)),
        Ok(request) => {
            let (wanted, objects) = (request.desired_api_version.clone(), request.objects.clone());
            let response = ConversionResponse::for_request(request);
            let converted: Result<Vec<_>, _> =
                objects.into_iter().map(|object| convert(object, &wanted)).collect();
            match converted {
                Ok(converted) => response.success(converted),
                Err(error) => response.failure(failure(error)),
            }
        }
    };
    serde_json::to_value(response.into_review()).unwrap_or_default()
}

fn failure(message: String) -> Status {
    Status {
        status: Some(StatusSummary::Failure),
        code: 400,
        message,
        metadata: None,
        reason: String::new(),
        details: None,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::ResourceExt;

    use super::*;
    use crate::webhook::Webhooks;

    fn review(object: &Value) -> Value {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u1", "operation": "CREATE", "name": "a", "namespace": "default",
                "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
                "resource": {"group": "", "version": "v1", "resource": "configmaps"},
                "userInfo": {"username": "jane", "groups": ["dev"]},
                "object": object, "oldObject": null, "dryRun": false,
            }
        })
    }

    fn hooks() -> Webhooks {
        Webhooks::default()
            .validate("/validate", async |review: Review<ConfigMap>| {
                let object = review.object.unwrap_or_default();
                assert!(!object.labels().contains_key("bug"), "a bug");
                let mut reasons = Vec::new();
                if object.data.is_none() {
                    reasons.push("data: is required".to_owned());
                }
                if !review.user.is_in("admins") && object.labels().contains_key("protected") {
                    reasons
                        .push(format!("metadata.labels[protected]: not for {}", review.user.name));
                }
                Denial::unless_empty(reasons).map(|verdict| verdict.warn("be careful"))
            })
            .mutate("/mutate", async |review: Review<ConfigMap>| {
                let mut object = review.object.unwrap_or_default();
                object.labels_mut().insert("made/by".to_owned(), review.user.name);
                Ok((object, Verdict::allow()))
            })
            .convert("/convert", |mut object, wanted| {
                if object["kind"] != "Toy" {
                    return Err("not a toy".to_owned());
                }
                object["apiVersion"] = wanted.into();
                Ok(object)
            })
    }

    #[tokio::test]
    async fn a_denial_names_every_field() {
        let object = json!({"metadata": {"name": "a", "labels": {"protected": ""}}});
        let answer = hooks().answer("/validate", review(&object)).await.unwrap();
        assert_eq!(answer["response"]["uid"], "u1");
        assert_eq!(answer["response"]["allowed"], false);
        let message = "data: is required, metadata.labels[protected]: not for jane";
        assert_eq!(answer["response"]["status"]["message"], message);
        let fine = json!({"metadata": {"name": "a"}, "data": {}});
        let answer = hooks().answer("/validate", review(&fine)).await.unwrap();
        assert_eq!(answer["response"]["allowed"], true);
        assert_eq!(answer["response"]["warnings"], json!(["be careful"]));
    }

    #[tokio::test]
    async fn a_change_leaves_unknown_fields_alone() {
        let object = json!({"metadata": {"name": "a"}, "surprise": {"x": 1}});
        let answer = hooks().answer("/mutate", review(&object)).await.unwrap();
        let patch = BASE64_STANDARD.decode(answer["response"]["patch"].as_str().unwrap()).unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
        let mut patched = object;
        json_patch::patch(&mut patched, &patch).unwrap();
        let expected =
            json!({"metadata": {"name": "a", "labels": {"made/by": "jane"}}, "surprise": {"x": 1}});
        assert_eq!(patched, expected);
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_denied_and_not_dropped() {
        let answer = hooks().answer("/validate", review(&json!({"metadata": 5}))).await.unwrap();
        assert_eq!(answer["response"]["allowed"], false);
        assert_eq!(answer["response"]["uid"], "u1");
        let answer = hooks().answer("/validate", json!({})).await.unwrap();
        assert_eq!(answer["response"]["allowed"], false);
    }

    #[tokio::test]
    async fn objects_are_converted_or_none_is() {
        let request = |objects: Value| {
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                "request": {"uid": "u1", "desiredAPIVersion": "toys/v2", "objects": objects},
            })
        };
        let toy = json!({"apiVersion": "toys/v1", "kind": "Toy"});
        let answer = hooks().answer("/convert", request(json!([toy]))).await.unwrap();
        assert_eq!(answer["response"]["result"]["status"], "Success");
        assert_eq!(answer["response"]["convertedObjects"][0]["apiVersion"], "toys/v2");
        let answer =
            hooks().answer("/convert", request(json!([toy, {"kind": "Cat"}]))).await.unwrap();
        assert_eq!(answer["response"]["result"]["status"], "Failure");
        assert_eq!(answer["response"]["result"]["message"], "not a toy");
    }

    #[tokio::test]
    async fn a_panic_is_a_no_with_its_reason_and_is_counted() {
        let mut registry = prometheus_client::registry::Registry::default();
        let metrics = crate::metrics::Metrics::register(&mut registry);
        let hooks = hooks().convert("/panic", |_, _| panic!("a bug")).measured(&metrics);
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"bug": ""}}});
        let answer = hooks.answer("/validate", review(&object)).await.unwrap();
        assert_eq!(answer["response"]["uid"], "u1");
        assert_eq!(answer["response"]["allowed"], false);
        assert_eq!(answer["response"]["status"]["code"], 500);
        let conversion = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "u2", "desiredAPIVersion": "v1", "objects": [{}]},
        });
        let answer = hooks.answer("/panic", conversion).await.unwrap();
        let answer: ConversionReview = serde_json::from_value(answer).unwrap();
        let response = answer.response.unwrap();
        assert_eq!((response.uid.as_str(), response.result.code), ("u2", 500));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        assert!(text.contains("controller_runtime_webhook_panics_total 2"), "{text}");
    }
}
