//! Numbers and foreign text for people's eyes.

use jiff::Timestamp;
use roost_views::words::{Style, secs_between};

pub(crate) use roost_views::foreign::replaced as clean;
pub(super) use roost_views::words::count;

/// A whole page of lines.
pub(super) fn page(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |mut page, line| {
        page.push_str(clean(line).trim_end());
        page.push('\n');
        page
    })
}

/// The two largest units of it.
pub(crate) fn span(secs: u64) -> String {
    roost_views::words::secs(secs, Style::Short)
}

/// From then until now; a clock that was set back makes it nothing.
pub(super) fn since(now: Timestamp, then: Timestamp) -> String {
    span(secs_between(then, now))
}

pub(super) fn secs_since(now: Timestamp, then: Timestamp) -> u64 {
    secs_between(then, now)
}

/// Short times with the digits that matter.
pub(super) fn millis(ms: u64) -> String {
    roost_views::words::millis(ms, Style::Short)
}

pub(crate) fn memory(mb: u64) -> String {
    roost_views::words::memory(mb, Style::Short)
}

/// What is not there is a dash, so that every column has something in it.
pub(super) fn or_dash(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).unwrap_or("-").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_command_the_terminal() {
        assert_eq!(page(&["x\u{1b}]0;y".into(), "z  ".into()]), "x\u{fffd}]0;y\nz\n");
    }
}
