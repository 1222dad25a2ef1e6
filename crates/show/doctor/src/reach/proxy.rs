//! Whether connections go through a proxy: then neither the name nor the port can be tried from here.

/// The variable that names a proxy for this host, by the rules that the HTTP client has for them.
pub(super) fn proxy_for(
    host: &str,
    tls: bool,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<&'static str> {
    let names: &[&str] = if tls {
        &["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
    } else {
        &["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
    };
    let is_set = |name: &&&'static str| variable(name).is_some_and(|value| !value.is_empty());
    let found = names.iter().find(is_set)?;
    let exceptions = variable("NO_PROXY").or_else(|| variable("no_proxy")).unwrap_or_default();
    let is_excepted = exceptions.split(',').map(str::trim).any(|rule| covers(rule, host));
    (!is_excepted).then_some(*found)
}

fn covers(rule: &str, host: &str) -> bool {
    let domain = rule.trim_start_matches('.');
    !rule.is_empty()
        && (rule == "*"
            || host.eq_ignore_ascii_case(domain)
            || host.to_ascii_lowercase().ends_with(&format!(".{}", domain.to_ascii_lowercase())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_known_by_its_variable_and_its_exceptions() {
        let set = |pairs: &'static [(&str, &str)]| {
            move |name: &str| {
                pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            }
        };
        assert_eq!(proxy_for("vc", true, set(&[])), None);
        assert_eq!(proxy_for("vc", true, set(&[("HTTPS_PROXY", "http://p")])), Some("HTTPS_PROXY"));
        assert_eq!(proxy_for("vc", false, set(&[("HTTPS_PROXY", "http://p")])), None);
        let excepted = set(&[("ALL_PROXY", "http://p"), ("NO_PROXY", "a.b, .example.org")]);
        assert_eq!(proxy_for("vc.Example.org", true, excepted), None);
        assert_eq!(proxy_for("vc.example.com", true, excepted), Some("ALL_PROXY"));
    }
}
