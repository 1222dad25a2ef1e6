//! Who may do what. Reading is free on this machine; from elsewhere, and for every action, the token or a client certificate is needed. What
//! Prometheus and probes look at is open, as is what a door declares so.

use std::net::IpAddr;
use std::sync::Arc;

use http::header::{AUTHORIZATION, HOST};
use http::{HeaderMap, Method, Request, StatusCode};
use roost_door::Shown;
use secrecy::{ExposeSecret as _, SecretString};

use crate::{ServerTls, Settings};

/// Who is at the other end of the connection.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) ip: IpAddr,
    /// Whom a good client certificate names.
    pub(super) certificate: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    /// A token was shown, and it is not the one.
    WrongToken,
    TokenNeeded,
    /// There is no token that could be shown, but a certificate.
    CertificateNeeded,
    /// A certificate was shown, and the request comes from a page of somebody else.
    ForeignPage,
    /// There is nothing that could be shown.
    OnlyFromHere,
}

impl Denied {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::WrongToken | Self::TokenNeeded => StatusCode::UNAUTHORIZED,
            Self::CertificateNeeded | Self::ForeignPage | Self::OnlyFromHere => {
                StatusCode::FORBIDDEN
            }
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::WrongToken => "the bearer token is not the right one",
            Self::TokenNeeded => "a bearer token is needed",
            Self::CertificateNeeded => "a client certificate is needed",
            Self::ForeignPage => "a page of another site cannot act by your certificate",
            Self::OnlyFromHere => {
                "no token is configured: reading is allowed from this machine only, actions not at all"
            }
        }
    }
}

/// Whether the path is for everybody: metrics and probes, or a file of the page, which says nothing of the service.
pub(super) fn is_open(path: &str) -> bool {
    matches!(path, "/metrics" | "/livez" | "/readyz" | "/assets/roost.css" | "/assets/roost.js")
}

/// For any path that is not open, whether it exists or not. `None`: whoever asks has shown nothing and needs nothing.
pub(super) fn check<B>(
    settings: &Settings,
    peer: Option<&Peer>,
    request: &Request<B>,
) -> Result<Option<Shown>, Denied> {
    let token = settings.token.as_ref().filter(|token| !token.expose_secret().is_empty());
    match (token, shown(request.headers())) {
        (Some(token), Some(shown)) if same(token, shown) => return Ok(Some(Shown::Token)),
        // Also from this machine: whoever shows a token wants to know that it is wrong.
        (Some(_), Some(_)) => return Err(Denied::WrongToken),
        _ => {}
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if let Some(name) = peer.and_then(|peer| peer.certificate.clone()) {
        if reads || is_own_page(request.headers()) {
            return Ok(Some(Shown::Certificate { name }));
        }
        return Err(Denied::ForeignPage);
    }
    if reads && is_from_here(settings, peer, request) {
        return Ok(None);
    }
    let takes_certificates = settings.tls.as_ref().is_some_and(ServerTls::takes_certificates);
    Err(match token {
        Some(_) => Denied::TokenNeeded,
        None if takes_certificates => Denied::CertificateNeeded,
        None => Denied::OnlyFromHere,
    })
}

/// A browser shows its certificate for whatever page makes it ask, so an order counts only if it comes from a page of ours, or from no page.
fn is_own_page(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let same_site =
        text("sec-fetch-site").is_none_or(|site| matches!(site, "same-origin" | "none"));
    let same_origin = match (text("origin"), text("host")) {
        (None, _) => true,
        (Some(origin), Some(host)) => {
            origin.split_once("://").is_some_and(|(_, of)| of.eq_ignore_ascii_case(host))
        }
        (Some(_), None) => false,
    };
    same_site && same_origin
}

fn shown(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Takes as long for a token that is nearly right as for one that is not.
fn same(token: &SecretString, shown: &str) -> bool {
    let (token, shown) = (token.expose_secret().as_bytes(), shown.as_bytes());
    token.len() == shown.len()
        && token.iter().zip(shown).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// What a proxy adds to what it passes on.
const FORWARDED: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/// A loopback peer may be a proxy that speaks for somebody else, or a browser that was led here by a name which somebody else made to resolve to
/// this machine. Neither counts.
fn is_from_here<B>(settings: &Settings, peer: Option<&Peer>, request: &Request<B>) -> bool {
    let is_loopback = peer.is_some_and(|peer| peer.ip.to_canonical().is_loopback());
    let own = settings.forwarded_header.as_deref();
    let mut forwarded = FORWARDED.into_iter().chain(own);
    is_loopback
        && !forwarded.any(|name| request.headers().contains_key(name))
        && request.uri().host().is_none_or(names_this_machine)
        && request.headers().get_all(HOST).iter().all(|host| {
            host.to_str()
                .ok()
                .and_then(|host| host.parse::<http::uri::Authority>().ok())
                .is_some_and(|authority| names_this_machine(authority.host()))
        })
}

fn names_this_machine(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            token: Some("s3cret".into()),
            forwarded_header: Some("X-Client".into()),
            tls: None,
        }
    }

    fn get(headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::get("/api/v1/jobs");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    fn ask(settings: &Settings, from: &str, request: &Request<()>) -> Result<(), Denied> {
        let peer = Peer { ip: from.parse().unwrap(), certificate: None };
        check(settings, Some(&peer), request).map(drop)
    }

    #[test]
    fn reading_is_free_for_loopback_peers_only() {
        for (peer, allowed) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.7", false),
            ("192.168.1.4", false),
            ("::ffff:10.0.0.7", false),
            ("2001:db8::1", false),
            ("fe80::1", false),
            ("0.0.0.0", false),
        ] {
            let want = if allowed { Ok(()) } else { Err(Denied::TokenNeeded) };
            assert_eq!(ask(&settings(), peer, &get(&[])), want, "{peer}");
            let want = if allowed { Ok(()) } else { Err(Denied::OnlyFromHere) };
            assert_eq!(ask(&Settings::default(), peer, &get(&[])), want, "{peer}");
        }
        assert_eq!(check(&settings(), None, &get(&[])), Err(Denied::TokenNeeded), "nobody knows");
    }

    #[test]
    fn the_token_opens_from_anywhere_and_a_wrong_one_nowhere() {
        for (header, want) in [
            ("Bearer s3cret", Ok(())),
            ("bearer  s3cret", Ok(())),
            ("Bearer s3creT", Err(Denied::WrongToken)),
            ("Bearer s3cret2", Err(Denied::WrongToken)),
            ("Bearer ", Err(Denied::WrongToken)),
        ] {
            for peer in ["10.0.0.7", "127.0.0.1"] {
                let request = get(&[("authorization", header)]);
                assert_eq!(ask(&settings(), peer, &request), want, "{header} {peer}");
            }
        }
        let basic = get(&[("authorization", "Basic s3cret")]);
        assert_eq!(ask(&settings(), "10.0.0.7", &basic), Err(Denied::TokenNeeded));
    }

    #[test]
    fn an_empty_token_is_no_token() {
        let settings = Settings { token: Some("".into()), ..Settings::default() };
        let request = get(&[("authorization", "Bearer ")]);
        assert_eq!(ask(&settings, "10.0.0.7", &request), Err(Denied::OnlyFromHere));
    }

    #[test]
    fn what_a_proxy_on_this_machine_passes_on_comes_from_elsewhere() {
        for header in ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "x-client"] {
            let request = get(&[(header, "127.0.0.1")]);
            let want = Err(Denied::TokenNeeded);
            assert_eq!(ask(&settings(), "127.0.0.1", &request), want, "{header}");
        }
    }

    #[test]
    fn a_browser_led_here_by_a_foreign_name_is_refused() {
        for (host, allowed) in [
            ("localhost:8086", true),
            ("LOCALHOST", true),
            ("127.0.0.1:8086", true),
            ("[::1]:8086", true),
            ("rebound.example:8086", false),
            ("localhost.rebound.example", false),
            ("127.0.0.1.rebound.example", false),
            ("10.0.0.7:8086", false),
            ("", false),
        ] {
            let want = if allowed { Ok(()) } else { Err(Denied::TokenNeeded) };
            let request = get(&[("host", host)]);
            assert_eq!(ask(&settings(), "127.0.0.1", &request), want, "{host}");
        }
        let absolute = Request::get("http://rebound.example/api/v1/jobs").body(()).unwrap();
        let denied = ask(&settings(), "127.0.0.1", &absolute);
        assert_eq!(denied, Err(Denied::TokenNeeded));
    }

    #[test]
    fn an_action_needs_the_token_on_this_machine_too() {
        let act = |headers: &[(&str, &str)]| {
            let mut request = get(headers);
            *request.method_mut() = Method::POST;
            request
        };
        let here = "127.0.0.1";
        assert_eq!(ask(&settings(), here, &act(&[])), Err(Denied::TokenNeeded));
        assert_eq!(ask(&Settings::default(), here, &act(&[])), Err(Denied::OnlyFromHere));
        let with = act(&[("authorization", "Bearer s3cret")]);
        assert_eq!(ask(&settings(), here, &with), Ok(()));
    }

    #[test]
    fn a_certificate_counts_like_the_token_and_not_for_the_pages_of_others() {
        let peer = Peer { ip: "10.0.0.7".parse().unwrap(), certificate: Some("ada".into()) };
        let by = |method: Method, headers: &[(&str, &str)]| {
            let mut request = get(headers);
            *request.method_mut() = method;
            check(&settings(), Some(&peer), &request)
        };
        let ada = || Ok(Some(Shown::Certificate { name: "ada".into() }));
        assert_eq!(by(Method::GET, &[]), ada());
        assert_eq!(by(Method::POST, &[]), ada());
        let host = ("host", "roost.example:8086");
        assert_eq!(by(Method::POST, &[host, ("origin", "https://roost.example:8086")]), ada());
        assert_eq!(by(Method::POST, &[host, ("sec-fetch-site", "same-origin")]), ada());
        for foreign in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("origin", "https://roost.example:8086.evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert_eq!(by(Method::POST, &[host, foreign]), Err(Denied::ForeignPage), "{foreign:?}");
        }
        let wrong = [("authorization", "Bearer guess")];
        assert_eq!(by(Method::GET, &wrong), Err(Denied::WrongToken));
        let token = [host, ("authorization", "Bearer s3cret"), ("origin", "https://evil.example")];
        assert_eq!(
            by(Method::POST, &token),
            Ok(Some(Shown::Token)),
            "no browser adds it by itself"
        );
    }

    #[test]
    fn only_what_everybody_may_see_is_open() {
        for path in ["/metrics", "/livez", "/readyz", "/assets/roost.css"] {
            assert!(is_open(path), "{path}");
        }
        for path in ["/", "/api/v1/vms", "/metrics/", "/livez%2F", "//metrics", "/mon/status"] {
            assert!(!is_open(path), "{path}");
        }
    }

    #[test]
    fn the_token_is_not_in_what_is_printed() {
        assert!(!format!("{:?}", settings()).contains("s3cret"));
    }
}
