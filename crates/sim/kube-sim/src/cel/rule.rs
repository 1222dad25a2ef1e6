//! `x-kubernetes-validations`: rules at places of a schema.

use serde_json::Value as Json;

use super::evaluate::evaluate;
use super::parse::{Expr, parse};
use super::value::Value;
use crate::schema::{Additional, ListKind, Schema};
use crate::status::Cause;

/// A rule as a definition states it.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) text: String,
    message: Option<String>,
    message_expression: Option<String>,
    reason: &'static str,
    field_path: Option<String>,
    /// Also asked when there is no old value.
    optional_old_self: bool,
    expr: Result<Expr, String>,
}

impl Rule {
    pub(crate) fn read(json: &Json) -> Self {
        let text = json["rule"].as_str().unwrap_or_default().to_owned();
        let own = |name: &str| json[name].as_str().map(ToOwned::to_owned);
        Self {
            expr: parse(&text),
            message: own("message"),
            message_expression: own("messageExpression"),
            reason: match json["reason"].as_str() {
                Some("FieldValueForbidden") => "FieldValueForbidden",
                Some("FieldValueRequired") => "FieldValueRequired",
                Some("FieldValueDuplicate") => "FieldValueDuplicate",
                _ => "FieldValueInvalid",
            },
            field_path: own("fieldPath"),
            optional_old_self: json["optionalOldSelf"].as_bool().unwrap_or(false),
            text,
        }
    }

    /// Why the rule cannot be used.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.expr.as_ref().err().map(String::as_str)
    }

    /// A rule about the change from one value to another.
    fn is_transition(&self) -> bool {
        self.text.contains("oldSelf")
    }

    fn check(&self, value: &Json, old: Option<&Json>, path: &str) -> Option<Cause> {
        let expr = self.expr.as_ref().ok()?;
        if self.is_transition() && old.is_none() && !self.optional_old_self {
            return None;
        }
        let mut scope = vec![("self".to_owned(), Value::from(value))];
        scope.extend(old.map(|old| ("oldSelf".to_owned(), Value::from(old))));
        let why = match evaluate(expr, &mut scope) {
            Ok(Value::Bool(true)) => return None,
            Ok(Value::Bool(false)) => self.failure(&mut scope),
            Ok(other) => format!("rule evaluated to {}, not bool", other.type_name()),
            Err(error) => format!("rule evaluation error: {error}, rule: {}", self.text),
        };
        let field = match &self.field_path {
            Some(below) => format!("{path}{below}"),
            None => path.to_owned(),
        };
        let message = match self.reason {
            "FieldValueForbidden" => format!("Forbidden: {why}"),
            "FieldValueRequired" => format!("Required value: {why}"),
            "FieldValueDuplicate" => format!("Duplicate value: {value}"),
            _ if value.is_object() || value.is_array() => format!("Invalid value: {why}"),
            _ => format!("Invalid value: {value}: {why}"),
        };
        Some(Cause::new(self.reason, &field, message))
    }

    fn failure(&self, scope: &mut super::evaluate::Scope) -> String {
        if let Some(Ok(expr)) = self.message_expression.as_deref().map(parse)
            && let Ok(Value::Text(text)) = evaluate(&expr, scope)
        {
            return text;
        }
        self.message.clone().unwrap_or_else(|| format!("failed rule: {}", self.text))
    }
}

impl Schema {
    /// Rules that cannot be used, with their places.
    pub(crate) fn rule_problems(&self, path: &str, problems: &mut Vec<(String, String)>) {
        for rule in &self.rules {
            if let Some(problem) = rule.problem() {
                problems.push((
                    path.to_owned(),
                    format!("compilation failed: {problem}: {}", rule.text),
                ));
            }
        }
        for (name, schema) in &self.properties {
            schema.rule_problems(&format!("{path}.properties[{name}]"), problems);
        }
        if let Additional::Each(schema) = &self.additional {
            schema.rule_problems(&format!("{path}.additionalProperties"), problems);
        }
        if let Some(schema) = &self.items {
            schema.rule_problems(&format!("{path}.items"), problems);
        }
    }

    /// Whether there is a rule anywhere in it.
    pub(crate) fn has_rules(&self) -> bool {
        !self.rules.is_empty()
            || self.properties.values().any(Self::has_rules)
            || self.items.as_deref().is_some_and(Self::has_rules)
            || matches!(&self.additional, Additional::Each(schema) if schema.has_rules())
    }

    /// What the rules say about a value and, on update, the change from the old one.
    pub(crate) fn check_rules(
        &self,
        value: &Json,
        old: Option<&Json>,
        path: &str,
        causes: &mut Vec<Cause>,
    ) {
        causes.extend(self.rules.iter().filter_map(|rule| rule.check(value, old, path)));
        match value {
            Json::Object(fields) => {
                for (name, value) in fields {
                    let Some(schema) = self.child(name) else { continue };
                    let path =
                        if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    schema.check_rules(value, old.and_then(|old| old.get(name)), &path, causes);
                }
            }
            Json::Array(items) => {
                let Some(schema) = &self.items else { return };
                for (index, item) in items.iter().enumerate() {
                    let old = old.and_then(Json::as_array).and_then(|old| match &self.list {
                        // Only items with keys can be told to be the same as before.
                        ListKind::Map(keys) => {
                            old.iter().find(|other| keys.iter().all(|key| other[key] == item[key]))
                        }
                        ListKind::Atomic | ListKind::Set => None,
                    });
                    schema.check_rules(item, old, &format!("{path}[{index}]"), causes);
                }
            }
            _ => {}
        }
    }
}
