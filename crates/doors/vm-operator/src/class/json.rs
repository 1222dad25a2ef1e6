//! vSphere's data objects as JSON: fields by their names, `_typeName` for the class, `_value` for a plain value that has one.

use roost_vim::wire::Element;
use roost_vim::wire::types::VirtualMachineConfigSpec;
use serde_json::Value;

/// Fields that the type does not know are left out.
pub(super) fn config_spec(json: &Value) -> VirtualMachineConfigSpec {
    let mut parent = Element::new("list");
    push(&mut parent, "spec", json);
    parent.get("spec")
}

fn push(parent: &mut Element, name: &str, value: &Value) {
    match value {
        Value::Null => {}
        Value::Array(items) => {
            for item in items {
                push(parent, name, item);
            }
        }
        Value::Object(fields) => {
            let mut element = Element::new(name);
            let class = fields.get("_typeName").and_then(Value::as_str);
            if let Some(plain) = fields.get("_value") {
                if let Value::Array(items) = plain {
                    for item in items {
                        push(parent, name, item);
                    }
                } else {
                    element.text = text(plain);
                    element.xsi_type = class.map(|class| format!("xsd:{class}"));
                    parent.children.push(element);
                }
                return;
            }
            element.xsi_type = class.map(str::to_owned);
            for (field, value) in fields.iter().filter(|(field, _)| *field != "_typeName") {
                push(&mut element, field, value);
            }
            parent.children.push(element);
        }
        plain => parent.children.push(Element::leaf(name, text(plain))),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
