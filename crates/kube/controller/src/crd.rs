//! Definitions of kinds: from Rust types or from files that are kept exactly as their authors wrote them.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::sleep;

#[derive(Debug, thiserror::Error)]
pub enum CrdError {
    #[error("document {number} is no definition of a kind: {problem}")]
    Parse { number: usize, problem: String },
    #[error("document {number} is a {kind}, not a CustomResourceDefinition")]
    Kind { number: usize, kind: String },
    #[error("applying {name}")]
    Apply { name: String, source: Box<kube::Error> },
    #[error("{name} is not established")]
    Established { name: String },
}

/// Reads definitions from YAML, one or several documents.
pub fn parse_crds(yaml: &str) -> Result<Vec<CustomResourceDefinition>, CrdError> {
    let mut crds = Vec::new();
    for (number, document) in documents(yaml).enumerate() {
        // Without the excerpt of the text that the parser adds below its message.
        let failed = |error: serde_saphyr::Error| {
            let problem = error.without_snippet().to_string();
            CrdError::Parse { number, problem: problem.lines().collect::<Vec<_>>().join(" ") }
        };
        let value: Value = serde_saphyr::from_str(document).map_err(failed)?;
        let kind = value["kind"].as_str().unwrap_or_default();
        if kind != "CustomResourceDefinition" {
            return Err(CrdError::Kind { number, kind: kind.to_owned() });
        }
        crds.push(serde_saphyr::from_str(document).map_err(failed)?);
    }
    Ok(crds)
}

fn documents(yaml: &str) -> impl Iterator<Item = &str> {
    let is_content = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    yaml.split("\n---")
        .filter(move |document| document.lines().any(|line| is_content(line) && line != "---"))
}

/// Manifests as YAML documents, for `kubectl apply -f -`.
pub fn to_yaml(manifests: &[Value]) -> String {
    let mut text = String::new();
    for manifest in manifests {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(manifest).unwrap_or_default());
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

/// Definitions as YAML documents, without the status that a server would fill in.
pub fn crds_to_yaml(crds: &[CustomResourceDefinition]) -> String {
    let manifest = |crd: &CustomResourceDefinition| {
        let mut manifest = serde_json::to_value(crd).unwrap_or_default();
        if let Some(fields) = manifest.as_object_mut() {
            fields.remove("status");
        }
        manifest
    };
    to_yaml(&crds.iter().map(manifest).collect::<Vec<_>>())
}

/// The schema of one version, for checks and defaults.
pub fn schema_of<'a>(
    crd: &'a CustomResourceDefinition,
    version: &str,
) -> Option<&'a k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps>
{
    let version = crd.spec.versions.iter().find(|known| known.name == version)?;
    version.schema.as_ref()?.open_api_v3_schema.as_ref()
}

/// Lets a webhook of this Service convert between versions.
pub fn convert_by_webhook(
    crd: &mut CustomResourceDefinition,
    namespace: &str,
    service: &str,
    path: &str,
) {
    let conversion = json!({
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": namespace, "name": service, "path": path, "port": 443}},
        },
    });
    crd.spec.conversion = serde_json::from_value(conversion).ok();
}

/// Applies definitions and waits until the server serves them.
pub async fn install_crds(
    client: &Client,
    crds: &[CustomResourceDefinition],
    field_manager: &str,
) -> Result<(), CrdError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply(field_manager).force();
    for crd in crds {
        let name = crd.name_any();
        let failed = |source| CrdError::Apply { name: name.clone(), source: Box::new(source) };
        api.patch(&name, &params, &Patch::Apply(crd)).await.map_err(failed)?;
    }
    for crd in crds {
        let name = crd.name_any();
        let mut is_established = false;
        for _ in 0..100 {
            let failed = |source| CrdError::Apply { name: name.clone(), source: Box::new(source) };
            let found = api.get(&name).await.map_err(failed)?;
            let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
            let is = |condition: &str| {
                conditions.iter().any(|known| known.type_ == condition && known.status == "True")
            };
            if is("Established") {
                is_established = true;
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
        if !is_established {
            return Err(CrdError::Established { name });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "\
# A comment first.
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: toys.example.com
spec:
  group: example.com
  names: {kind: Toy, plural: toys}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      additionalPrinterColumns:
        - {name: Size, type: integer, jsonPath: .spec.size}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                size: {type: integer, format: int32, default: 3, minimum: 1}
                mode: {type: string, enum: [Hard, Soft], pattern: '^[A-Z]'}
                raw: {x-kubernetes-preserve-unknown-fields: true, type: object}
              x-kubernetes-validations:
                - {rule: self.size < 9, message: too large}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cats.example.com}
spec: {group: example.com, names: {kind: Cat, plural: cats}, scope: Cluster, versions: []}
";

    #[test]
    fn definitions_survive_reading_and_printing() {
        let crds = parse_crds(TWO).unwrap();
        let names: Vec<_> = crds.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["toys.example.com", "cats.example.com"]);
        let schema = serde_json::to_value(schema_of(&crds[0], "v1").unwrap()).unwrap();
        let spec = &schema["properties"]["spec"];
        assert_eq!(spec["properties"]["size"]["default"], 3);
        assert_eq!(spec["properties"]["mode"]["enum"], json!(["Hard", "Soft"]));
        assert_eq!(spec["properties"]["raw"]["x-kubernetes-preserve-unknown-fields"], true);
        assert_eq!(spec["x-kubernetes-validations"][0]["rule"], "self.size < 9");
        assert_eq!(parse_crds(&crds_to_yaml(&crds)).unwrap(), crds);
        assert!(schema_of(&crds[0], "v2").is_none());
    }

    #[test]
    fn what_is_no_definition_is_told_with_its_place() {
        let error = parse_crds("kind: Secret\n").unwrap_err();
        assert_eq!(error.to_string(), "document 0 is a Secret, not a CustomResourceDefinition");
        let error = parse_crds("kind: [\n").unwrap_err();
        assert!(matches!(error, CrdError::Parse { number: 0, .. }));
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }

    #[test]
    fn a_webhook_converts() {
        let mut crds = parse_crds(TWO).unwrap();
        convert_by_webhook(&mut crds[0], "system", "toys", "/convert");
        let conversion = serde_json::to_value(&crds[0].spec.conversion).unwrap();
        assert_eq!(conversion["strategy"], "Webhook");
        assert_eq!(conversion["webhook"]["clientConfig"]["service"]["path"], "/convert");
    }
}
