//! Options of a request that no server accepts together, or at all.

use http::Method;
use serde_json::{Value, json};

use crate::request::Request;
use crate::status::{ApiError, Cause};

/// What a list may ask for; a watch only for the second.
const MATCHES: [&str; 3] = ["Exact", "NotOlderThan", ""];

pub(crate) fn unsupported(field: &str, value: &Value, known: &[&str]) -> Cause {
    let known: Vec<_> = known.iter().map(|name| format!("{name:?}")).collect();
    let message = format!("Unsupported value: {value}: supported values: {}", known.join(", "));
    Cause::new("FieldValueNotSupported", field, message)
}

/// Which version a list or a watch may ask for.
pub(super) fn check_version_match(request: &Request, is_watch: bool) -> Result<(), ApiError> {
    let query = &request.query;
    let (version, wanted) = (query.get("resourceVersion"), query.get("resourceVersionMatch"));
    let sends_initial = !query.get("sendInitialEvents").is_empty();
    let goes_on = !query.get("continue").is_empty();
    let mut causes = Vec::new();
    let mut forbid = |field: &str, why: &str| causes.push(Cause::forbidden(field, why));
    let field = "resourceVersionMatch";
    let known: &[&str] = if is_watch { &MATCHES[1..2] } else { &MATCHES };
    if is_watch {
        if sends_initial && wanted != "NotOlderThan" {
            forbid(
                field,
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            );
        }
        if !sends_initial && !wanted.is_empty() {
            forbid(
                field,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            );
        }
    } else {
        if !wanted.is_empty() && version.is_empty() {
            forbid(field, "resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if wanted == "Exact" && version == "0" {
            forbid(field, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        }
        if sends_initial {
            forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
        }
    }
    if !wanted.is_empty() && goes_on {
        forbid(field, "resourceVersionMatch is forbidden when continue is provided");
    }
    if !wanted.is_empty() && !known.contains(&wanted) {
        causes.push(unsupported(field, &json!(wanted), known));
    }
    if causes.is_empty() { Ok(()) } else { Err(ApiError::invalid_options("ListOptions", &causes)) }
}

/// A dry run goes through all stages or is none.
pub(crate) fn check_dry_run(request: &Request) -> Result<(), ApiError> {
    let wanted = request.query.get("dryRun");
    let kind = match request.method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        Method::DELETE => "DeleteOptions",
        _ => return Ok(()),
    };
    if wanted.is_empty() || wanted == "All" {
        return Ok(());
    }
    Err(ApiError::invalid_options(kind, &[unsupported("dryRun", &json!([wanted]), &["All"])]))
}
