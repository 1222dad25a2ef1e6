//! Objects as rows, for `kubectl get`.

use serde_json::{Value, json};

use crate::jsonpath;
use crate::kind::{Column, Kind};
use crate::object;
use crate::present::Include;

/// Columns and rows of these objects.
pub(crate) fn table(
    kind: &Kind,
    version: &str,
    objects: &[&Value],
    include: Include,
    now: jiff::Timestamp,
) -> Value {
    let custom = custom_columns(kind, version);
    let columns: Vec<Value> = if kind.is_custom() {
        let name = json!({"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0});
        std::iter::once(name).chain(custom.iter().map(definition)).collect()
    } else {
        let names = built_in_columns(kind);
        names
            .iter()
            .map(|name| {
                let format = if *name == "Name" { "name" } else { "" };
                json!({"name": name, "type": "string", "format": format, "description": "", "priority": 0})
            })
            .collect()
    };
    let rows: Vec<_> = objects
        .iter()
        .map(|value| {
            let cells: Vec<Value> = if kind.is_custom() {
                let name = json!(object::name(value));
                std::iter::once(name).chain(custom.iter().map(|column| cell(column, value, now))).collect()
            } else {
                built_in_columns(kind).iter().map(|name| built_in_cell(kind, name, value, now)).collect()
            };
            let mut row = json!({"cells": cells});
            match include {
                Include::Nothing => {}
                Include::Object => row["object"] = (*value).clone(),
                Include::Metadata => {
                    row["object"] = json!({
                        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": value["metadata"],
                    });
                }
            }
            row
        })
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": columns, "rows": rows})
}

fn custom_columns(kind: &Kind, version: &str) -> Vec<Column> {
    let columns = kind.version(version).map(|version| version.columns.clone()).unwrap_or_default();
    if !columns.is_empty() {
        return columns;
    }
    vec![Column {
        name: "Age".into(),
        kind: "date".into(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        json_path: ".metadata.creationTimestamp".into(),
    }]
}

fn definition(column: &Column) -> Value {
    json!({
        "name": column.name, "type": column.kind, "format": column.format, "description": column.description,
        "priority": column.priority,
    })
}

fn cell(column: &Column, value: &Value, now: jiff::Timestamp) -> Value {
    let found = jsonpath::find(value, &column.json_path);
    let Some(first) = found.first() else { return Value::Null };
    match column.kind.as_str() {
        "date" => json!(age(first.as_str(), now)),
        "string" => match first {
            Value::String(text) => json!(text),
            other => json!(other.to_string()),
        },
        _ => (*first).clone(),
    }
}

fn built_in_columns(kind: &Kind) -> &'static [&'static str] {
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "pods") => &["Name", "Ready", "Status", "Restarts", "Age"],
        ("", "nodes") => &["Name", "Status", "Roles", "Age", "Version"],
        ("", "namespaces") => &["Name", "Status", "Age"],
        ("", "configmaps") => &["Name", "Data", "Age"],
        ("", "secrets") => &["Name", "Type", "Data", "Age"],
        ("", "services") => &["Name", "Type", "Cluster-IP", "Age"],
        ("", "persistentvolumeclaims") => &["Name", "Status", "Volume", "Age"],
        ("" | "events.k8s.io", "events") => &["Last Seen", "Type", "Reason", "Object", "Message"],
        ("apps", "deployments" | "replicasets" | "statefulsets") => &["Name", "Ready", "Age"],
        ("coordination.k8s.io", "leases") => &["Name", "Holder", "Age"],
        ("certificates.k8s.io", _) => &["Name", "Age", "Signername", "Requestor", "Condition"],
        ("apiextensions.k8s.io" | "rbac.authorization.k8s.io", _) => &["Name", "Created At"],
        _ => &["Name", "Age"],
    }
}

fn built_in_cell(kind: &Kind, column: &str, value: &Value, now: jiff::Timestamp) -> Value {
    let text =
        |path: &str| object::at(value, path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let size = |field: &str| value[field].as_object().map_or(0, serde_json::Map::len);
    let or = |text: String, other: &str| if text.is_empty() { other.to_owned() } else { text };
    json!(match (kind.plural.as_str(), column) {
        ("events", "Last Seen") => {
            let last = [text("lastTimestamp"), text("deprecatedLastTimestamp"), text("eventTime")];
            age(last.iter().find(|text| !text.is_empty()).map(String::as_str), now)
        }
        ("events", "Reason") => text("reason"),
        ("events", "Object") => {
            let of = if value["involvedObject"].is_object() {
                &value["involvedObject"]
            } else {
                &value["regarding"]
            };
            let (kind, name) =
                (of["kind"].as_str().unwrap_or_default(), of["name"].as_str().unwrap_or_default());
            format!("{}/{name}", kind.to_lowercase())
        }
        ("events", "Message") => or(text("message"), value["note"].as_str().unwrap_or_default()),
        (_, "Name") => object::name(value).to_owned(),
        (_, "Age") => age(Some(&text("metadata.creationTimestamp")), now),
        (_, "Created At") => text("metadata.creationTimestamp"),
        ("pods", "Ready") => {
            let all = value["spec"]["containers"].as_array().map_or(0, Vec::len);
            let statuses = value["status"]["containerStatuses"].as_array().into_iter().flatten();
            format!("{}/{all}", statuses.filter(|status| status["ready"] == true).count())
        }
        ("pods", "Status") if object::is_being_deleted(value) => "Terminating".to_owned(),
        ("pods", "Status") => or(text("status.reason"), &text("status.phase")),
        ("pods", "Restarts") => {
            let statuses = value["status"]["containerStatuses"].as_array().into_iter().flatten();
            statuses.filter_map(|status| status["restartCount"].as_i64()).sum::<i64>().to_string()
        }
        ("nodes", "Status") => node_status(value),
        ("nodes", "Roles") => {
            let labels = value["metadata"]["labels"].as_object().into_iter().flatten();
            let roles: Vec<_> = labels
                .filter_map(|(name, _)| name.strip_prefix("node-role.kubernetes.io/"))
                .collect();
            or(roles.join(","), "<none>")
        }
        ("nodes", "Version") => text("status.nodeInfo.kubeletVersion"),
        (_, "Status") => text("status.phase"),
        (_, "Data") => return json!(size("data") + size("binaryData")),
        ("services", "Type") => text("spec.type"),
        (_, "Cluster-IP") => text("spec.clusterIP"),
        (_, "Volume") => text("spec.volumeName"),
        (_, "Type") => text("type"),
        (_, "Ready") => {
            let count = |path: &str| object::at(value, path).and_then(Value::as_i64).unwrap_or(0);
            format!("{}/{}", count("status.readyReplicas"), count("spec.replicas"))
        }
        (_, "Holder") => text("spec.holderIdentity"),
        (_, "Signername") => text("spec.signerName"),
        (_, "Requestor") => text("spec.username"),
        (_, "Condition") => {
            let conditions = value["status"]["conditions"].as_array().into_iter().flatten();
            let names: Vec<_> =
                conditions.filter_map(|condition| condition["type"].as_str()).collect();
            or(names.join(","), "Pending")
        }
        _ => String::new(),
    })
}

fn node_status(node: &Value) -> String {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready");
    let mut text = match ready.and_then(|ready| ready["status"].as_str()) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node["spec"]["unschedulable"] == true {
        text.push_str(",SchedulingDisabled");
    }
    text
}

/// `5s`, `3m10s`, `2d3h`, as kubectl shows ages.
fn age(since: Option<&str>, now: jiff::Timestamp) -> String {
    let Some(since) = since.and_then(|text| text.parse::<jiff::Timestamp>().ok()) else {
        return "<unknown>".to_owned();
    };
    human(now.duration_since(since).as_secs())
}

fn human(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let both = |large: i64, unit: char, small: i64, small_unit: char| {
        if small == 0 {
            format!("{large}{unit}")
        } else {
            format!("{large}{unit}{small}{small_unit}")
        }
    };
    match seconds {
        ..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => both(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => both(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => both(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        _ => both(days / 365, 'y', days % 365, 'd'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        for (seconds, want) in [
            (-5, "0s"),
            (119, "119s"),
            (150, "2m30s"),
            (600, "10m"),
            (3 * 3600 + 60, "3h1m"),
            (30 * 3600, "30h"),
            (3 * 86_400 + 3600, "3d1h"),
            (100 * 86_400, "100d"),
        ] {
            assert_eq!(human(seconds), want);
        }
    }
}
