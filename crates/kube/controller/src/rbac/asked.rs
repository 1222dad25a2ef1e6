use super::Verb;

/// One kind of request, as role-based access control sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    pub verb: Verb,
    pub group: String,
    pub resource: String,
}

impl Asked {
    /// From the method and the path with its query; `None` for what is no resource.
    pub fn of(method: &str, path_and_query: &str) -> Option<Self> {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        let mut parts = path.trim_matches('/').split('/');
        let group = match parts.next()? {
            "api" => {
                parts.next()?;
                String::new()
            }
            "apis" => {
                let group = parts.next()?.to_owned();
                parts.next()?;
                group
            }
            _ => return None,
        };
        let mut parts: Vec<_> = parts.collect();
        if parts.first() == Some(&"namespaces") && parts.len() > 2 {
            parts.drain(..2);
        }
        let is_named = parts.len() > 1;
        let resource = match parts.as_slice() {
            [resource] | [resource, _] => (*resource).to_owned(),
            [resource, _, subresource, ..] => format!("{resource}/{subresource}"),
            [] => return None,
        };
        let is_watch = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"));
        let verb = match method {
            "GET" if is_watch => Verb::Watch,
            "GET" if is_named => Verb::Get,
            "GET" => Verb::List,
            "POST" => Verb::Create,
            "PUT" => Verb::Update,
            "PATCH" => Verb::Patch,
            "DELETE" if is_named => Verb::Delete,
            "DELETE" => Verb::DeleteCollection,
            _ => return None,
        };
        Some(Self { verb, group, resource })
    }
}

impl std::fmt::Display for Asked {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}.{}", self.verb.as_str(), self.resource, self.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_access_control_does() {
        for (method, path, verb, group, resource) in [
            ("GET", "/api/v1/pods", Verb::List, "", "pods"),
            ("GET", "/api/v1/namespaces/a/pods?watch=true", Verb::Watch, "", "pods"),
            ("GET", "/api/v1/namespaces/a", Verb::Get, "", "namespaces"),
            (
                "PATCH",
                "/apis/x.io/v1/namespaces/a/toys/b/status?fieldManager=t",
                Verb::Patch,
                "x.io",
                "toys/status",
            ),
            ("POST", "/apis/x.io/v1/namespaces/a/toys", Verb::Create, "x.io", "toys"),
            ("PUT", "/apis/x.io/v1/toys/b", Verb::Update, "x.io", "toys"),
            ("DELETE", "/apis/x.io/v1/toys/b", Verb::Delete, "x.io", "toys"),
        ] {
            let expected = Asked { verb, group: group.to_owned(), resource: resource.to_owned() };
            assert_eq!(Asked::of(method, path), Some(expected), "{method} {path}");
        }
        assert_eq!(Asked::of("GET", "/version"), None);
    }
}
