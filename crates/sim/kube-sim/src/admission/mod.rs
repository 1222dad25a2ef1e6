//! Admission webhooks: asked before a write is stored, in process or over HTTPS.

mod call;
mod select;

use std::sync::Arc;

use base64::Engine as _;
use http::StatusCode;
use serde_json::{Value, json};

pub use call::WebhookHandler;
use select::Hook;

use crate::patch;
use crate::request::Request;
use crate::review::user_info;
use crate::sim::KubeSim;
use crate::status::ApiError;
use crate::verb::{Draft, Operation};

/// What is asked about.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) kind: Arc<crate::kind::Kind>,
    pub(crate) version: String,
    pub(crate) subresource: String,
    pub(crate) operation: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) object: Value,
    pub(crate) old: Value,
    pub(crate) is_dry_run: bool,
}

impl Subject {
    fn of(draft: &Draft) -> Self {
        let (namespace, name) = draft.subject.key.clone();
        let old = draft
            .old
            .as_ref()
            .map(|old| crate::convert::from_storage(&draft.subject.kind, &draft.version, old));
        Self {
            kind: Arc::clone(&draft.subject.kind),
            version: draft.version.clone(),
            subresource: draft.subresource.clone(),
            operation: if draft.operation == Operation::Create { "CREATE" } else { "UPDATE" },
            namespace,
            name,
            object: draft.new.clone(),
            old: old.unwrap_or(Value::Null),
            is_dry_run: draft.is_dry_run,
        }
    }
}

impl KubeSim {
    /// Whether any webhook wants to be asked about this kind at all; most of the time none does.
    pub(crate) fn has_hooks(&self, subject: &crate::verb::Subject) -> bool {
        self.world().has_hooks() && subject.kind.group != "admissionregistration.k8s.io"
    }

    /// Lets mutating webhooks change a draft.
    pub(crate) async fn mutate(
        &self,
        draft: &mut Draft,
        request: &Request,
    ) -> Result<(), ApiError> {
        let hooks = self.world().hooks("mutatingwebhookconfigurations", &Subject::of(draft));
        for hook in hooks {
            let review = self.review_of(&Subject::of(draft), &hook.version, request).await?;
            let seen = review["request"]["object"].clone();
            let Some(response) = self.ask(&hook, review, request).await? else { continue };
            check_allowed(&hook, &response)?;
            draft.warnings.extend(warnings(&response));
            if let Some(encoded) = response["patch"].as_str() {
                let wrong = |error: String| {
                    ApiError::internal(format!(
                        "Internal error occurred: webhook {:?}: {error}",
                        hook.name
                    ))
                };
                let bytes = base64::engine::general_purpose::STANDARD
                    .decode(encoded)
                    .map_err(|error| wrong(error.to_string()))?;
                let patch: Value =
                    serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
                let mut changed = seen;
                patch::apply_json_patch(&mut changed, &patch)?;
                let kind = Arc::clone(&draft.subject.kind);
                draft.new = self.convert_one(&kind, &draft.version, changed).await?;
            }
        }
        Ok(())
    }

    /// Lets validating webhooks refuse a draft.
    pub(crate) async fn validate(
        &self,
        draft: &mut Draft,
        request: &Request,
    ) -> Result<(), ApiError> {
        let subject = Subject::of(draft);
        let warnings = self.validate_subject(&subject, request).await?;
        draft.warnings.extend(warnings);
        Ok(())
    }

    pub(crate) async fn validate_subject(
        &self,
        subject: &Subject,
        request: &Request,
    ) -> Result<Vec<String>, ApiError> {
        let hooks = self.world().hooks("validatingwebhookconfigurations", subject);
        let mut said = Vec::new();
        for hook in hooks {
            let review = self.review_of(subject, &hook.version, request).await?;
            let Some(response) = self.ask(&hook, review, request).await? else { continue };
            check_allowed(&hook, &response)?;
            said.extend(warnings(&response));
        }
        Ok(said)
    }

    /// In the version that the webhook wants to see.
    async fn review_of(
        &self,
        subject: &Subject,
        version: &str,
        request: &Request,
    ) -> Result<Value, ApiError> {
        let uid = self.world().random.uuid();
        let kind = &subject.kind;
        let of =
            |version: &str| json!({"group": kind.group, "version": version, "kind": kind.kind});
        let resource = |version: &str| json!({"group": kind.group, "version": version, "resource": kind.plural});
        let object = self.convert_one(kind, version, subject.object.clone()).await?;
        let old = self.convert_one(kind, version, subject.old.clone()).await?;
        let mut review = json!({
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": {
                "uid": uid,
                "kind": of(version),
                "resource": resource(version),
                "requestKind": of(&subject.version),
                "requestResource": resource(&subject.version),
                "name": subject.name,
                "operation": subject.operation,
                "userInfo": user_info(&request.user),
                "object": object,
                "oldObject": old,
                "dryRun": subject.is_dry_run,
                "options": null,
            },
        });
        if !subject.namespace.is_empty() {
            review["request"]["namespace"] = json!(subject.namespace);
        }
        if !subject.subresource.is_empty() {
            review["request"]["subResource"] = json!(subject.subresource);
            review["request"]["requestSubResource"] = json!(subject.subresource);
        }
        Ok(review)
    }

    /// `None` when the webhook cannot be reached and its policy is to ignore that.
    async fn ask(
        &self,
        hook: &Hook,
        review: Value,
        request: &Request,
    ) -> Result<Option<Value>, ApiError> {
        let is_down = self.rules_mut().is_webhook_down(request);
        let answer = if is_down {
            Err("connect: connection refused".to_owned())
        } else {
            let limit = std::time::Duration::from_secs(hook.timeout_seconds);
            match tokio::time::timeout(limit, self.call(&hook.client_config, review)).await {
                Ok(answer) => answer,
                Err(_) => Err("context deadline exceeded".to_owned()),
            }
        };
        match answer {
            Ok(answer) => Ok(Some(answer["response"].clone())),
            Err(why) if hook.ignores_failure => {
                tracing::debug!(hook = hook.name, why, "webhook ignored");
                Ok(None)
            }
            Err(why) => Err(ApiError::internal(format!(
                "Internal error occurred: failed calling webhook {:?}: failed to call webhook: {why}",
                hook.name
            ))),
        }
    }
}

fn warnings(response: &Value) -> Vec<String> {
    crate::object::strings(response.get("warnings")).into_iter().map(ToOwned::to_owned).collect()
}

fn check_allowed(hook: &Hook, response: &Value) -> Result<(), ApiError> {
    if response["allowed"] == true {
        return Ok(());
    }
    let status = &response["status"];
    let why = status["message"].as_str().or_else(|| status["reason"].as_str());
    let message = match why {
        Some(why) => format!("admission webhook {:?} denied the request: {why}", hook.name),
        None => format!("admission webhook {:?} denied the request without explanation", hook.name),
    };
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let code =
        code.and_then(|code| StatusCode::from_u16(code).ok()).filter(|code| code.as_u16() >= 400);
    let reason = match code.map(|code| code.as_u16()) {
        Some(422) => "Invalid",
        Some(409) => "Conflict",
        Some(400) => "BadRequest",
        _ => "Forbidden",
    };
    Err(ApiError::new(code.unwrap_or(StatusCode::FORBIDDEN), reason, message))
}
