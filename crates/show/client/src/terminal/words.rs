use std::time::Duration;

use roost_views::words::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

#[cfg(test)]
pub(super) use roost_views::foreign::is_unsafe;
pub use roost_views::words::clock as clock_time;

use crate::ask::clean;

/// A duration as people say it, in its two largest units.
pub fn duration_words(duration: Duration) -> String {
    match duration.as_secs() {
        0..10 => format!("{}.{} s", duration.as_secs(), duration.subsec_millis() / 100),
        secs => roost_views::words::secs(secs, Style::Long),
    }
}

/// As much of it as fits into `width` columns, and a mark where something was left out. Text that others wrote cannot command the terminal with it.
pub fn shortened(text: &str, width: usize) -> String {
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
    fn what_is_left_out_is_marked() {
        assert_eq!(shortened("keen-bohr", 9), "keen-bohr");
        assert_eq!(shortened("keen-bohr", 5), "keen…");
        assert_eq!(shortened("a job waits", 6), "a job…");
        assert_eq!(shortened("x", 0), "");
        assert_eq!(shortened("日本語", 5), "日本…", "wide characters take two columns");
        assert_eq!(shortened("a\u{202e}b\u{1b}[2J", 9), "a\u{fffd}b\u{fffd}[2J");
    }
}
