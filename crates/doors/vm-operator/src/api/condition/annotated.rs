//! Conditions that others hand over by annotation.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{Truth, mark_text};
use crate::api::names::annotation::CONDITION_PREFIX;

/// A condition as an annotation says it: `type;status;reason;message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotated {
    pub kind: String,
    pub truth: Truth,
    pub reason: String,
    pub message: String,
}

impl Annotated {
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, ';');
        let kind = parts.next().filter(|kind| !kind.is_empty())?.to_owned();
        let truth = match parts.next()? {
            "True" => Truth::True,
            "False" => Truth::False,
            "Unknown" => Truth::Unknown,
            _ => return None,
        };
        let reason = parts.next().unwrap_or_default();
        // A condition needs a reason; its status is the one that conditions without a better one have.
        let reason = if reason.is_empty() { truth.as_str() } else { reason }.to_owned();
        let message = parts.next().unwrap_or_default().to_owned();
        Some(Self { kind, truth, reason, message })
    }

    pub fn mark(&self, conditions: &mut Vec<Condition>, now: Timestamp) -> bool {
        mark_text(conditions, &self.kind, self.truth, &self.reason, &self.message, now)
    }
}

/// All conditions that the annotations hand over. What cannot be read is left out.
pub fn annotated(annotations: &BTreeMap<String, String>) -> Vec<Annotated> {
    let ours = annotations.iter().filter(|(key, _)| key.starts_with(CONDITION_PREFIX));
    ours.filter_map(|(_, text)| Annotated::parse(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_is_read_as_a_condition() {
        let read = Annotated::parse("Licensed;False;NoSeat;all 5; taken").unwrap();
        assert_eq!(read.kind, "Licensed");
        assert_eq!((read.truth, read.reason.as_str()), (Truth::False, "NoSeat"));
        assert_eq!(read.message, "all 5; taken");
        assert_eq!(Annotated::parse("Licensed;True").unwrap().reason, "True");
        for text in ["", "Licensed", ";True;x;y", "Licensed;Maybe;x;y"] {
            assert_eq!(Annotated::parse(text), None, "{text}");
        }
        let key = format!("{CONDITION_PREFIX}license");
        let all = BTreeMap::from([(key, "L;True;A;b".to_owned()), ("other".into(), "x".into())]);
        assert_eq!(annotated(&all).len(), 1);
    }
}
