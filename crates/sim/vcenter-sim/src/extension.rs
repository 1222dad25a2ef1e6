//! Extensions: programs that have registered with the server, so that VMs can be marked as theirs.

use std::collections::BTreeMap;

use roost_vim_wire::{Array, Element, MoRef, Request, Value};

use crate::call::{CallContext, CallResult, Failure};
use crate::model::calls;
use crate::property::{Found, no_such};
use crate::world::World;

/// `Extension`s as they were given, by key.
#[derive(Debug, Default)]
pub(crate) struct Extensions(BTreeMap<String, Element>);

impl Extensions {
    pub(crate) fn property(&self, path: &str) -> Found {
        match path {
            "extensionList" => {
                let all = self.0.values();
                let all = all.map(|row| Value::Other(Box::new(row.clone().typed("Extension"))));
                Ok(Some(Value::Array(Array::new("Extension", all.collect()))))
            }
            _ => no_such(path),
        }
    }
}

fn not_found() -> Failure {
    Failure::of("NotFound", "The object or item referred to could not be found.")
}

/// The methods of the extension manager.
pub(crate) fn call(
    request: &Request<'_>,
    _: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    let extensions = &mut world.extensions;
    let changed = |mut extension: Element| {
        extension.name = "returnval".into();
        extension.xsi_type = None;
        extension.children.retain(|child| child.name != "lastHeartbeatTime");
        // Behind the five fields that are written before it; clients read fields by name, and so do we.
        extension.with_field("lastHeartbeatTime", &cx.now)
    };
    let key_of = |extension: &Element| extension.text_of("key").unwrap_or_default().to_owned();
    calls! { request;
        FindExtension => |call| Ok(extensions.0.get(&call.extension_key).cloned()),
        RegisterExtension => |call| {
            let key = key_of(&call.extension);
            if key.is_empty() || extensions.0.contains_key(&key) {
                return Err(Failure::invalid_argument("extension.key"));
            }
            extensions.0.insert(key, changed(call.extension));
            Ok(())
        },
        UpdateExtension => |call| {
            let old = extensions.0.get_mut(&key_of(&call.extension)).ok_or_else(not_found)?;
            *old = changed(call.extension);
            Ok(())
        },
        UnregisterExtension => |call| extensions.0.remove(&call.extension_key).map(drop).ok_or_else(not_found),
        SetExtensionCertificate => |call| extensions.0.get(&call.extension_key).map(drop).ok_or_else(not_found),
    }
}
