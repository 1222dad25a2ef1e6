//! The vApp configuration of a VM: products and properties, changed one by one.

use roost_vim_wire::Element;

/// The parts of a `VmConfigInfo` that are lists of objects with a key.
const KEYED: [&str; 2] = ["product", "property"];

/// Those that a request replaces as a whole when it names any.
const WHOLE: [&str; 6] = [
    "ipAssignment",
    "eula",
    "ovfSection",
    "ovfEnvironmentTransport",
    "installBootRequired",
    "installBootStopDelay",
];

/// A `VmConfigInfo` after a `VmConfigSpec` has been applied to the one before.
pub(crate) fn apply(old: Option<&Element>, spec: &Element) -> Element {
    let mut new = Element::new("vAppConfig").typed("VmConfigInfo");
    for name in KEYED {
        let mut rows: Vec<Element> =
            old.into_iter().flat_map(|old| old.children_named(name)).cloned().collect();
        for change in spec.children_named(name) {
            change_row(&mut rows, change);
        }
        new.children.extend(rows);
    }
    for name in WHOLE {
        let given: Vec<&Element> = spec.children_named(name).collect();
        let kept = old.into_iter().flat_map(|old| old.children_named(name));
        if given.is_empty() {
            new.children.extend(kept.cloned());
        } else {
            new.children.extend(given.into_iter().cloned());
        }
    }
    new
}

/// Adds, edits or removes one row. An edit changes the fields that it names.
fn change_row(rows: &mut Vec<Element>, change: &Element) {
    let key = change
        .text_of("removeKey")
        .or_else(|| change.child("info")?.text_of("key"))
        .unwrap_or_default()
        .to_owned();
    let at = rows.iter().position(|row| row.text_of("key") == Some(&key));
    match (change.text_of("operation"), at, change.child("info")) {
        (Some("remove"), Some(at), _) => {
            rows.remove(at);
        }
        (Some("edit"), Some(at), Some(info)) => {
            for field in &info.children {
                match rows[at].child_mut(&field.name) {
                    Some(known) => *known = field.clone(),
                    None => rows[at].children.push(field.clone()),
                }
            }
        }
        (Some("add"), _, Some(info)) => {
            let mut row = Element::new(&change.name);
            row.children.clone_from(&info.children);
            rows.push(row);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(xml: &str) -> Element {
        Element::parse(xml.as_bytes()).unwrap()
    }

    #[test]
    fn properties_are_added_edited_by_key_and_removed() {
        let first = apply(
            None,
            &parse(
                "<v><property><operation>add</operation><info><key>0</key><id>ip</id><value></value></info></property>\
                 <property><operation>add</operation><info><key>1</key><id>dns</id></info></property>\
                 <ovfEnvironmentTransport>iso</ovfEnvironmentTransport></v>",
            ),
        );
        let second = apply(
            Some(&first),
            &parse(
                "<v><property><operation>edit</operation><info><key>0</key><value>10.0.0.1</value></info></property>\
                 <property><operation>remove</operation><removeKey>1</removeKey></property></v>",
            ),
        );
        let rows: Vec<&Element> = second.children_named("property").collect();
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (rows[0].text_of("id"), rows[0].text_of("value")),
            (Some("ip"), Some("10.0.0.1"))
        );
        assert_eq!(second.text_of("ovfEnvironmentTransport"), Some("iso"));
    }
}
