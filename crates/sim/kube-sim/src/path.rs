//! What a URL is about.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;

/// A resource, and perhaps one object or a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// Empty: the whole cluster.
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/api`, `/apis`, `/apis/GROUP`.
    Groups(String),
    /// `/api/v1`, `/apis/GROUP/VERSION`.
    Resources {
        group: String,
        version: String,
    },
    Resource(Target),
    /// `/version`, `/healthz`, `/openapi/v3/...`: everything else, in parts.
    Other(Vec<String>),
}

pub(crate) fn route(path: &str) -> Route {
    let parts: Vec<String> = path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
        .collect();
    let texts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (group, version, rest) = match texts.as_slice() {
        ["api"] => return Route::Groups("api".into()),
        ["apis"] => return Route::Groups(String::new()),
        ["apis", group] => return Route::Groups((*group).into()),
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Route::Other(parts),
    };
    if rest.is_empty() {
        return Route::Resources { group: group.into(), version: version.into() };
    }
    let (namespace, rest) = match rest {
        // A namespace's own parts, not things in it.
        ["namespaces", _, "status" | "finalize"] if group.is_empty() => ("", rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        _ => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, "", String::new()),
        [plural, name] => (*plural, *name, String::new()),
        [plural, name, subresource @ ..] => (*plural, *name, subresource.join("/")),
        [] => return Route::Other(parts),
    };
    Route::Resource(Target {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        namespace: namespace.into(),
        name: name.into(),
        subresource,
    })
}

/// The query of a URL, decoded. Of a name that comes twice the first counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(HashMap<String, String>);

impl Query {
    pub(crate) fn parse(query: &str) -> Self {
        let mut found = HashMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |text: &str| {
                percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
            };
            found.entry(decode(name)).or_insert_with(|| decode(value));
        }
        Self(found)
    }

    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        matches!(self.get(name), "true" | "1")
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name).parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> (String, String, String, String) {
        match route(path) {
            Route::Resource(target) => {
                (target.plural, target.namespace, target.name, target.subresource)
            }
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn paths_lead_to_what_they_name() {
        let own = |a: &str, b: &str, c: &str, d: &str| (a.into(), b.into(), c.into(), d.into());
        for (path, want) in [
            ("/api/v1/pods", own("pods", "", "", "")),
            ("/api/v1/namespaces", own("namespaces", "", "", "")),
            ("/api/v1/namespaces/n", own("namespaces", "", "n", "")),
            ("/api/v1/namespaces/n/status", own("namespaces", "", "n", "status")),
            ("/api/v1/namespaces/n/pods", own("pods", "n", "", "")),
            ("/api/v1/namespaces/n/pods/p/log", own("pods", "n", "p", "log")),
            (
                "/apis/example.com/v1/namespaces/n/widgets/w/scale",
                own("widgets", "n", "w", "scale"),
            ),
            (
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a.b",
                own("customresourcedefinitions", "", "a.b", ""),
            ),
        ] {
            assert_eq!(target(path), want, "{path}");
        }
        assert_eq!(route("/apis"), Route::Groups(String::new()));
        assert_eq!(
            route("/apis/apps/v1"),
            Route::Resources { group: "apps".into(), version: "v1".into() }
        );
        assert_eq!(route("/openapi/v2"), Route::Other(vec!["openapi".into(), "v2".into()]));
    }

    #[test]
    fn queries_are_decoded() {
        let query = Query::parse("labelSelector=a%3Db%2Cc+in+%28d%29&watch=1&limit=5");
        assert_eq!(query.get("labelSelector"), "a=b,c in (d)");
        assert!(query.is_set("watch"));
        assert_eq!(query.number("limit"), Some(5));
    }
}
