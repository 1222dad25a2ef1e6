//! How far a VM is, told in annotations: the operator waits for them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Map, Value, json};

use super::key;

/// Longest message in bytes.
const LONGEST: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LifecycleState {
    Creating,
    Ready,
    Hibernating,
    Hibernated,
    Failed,
}

impl LifecycleState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Ready => "ready",
            Self::Hibernating => "hibernating",
            Self::Hibernated => "hibernated",
            Self::Failed => "failed",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let all = [Self::Creating, Self::Ready, Self::Hibernating, Self::Hibernated, Self::Failed];
        all.into_iter().find(|state| state.as_str() == text)
    }
}

/// What the annotations are to say. State, generation and message are always written together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Intent {
    pub(crate) state: LifecycleState,
    pub(crate) generation: i64,
    pub(crate) message: String,
}

/// The generation that the operator asks for.
pub(crate) fn observed_generation(pod: &Pod) -> i64 {
    number(pod, key::GENERATION)
}

fn number(pod: &Pod, key: &str) -> i64 {
    let annotations = pod.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(key)?.parse().ok()).unwrap_or_default()
}

impl Intent {
    /// What the annotations say now.
    pub(crate) fn read(pod: &Pod) -> Option<Self> {
        let annotations = pod.metadata.annotations.as_ref()?;
        Some(Self {
            state: LifecycleState::parse(annotations.get(key::LIFECYCLE_STATE)?)?,
            generation: number(pod, key::LIFECYCLE_GENERATION),
            message: annotations.get(key::LIFECYCLE_MESSAGE).cloned().unwrap_or_default(),
        })
    }

    /// What is to be said next, if anything is. Older generations say nothing, and a failure stays until the operator asks anew.
    pub(crate) fn next(
        now: Option<&Self>,
        state: LifecycleState,
        generation: i64,
        message: &str,
    ) -> Option<Self> {
        let generation = now.map_or(generation, |now| generation.max(now.generation));
        let mut end = message.len().min(LONGEST);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        let wanted = Self { state, generation, message: message[..end].to_owned() };
        match now {
            Some(now) if *now == wanted => None,
            Some(now) if now.state == LifecycleState::Failed && now.generation == generation => {
                None
            }
            _ => Some(wanted),
        }
    }

    /// As a merge patch of annotations.
    pub(crate) fn patch(&self) -> Map<String, Value> {
        let message = if self.message.is_empty() { Value::Null } else { json!(self.message) };
        [
            (key::LIFECYCLE_STATE.to_owned(), json!(self.state.as_str())),
            (key::LIFECYCLE_GENERATION.to_owned(), json!(self.generation.to_string())),
            (key::LIFECYCLE_MESSAGE.to_owned(), message),
        ]
        .into_iter()
        .collect()
    }

    /// Into annotations that were read before.
    pub(crate) fn apply(&self, annotations: &mut BTreeMap<String, String>) {
        for (key, value) in self.patch() {
            match value {
                Value::String(text) => annotations.insert(key, text),
                _ => annotations.remove(&key),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pod;

    #[test]
    fn a_failure_stays_within_its_generation() {
        use LifecycleState::{Creating, Failed, Ready};
        let failed = Intent::next(None, Failed, 3, "no image").unwrap();
        assert_eq!(Intent::next(Some(&failed), Ready, 3, ""), None);
        assert_eq!(Intent::next(Some(&failed), Ready, 2, ""), None, "an older generation");
        assert_eq!(Intent::next(Some(&failed), Creating, 4, "").unwrap().generation, 4);
        let ready = Intent::next(None, Ready, 1, "").unwrap();
        assert_eq!(Intent::next(Some(&ready), Ready, 1, ""), None);
        assert_eq!(
            Intent::next(Some(&ready), Ready, 2, "").unwrap().generation,
            2,
            "a bump is told again"
        );
    }

    #[test]
    fn what_is_written_is_read() {
        let intent =
            Intent { state: LifecycleState::Failed, generation: 7, message: "x".repeat(10) };
        let mut pod = pod("a", &[]);
        intent.apply(pod.metadata.annotations.get_or_insert_default());
        assert_eq!(Intent::read(&pod), Some(intent));
        let long = Intent::next(None, LifecycleState::Failed, 1, &"ü".repeat(4000)).unwrap();
        assert!(long.message.len() <= LONGEST);
        let quiet = Intent { message: String::new(), ..long };
        quiet.apply(pod.metadata.annotations.get_or_insert_default());
        assert!(!pod.metadata.annotations.unwrap().contains_key(key::LIFECYCLE_MESSAGE));
    }
}
