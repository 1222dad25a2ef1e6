//! Numbers and foreign text for people's eyes.

use std::borrow::Cow;

use jiff::Timestamp;

/// A whole page of lines.
pub(super) fn page(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |mut page, line| {
        page.push_str(clean(line).trim_end());
        page.push('\n');
        page
    })
}

/// Text that others wrote, without what would command the terminal or turn the line around.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unsafe) {
        let replace = |c| if is_unsafe(c) { char::REPLACEMENT_CHARACTER } else { c };
        Cow::Owned(text.chars().map(replace).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether it would command the terminal or turn the line around, or cannot be seen where it stands.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// The two largest units of it.
pub(crate) fn span(secs: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let (large, small) = match secs {
        ..MINUTE => return format!("{secs}s"),
        MINUTE..HOUR => ((MINUTE, 'm'), (1, 's')),
        HOUR..DAY => ((HOUR, 'h'), (MINUTE, 'm')),
        _ => ((DAY, 'd'), (HOUR, 'h')),
    };
    let (first, rest) = (secs / large.0, secs % large.0 / small.0);
    if rest == 0 {
        format!("{first}{}", large.1)
    } else {
        format!("{first}{}{rest}{}", large.1, small.1)
    }
}

/// From then until now; a clock that was set back makes it nothing.
pub(super) fn since(now: Timestamp, then: Timestamp) -> String {
    span(secs_since(now, then))
}

pub(super) fn secs_since(now: Timestamp, then: Timestamp) -> u64 {
    u64::try_from(now.duration_since(then).as_secs()).unwrap_or_default()
}

pub(super) fn ms_since(now: Timestamp, then: Timestamp) -> u64 {
    u64::try_from(now.duration_since(then).as_millis()).unwrap_or_default()
}

/// Short times with the digits that matter.
pub(super) fn millis(ms: u64) -> String {
    match ms {
        ..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        _ => span(ms / 1_000),
    }
}

pub(crate) fn memory(mb: u64) -> String {
    match mb {
        ..1_024 => format!("{mb}MB"),
        _ if mb.is_multiple_of(1_024) => format!("{}GB", mb / 1_024),
        _ => format!("{}.{}GB", mb / 1_024, mb % 1_024 * 10 / 1_024),
    }
}

/// `1 VM`, `2 VMs`
pub(super) fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// What is not there is a dash, so that every column has something in it.
pub(super) fn or_dash(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).unwrap_or("-").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_their_two_largest_units() {
        for (secs, words) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (125, "2m5s"),
            (3_600, "1h"),
            (3_725, "1h2m"),
            (90_000, "1d1h"),
            (864_000, "10d"),
        ] {
            assert_eq!(span(secs), words);
        }
        for (ms, words) in
            [(0, "0ms"), (999, "999ms"), (1_250, "1.2s"), (59_999, "59.9s"), (61_000, "1m1s")]
        {
            assert_eq!(millis(ms), words);
        }
        for (mb, words) in [(512, "512MB"), (1_024, "1GB"), (1_536, "1.5GB"), (262_144, "256GB")] {
            assert_eq!(memory(mb), words);
        }
    }

    #[test]
    fn a_clock_set_back_makes_no_time_of_it() {
        let then = Timestamp::constant(100, 0);
        assert_eq!(since(Timestamp::constant(90, 0), then), "0s");
        assert_eq!(since(Timestamp::constant(190, 0), then), "1m30s");
    }

    #[test]
    fn foreign_text_cannot_command_the_terminal() {
        assert_eq!(clean("<script>"), "<script>");
        assert_eq!(
            clean("a\u{1b}[2Jb\nc\u{202e}d\u{7}"),
            "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d\u{fffd}"
        );
        assert_eq!(page(&["x\u{1b}]0;y".into(), "z  ".into()]), "x\u{fffd}]0;y\nz\n");
    }
}
