//! A rule as JSON: `{"method": "CloneVM_Task", "nth": 2, "action": {"fault": {"class": "NoDiskSpace"}}}`.

use std::collections::BTreeMap;
use std::time::Duration;

use roost_vim_wire::{Element, Fault, LocalizedMethodFault, MoRef, MoType};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::JsonOutage;
use crate::fault_rules::{Action, Outage, Rule, RuleReport, When};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct JsonRule {
    #[serde(default = "any")]
    method: String,
    #[serde(default = "any")]
    object: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    nth: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    every_nth: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
    action: JsonAction,
}

fn any() -> String {
    "*".into()
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum JsonAction {
    Fault(JsonFault),
    Status(u16),
    Hang,
    CutBefore,
    CutAfter,
    DelayMs(u64),
    LateAnswerMs(u64),
    LoseSession,
    Restart(JsonOutage),
    StaleList,
    EmptyList,
    FailTask(JsonFault),
    HangTask,
    DelayTaskMs(u64),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonFault {
    class: String,
    #[serde(default)]
    message: String,
    /// Text, or `{"type": "VirtualMachine", "id": "vm-12"}` for a reference.
    #[serde(default)]
    fields: BTreeMap<String, JsonField>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum JsonField {
    Text(String),
    Number(i64),
    Bool(bool),
    Ref {
        #[serde(rename = "type")]
        kind: String,
        id: String,
    },
}

impl JsonRule {
    pub(super) fn into_rule(self) -> Result<Rule, String> {
        let when = match (self.nth, self.every_nth, self.chance) {
            (None, None, None) => When::Always,
            (Some(n), None, None) => When::Nth(n),
            (None, Some(n), None) => When::EveryNth(n),
            (None, None, Some(chance)) => When::Chance(chance),
            _ => return Err("a rule has one of nth, everyNth and chance".into()),
        };
        let action = self.action.into_action();
        Ok(Rule { method: self.method, object: self.object, when, times: self.times, action })
    }

    fn of(rule: &Rule) -> Self {
        let (mut nth, mut every_nth, mut chance) = (None, None, None);
        match rule.when {
            When::Always => {}
            When::Nth(n) => nth = Some(n),
            When::EveryNth(n) => every_nth = Some(n),
            When::Chance(probability) => chance = Some(probability),
        }
        let (method, object) = (rule.method.clone(), rule.object.clone());
        Self {
            method,
            object,
            nth,
            every_nth,
            chance,
            times: rule.times,
            action: JsonAction::of(&rule.action),
        }
    }
}

impl JsonAction {
    fn into_action(self) -> Action {
        match self {
            Self::Fault(fault) => Action::Fault(fault.into_fault()),
            Self::Status(status) => Action::Status(status),
            Self::Hang => Action::Hang,
            Self::CutBefore => Action::CutBefore,
            Self::CutAfter => Action::CutAfter,
            Self::DelayMs(ms) => Action::Delay(Duration::from_millis(ms)),
            Self::LateAnswerMs(ms) => Action::LateAnswer(Duration::from_millis(ms)),
            Self::LoseSession => Action::LoseSession,
            Self::Restart(outage) => Action::Restart(outage.into()),
            Self::StaleList => Action::StaleList,
            Self::EmptyList => Action::EmptyList,
            Self::FailTask(fault) => Action::FailTask(fault.into_fault()),
            Self::HangTask => Action::HangTask,
            Self::DelayTaskMs(ms) => Action::DelayTask(Duration::from_millis(ms)),
        }
    }

    fn of(action: &Action) -> Self {
        match action {
            Action::Fault(fault) => Self::Fault(JsonFault::of(fault)),
            Action::Status(status) => Self::Status(*status),
            Action::Hang => Self::Hang,
            Action::CutBefore => Self::CutBefore,
            Action::CutAfter => Self::CutAfter,
            Action::Delay(by) => Self::DelayMs(millis(*by)),
            Action::LateAnswer(by) => Self::LateAnswerMs(millis(*by)),
            Action::LoseSession => Self::LoseSession,
            Action::Restart(Outage { lasts, refuses }) => {
                Self::Restart(JsonOutage { lasts_ms: millis(*lasts), refuses: *refuses })
            }
            Action::StaleList => Self::StaleList,
            Action::EmptyList => Self::EmptyList,
            Action::FailTask(fault) => Self::FailTask(JsonFault::of(fault)),
            Action::HangTask => Self::HangTask,
            Action::DelayTask(by) => Self::DelayTaskMs(millis(*by)),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}

impl JsonFault {
    fn into_fault(self) -> LocalizedMethodFault {
        let fault =
            self.fields.iter().fold(Fault::of(&self.class), |fault, (name, value)| match value {
                JsonField::Text(text) => fault.with(name, text),
                JsonField::Number(number) => fault.with(name, number),
                JsonField::Bool(value) => fault.with(name, value),
                JsonField::Ref { kind, id } => {
                    fault.with(name, &MoRef::new(MoType::from(kind.as_str()), id.as_str()))
                }
            });
        LocalizedMethodFault::new(fault, self.message)
    }

    fn of(fault: &LocalizedMethodFault) -> Self {
        let field = |element: &Element| {
            let value = match element.moref() {
                Some(obj) => JsonField::Ref { kind: obj.kind.to_string(), id: obj.id.to_string() },
                None => JsonField::Text(element.text.clone()),
            };
            (element.name.clone(), value)
        };
        Self {
            class: fault.fault.class.clone(),
            message: fault.localized_message.clone().unwrap_or_default(),
            fields: fault.fault.rest.iter().map(field).collect(),
        }
    }
}

pub(super) fn report(report: &RuleReport) -> Value {
    json!({
        "id": report.id.0,
        "rule": JsonRule::of(&report.rule),
        "matched": report.matched,
        "fired": report.fired,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_goes_to_json_and_back() {
        for action in [
            json!({ "fault": { "class": "DuplicateName", "message": "taken", "fields": {
                "name": "web", "object": { "type": "VirtualMachine", "id": "vm-12" } } } }),
            json!({ "status": 502 }),
            json!("hang"),
            json!("cutBefore"),
            json!("cutAfter"),
            json!({ "delayMs": 10 }),
            json!({ "lateAnswerMs": 20 }),
            json!("loseSession"),
            json!({ "restart": { "lastsMs": 5000, "refuses": true } }),
            json!("staleList"),
            json!("emptyList"),
            json!({ "failTask": { "class": "NoDiskSpace", "message": "", "fields": { "datastore": "LocalDS_0" } } }),
            json!("hangTask"),
            json!({ "delayTaskMs": 30 }),
        ] {
            let text = json!({ "method": "*", "object": "*", "everyNth": 2, "times": 1, "action": action });
            let rule: JsonRule = serde_json::from_value(text.clone()).unwrap();
            let rule = rule.into_rule().unwrap();
            assert_eq!(serde_json::to_value(JsonRule::of(&rule)).unwrap(), text);
        }
    }

    #[test]
    fn a_rule_that_cannot_be_meant_is_refused() {
        let twice = json!({ "nth": 1, "chance": 0.5, "action": "hang" });
        assert!(serde_json::from_value::<JsonRule>(twice).unwrap().into_rule().is_err());
        assert!(serde_json::from_value::<JsonRule>(json!({ "actoin": "hang" })).is_err());
    }
}
