//! Property reads without a session.

use jiff::Timestamp;
use roost_vim_wire::methods::{RetrieveProperties, RetrievePropertiesEx};
use roost_vim_wire::types::PropertyFilterSpec;
use roost_vim_wire::xml::Writer;
use roost_vim_wire::{Field, Method, MoRef, MoType, Request, encode_reply_with};

use super::retrieve::write_missing;
use crate::call::{CallResult, ReplyBody, decode};
use crate::permission;
use crate::property::Reading;
use crate::world::World;

/// What a caller without a session is told: every path that it asked for is missing. Only that which is open to everybody
/// is answered.
pub(crate) fn retrieve_unauthenticated(
    request: &Request<'_>,
    world: &World,
    now: Timestamp,
) -> CallResult {
    let spec_set = match request.method {
        RetrieveProperties::NAME => decode::<RetrieveProperties>(request)?.spec_set,
        _ => decode::<RetrievePropertiesEx>(request)?.spec_set,
    };
    let is_paged = request.method == RetrievePropertiesEx::NAME;
    let element = if is_paged { "objects" } else { "returnval" };
    let reading = Reading { world, session: None, now, is_stale: false };
    let body = encode_reply_with(request.method, 1024, |w| {
        if is_paged {
            w.open("returnval");
        }
        for source in &spec_set {
            for start in &source.object_set {
                write_anonymous(&reading, source, &start.obj, element, w);
            }
        }
        if is_paged {
            w.close("returnval");
        }
        Ok::<_, std::convert::Infallible>(())
    });
    let Ok(body) = body;
    Ok(ReplyBody(body))
}

fn write_anonymous(
    reading: &Reading<'_>,
    source: &PropertyFilterSpec,
    obj: &MoRef,
    element: &str,
    w: &mut Writer,
) {
    let fits = |kind: &str| obj.kind.is_a(kind);
    // Nothing can be reached from the start, so what was asked of others is missing here.
    let any = source.prop_set.iter().any(|set| fits(&set.kind));
    let sets = source.prop_set.iter().filter(|set| !any || fits(&set.kind));
    let fault = permission::not_authenticated(obj, permission::READ).localized();
    w.open(element);
    obj.write(w, "obj");
    let mut missing = Vec::new();
    for path in sets.flat_map(|set| &set.path_set) {
        if !is_anonymous(obj, path) {
            missing.push(path);
        } else if let Ok(Some(value)) = reading.get(obj, path) {
            w.open("propSet");
            w.leaf("name", path);
            value.write(w, "val");
            w.close("propSet");
        }
    }
    for path in missing {
        write_missing(path, &fault, w);
    }
    w.close(element);
}

/// Whether a property can be read without a session.
pub(crate) fn is_anonymous(obj: &MoRef, path: &str) -> bool {
    let first = path.split('.').next().unwrap_or_default();
    match obj.kind {
        MoType::ServiceInstance => first == "content",
        MoType::SessionManager => {
            matches!(
                first,
                "currentSession" | "defaultLocale" | "messageLocaleList" | "supportedLocaleList"
            )
        }
        _ => false,
    }
}
