//! Objects from manifests.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::Value;

use crate::object;
use crate::sim::KubeSim;
use crate::user::User;

/// Why a manifest was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("reading the manifest: {problem}")]
    Read { problem: String },
    #[error("nothing serves {kind} of {api_version}")]
    NoSuchKind { api_version: String, kind: String },
    #[error("applying {kind} {name}: {message}")]
    Refused { kind: String, name: String, message: String },
}

impl KubeSim {
    /// Applies every object of a manifest (YAML, one or many documents), in its order, and says how many there were.
    /// Objects without a namespace go to `default`.
    pub async fn apply_manifest(&self, text: &str) -> Result<usize, ManifestError> {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text)
            .map_err(|error| ManifestError::Read { problem: one_line(&error) })?;
        let mut count = 0;
        for document in documents {
            let items = match document {
                Value::Null => continue,
                Value::Object(mut list)
                    if list.get("kind").and_then(Value::as_str) == Some("List") =>
                {
                    match list.remove("items") {
                        Some(Value::Array(items)) => items,
                        _ => Vec::new(),
                    }
                }
                one => vec![one],
            };
            for item in items {
                self.apply_object(&item).await?;
                count += 1;
            }
        }
        Ok(count)
    }

    async fn apply_object(&self, value: &Value) -> Result<(), ManifestError> {
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let (api_version, kind_name) = (text("apiVersion"), text("kind"));
        let name = object::name(value).to_owned();
        let kind = self.world().kind_of(&api_version, &kind_name);
        let Some(kind) = kind else {
            return Err(ManifestError::NoSuchKind { api_version, kind: kind_name });
        };
        let root = if kind.group.is_empty() { "/api" } else { "/apis" };
        let place = match (kind.is_namespaced, object::namespace(value)) {
            (false, _) => String::new(),
            (true, "") => "/namespaces/default".to_owned(),
            (true, namespace) => format!("/namespaces/{namespace}"),
        };
        let uri = format!(
            "{root}/{api_version}{place}/{}/{name}?fieldManager=manifest&force=true",
            kind.plural
        );
        let refused = |message: String| ManifestError::Refused {
            kind: kind_name.clone(),
            name: name.clone(),
            message,
        };
        let request = http::Request::patch(uri)
            .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
            .extension(User::admin())
            .body(Bytes::from(value.to_string()))
            .map_err(|error| refused(error.to_string()))?;
        let response = self.answer(request).await.map_err(|error| refused(error.to_string()))?;
        if response.status().is_success() {
            return Ok(());
        }
        let body = response
            .into_body()
            .collect()
            .await
            .map_err(|error| refused(error.to_string()))?
            .to_bytes();
        let status: Value = serde_json::from_slice(&body).unwrap_or_default();
        Err(refused(status["message"].as_str().unwrap_or("refused").to_owned()))
    }
}

/// Without the excerpt of the text that the parser adds below it.
fn one_line(error: &serde_saphyr::Error) -> String {
    error.without_snippet().to_string().lines().collect::<Vec<_>>().join(" ")
}
