//! Customizations that are kept by name.

use std::collections::BTreeMap;

use roost_vim_wire::xml::Writer;
use roost_vim_wire::{Element, Field as _, MoRef, Request, Value};

use crate::call::{CallContext, CallResult, Failure};
use crate::model::calls;
use crate::property::{Found, no_such};
use crate::world::World;

/// `CustomizationSpecItem`s as they were given.
#[derive(Debug, Default)]
pub(crate) struct CustomizationSpecs(BTreeMap<String, Element>);

impl CustomizationSpecs {
    pub(crate) fn property(&self, path: &str) -> Found {
        match path {
            "info" => {
                let infos = self.0.values().filter_map(|item| item.child("info"));
                let infos = infos.map(|info| {
                    Value::Other(Box::new(info.clone().typed("CustomizationSpecInfo")))
                });
                let array = roost_vim_wire::Array::new("CustomizationSpecInfo", infos.collect());
                Ok(Some(Value::Array(array)))
            }
            "encryptionKey" => Ok(None),
            _ => no_such(path),
        }
    }
}

/// The methods of the manager of customizations.
pub(crate) fn call(
    request: &Request<'_>,
    _: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    let specs = &mut world.customization_specs;
    calls! { request;
        DoesCustomizationSpecExist => |call| Ok(specs.0.contains_key(&call.name)),
        GetCustomizationSpec => |call| specs.0.get(&call.name).cloned().ok_or_else(not_found),
        CreateCustomizationSpec => |call| {
            let name = name_of(&call.item)?;
            refuse_taken(specs, &name)?;
            specs.0.insert(name, dated(call.item, cx));
            Ok(())
        },
        OverwriteCustomizationSpec => |call| {
            let name = name_of(&call.item)?;
            let old = specs.0.get_mut(&name).ok_or_else(not_found)?;
            *old = dated(call.item, cx);
            Ok(())
        },
        DeleteCustomizationSpec => |call| specs.0.remove(&call.name).map(drop).ok_or_else(not_found),
        DuplicateCustomizationSpec => |call| {
            refuse_taken(specs, &call.new_name)?;
            let item = specs.0.get(&call.name).cloned().ok_or_else(not_found)?;
            specs.0.insert(call.new_name.clone(), renamed(item, &call.new_name));
            Ok(())
        },
        RenameCustomizationSpec => |call| {
            refuse_taken(specs, &call.new_name)?;
            let item = specs.0.remove(&call.name).ok_or_else(not_found)?;
            specs.0.insert(call.new_name.clone(), renamed(item, &call.new_name));
            Ok(())
        },
        CustomizationSpecItemToXml => |call| {
            let mut writer = Writer::default();
            call.item.write(&mut writer, "ConfigRoot");
            Ok(String::from_utf8_lossy(&writer.into_bytes()).into_owned())
        },
        XmlToCustomizationSpecItem => |call| {
            let item = Element::parse(call.spec_item_xml.as_bytes());
            let item = item.map_err(|error| Failure::of("CustomizationFault", error.to_string()))?;
            Ok(Element { name: "returnval".into(), ..item })
        },
    }
}

fn not_found() -> Failure {
    Failure::of("NotFound", "The object or item referred to could not be found.")
}

fn refuse_taken(specs: &CustomizationSpecs, name: &str) -> Result<(), Failure> {
    if specs.0.contains_key(name) {
        let words = format!("The specified key, name, or identifier '{name}' already exists.");
        return Err(Failure::of("AlreadyExists", words).with("name", &name.to_owned()));
    }
    Ok(())
}

fn name_of(item: &Element) -> Result<String, Failure> {
    let name = item.child("info").and_then(|info| info.text_of("name")).unwrap_or_default();
    if name.is_empty() {
        return Err(Failure::invalid_argument("item.info.name"));
    }
    Ok(name.to_owned())
}

fn renamed(mut item: Element, name: &str) -> Element {
    if let Some(own) = item.child_mut("info").and_then(|info| info.child_mut("name")) {
        name.clone_into(&mut own.text);
    }
    item
}

/// With the time of the change and a version, as the server gives them.
fn dated(mut item: Element, cx: &CallContext<'_>) -> Element {
    item.name = "returnval".into();
    item.xsi_type = None;
    if let Some(info) = item.child_mut("info") {
        info.children
            .retain(|child| !matches!(child.name.as_str(), "changeVersion" | "lastUpdateTime"));
        let (version, now) = (cx.now.as_second().to_string(), cx.now);
        let dated = std::mem::take(info);
        *info = dated.with_field("changeVersion", &version).with_field("lastUpdateTime", &now);
    }
    item
}
