//! Conditions in an object's status.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// True, False or Unknown, as conditions have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Truth {
    fn from(truth: bool) -> Self {
        if truth { Self::True } else { Self::False }
    }
}

/// Sets one condition and leaves the others as they are. Its time changes only with its status, so that setting the same again
/// changes nothing. True if something changed.
pub fn set_condition(
    conditions: &mut Vec<Condition>,
    kind: &str,
    status: Truth,
    reason: &str,
    message: &str,
    generation: Option<i64>,
    now: Timestamp,
) -> bool {
    // The wire has whole seconds; a finer time would differ from what comes back.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let wanted = Condition {
        type_: kind.to_owned(),
        status: status.as_str().to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: generation,
        last_transition_time: Time(now),
    };
    match conditions.iter_mut().find(|condition| condition.type_ == kind) {
        None => conditions.push(wanted),
        Some(known) => {
            let since = if known.status == wanted.status {
                known.last_transition_time.clone()
            } else {
                wanted.last_transition_time.clone()
            };
            let wanted = Condition { last_transition_time: since, ..wanted };
            if *known == wanted {
                return false;
            }
            *known = wanted;
        }
    }
    true
}

pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    conditions.iter().any(|condition| condition.type_ == kind && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_changes_with_the_status_only() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let mut list = Vec::new();
        assert!(set_condition(&mut list, "Ready", Truth::False, "Booting", "", Some(1), at(10)));
        assert!(!set_condition(&mut list, "Ready", Truth::False, "Booting", "", Some(1), at(20)));
        assert!(set_condition(&mut list, "Ready", Truth::False, "NoAddress", "", Some(1), at(30)));
        assert_eq!(list[0].last_transition_time, Time(at(10)));
        assert!(set_condition(&mut list, "Ready", Truth::True, "Up", "", Some(1), at(40)));
        assert_eq!(list[0].last_transition_time, Time(at(40)));
        assert!(is_true(&list, "Ready") && !is_true(&list, "Created"));
    }
}
