//! vApp properties: what an OVF template asks for is set before the guest boots. The guest reads it by its tools.

use kube::ResourceExt as _;
use roost_vim::wire::Element;
use roost_vim::wire::types::VirtualMachineConfigSpec;

use super::Context;
use super::bootstrap::{is_by_customization, network, provider};
use super::outcome::{Flow, Halt};
use crate::api::VirtualMachine;
use crate::api::names::annotation;
use crate::bootstrap::{Edit, ExistingProperty, Provider, payload_hash, v_app_edits, v_app_values};
use crate::provider::Seen;

/// How a guest gets its properties.
const TRANSPORT: &str = "com.vmware.guestInfo";

/// Adds to a request what differs. A guest that cloud-init prepares by keys loses the properties: its OVF data source would win over the keys.
pub(super) fn properties(
    cx: &Context,
    vm: &mut VirtualMachine,
    seen: &Seen,
    spec: &mut VirtualMachineConfigSpec,
) -> Flow {
    let config = seen.v_app_config();
    if provider(vm, seen) == Provider::CloudInit {
        if is_by_customization(vm) {
            spec.v_app_config = config.and_then(|config| change(config, &[]));
        } else if config.is_some() {
            spec.v_app_config_removed = Some(true);
        }
        return Ok(());
    }
    let bootstrap = vm.spec.bootstrap.as_ref().filter(|of| !of.disabled);
    let Some(wanted) = bootstrap.and_then(|of| of.v_app_config.clone()) else { return Ok(()) };
    let namespace = vm.namespace().unwrap_or_default();
    let secrets = |name: &str| cx.stores.secret(&namespace, name);
    let failed = || Halt::because("bootstrap");
    let existing = config.map(existing);
    let network = network(cx, vm, seen);
    let edits = v_app_edits(vm, &wanted, existing.as_deref(), &network, &secrets);
    let edits = edits.map_err(failed())?;
    let values = v_app_values(&wanted, &secrets).map_err(failed())?;
    let hash = payload_hash(&values);
    let key = annotation::BOOTSTRAP_HASH_CONFIG_SPEC;
    let was_sent = vm.annotations().get(key) == Some(&hash);
    // A server may not show a password. One that was sent is not sent again.
    let is_hidden = |edit: &Edit| {
        let known = existing.iter().flatten().find(|known| known.key == edit.key);
        known.is_some_and(|known| known.type_.starts_with("password") && known.value.is_empty())
    };
    let edits: Vec<Edit> =
        edits.into_iter().filter(|edit| !(was_sent && is_hidden(edit))).collect();
    spec.v_app_config = config.and_then(|config| change(config, &edits));
    if !was_sent {
        vm.annotations_mut().insert(key.to_owned(), hash);
    }
    Ok(())
}

fn existing(config: &Element) -> Vec<ExistingProperty> {
    let property = |row: &Element| {
        let text = |name: &str| row.text_of(name).unwrap_or_default().to_owned();
        let parts = [text("classId"), text("id"), text("instanceId")];
        let id: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let value = Some(text("value")).filter(|value| !value.is_empty());
        ExistingProperty {
            key: row.number_of("key").and_then(|key| key.try_into().ok()).unwrap_or_default(),
            id: id.join("."),
            type_: text("type"),
            // Without a value of its own a property has its default.
            value: value.unwrap_or_else(|| text("defaultValue")),
            is_user_configurable: text("userConfigurable") != "false",
        }
    };
    config.children_named("property").map(property).collect()
}

/// `None` if there is nothing to change.
fn change(config: &Element, edits: &[Edit]) -> Option<Element> {
    let has_transport =
        config.children_named("ovfEnvironmentTransport").any(|known| known.text == TRANSPORT);
    if edits.is_empty() && has_transport {
        return None;
    }
    let mut spec = Element::new("vAppConfig").typed("VmConfigSpec");
    for edit in edits {
        let info = Element::new("info")
            .with_field("key", &edit.key)
            .with(Element::leaf("value", edit.value.as_str()));
        let property = Element::new("property").with(Element::leaf("operation", "edit"));
        spec = spec.with(property.with(info));
    }
    if !has_transport {
        spec = spec.with(Element::leaf("ovfEnvironmentTransport", TRANSPORT));
    }
    Some(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(rest: &str) -> Element {
        let xml = format!(
            "<vAppConfig><property><key>3</key><classId>app</classId><id>host</id><type>string</type>\
             <userConfigurable>true</userConfigurable><defaultValue>x</defaultValue><value></value></property>{rest}</vAppConfig>"
        );
        Element::parse(xml.as_bytes()).unwrap()
    }

    #[test]
    fn properties_are_read_with_their_defaults_and_sent_only_when_something_differs() {
        let known = existing(&config(""));
        assert_eq!((known[0].id.as_str(), known[0].value.as_str()), ("app.host", "x"));
        let edit = Edit { key: 3, id: "app.host".into(), value: "web-0".into() };
        let spec = change(&config(""), std::slice::from_ref(&edit)).unwrap();
        assert_eq!(spec.text_of("ovfEnvironmentTransport"), Some(TRANSPORT));
        let info = spec.child("property").and_then(|of| of.child("info")).unwrap();
        assert_eq!((info.text_of("key"), info.text_of("value")), (Some("3"), Some("web-0")));
        let told = format!("<ovfEnvironmentTransport>{TRANSPORT}</ovfEnvironmentTransport>");
        assert_eq!(change(&config(&told), &[]), None);
        assert!(change(&config(""), &[]).is_some(), "the guest must be able to read them");
    }
}
