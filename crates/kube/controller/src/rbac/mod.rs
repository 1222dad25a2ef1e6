//! What a door needs to be allowed, as data: manifests are made from it, and a test can compare it with what was asked for.

mod asked;
mod audit;

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use kube::Resource;
use kube::api::ObjectMeta;
use serde_json::Value;

pub use asked::Asked;
pub use audit::{Audit, Verdict};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// What a watch needs.
    pub const READ: &[Self] = &[Self::Get, Self::List, Self::Watch];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// Where a need holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    #[default]
    Cluster,
    /// In the namespace of the program only.
    Own,
}

/// Verbs on one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    group: String,
    /// With its subresource, if any: `pods/status`.
    resource: String,
    verbs: BTreeSet<Verb>,
    names: Vec<String>,
    scope: Scope,
}

impl Need {
    pub fn new(group: &str, resource: &str, verbs: &[Verb]) -> Self {
        Self {
            group: group.to_owned(),
            resource: resource.to_owned(),
            verbs: verbs.iter().copied().collect(),
            names: Vec::new(),
            scope: Scope::Cluster,
        }
    }

    pub fn on<K: Resource<DynamicType: Default>>(verbs: &[Verb]) -> Self {
        let kind = K::DynamicType::default();
        Self::new(&K::group(&kind), &K::plural(&kind), verbs)
    }

    pub fn on_status<K: Resource<DynamicType: Default>>(verbs: &[Verb]) -> Self {
        let mut need = Self::on::<K>(verbs);
        need.resource.push_str("/status");
        need
    }

    /// Only objects of these names.
    #[must_use]
    pub fn named(mut self, names: &[&str]) -> Self {
        self.names = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    #[must_use]
    pub fn in_own_namespace(mut self) -> Self {
        self.scope = Scope::Own;
        self
    }

    fn rule(&self) -> PolicyRule {
        PolicyRule {
            api_groups: Some(vec![self.group.clone()]),
            resources: Some(vec![self.resource.clone()]),
            resource_names: (!self.names.is_empty()).then(|| self.names.clone()),
            verbs: self.verbs.iter().map(|verb| verb.as_str().to_owned()).collect(),
            ..PolicyRule::default()
        }
    }
}

/// Everything that a program needs.
#[derive(Debug, Clone, Default)]
pub struct Needs(Vec<Need>);

impl Needs {
    pub fn new(needs: impl IntoIterator<Item = Need>) -> Self {
        Self(needs.into_iter().collect())
    }

    /// The runtime's own: the lease, and events.
    #[must_use]
    pub fn with_runtime(mut self, lease: &str) -> Self {
        let leases = |verbs| Need::new("coordination.k8s.io", "leases", verbs).in_own_namespace();
        self.0.push(leases(&[Verb::Create]));
        self.0.push(leases(&[Verb::Get, Verb::Update]).named(&[lease]));
        self.0.push(Need::new("events.k8s.io", "events", &[Verb::Create, Verb::Patch]));
        self
    }

    /// For metrics that only known users may read.
    #[must_use]
    pub fn with_reviews(mut self) -> Self {
        self.0.push(Need::new("authentication.k8s.io", "tokenreviews", &[Verb::Create]));
        self.0.push(Need::new("authorization.k8s.io", "subjectaccessreviews", &[Verb::Create]));
        self
    }

    #[must_use]
    pub fn and(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }

    /// Service account, roles and bindings, ready to be applied.
    pub fn manifests(&self, name: &str, namespace: &str) -> Vec<Value> {
        let meta = |namespace: Option<&str>| ObjectMeta {
            name: Some(name.to_owned()),
            namespace: namespace.map(str::to_owned),
            ..ObjectMeta::default()
        };
        let rules = |scope: Scope| -> Vec<PolicyRule> {
            self.0.iter().filter(|need| need.scope == scope).map(Need::rule).collect()
        };
        let role = |kind: &str| RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        let subject = Subject {
            kind: "ServiceAccount".to_owned(),
            name: name.to_owned(),
            namespace: Some(namespace.to_owned()),
            ..Subject::default()
        };
        let mut manifests = vec![to_value(&ServiceAccount {
            metadata: meta(Some(namespace)),
            ..ServiceAccount::default()
        })];
        let (cluster, own) = (rules(Scope::Cluster), rules(Scope::Own));
        if !cluster.is_empty() {
            manifests.push(to_value(&ClusterRole {
                metadata: meta(None),
                rules: Some(cluster),
                aggregation_rule: None,
            }));
            manifests.push(to_value(&ClusterRoleBinding {
                metadata: meta(None),
                role_ref: role("ClusterRole"),
                subjects: Some(vec![subject.clone()]),
            }));
        }
        if !own.is_empty() {
            manifests.push(to_value(&Role { metadata: meta(Some(namespace)), rules: Some(own) }));
            manifests.push(to_value(&RoleBinding {
                metadata: meta(Some(namespace)),
                role_ref: role("Role"),
                subjects: Some(vec![subject]),
            }));
        }
        manifests
    }

    /// Needs, or verbs of them, that none of these requests made use of.
    pub fn unused(&self, asked: &BTreeSet<Asked>) -> Vec<String> {
        let mut unused = Vec::new();
        for need in &self.0 {
            for verb in &need.verbs {
                let is_used = asked.iter().any(|asked| {
                    (asked.verb, &asked.group, &asked.resource)
                        == (*verb, &need.group, &need.resource)
                });
                if !is_used {
                    unused.push(format!("{} {}.{}", verb.as_str(), need.resource, need.group));
                }
            }
        }
        unused
    }
}

fn to_value(manifest: &(impl serde::Serialize + ?Sized)) -> Value {
    serde_json::to_value(manifest).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;

    use super::*;

    #[test]
    fn manifests_hold_each_need_where_it_belongs() {
        let needs = Needs::new([Need::on::<Secret>(Verb::READ)]).with_runtime("toys");
        let manifests = needs.manifests("toys", "system");
        let kinds: Vec<_> =
            manifests.iter().filter_map(|manifest| manifest["kind"].as_str()).collect();
        assert_eq!(
            kinds,
            ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
        );
        let secrets = &manifests[1]["rules"][0];
        assert_eq!(secrets["verbs"], serde_json::json!(["get", "list", "watch"]));
        assert_eq!(manifests[3]["rules"][1]["resourceNames"], serde_json::json!(["toys"]));
        let asked = Asked::of("GET", "/api/v1/secrets").into_iter().collect();
        let unused = Needs::new([Need::on::<Secret>(Verb::READ)]).unused(&asked);
        assert_eq!(unused, ["get secrets.", "watch secrets."]);
    }
}
