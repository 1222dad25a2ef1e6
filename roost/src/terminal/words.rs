use std::time::Duration;

use jiff::Timestamp;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::ask::clean;
#[cfg(test)]
pub(super) use crate::ask::is_unsafe;

/// A duration as people say it, in its two largest units.
pub(crate) fn duration_words(duration: Duration) -> String {
    let millis = duration.as_millis();
    let secs = duration.as_secs();
    match (secs / 3600, secs / 60 % 60, secs % 60) {
        (0, 0, secs) if secs < 10 => format!("{secs}.{} s", millis / 100 % 10),
        (0, 0, secs) => format!("{secs} s"),
        (0, mins, 0) => format!("{mins} min"),
        (0, mins, secs) => format!("{mins} min {secs} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, mins, _) => format!("{hours} h {mins} min"),
    }
}

/// The time of day, UTC.
pub(crate) fn clock_time(at: Timestamp) -> String {
    at.strftime("%H:%M:%S").to_string()
}

/// As much of it as fits into `width` columns, and a mark where something was left out. Text that others wrote cannot command the terminal with it.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    let text = clean(text);
    if text.width() <= width {
        return text.into_owned();
    }
    let (mut kept, mut used) = (String::new(), 0);
    for char in text.chars() {
        used += char.width().unwrap_or_default();
        if used + 1 > width {
            break;
        }
        kept.push(char);
    }
    if width == 0 { kept } else { format!("{}…", kept.trim_end()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        for (millis, words) in [
            (0, "0.0 s"),
            (1_250, "1.2 s"),
            (38_900, "38 s"),
            (60_000, "1 min"),
            (130_000, "2 min 10 s"),
            (3_600_000, "1 h"),
            (5_400_000, "1 h 30 min"),
        ] {
            assert_eq!(duration_words(Duration::from_millis(millis)), words);
        }
    }

    #[test]
    fn what_is_left_out_is_marked() {
        assert_eq!(shortened("keen-bohr", 9), "keen-bohr");
        assert_eq!(shortened("keen-bohr", 5), "keen…");
        assert_eq!(shortened("a job waits", 6), "a job…");
        assert_eq!(shortened("x", 0), "");
        assert_eq!(shortened("日本語", 5), "日本…", "wide characters take two columns");
        assert_eq!(shortened("a\u{202e}b\u{1b}[2J", 9), "a\u{fffd}b\u{fffd}[2J");
    }

    #[test]
    fn a_time_of_day_is_utc() {
        assert_eq!(clock_time("2026-01-01T12:02:03+02:00".parse().unwrap()), "10:02:03");
    }
}
