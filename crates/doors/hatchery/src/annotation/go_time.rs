use std::fmt;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::Offset;

/// A time as Go's `time.Time` writes itself: RFC 3339 with as many digits as it has, in the zone that it was taken in. Year 1 is never.
///
/// The zone is kept so that a rewrite leaves the text of others as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoTime {
    at: Option<Timestamp>,
    offset: Offset,
}

/// `time.Time{}`.
const NEVER: Timestamp = Timestamp::constant(-62_135_596_800, 0);

static PARSER: DateTimeParser = DateTimeParser::new();

impl GoTime {
    pub const NEVER: Self = Self { at: None, offset: Offset::UTC };

    pub(super) fn parse(text: &str) -> Option<Self> {
        let pieces = PARSER.parse_pieces(text).ok()?;
        let offset = pieces.to_numeric_offset()?;
        let at = PARSER.parse_timestamp(text).ok()?;
        Some(if at == NEVER { Self::NEVER } else { Self { at: Some(at), offset } })
    }

    /// `None` for never.
    pub fn get(self) -> Option<Timestamp> {
        self.at
    }
}

impl Default for GoTime {
    fn default() -> Self {
        Self::NEVER
    }
}

impl From<Timestamp> for GoTime {
    fn from(at: Timestamp) -> Self {
        Self { at: Some(at), offset: Offset::UTC }
    }
}

impl fmt::Display for GoTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.unwrap_or(NEVER);
        if self.offset == Offset::UTC {
            write!(f, "{at}")
        } else {
            write!(f, "{}", at.display_with_offset(self.offset))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_they_were_read() {
        for text in [
            "2026-03-02T11:22:33.123456789+01:00",
            "2026-03-02T11:22:33.12Z",
            "2026-03-02T11:22:33Z",
            "2026-03-02T11:22:33-03:30",
            "0001-01-01T00:00:00Z",
        ] {
            assert_eq!(GoTime::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn year_one_is_never() {
        assert_eq!(GoTime::parse("0001-01-01T00:00:00Z").unwrap().get(), None);
        assert_eq!(GoTime::NEVER.to_string(), "0001-01-01T00:00:00Z");
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for text in ["", "yesterday", "2026-03-02", "2026-03-02T11:22:33"] {
            assert_eq!(GoTime::parse(text), None, "{text:?}");
        }
    }
}
