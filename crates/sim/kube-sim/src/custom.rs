//! Custom resource definitions: from the object that is applied to the kind that is served.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::{Value, json};

use crate::kind::{Column, Kind, Origin, Scale, Version};
use crate::object::strings;
use crate::schema::Schema;
use crate::status::Cause;

/// The kind that a definition describes.
pub(crate) fn kind(definition: &Value) -> Kind {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| strings(Some(value)).into_iter().map(ToOwned::to_owned).collect();
    let mut versions: Vec<_> =
        spec["versions"].as_array().into_iter().flatten().map(version).collect();
    versions.sort_by_key(|version| std::cmp::Reverse(rank(&version.name)));
    Kind {
        group: text(&spec["group"]),
        kind: text(&names["kind"]),
        list_kind: text(&names["listKind"]),
        plural: text(&names["plural"]),
        singular: text(&names["singular"]),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        is_namespaced: spec["scope"].as_str() == Some("Namespaced"),
        versions,
        origin: Origin::Custom,
        conversion: (spec["conversion"]["strategy"] == "Webhook")
            .then(|| spec["conversion"]["webhook"]["clientConfig"].clone()),
    }
}

/// Released before beta before alpha, then by number: `v2`, `v1`, `v1beta1`, `v1alpha3`.
fn rank(version: &str) -> (u8, u64, u64) {
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let major = rest[..digits].parse().unwrap_or(0);
    let minor = |text: &str| text.parse().unwrap_or(0);
    match &rest[digits..] {
        "" => (3, major, 0),
        beta if beta.starts_with("beta") => (2, major, minor(&beta[4..])),
        alpha if alpha.starts_with("alpha") => (1, major, minor(&alpha[5..])),
        _ => (0, 0, 0),
    }
}

fn version(json: &Value) -> Version {
    let scale = json["subresources"].get("scale").map(|scale| Scale {
        spec_replicas: scale["specReplicasPath"].as_str().unwrap_or(".spec.replicas").to_owned(),
        status_replicas: scale["statusReplicasPath"]
            .as_str()
            .unwrap_or(".status.replicas")
            .to_owned(),
        label_selector: scale["labelSelectorPath"].as_str().map(ToOwned::to_owned),
    });
    let columns =
        json["additionalPrinterColumns"].as_array().into_iter().flatten().map(column).collect();
    Version {
        name: json["name"].as_str().unwrap_or_default().to_owned(),
        is_served: json["served"].as_bool().unwrap_or(false),
        is_storage: json["storage"].as_bool().unwrap_or(false),
        openapi: json["schema"].get("openAPIV3Schema").cloned(),
        schema: OnceLock::new(),
        has_status: json["subresources"].get("status").is_some(),
        scale,
        subresources: Vec::new(),
        columns,
        selectable_fields: json["selectableFields"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|field| {
                Some(field["jsonPath"].as_str()?.trim_start_matches('.').to_owned())
            })
            .collect(),
    }
}

fn column(json: &Value) -> Column {
    let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    Column {
        name: text("name"),
        kind: text("type"),
        format: text("format"),
        description: text("description"),
        priority: json["priority"].as_i64().unwrap_or(0),
        json_path: text("jsonPath"),
    }
}

/// What the server fills in.
pub(crate) fn set_defaults(definition: &mut Value) {
    let spec = &mut definition["spec"];
    let kind = spec["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if spec["names"]["singular"].as_str().unwrap_or_default().is_empty() {
        spec["names"]["singular"] = json!(kind.to_lowercase());
    }
    if spec["names"]["listKind"].as_str().unwrap_or_default().is_empty() {
        spec["names"]["listKind"] = json!(format!("{kind}List"));
    }
    if !spec["conversion"].is_object() {
        spec["conversion"] = json!({"strategy": "None"});
    }
}

/// What is wrong with a definition.
pub(crate) fn problems(definition: &Value) -> Vec<Cause> {
    let spec = &definition["spec"];
    let mut causes = Vec::new();
    let name = crate::object::name(definition);
    let group = spec["group"].as_str().unwrap_or_default();
    let plural = spec["names"]["plural"].as_str().unwrap_or_default();
    if group.is_empty() {
        causes.push(Cause::required("spec.group", ""));
    }
    if plural.is_empty() {
        causes.push(Cause::required("spec.names.plural", ""));
    }
    if spec["names"]["kind"].as_str().unwrap_or_default().is_empty() {
        causes.push(Cause::required("spec.names.kind", ""));
    }
    let full = format!("{plural}.{group}");
    if name != full {
        let why = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", &json!(name), why));
    }
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let stored = versions.iter().filter(|version| version["storage"] == true).count();
    if stored != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", &spec["versions"], why));
    }
    for (index, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{index}].schema.openAPIV3Schema");
        let Some(json) = version["schema"].get("openAPIV3Schema") else {
            causes.push(Cause::required(&at, "schemas are required"));
            continue;
        };
        let mut problems = Vec::new();
        Schema::read(json).rule_problems(&at, &mut problems);
        for (place, problem) in problems {
            let field = format!("{place}.x-kubernetes-validations");
            causes.push(Cause::new(
                "FieldValueInvalid",
                &field,
                format!("Invalid value: {problem}"),
            ));
        }
    }
    causes
}

/// What the controllers of the real server write: names accepted, established.
pub(crate) fn established(definition: &Value, now: &str) -> Value {
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message});
    let storage: Vec<_> = definition["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    let mut stored = definition["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    stored.extend(storage.into_iter().filter(|name| {
        !definition["status"]["storedVersions"].as_array().is_some_and(|known| known.contains(name))
    }));
    let kept =
        definition["status"]["conditions"].as_array().filter(|conditions| !conditions.is_empty());
    let conditions = kept.cloned().unwrap_or_else(|| {
        vec![
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition(
                "Established",
                "InitialNamesAccepted",
                "the initial names have been accepted",
            ),
        ]
    });
    json!({"conditions": conditions, "acceptedNames": definition["spec"]["names"], "storedVersions": stored})
}

/// How many definitions a process remembers: those of every door and its neighbours, twice.
const REMEMBERED: usize = 96;

/// The kind of a definition, read once for all servers of a process: tests start hundreds of servers with the same definitions, and reading a
/// large schema takes longer than most of what they then do.
pub(crate) fn shared_kind(definition: &Value) -> Arc<Kind> {
    static KNOWN: Mutex<VecDeque<(Value, Arc<Kind>)>> = Mutex::new(VecDeque::new());
    let spec = &definition["spec"];
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, kind)) = known.iter().find(|(before, _)| before == spec) {
        return Arc::clone(kind);
    }
    let kind = Arc::new(kind(definition));
    if known.len() == REMEMBERED {
        known.pop_front();
    }
    known.push_back((spec.clone(), Arc::clone(&kind)));
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_read_once_and_another_one_is_another_kind() {
        let definition = |plural: &str| {
            json!({"spec": {
                "group": "example.com",
                "names": {"kind": "Nest", "plural": plural},
                "versions": [{"name": "v1", "served": true, "storage": true}],
            }})
        };
        let nests = shared_kind(&definition("nests"));
        assert!(Arc::ptr_eq(&nests, &shared_kind(&definition("nests"))));
        assert_eq!(shared_kind(&definition("others")).plural, "others");
    }

    #[test]
    fn released_versions_come_before_beta_and_alpha() {
        let mut names = ["v1alpha5", "v1", "v1beta1", "v2", "v1alpha6", "odd"];
        names.sort_by_key(|name| std::cmp::Reverse(rank(name)));
        assert_eq!(names, ["v2", "v1", "v1beta1", "v1alpha6", "v1alpha5", "odd"]);
    }
}
