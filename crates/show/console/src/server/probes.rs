//! `/livez` and `/readyz`, in the form that Kubernetes made usual.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::StatusCode;
use roost_views::Health;

use super::answer::text;
use super::app::App;

pub(super) async fn livez(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Response {
    answer("livez", &app.house.liveness(), is_verbose(query.as_deref()))
}

pub(super) async fn readyz(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Response {
    answer("readyz", &app.house.readiness(), is_verbose(query.as_deref()))
}

/// `?verbose` as well as `?verbose=1`.
fn is_verbose(query: Option<&str>) -> bool {
    let mut parts = query.unwrap_or_default().split('&');
    parts.any(|part| part == "verbose" || part.starts_with("verbose="))
}

fn answer(probe: &str, health: &Health, verbose: bool) -> Response {
    let (status, words) = render(probe, health, verbose);
    text(status, "text/plain; charset=utf-8", words)
}

/// A probe that fails always says why.
fn render(probe: &str, health: &Health, verbose: bool) -> (StatusCode, String) {
    let holds = health.holds();
    if holds && !verbose {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    let mut words = String::new();
    for check in health.checks.iter().filter(|check| verbose || !check.ok) {
        let (mark, outcome) = if check.ok { ('+', "ok") } else { ('-', "failed") };
        let _ = write!(words, "[{mark}]{} {outcome}", check.name);
        if !check.words.is_empty() {
            let _ = write!(words, ": {}", check.words);
        }
        words.push('\n');
    }
    let (status, outcome) = if holds {
        (StatusCode::OK, "passed")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "failed")
    };
    let _ = writeln!(words, "{probe} check {outcome}");
    (status, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use roost_views::CheckView;

    fn check(name: &str, ok: bool, words: &str) -> CheckView {
        CheckView { name: name.into(), ok, words: words.into() }
    }

    #[test]
    fn a_probe_says_ok_or_what_failed_and_everything_if_asked() {
        let good = Health { checks: vec![check("inventory", true, ""), check("cds", true, "2 s")] };
        assert_eq!(render("readyz", &good, false), (StatusCode::OK, "ok\n".into()));
        assert_eq!(
            render("readyz", &good, true).1,
            "[+]inventory ok\n[+]cds ok: 2 s\nreadyz check passed\n"
        );
        let bad = Health { checks: vec![check("a", true, ""), check("b", false, "not synced")] };
        let (status, words) = render("readyz", &bad, false);
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(words, "[-]b failed: not synced\nreadyz check failed\n");
        assert_eq!(
            render("readyz", &bad, true).1,
            "[+]a ok\n[-]b failed: not synced\nreadyz check failed\n"
        );
    }

    #[test]
    fn verbose_may_have_a_value() {
        for (query, wanted) in [
            (None, false),
            (Some("verbose"), true),
            (Some("verbose=1"), true),
            (Some("exclude=a&verbose"), true),
            (Some("verbosely"), false),
        ] {
            assert_eq!(is_verbose(query), wanted, "{query:?}");
        }
    }
}
