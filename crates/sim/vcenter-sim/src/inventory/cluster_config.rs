//! What an administrator has set on a cluster: availability, placement, groups and rules.

use roost_vim_wire::{Array, Element, Value};

use crate::call::Failure;
use crate::inventory::Record;

/// Kept as it came, because nothing here acts on most of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClusterConfig {
    das: Vec<Element>,
    drs: Vec<Element>,
    groups: Vec<Element>,
    rules: Vec<Element>,
    das_vms: Vec<Element>,
    drs_vms: Vec<Element>,
    orchestration: Vec<Element>,
    next_rule: i32,
}

fn text<'a>(element: &'a Element, name: &str) -> Option<&'a str> {
    let child = element.children.iter().find(|child| child.name == name);
    child.map(|child| child.text.as_str())
}

fn child<'a>(element: &'a Element, name: &str) -> Option<&'a Element> {
    element.children.iter().find(|child| child.name == name)
}

/// Fields of the request replace those of the same name.
fn merge(own: &mut Vec<Element>, asked: &Element) {
    for field in &asked.children {
        own.retain(|known| known.name != field.name);
    }
    own.extend(asked.children.iter().cloned());
}

impl ClusterConfig {
    /// Takes over what a `ClusterConfigSpecEx` asks for, all or nothing.
    pub(crate) fn apply(&mut self, spec: &Element) -> Result<(), Failure> {
        let mut new = self.clone();
        for part in &spec.children {
            match part.name.as_str() {
                "dasConfig" => merge(&mut new.das, part),
                "drsConfig" => merge(&mut new.drs, part),
                "groupSpec" => change(&mut new.groups, part, "name")?,
                "rulesSpec" => new.change_rule(part)?,
                "dasVmConfigSpec" => change(&mut new.das_vms, part, "key")?,
                "drsVmConfigSpec" => change(&mut new.drs_vms, part, "key")?,
                "vmOrchestrationSpec" => change(&mut new.orchestration, part, "vm")?,
                _ => {}
            }
        }
        *self = new;
        Ok(())
    }

    fn change_rule(&mut self, part: &Element) -> Result<(), Failure> {
        let mut part = part.clone();
        if text(&part, "operation") == Some("add") {
            self.next_rule += 1;
            let key = self.next_rule;
            if let Some(info) = part.children.iter_mut().find(|child| child.name == "info") {
                let named = text(info, "name").map(str::to_owned);
                if self.rules.iter().any(|rule| text(rule, "name") == named.as_deref()) {
                    return Err(Failure::invalid_argument("rulesSpec.info.name"));
                }
                info.children.retain(|field| field.name != "key");
                info.children.insert(0, Element::leaf("key", key.to_string()));
            }
        }
        change(&mut self.rules, &part, "key")
    }

    pub(crate) fn das(&self) -> Record {
        fields(Record::of("ClusterDasConfigInfo"), &self.das, &[("enabled", "false")])
    }

    /// Clusters place their VMs themselves unless told otherwise.
    pub(crate) fn drs(&self) -> Record {
        let usual = [
            ("enabled", "true"),
            ("enableVmBehaviorOverrides", "true"),
            ("defaultVmBehavior", "fullyAutomated"),
            ("vmotionRate", "3"),
        ];
        fields(Record::of("ClusterDrsConfigInfo"), &self.drs, &usual)
    }

    pub(crate) fn info_ex(&self) -> Record {
        Record::of("ClusterConfigInfoEx")
            .text("vmSwapPlacement", "vmDirectory")
            .record("dasConfig", self.das())
            .put("dasVmConfig", array("ClusterDasVmConfigInfo", &self.das_vms))
            .record("drsConfig", self.drs())
            .put("drsVmConfig", array("ClusterDrsVmConfigInfo", &self.drs_vms))
            .put("rule", array("ClusterRuleInfo", &self.rules))
            .put("vmOrchestration", array("ClusterVmOrchestrationInfo", &self.orchestration))
            .put("group", array("ClusterGroupInfo", &self.groups))
    }
}

fn array(class: &str, elements: &[Element]) -> Value {
    let items = elements.iter().map(|element| Value::Other(Box::new(element.clone()))).collect();
    Value::Array(Array::new(class, items))
}

/// The usual fields, then what the request had for or beside them.
fn fields(mut record: Record, own: &[Element], usual: &[(&'static str, &str)]) -> Record {
    let value = |text: &str| match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        other => match other.parse() {
            Ok(number) => Value::Int(number),
            Err(_) => Value::string(other),
        },
    };
    for (name, default) in usual {
        let asked = own.iter().find(|field| field.name == *name);
        record = record.put(name, value(asked.map_or(default, |field| field.text.as_str())));
    }
    // Fields that the request had beside the usual ones, of those that clients read.
    for name in ["admissionControlEnabled", "hostMonitoring", "vmMonitoring"] {
        if let Some(asked) = own.iter().find(|field| field.name == name) {
            record = record.put(name, value(&asked.text));
        }
    }
    record
}

/// An array change: `add`, `edit` or `remove`, by what tells the items apart.
fn change(items: &mut Vec<Element>, part: &Element, key: &str) -> Result<(), Failure> {
    let wrong = || Failure::invalid_argument("spec");
    let operation = text(part, "operation").ok_or_else(wrong)?;
    if operation == "remove" {
        let removed = text(part, "removeKey").ok_or_else(wrong)?;
        let before = items.len();
        items.retain(|item| text(item, key) != Some(removed));
        return if items.len() < before { Ok(()) } else { Err(wrong()) };
    }
    let info = child(part, "info").ok_or_else(wrong)?;
    let identity = text(info, key).ok_or_else(wrong)?;
    let known = items.iter().position(|item| text(item, key) == Some(identity));
    let mut item = info.clone();
    item.name = "item".into();
    match (operation, known) {
        ("add", None) => items.push(item),
        ("edit", Some(at)) => items[at] = item,
        _ => return Err(wrong()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(operation: &str, name: &str) -> Element {
        let info = Element::new("info").typed("ClusterVmGroup").with(Element::leaf("name", name));
        let part = Element::new("groupSpec").with(Element::leaf("operation", operation)).with(info);
        Element::new("spec").with(part)
    }

    #[test]
    fn a_group_is_added_once_and_a_refused_change_changes_nothing() {
        let mut config = ClusterConfig::default();
        config.apply(&group("add", "web")).unwrap();
        assert!(config.apply(&group("add", "web")).is_err());
        assert!(config.apply(&group("edit", "db")).is_err());
        assert_eq!(config.groups.len(), 1);
        let mut both = group("add", "db");
        both.children.push(group("add", "web").children[0].clone());
        assert!(config.apply(&both).is_err());
        assert_eq!(config.groups.len(), 1, "all or nothing");
    }
}
