//! Label and field selectors.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::object;

/// Which objects a list or a watch is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Selector {
    pub(crate) labels: Vec<Requirement>,
    pub(crate) fields: Vec<(String, bool, String)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Missing(String),
    Greater(String, i64),
    Less(String, i64),
}

impl Selector {
    pub(crate) fn parse(labels: &str, fields: &str) -> Result<Self, String> {
        Ok(Self { labels: requirements(labels)?, fields: field_terms(fields)? })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, value: &Value) -> bool {
        self.fields.iter().all(|(path, wanted, text)| (field(value, path) == *text) == *wanted)
            && self.labels.iter().all(|requirement| requirement.holds(value))
    }
}

/// Requirements of a label selector as objects state it: `matchLabels` and `matchExpressions`.
pub(crate) fn from_object(selector: &Value) -> Vec<Requirement> {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let mut all: Vec<_> = labels
        .filter_map(|(name, value)| {
            Some(Requirement::In(name.clone(), vec![value.as_str()?.to_owned()]))
        })
        .collect();
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default().to_owned();
        let values =
            object::strings(expression.get("values")).into_iter().map(ToOwned::to_owned).collect();
        all.push(match expression["operator"].as_str() {
            Some("In") => Requirement::In(key, values),
            Some("NotIn") => Requirement::NotIn(key, values),
            Some("DoesNotExist") => Requirement::Missing(key),
            _ => Requirement::Exists(key),
        });
    }
    all
}

impl Requirement {
    pub(crate) fn holds(&self, value: &Value) -> bool {
        let label = |name: &str| {
            object::metadata(value)
                .get("labels")
                .and_then(|labels| labels.get(name))
                .and_then(Value::as_str)
        };
        let number = |name: &str| label(name).and_then(|text| text.parse::<i64>().ok());
        match self {
            Self::In(name, values) => {
                label(name).is_some_and(|label| values.iter().any(|value| value == label))
            }
            Self::NotIn(name, values) => {
                label(name).is_none_or(|label| values.iter().all(|value| value != label))
            }
            Self::Exists(name) => label(name).is_some(),
            Self::Missing(name) => label(name).is_none(),
            Self::Greater(name, than) => number(name).is_some_and(|number| number > *than),
            Self::Less(name, than) => number(name).is_some_and(|number| number < *than),
        }
    }
}

/// A field as text; one that is not set is empty.
fn field(value: &Value, path: &str) -> String {
    match object::at(value, path) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => match path {
            // Defaults of built-in kinds that selectors see.
            "spec.unschedulable" => "false".to_owned(),
            _ => String::new(),
        },
        Some(other) => other.to_string(),
    }
}

fn field_terms(text: &str) -> Result<Vec<(String, bool, String)>, String> {
    let terms = text.split(',').map(str::trim).filter(|term| !term.is_empty());
    terms
        .map(|term| {
            let split = term
                .split_once("!=")
                .map(|(path, value)| (path, false, value))
                .or_else(|| term.split_once("==").map(|(path, value)| (path, true, value)))
                .or_else(|| term.split_once('=').map(|(path, value)| (path, true, value)));
            let (path, wanted, value) = split
                .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{term}'"))?;
            Ok((path.trim().to_owned(), wanted, value.trim().to_owned()))
        })
        .collect()
}

/// Commas inside parentheses belong to a set.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms.into_iter().map(str::trim).filter(|term| !term.is_empty()).collect()
}

fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    split_terms(text).into_iter().map(requirement).collect()
}

fn requirement(term: &str) -> Result<Requirement, String> {
    let own = |text: &str| text.trim().to_owned();
    let set = |rest: &str| -> Result<Vec<String>, String> {
        let inner = rest.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let inner = inner.ok_or_else(|| format!("unable to parse requirement: {term}"))?;
        Ok(inner.split(',').map(own).collect())
    };
    if let Some((name, rest)) = term
        .split_once(" notin ")
        .or_else(|| term.split_once(" notin(").map(|(name, _)| (name, &term[name.len() + 6..])))
    {
        return Ok(Requirement::NotIn(own(name), set(rest)?));
    }
    if let Some((name, rest)) = term
        .split_once(" in ")
        .or_else(|| term.split_once(" in(").map(|(name, _)| (name, &term[name.len() + 3..])))
    {
        return Ok(Requirement::In(own(name), set(rest)?));
    }
    if let Some((name, value)) = term.split_once("!=") {
        return Ok(Requirement::NotIn(own(name), vec![own(value)]));
    }
    if let Some((name, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        if value.starts_with('=') {
            return Err("unable to parse requirement: found '=', expected: identifier".to_owned());
        }
        return Ok(Requirement::In(own(name), vec![own(value)]));
    }
    let number = |text: &str| {
        text.trim().parse().map_err(|_| format!("unable to parse requirement: {term}"))
    };
    if let Some((name, value)) = term.split_once('>') {
        return Ok(Requirement::Greater(own(name), number(value)?));
    }
    if let Some((name, value)) = term.split_once('<') {
        return Ok(Requirement::Less(own(name), number(value)?));
    }
    Ok(match term.strip_prefix('!') {
        Some(name) => Requirement::Missing(own(name)),
        None => Requirement::Exists(own(term)),
    })
}

/// The text form of `matchLabels`, as scale subresources show it.
pub(crate) fn to_text(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_are_selected_as_kubectl_writes_them() {
        let value =
            json!({"metadata": {"name": "a", "labels": {"app": "web", "tier": "front", "n": "5"}}});
        for (labels, want) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier=front", true),
            ("app!=web", false),
            ("missing!=web", true),
            ("app in (db, web)", true),
            ("app in (db),tier=front", false),
            ("app notin (db,cache)", true),
            ("app", true),
            ("!app", false),
            ("!missing,app", true),
            ("n>4,n<6", true),
        ] {
            assert_eq!(Selector::parse(labels, "").unwrap().matches(&value), want, "{labels}");
        }
    }

    #[test]
    fn fields_are_compared_as_text() {
        let value = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n1", "on": true}});
        for (fields, want) in [
            ("metadata.name=a", true),
            ("spec.nodeName!=n1", false),
            ("spec.on=true,metadata.name=a", true),
            ("status.phase=Running", false),
            ("status.phase=", true),
        ] {
            assert_eq!(Selector::parse("", fields).unwrap().matches(&value), want, "{fields}");
        }
        assert!(Selector::parse("", "nonsense").is_err());
    }
}
