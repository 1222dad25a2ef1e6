//! What was found, in the order of the checks.

use serde::Serialize;

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Pass,
    /// It works, and will not always.
    Warn,
    /// Roost cannot do its work, or not all of it.
    Fail,
    /// Not looked at, and so not known.
    Skip,
}

impl Verdict {
    pub const ALL: [Self; 4] = [Self::Pass, Self::Warn, Self::Fail, Self::Skip];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Skip => "skip",
        }
    }
}

/// One line: what was looked at, what was seen, what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub verdict: Verdict,
    pub check: String,
    pub found: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    fn new(verdict: Verdict, check: impl Into<String>, found: impl Into<String>) -> Self {
        let (check, found) = (check.into(), found.into());
        Self { verdict, check, found, details: Vec::new(), advice: None }
    }

    pub fn pass(check: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(Verdict::Pass, check, found)
    }

    pub fn warn(check: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(Verdict::Warn, check, found)
    }

    pub fn fail(check: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(Verdict::Fail, check, found)
    }

    /// A server that was there a moment ago did not answer.
    pub fn unanswered(check: impl Into<String>, why: impl Into<String>) -> Self {
        Self::fail(check, why)
            .advice("the server hangs, is overloaded or restarts: see how it is, and try again")
    }

    pub fn skip(check: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(Verdict::Skip, check, why)
    }

    #[must_use]
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    #[must_use]
    pub fn details(mut self, details: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(details);
        self
    }
}

/// The checks of one system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    pub system: &'static str,
    /// Which one it is: a file, an address.
    pub about: String,
    pub findings: Vec<Finding>,
}

impl Section {
    /// Nothing of it was looked at.
    pub fn skipped(system: &'static str, about: impl Into<String>, why: &str) -> Self {
        Self { system, about: about.into(), findings: vec![Finding::skip("all of it", why)] }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    pub pass: usize,
    pub warn: usize,
    pub fail: usize,
    pub skip: usize,
}

impl Counts {
    pub fn of(sections: &[Section]) -> Self {
        let findings = || sections.iter().flat_map(|section| &section.findings);
        let count = |verdict| findings().filter(|finding| finding.verdict == verdict).count();
        let [pass, warn, fail, skip] = Verdict::ALL.map(count);
        Self { pass, warn, fail, skip }
    }
}

/// Something that is known, or why it is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact<T> {
    Known(T),
    /// It was asked for, and this came instead.
    Failed(String),
    /// It was asked for, and nothing came.
    Unanswered(String),
    /// It was not asked for, because of something else.
    Skipped(String),
}

impl<T> Fact<T> {
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(known) => Some(known),
            Self::Failed(_) | Self::Unanswered(_) | Self::Skipped(_) => None,
        }
    }

    /// Judges what is known. What failed is a failure with this advice.
    pub fn judge(&self, check: &str, advice: &str, judge: impl FnOnce(&T) -> Finding) -> Finding {
        match self {
            Self::Known(known) => judge(known),
            Self::Failed(why) => Finding::fail(check, why).advice(advice),
            Self::Unanswered(why) => Finding::unanswered(check, why),
            Self::Skipped(why) => Finding::skip(check, why),
        }
    }
}

impl<T> From<Result<T, String>> for Fact<T> {
    fn from(result: Result<T, String>) -> Self {
        match result {
            Ok(known) => Self::Known(known),
            Err(why) => Self::Failed(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_looked_at_is_never_a_pass() {
        let judge = |_: &u8| Finding::pass("x", "fine");
        let verdict = |fact: Fact<u8>| fact.judge("x", "look at it", judge).verdict;
        assert_eq!(verdict(Fact::Known(1)), Verdict::Pass);
        assert_eq!(verdict(Fact::Failed("no".into())), Verdict::Fail);
        assert_eq!(verdict(Fact::Unanswered("no answer".into())), Verdict::Fail);
        assert_eq!(verdict(Fact::Skipped("no login".into())), Verdict::Skip);
        let all = Section::skipped("vCenter", "vc", "the configuration cannot be used");
        assert_eq!(Counts::of(&[all]), Counts { skip: 1, ..Counts::default() });
    }
}
