//! Which webhooks want to be asked.

use serde_json::Value;

use super::Subject;
use crate::object::strings;
use crate::selector;
use crate::world::World;

/// A webhook that is to be asked.
#[derive(Debug, Clone)]
pub(super) struct Hook {
    pub(super) name: String,
    pub(super) client_config: Value,
    pub(super) ignores_failure: bool,
    pub(super) timeout_seconds: u64,
    /// The version that it wants to see.
    pub(super) version: String,
}

impl World {
    pub(crate) fn has_hooks(&self) -> bool {
        ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"].into_iter().any(
            |plural| {
                let kind = self.kind("admissionregistration.k8s.io", plural);
                kind.and_then(|kind| self.table(&kind).map(|table| !table.is_empty()))
                    .unwrap_or(false)
            },
        )
    }

    /// In the order of the names of their configurations.
    pub(super) fn hooks(&self, plural: &str, subject: &Subject) -> Vec<Hook> {
        let Some(kind) = self.kind("admissionregistration.k8s.io", plural) else {
            return Vec::new();
        };
        let Some(table) = self.table(&kind) else { return Vec::new() };
        let mut hooks = Vec::new();
        for (_, configuration) in table.objects(None, None) {
            for hook in configuration.value["webhooks"].as_array().into_iter().flatten() {
                if let Some(version) = asked_version(hook, subject)
                    && self.is_in_namespace(hook, subject)
                {
                    hooks.push(Hook {
                        version,
                        name: hook["name"].as_str().unwrap_or_default().to_owned(),
                        client_config: hook["clientConfig"].clone(),
                        ignores_failure: hook["failurePolicy"] == "Ignore",
                        timeout_seconds: hook["timeoutSeconds"].as_u64().unwrap_or(10),
                    });
                }
            }
        }
        hooks
    }

    fn is_in_namespace(&self, hook: &Value, subject: &Subject) -> bool {
        let wanted = selector::from_object(&hook["namespaceSelector"]);
        if wanted.is_empty() {
            return true;
        }
        let namespace =
            if subject.kind.is("", "namespaces") { &subject.name } else { &subject.namespace };
        match self.namespace(namespace) {
            Some(stored) => wanted.iter().all(|requirement| requirement.holds(&stored.value)),
            None => namespace.is_empty(),
        }
    }
}

/// The version in which a webhook is asked about this, if it is: that of the request, or another one that counts as the same.
fn asked_version(hook: &Value, subject: &Subject) -> Option<String> {
    let rules = hook["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    let resource = if subject.subresource.is_empty() {
        subject.kind.plural.clone()
    } else {
        format!("{}/{}", subject.kind.plural, subject.subresource)
    };
    let has = |rule: &Value, field: &str, wanted: &str| {
        strings(rule.get(field)).iter().any(|known| *known == "*" || *known == wanted)
    };
    let kind = &subject.kind;
    let fitting = rules.iter().find_map(|rule| {
        let any_part = strings(rule.get("resources")).iter().any(|known| {
            known
                .strip_suffix("/*")
                .is_some_and(|plural| plural == "*" || plural == subject.kind.plural)
        });
        let scope = match rule["scope"].as_str() {
            Some("Namespaced") => subject.kind.is_namespaced,
            Some("Cluster") => !subject.kind.is_namespaced,
            _ => true,
        };
        // "*" names all resources but not their parts.
        let names = strings(rule.get("resources"));
        let named = names.contains(&resource.as_str())
            || names.contains(&"*") && subject.subresource.is_empty();
        let versions = kind.versions.iter().map(|version| &version.name);
        let others = versions.filter(|_| hook["matchPolicy"] == "Equivalent");
        let version = [&subject.version]
            .into_iter()
            .chain(others)
            .find(|version| has(rule, "apiVersions", version))?;
        let fits = scope
            && has(rule, "operations", subject.operation)
            && has(rule, "apiGroups", &kind.group)
            && (named || any_part);
        fits.then(|| version.clone())
    });
    let wanted = selector::from_object(&hook["objectSelector"]);
    let selected = wanted.is_empty()
        || [&subject.object, &subject.old].into_iter().any(|object| {
            object.is_object() && wanted.iter().all(|requirement| requirement.holds(object))
        });
    fitting.filter(|_| selected)
}
