//! Which groups, versions and kinds there are.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Value, json};

use crate::kind::{Kind, Version};
use crate::request::Answer;
use crate::status::ApiError;
use crate::world::World;

const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Kinds that are asked and not stored.
const REVIEWS: [(&str, &str, &str, bool); 6] = [
    ("authentication.k8s.io", "TokenReview", "tokenreviews", false),
    ("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", false),
    ("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", false),
    ("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", false),
    ("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews", false),
    ("authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", true),
];

/// Groups with their served versions, best first.
fn groups(world: &World) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for kind in world.kinds() {
        let versions = groups.entry(kind.group.clone()).or_default();
        for version in kind.versions.iter().filter(|version| version.is_served) {
            if !versions.contains(&version.name) {
                versions.push(version.name.clone());
            }
        }
    }
    for (group, ..) in REVIEWS {
        groups.entry(group.to_owned()).or_insert_with(|| vec!["v1".to_owned()]);
    }
    groups
}

fn served<'a>(
    world: &'a World,
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = (&'a Kind, &'a Version)> {
    world.kinds().filter(move |kind| kind.group == group).filter_map(move |kind| {
        Some((kind.as_ref(), kind.version(version).filter(|version| version.is_served)?))
    })
}

/// `/api`, `/apis`, `/apis/GROUP`. `accept` decides whether the answer holds the resources as well.
pub(crate) fn list_groups(world: &World, which: &str, accept: &str) -> Result<Answer, ApiError> {
    let is_aggregated = accept.contains("APIGroupDiscoveryList");
    let groups = groups(world);
    if is_aggregated && (which == "api" || which.is_empty()) {
        let is_core = which == "api";
        let items: Vec<_> = groups
            .iter()
            .filter(|(group, _)| group.is_empty() == is_core)
            .map(|(group, versions)| aggregated(world, group, versions))
            .collect();
        let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items});
        return Ok(Answer {
            code: StatusCode::OK,
            body: crate::request::Body::Text(
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
                list.to_string().into(),
            ),
            warnings: Vec::new(),
        });
    }
    let entry = |group: &String, versions: &Vec<String>| {
        let versions: Vec<_> = versions
            .iter()
            .map(
                |version| json!({"groupVersion": format!("{group}/{version}"), "version": version}),
            )
            .collect();
        json!({"name": group, "versions": versions, "preferredVersion": versions.first()})
    };
    match which {
        "api" => Ok(Answer::json(
            StatusCode::OK,
            &json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        )),
        "" => {
            let groups: Vec<_> = groups
                .iter()
                .filter(|(group, _)| !group.is_empty())
                .map(|(group, versions)| entry(group, versions))
                .collect();
            Ok(Answer::json(
                StatusCode::OK,
                &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}),
            ))
        }
        group => {
            let versions = groups.get(group).ok_or_else(ApiError::no_such_resource)?;
            let mut shown = entry(&group.to_owned(), versions);
            shown["kind"] = json!("APIGroup");
            shown["apiVersion"] = json!("v1");
            Ok(Answer::json(StatusCode::OK, &shown))
        }
    }
}

/// `/api/v1`, `/apis/GROUP/VERSION`.
pub(crate) fn list_resources(
    world: &World,
    group: &str,
    version: &str,
) -> Result<Answer, ApiError> {
    if !groups(world)
        .get(group)
        .is_some_and(|versions| versions.iter().any(|known| known == version))
    {
        return Err(ApiError::no_such_resource());
    }
    let mut resources = Vec::new();
    for (kind, version) in served(world, group, version) {
        let mut resource = json!({
            "name": kind.plural, "singularName": kind.singular, "namespaced": kind.is_namespaced, "kind": kind.kind,
            "verbs": VERBS,
        });
        if !kind.short_names.is_empty() {
            resource["shortNames"] = json!(kind.short_names);
        }
        if !kind.categories.is_empty() {
            resource["categories"] = json!(kind.categories);
        }
        resources.push(resource);
        for (name, of, verbs) in subresources(kind, version) {
            let mut resource = json!({
                "name": format!("{}/{name}", kind.plural), "singularName": "", "namespaced": kind.is_namespaced,
                "kind": of.kind, "verbs": verbs,
            });
            if !of.group.is_empty() || of.version != version.name {
                resource["group"] = json!(of.group);
                resource["version"] = json!(of.version);
            }
            resources.push(resource);
        }
    }
    for (_, kind, plural, namespaced) in REVIEWS.iter().filter(|(known, ..)| *known == group) {
        resources.push(json!({
            "name": plural, "singularName": kind.to_lowercase(), "namespaced": namespaced, "kind": kind, "verbs": ["create"],
        }));
    }
    let group_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources});
    Ok(Answer::json(StatusCode::OK, &list))
}

/// What a subresource answers with.
struct Answers {
    group: String,
    version: String,
    kind: String,
}

fn subresources(kind: &Kind, version: &Version) -> Vec<(String, Answers, Vec<&'static str>)> {
    let own =
        || Answers { group: String::new(), version: version.name.clone(), kind: kind.kind.clone() };
    let of = |group: &str, version: &str, kind: &str| Answers {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
    };
    let change = vec!["get", "patch", "update"];
    let mut all = Vec::new();
    if version.has_status {
        all.push(("status".to_owned(), own(), change.clone()));
    }
    if version.scale.is_some() {
        all.push(("scale".to_owned(), of("autoscaling", "v1", "Scale"), change.clone()));
    }
    for name in &version.subresources {
        match *name {
            "status" | "scale" => {}
            "binding" => all.push(("binding".into(), of("", "v1", "Binding"), vec!["create"])),
            "eviction" => {
                all.push(("eviction".into(), of("policy", "v1", "Eviction"), vec!["create"]));
            }
            "token" => all.push((
                "token".into(),
                of("authentication.k8s.io", "v1", "TokenRequest"),
                vec!["create"],
            )),
            "finalize" => all.push(("finalize".into(), own(), vec!["update"])),
            other => all.push((other.to_owned(), own(), change.clone())),
        }
    }
    all
}

fn aggregated(world: &World, group: &str, versions: &[String]) -> Value {
    let versions: Vec<_> = versions
        .iter()
        .map(|version| {
            let mut resources: Vec<_> = served(world, group, version)
                .map(|(kind, version)| {
                    let subresources: Vec<_> = subresources(kind, version)
                        .into_iter()
                        .map(|(name, of, verbs)| {
                            let group = if name == "scale" || name == "eviction" || name == "token" { of.group.clone() } else { kind.group.clone() };
                            json!({"subresource": name, "responseKind": {"group": group, "version": of.version, "kind": of.kind}, "verbs": verbs})
                        })
                        .collect();
                    let mut resource = json!({
                        "resource": kind.plural,
                        "responseKind": {"group": kind.group, "version": version.name, "kind": kind.kind},
                        "scope": if kind.is_namespaced { "Namespaced" } else { "Cluster" },
                        "singularResource": kind.singular,
                        "verbs": VERBS,
                    });
                    if !kind.short_names.is_empty() {
                        resource["shortNames"] = json!(kind.short_names);
                    }
                    if !kind.categories.is_empty() {
                        resource["categories"] = json!(kind.categories);
                    }
                    if !subresources.is_empty() {
                        resource["subresources"] = json!(subresources);
                    }
                    resource
                })
                .collect();
            for (known, kind, plural, namespaced) in REVIEWS {
                if known == group {
                    resources.push(json!({
                        "resource": plural,
                        "responseKind": {"group": group, "version": "v1", "kind": kind},
                        "scope": if namespaced { "Namespaced" } else { "Cluster" },
                        "singularResource": kind.to_lowercase(),
                        "verbs": ["create"],
                    }));
                }
            }
            json!({"version": version, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let metadata = if group.is_empty() {
        json!({"creationTimestamp": null})
    } else {
        json!({"name": group, "creationTimestamp": null})
    };
    json!({"metadata": metadata, "versions": versions})
}
