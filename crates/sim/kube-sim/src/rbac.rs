//! Who may do what: masters everything, others what roles and bindings say.

use serde_json::Value;

use crate::object::strings;
use crate::path::Target;
use crate::request::Request;
use crate::status::ApiError;
use crate::user::User;
use crate::verb::Subject;
use crate::world::World;

/// What is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) verb: String,
    pub(crate) group: String,
    /// With the subresource: `pods/status`.
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Instead of a resource.
    pub(crate) path: String,
}

impl Ask {
    pub(crate) fn of(request: &Request) -> Self {
        let Target { group, plural, namespace, name, subresource, .. } = &request.target;
        let resource =
            if subresource.is_empty() { plural.clone() } else { format!("{plural}/{subresource}") };
        Self {
            verb: request.verb().to_owned(),
            group: group.clone(),
            resource,
            namespace: namespace.clone(),
            name: name.clone(),
            path: String::new(),
        }
    }

    /// Of the attributes in a review.
    pub(crate) fn read(spec: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let of = &spec["resourceAttributes"];
        if of.is_object() {
            let subresource = text(&of["subresource"]);
            let resource = text(&of["resource"]);
            return Self {
                verb: text(&of["verb"]),
                group: text(&of["group"]),
                resource: if subresource.is_empty() {
                    resource
                } else {
                    format!("{resource}/{subresource}")
                },
                namespace: text(&of["namespace"]),
                name: text(&of["name"]),
                path: String::new(),
            };
        }
        let of = &spec["nonResourceAttributes"];
        Self { verb: text(&of["verb"]), path: text(&of["path"]), ..Self::default() }
    }

    fn is_allowed_by(&self, rule: &Value) -> bool {
        let has = |field: &str, wanted: &str| {
            strings(rule.get(field)).iter().any(|known| *known == "*" || *known == wanted)
        };
        if !has("verbs", &self.verb) {
            return false;
        }
        if !self.path.is_empty() {
            return strings(rule.get("nonResourceURLs"))
                .iter()
                .any(|pattern| crate::glob::fits(pattern, &self.path));
        }
        let names = strings(rule.get("resourceNames"));
        let part = self.resource.split_once('/').map(|(_, part)| format!("*/{part}"));
        has("apiGroups", &self.group)
            && (has("resources", &self.resource)
                || part.is_some_and(|part| has("resources", &part)))
            && (names.is_empty() || names.contains(&self.name.as_str()))
    }
}

impl World {
    /// Refuses what the user may not do.
    pub(crate) fn authorize(&self, subject: &Subject, request: &Request) -> Result<(), ApiError> {
        let ask = Ask::of(request);
        if self.is_allowed(&request.user, &ask) {
            return Ok(());
        }
        let place = if ask.namespace.is_empty() {
            " at the cluster scope".to_owned()
        } else {
            format!(" in the namespace {:?}", ask.namespace)
        };
        let why = format!(
            "User {:?} cannot {} resource {:?} in API group {:?}{place}",
            request.user.name, ask.verb, ask.resource, ask.group
        );
        Err(ApiError::forbidden(&subject.kind, &ask.name, &why))
    }

    pub(crate) fn is_allowed(&self, user: &User, ask: &Ask) -> bool {
        if user.is_master() {
            return true;
        }
        let granted = self.options.grants.iter().any(|grant| {
            (grant.who == user.name || user.groups.contains(&grant.who))
                && ask.is_allowed_by(&grant.rule())
        });
        granted || self.bound_rules(user, &ask.namespace).iter().any(|rule| ask.is_allowed_by(rule))
    }

    /// The rules that bindings give a user in a namespace.
    pub(crate) fn bound_rules(&self, user: &User, namespace: &str) -> Vec<Value> {
        let mut rules = Vec::new();
        let group = "rbac.authorization.k8s.io";
        let mut add = |binding: &Value, own: &str| {
            let role = &binding["roleRef"];
            let plural = if role["kind"] == "ClusterRole" { "clusterroles" } else { "roles" };
            let place = if plural == "roles" { own } else { "" };
            let key = (place.to_owned(), role["name"].as_str().unwrap_or_default().to_owned());
            let role = self.kind(group, plural).and_then(|kind| self.get(&kind, &key));
            if let Some(role) = role {
                rules.extend(role.value["rules"].as_array().cloned().unwrap_or_default());
            }
        };
        for (plural, namespace) in [("clusterrolebindings", ""), ("rolebindings", namespace)] {
            if plural == "rolebindings" && namespace.is_empty() {
                continue;
            }
            let Some(kind) = self.kind(group, plural) else { continue };
            let Some(table) = self.table(&kind) else { continue };
            for (key, binding) in table.objects(Some(namespace), None) {
                let subjects = binding.value["subjects"].as_array().into_iter().flatten();
                if subjects.into_iter().any(|subject| is_meant(user, subject, &key.0)) {
                    add(&binding.value, &key.0);
                }
            }
        }
        rules
    }
}

fn is_meant(user: &User, subject: &Value, namespace: &str) -> bool {
    let name = subject["name"].as_str().unwrap_or_default();
    match subject["kind"].as_str() {
        Some("User") => user.name == name,
        Some("Group") => user.groups.iter().any(|group| group == name),
        Some("ServiceAccount") => {
            let namespace = subject["namespace"].as_str().unwrap_or(namespace);
            user.name == format!("system:serviceaccount:{namespace}:{name}")
        }
        _ => false,
    }
}
