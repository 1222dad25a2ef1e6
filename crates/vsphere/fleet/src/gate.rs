use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

/// One condition that something was weighed against, and how it came out.
///
/// With a [`Measure`] the rule is always the same: it passes while `have + need` stays within `limit`, or if it needs
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gate {
    /// From a closed set, because it becomes a metric label.
    pub name: &'static str,
    pub passed: bool,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Cow<'static, str>>,
}

/// How much is asked for, how much is taken already, and how much there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Measure {
    pub need: u64,
    pub have: u64,
    pub limit: Limit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Limit {
    At(u64),
    #[default]
    Unlimited,
    /// There is one, but it cannot be read at present. Passes, and says so.
    Unknown,
}

impl Limit {
    /// Configuration files write 0 for no limit.
    pub fn zero_is_unlimited(value: u64) -> Self {
        if value == 0 { Self::Unlimited } else { Self::At(value) }
    }

    pub fn allows(self, total: u64) -> bool {
        match self {
            Self::At(limit) => total <= limit,
            Self::Unlimited | Self::Unknown => true,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(limit) => limit.fmt(f),
            Self::Unlimited => f.write_str("unlimited"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::At(limit) => serializer.serialize_u64(*limit),
            Self::Unlimited | Self::Unknown => serializer.collect_str(self),
        }
    }
}

impl Measure {
    pub fn fits(&self) -> bool {
        self.need == 0 || self.limit.allows(self.have.saturating_add(self.need))
    }
}

impl Gate {
    pub fn measured(name: &'static str, need: u64, have: u64, limit: Limit) -> Self {
        let measure = Measure { need, have, limit };
        Self { name, passed: measure.fits(), measure: Some(measure), note: None }
    }

    /// A condition that is no amount: the right type, the right region.
    pub fn plain(name: &'static str, passed: bool) -> Self {
        Self { name, passed, measure: None, note: None }
    }

    #[must_use]
    pub fn noting(mut self, note: impl Into<Cow<'static, str>>) -> Self {
        self.note = Some(note.into());
        self
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if let Some(Measure { need, have, limit }) = self.measure {
            write!(f, ": needs {need}, {have} of {limit} taken")?;
        }
        if let Some(note) = &self.note {
            write!(f, "{}{note}", if self.measure.is_some() { "; " } else { ": " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_passes_while_have_and_need_stay_within_the_limit() {
        for (need, have, limit, passes) in [
            (1, 9, Limit::At(10), true),
            (2, 9, Limit::At(10), false),
            (1, 11, Limit::At(10), false),
            (0, 11, Limit::At(10), true),
            (u64::MAX, u64::MAX, Limit::Unlimited, true),
            (1, u64::MAX, Limit::At(u64::MAX), true),
            (1, 0, Limit::Unknown, true),
            (1, 0, Limit::zero_is_unlimited(0), true),
        ] {
            assert_eq!(
                Gate::measured("g", need, have, limit).passed,
                passes,
                "{need} {have} {limit}"
            );
        }
    }

    #[test]
    fn a_gate_reads_well_in_words_and_in_json() {
        let gate = Gate::measured("cpus", 8, 60, Limit::At(64)).noting("2 reserved");
        assert_eq!(gate.to_string(), "cpus: needs 8, 60 of 64 taken; 2 reserved");
        assert_eq!(
            serde_json::to_string(&gate).unwrap(),
            r#"{"name":"cpus","passed":false,"need":8,"have":60,"limit":64,"note":"2 reserved"}"#
        );
        let plain = Gate::plain("region", true);
        assert_eq!(serde_json::to_string(&plain).unwrap(), r#"{"name":"region","passed":true}"#);
        let open = Gate::measured("workers", 1, 3, Limit::Unlimited);
        assert_eq!(open.to_string(), "workers: needs 1, 3 of unlimited taken");
    }
}
