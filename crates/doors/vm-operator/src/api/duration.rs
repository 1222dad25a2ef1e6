//! Durations as Go writes them: `1h30m`, `250ms`, `5m0s`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration, kept as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GoDuration(pub String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text} is no duration: numbers with units such as 1h30m, 5m, 250ms")]
pub struct GoDurationError {
    pub text: String,
}

impl GoDuration {
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Negative durations count as none.
    pub fn parse(&self) -> Result<Duration, GoDurationError> {
        parse(&self.0).ok_or_else(|| GoDurationError { text: self.0.clone() })
    }
}

fn parse(text: &str) -> Option<Duration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let unit_nanos: u64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let mut nanos = u128::from(whole) * u128::from(unit_nanos);
        let mut place = u128::from(unit_nanos);
        for digit in fraction.bytes() {
            place /= 10;
            nanos += u128::from(digit - b'0') * place;
        }
        total = total.checked_add(Duration::from_nanos(u64::try_from(nanos).ok()?))?;
        rest = tail;
    }
    Some(if negative { Duration::ZERO } else { total })
}

impl fmt::Display for GoDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, milliseconds) in [
            ("0", 0),
            ("30s", 30_000),
            ("1h30m", 5_400_000),
            ("5m0s", 300_000),
            ("250ms", 250),
            ("1.5s", 1500),
            (".5m", 30_000),
            ("-1s", 0),
        ] {
            let read = GoDuration::new(text).parse();
            assert_eq!(read, Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "5", "5 m", "m", "1d", "1.2.3s", "s5"] {
            assert!(GoDuration::new(text).parse().is_err(), "{text}");
        }
    }
}
