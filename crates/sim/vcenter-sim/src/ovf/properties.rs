//! The vApp configuration of a VM that comes from a descriptor: products, properties, transport.

use roost_vim_wire::Element;

use super::envelope::{Envelope, Property};

/// A `VmConfigSpec`, or nothing where the descriptor has neither products nor properties. `value` says what a deployment sets.
pub(super) fn v_app_config(
    envelope: &Envelope,
    value: impl Fn(&Property) -> Option<String>,
) -> Option<Element> {
    if envelope.products.is_empty() && envelope.properties.is_empty() {
        return None;
    }
    let mut config = Element::new("vAppConfig").typed("VmConfigSpec");
    for (key, product) in (0_i32..).zip(&envelope.products) {
        let info = Element::new("info")
            .with_field("key", &key)
            .with_field("classId", &product.class)
            .with_field("instanceId", &product.instance)
            .with_field("name", &product.name)
            .with_field("vendor", &product.vendor)
            .with_field("version", &product.version)
            .with_field("fullVersion", &product.full_version);
        config = config.with(added("product").with(info));
    }
    for (key, property) in (0_i32..).zip(&envelope.properties) {
        let given = value(property).filter(|given| *given != property.value);
        let info = Element::new("info")
            .with_field("key", &key)
            .with_field("classId", &property.class)
            .with_field("instanceId", &property.instance)
            .with_field("id", &property.id)
            .with_field("category", &property.category)
            .with_field("label", &property.label)
            .with_field("type", &kind_of(property))
            .with_field("userConfigurable", &property.user_configurable)
            .with_field("defaultValue", &property.value)
            .with_field("value", &given.unwrap_or_default())
            .with_field("description", &property.description);
        config = config.with(added("property").with(info));
    }
    for license in &envelope.eulas {
        config = config.with_field("eula", license);
    }
    for transport in &envelope.transport {
        config = config.with_field("ovfEnvironmentTransport", transport);
    }
    Some(config)
}

fn added(name: &str) -> Element {
    Element::new(name).with_field("operation", &"add".to_owned())
}

fn kind_of(property: &Property) -> String {
    match (property.kind.as_str(), property.is_password) {
        (_, true) => "password".into(),
        ("boolean", _) => "boolean".into(),
        ("string", _) => "string".into(),
        (kind, _) if kind.contains("int") => "int".into(),
        ("real32" | "real64", _) => "real".into(),
        (kind, _) => kind.to_owned(),
    }
}
