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
    /// In this namespace only.
    In(&'static str),
}

impl Scope {
    /// A namespace that is not the program's.
    fn other(self) -> Option<&'static str> {
        match self {
            Self::Cluster | Self::Own => None,
            Self::In(namespace) => Some(namespace),
        }
    }
}

/// What the account, the roles and their bindings are called. A name alone is the name of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    pub account: String,
    pub cluster_role: String,
    pub cluster_role_binding: String,
    pub role: String,
    pub role_binding: String,
}

impl From<&str> for Names {
    fn from(name: &str) -> Self {
        Self {
            account: name.to_owned(),
            cluster_role: name.to_owned(),
            cluster_role_binding: name.to_owned(),
            role: name.to_owned(),
            role_binding: name.to_owned(),
        }
    }
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
    is_for_admission: bool,
}

impl Need {
    pub fn new(group: &str, resource: &str, verbs: &[Verb]) -> Self {
        Self {
            group: group.to_owned(),
            resource: resource.to_owned(),
            verbs: verbs.iter().copied().collect(),
            names: Vec::new(),
            scope: Scope::Cluster,
            is_for_admission: false,
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

    #[must_use]
    pub fn in_namespace(mut self, namespace: &'static str) -> Self {
        self.scope = Scope::In(namespace);
        self
    }

    /// No request makes use of it: an admission plugin looks whether it is granted, as for owner references that block a deletion.
    #[must_use]
    pub fn for_admission(mut self) -> Self {
        self.is_for_admission = true;
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
    pub fn manifests(&self, names: impl Into<Names>, namespace: &str) -> Vec<Value> {
        let names = names.into();
        let meta = |name: &str, namespace: Option<&str>| ObjectMeta {
            name: Some(name.to_owned()),
            namespace: namespace.map(str::to_owned),
            ..ObjectMeta::default()
        };
        let rules = |scope: Scope| -> Vec<PolicyRule> {
            self.0.iter().filter(|need| need.scope == scope).map(Need::rule).collect()
        };
        let role = |kind: &str, name: &str| RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        let subject = Subject {
            kind: "ServiceAccount".to_owned(),
            name: names.account.clone(),
            namespace: Some(namespace.to_owned()),
            ..Subject::default()
        };
        let mut manifests = vec![to_value(&ServiceAccount {
            metadata: meta(&names.account, Some(namespace)),
            ..ServiceAccount::default()
        })];
        let cluster = rules(Scope::Cluster);
        if !cluster.is_empty() {
            manifests.push(to_value(&ClusterRole {
                metadata: meta(&names.cluster_role, None),
                rules: Some(cluster),
                aggregation_rule: None,
            }));
            manifests.push(to_value(&ClusterRoleBinding {
                metadata: meta(&names.cluster_role_binding, None),
                role_ref: role("ClusterRole", &names.cluster_role),
                subjects: Some(vec![subject.clone()]),
            }));
        }
        let others: BTreeSet<&str> = self.0.iter().filter_map(|need| need.scope.other()).collect();
        let others = others.into_iter().map(|other| (Scope::In(other), other));
        for (scope, within) in [(Scope::Own, namespace)].into_iter().chain(others) {
            let rules = rules(scope);
            if rules.is_empty() {
                continue;
            }
            let metadata = meta(&names.role, Some(within));
            manifests.push(to_value(&Role { metadata, rules: Some(rules) }));
            manifests.push(to_value(&RoleBinding {
                metadata: meta(&names.role_binding, Some(within)),
                role_ref: role("Role", &names.role),
                subjects: Some(vec![subject.clone()]),
            }));
        }
        manifests
    }

    /// Needs, or verbs of them, that none of these requests made use of.
    pub fn unused(&self, asked: &BTreeSet<Asked>) -> Vec<String> {
        let mut unused = Vec::new();
        for need in self.0.iter().filter(|need| !need.is_for_admission) {
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

    #[test]
    fn parts_may_have_names_of_their_own_and_other_namespaces() {
        let names = Names { account: "manager".to_owned(), ..Names::from("roles") };
        let leases = || Need::new("coordination.k8s.io", "leases", &[Verb::Get]);
        let finalizers = Need::new("", "toys/finalizers", &[Verb::Update]).for_admission();
        let needs = Needs::new([leases().in_namespace("kube-node-lease"), finalizers]);
        let manifests = needs.manifests(names, "system");
        let told: Vec<_> = manifests
            .iter()
            .map(|manifest| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let meta = &manifest["metadata"];
                [&manifest["kind"], &meta["name"], &meta["namespace"]].map(text)
            })
            .collect();
        assert_eq!(
            told,
            [
                ["ServiceAccount", "manager", "system"],
                ["ClusterRole", "roles", ""],
                ["ClusterRoleBinding", "roles", ""],
                ["Role", "roles", "kube-node-lease"],
                ["RoleBinding", "roles", "kube-node-lease"],
            ]
        );
        assert_eq!(manifests[4]["subjects"][0]["name"], "manager");
        assert_eq!(manifests[4]["subjects"][0]["namespace"], "system");
        assert_eq!(needs.unused(&BTreeSet::new()), ["get leases.coordination.k8s.io"]);
    }
}
