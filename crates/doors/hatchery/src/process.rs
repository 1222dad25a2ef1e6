//! Which process made a VM. Two of one name would look after the same VMs, and each takes the other's half-made ones for its own.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

/// One run of a hatchery, as the VMs that it makes and claims say. The one that was first is the lesser; a chance decides between two of the same
/// moment, on both sides alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessMark {
    started: Timestamp,
    id: u64,
}

impl ProcessMark {
    pub fn new(started: Timestamp, id: u64) -> Self {
        // As much of the time as is written, so that a mark that was read equals the one that was written.
        let millis = started.as_millisecond();
        Self { started: Timestamp::from_millisecond(millis).unwrap_or(started), id }
    }

    pub fn started(&self) -> Timestamp {
        self.started
    }
}

impl fmt::Display for ProcessMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} {:016x}", self.started, self.id)
    }
}

/// Not a mark of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a time and 16 hexadecimal digits")]
pub struct NoMark;

impl FromStr for ProcessMark {
    type Err = NoMark;

    fn from_str(text: &str) -> Result<Self, NoMark> {
        let (started, id) = text.split_once(' ').ok_or(NoMark)?;
        let started = started.parse().map_err(|_| NoMark)?;
        let id = u64::from_str_radix(id, 16).map_err(|_| NoMark)?;
        Ok(Self::new(started, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_reads_as_it_was_written_and_the_first_is_the_lesser() {
        let at = |nanos| Timestamp::constant(1_700_000_000, nanos);
        let mark = ProcessMark::new(at(123_456_789), 0xfeed);
        assert_eq!(mark.to_string(), "2023-11-14T22:13:20.123Z 000000000000feed");
        assert_eq!(mark.to_string().parse(), Ok(mark.clone()));
        assert!(ProcessMark::new(at(122_000_000), u64::MAX) < mark);
        assert!(ProcessMark::new(at(123_000_000), 1) < mark, "of the same moment");
        for text in ["", "2023-11-14T22:13:20.123Z", "yesterday feed", "2023-11-14T22:13:20Z x"] {
            assert_eq!(text.parse::<ProcessMark>(), Err(NoMark), "{text:?}");
        }
    }
}
