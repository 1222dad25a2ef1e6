//! Failures by rule: each is used up as often as it says.

use serde::{Deserialize, Serialize};

/// What goes wrong, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fault {
    /// The first two words of the command, such as `vm clone`; empty means every command.
    pub verb: String,
    pub times: u32,
    /// The command fails with this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    pub delay_ms: u64,
    /// It does nothing and never ends, whatever signal it gets.
    pub hang: bool,
    /// It does what it should and prints what is no JSON.
    pub garbage: bool,
    /// An export ends after this many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_after: Option<u64>,
    /// It does what it should and then fails: the answer is lost.
    pub after: bool,
}

impl Default for Fault {
    fn default() -> Self {
        Self {
            verb: String::new(),
            times: 1,
            stderr: None,
            delay_ms: 0,
            hang: false,
            garbage: false,
            cut_after: None,
            after: false,
        }
    }
}

impl Fault {
    pub fn of(verb: &str) -> Self {
        Self { verb: verb.to_owned(), ..Self::default() }
    }

    #[must_use]
    pub fn fails(mut self, stderr: &str) -> Self {
        self.stderr = Some(stderr.to_owned());
        self
    }

    #[must_use]
    pub fn hangs(mut self) -> Self {
        self.hang = true;
        self
    }

    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    #[must_use]
    pub fn after_the_fact(mut self) -> Self {
        self.after = true;
        self
    }
}

/// The faults that are still to come.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Faults(Vec<Fault>);

impl Faults {
    pub fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The fault that this command meets, if any. It is used up by one.
    pub fn take(&mut self, verb: &str) -> Option<Fault> {
        let at = self
            .0
            .iter()
            .position(|fault| fault.times > 0 && (fault.verb.is_empty() || fault.verb == verb))?;
        let fault = self.0[at].clone();
        self.0[at].times -= 1;
        if self.0[at].times == 0 {
            self.0.remove(at);
        }
        Some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_used_up_and_met_only_by_its_verb() {
        let mut faults = Faults::default();
        faults.add(Fault::of("vm clone").fails("no space").times(2));
        assert_eq!(faults.take("vm run"), None);
        assert!(faults.take("vm clone").is_some());
        assert!(faults.take("vm clone").is_some());
        assert_eq!(faults.take("vm clone"), None);
    }
}
