//! The definitions of the kinds, made from the files in `crds/`.
//!
//! A file says a kind once for both versions, in the notation that [`schema`] explains. Both versions have the same names and types for
//! what they share, so the API server converts between them without a webhook.

mod schema;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Deserialize;
use serde_json::{Value, json};

use super::kind::{GROUP, OLDER_VERSION, VERSION};
use schema::Types;

/// One file of `crds/` cannot be made a definition: a mistake in this program, which its tests find.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    #[error("the definition of {kind} cannot be read")]
    Read { kind: &'static str, source: Box<serde_saphyr::Error> },
    #[error("the definition of {kind}: {place} {problem}")]
    Schema { kind: &'static str, place: String, problem: String },
    #[error("the definition of {kind} is none that the API server would take")]
    Shape { kind: &'static str, source: serde_json::Error },
}

const TYPES: &str = include_str!("../../../crds/types.yaml");

macro_rules! files {
    ($($kind:literal: $file:literal,)*) => {
        &[$(($kind, include_str!(concat!("../../../crds/", $file)))),*]
    };
}

const KINDS: &[(&str, &str)] = files! {
    "VirtualMachine": "virtualmachine.yaml",
    "VirtualMachineClass": "virtualmachineclass.yaml",
    "VirtualMachineClassInstance": "virtualmachineclassinstance.yaml",
    "VirtualMachineImage": "virtualmachineimage.yaml",
    "ClusterVirtualMachineImage": "clustervirtualmachineimage.yaml",
    "VirtualMachineImageCache": "virtualmachineimagecache.yaml",
    "VirtualMachineSnapshot": "virtualmachinesnapshot.yaml",
    "VirtualMachineGroup": "virtualmachinegroup.yaml",
    "VirtualMachineSetResourcePolicy": "virtualmachinesetresourcepolicy.yaml",
    "VirtualMachineService": "virtualmachineservice.yaml",
    "VirtualMachineWebConsoleRequest": "virtualmachinewebconsolerequest.yaml",
    "VirtualMachineReplicaSet": "virtualmachinereplicaset.yaml",
};

/// One file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KindFile {
    kind: String,
    plural: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    scale: Option<Value>,
    #[serde(default)]
    columns: Vec<Value>,
    spec: Value,
    status: Value,
}

/// All kinds, both versions.
pub fn definitions() -> Result<Vec<CustomResourceDefinition>, DefinitionError> {
    let read = |source| DefinitionError::Read { kind: "types", source: Box::new(source) };
    let types: Value = serde_saphyr::from_str(TYPES).map_err(read)?;
    KINDS.iter().map(|(kind, text)| definition(kind, text, &types)).collect()
}

fn definition(
    kind: &'static str,
    text: &str,
    types: &Value,
) -> Result<CustomResourceDefinition, DefinitionError> {
    let read = |source| DefinitionError::Read { kind, source: Box::new(source) };
    let file: KindFile = serde_saphyr::from_str(text).map_err(read)?;
    let mut versions = Vec::new();
    for (name, is_older) in [(OLDER_VERSION, true), (VERSION, false)] {
        let types = Types { types, is_older };
        let part = |part: &str, node| {
            types.schema(node, part).map_err(|(place, problem)| DefinitionError::Schema {
                kind,
                place,
                problem,
            })
        };
        let mut subresources = json!({"status": {}});
        if let Some(scale) = &file.scale {
            subresources["scale"] = scale.clone();
        }
        let mut version = json!({
            "name": name,
            "served": true,
            "storage": !is_older,
            "subresources": subresources,
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": part("spec", &file.spec)?,
                    "status": part("status", &file.status)?,
                },
            }},
        });
        if !file.columns.is_empty() {
            version["additionalPrinterColumns"] = file.columns.clone().into();
        }
        versions.push(version);
    }
    let singular = file.kind.to_lowercase();
    let mut names = json!({
        "kind": file.kind,
        "listKind": format!("{}List", file.kind),
        "plural": file.plural,
        "singular": singular,
    });
    if !file.short_names.is_empty() {
        names["shortNames"] = file.short_names.into();
    }
    let manifest = json!({
        "metadata": {"name": format!("{}.{GROUP}", file.plural)},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": file.scope.as_deref().unwrap_or("Namespaced"),
            "versions": versions,
        },
    });
    serde_json::from_value(manifest).map_err(|source| DefinitionError::Shape { kind, source })
}

#[cfg(test)]
mod served;
#[cfg(test)]
mod tests;
