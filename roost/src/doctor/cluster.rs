//! A Kubernetes API server: whether it answers, knows our kinds, and lets us do what the shipped role says.

use std::collections::BTreeSet;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use roost_doctor::{CALL, Finding, QUESTIONS, within};
use serde_json::Value;

use crate::serve::client;
use crate::serve::sections::Cluster;

/// Connects; what was found on the way comes with it.
pub(super) async fn connect(cluster: &Cluster) -> (Option<Client>, Vec<Finding>) {
    const CHECK: &str = "API server";
    let client = match client(cluster).await {
        Ok(client) => client,
        Err(error) => {
            let finding = Finding::fail(CHECK, roost_supervise::Chain(&*error).to_string());
            let advice = "set KUBECONFIG, or name a kubeconfig in the file";
            return (None, vec![finding.advice(advice)]);
        }
    };
    match within(CALL, client.apiserver_version()).await {
        Ok(version) => (Some(client), vec![Finding::pass(CHECK, version.git_version)]),
        Err(why) => {
            let finding = Finding::fail(CHECK, why);
            (None, vec![finding.advice("see whether kubectl version answers from here")])
        }
    }
}

/// Whether the kinds are served. `kinds` are group and version, and the plural names in it.
pub(super) async fn definitions(
    client: &Client,
    kinds: &[(&str, &[&str])],
    advice: &str,
) -> Finding {
    const CHECK: &str = "definitions";
    let (mut found, mut missing) = (0, Vec::new());
    for (version, wanted) in kinds {
        let served = match within(CALL, client.list_api_group_resources(version)).await {
            Ok(list) => list.resources.into_iter().map(|kind| kind.name).collect(),
            // A group that nobody serves is not found.
            Err(_) => BTreeSet::new(),
        };
        for name in *wanted {
            if served.contains(*name) {
                found += 1;
            } else {
                missing.push(format!("{name} of {version}"));
            }
        }
    }
    if missing.is_empty() {
        return Finding::pass(CHECK, format!("{found} kinds are served"));
    }
    Finding::fail(CHECK, format!("{} kinds are not served", missing.len()))
        .details(missing)
        .advice(advice)
}

/// One thing that a role allows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    group: String,
    resource: String,
    verb: String,
    name: Option<String>,
    /// Of a Role, which holds in one namespace.
    namespace: Option<String>,
}

/// The rights that a shipped manifest of roles gives.
fn rights_of(manifest: &str, home: &str) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for document in manifest.split("\n---") {
        let Ok(role) = serde_saphyr::from_str::<Value>(document) else { continue };
        let namespace = match role["kind"].as_str() {
            Some("ClusterRole") => None,
            Some("Role") => {
                let own = role["metadata"]["namespace"].as_str();
                // That of the program itself is wherever it runs.
                let elsewhere = own.filter(|own| own.starts_with("kube-"));
                Some(elsewhere.unwrap_or(home).to_owned())
            }
            _ => continue,
        };
        let texts = |value: &Value| -> Vec<String> {
            let list = value.as_array().cloned().unwrap_or_default();
            list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        for rule in role["rules"].as_array().into_iter().flatten() {
            let names = texts(&rule["resourceNames"]);
            let names: Vec<Option<String>> =
                if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() };
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    for verb in texts(&rule["verbs"]) {
                        rights.extend(names.iter().map(|name| Right {
                            group: group.clone(),
                            resource: resource.clone(),
                            verb: verb.clone(),
                            name: name.clone(),
                            namespace: namespace.clone(),
                        }));
                    }
                }
            }
        }
    }
    rights
}

/// Whether whoever we are may do all that the shipped role allows.
pub(super) async fn rights(client: &Client, manifest: &str, home: &str, path: &str) -> Finding {
    const CHECK: &str = "rights";
    let wanted = rights_of(manifest, home);
    let all = wanted.len();
    let asking = async {
        let mut lacking = Vec::new();
        for right in wanted {
            if !may(client, &right).await? {
                lacking.push(right.to_string());
            }
        }
        Ok::<_, kube::Error>(lacking)
    };
    match within(QUESTIONS, asking).await {
        Ok(lacking) if lacking.is_empty() => Finding::pass(CHECK, format!("{all} of {all}")),
        Ok(lacking) => Finding::fail(CHECK, format!("{} of {all} are missing", lacking.len()))
            .details(lacking)
            .advice(format!("bind this account to the roles of {path}")),
        Err(why) => Finding::warn(CHECK, format!("the API server does not tell them: {why}"))
            .advice("kubectl auth can-i --list tells the same"),
    }
}

async fn may(client: &Client, right: &Right) -> Result<bool, kube::Error> {
    let (resource, subresource) = match right.resource.split_once('/') {
        Some((resource, sub)) => (resource, Some(sub.to_owned())),
        None => (right.resource.as_str(), None),
    };
    let attributes = ResourceAttributes {
        group: Some(right.group.clone()),
        resource: Some(resource.to_owned()),
        subresource,
        verb: Some(right.verb.clone()),
        name: right.name.clone(),
        namespace: right.namespace.clone(),
        ..ResourceAttributes::default()
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in {namespace}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_read_from_what_is_shipped() {
        for (manifest, least, one) in [
            (
                super::super::vm_operator::ROLES,
                80,
                "patch virtualmachines/status.vmoperator.vmware.com",
            ),
            (super::super::agent_forge::ROLES, 25, "delete agents.agent-install.openshift.io"),
            (
                super::super::kubelet::ROLES,
                15,
                "patch leases.coordination.k8s.io in kube-node-lease",
            ),
        ] {
            let rights: Vec<String> =
                rights_of(manifest, "home").iter().map(ToString::to_string).collect();
            assert!(rights.len() >= least, "{}: {rights:#?}", rights.len());
            assert!(rights.iter().any(|right| right == one), "{one} in {rights:#?}");
        }
    }
}
