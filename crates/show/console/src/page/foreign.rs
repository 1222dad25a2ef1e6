//! Text that somebody else chose: names of VMs, requests and projects, and words that hold them.

use std::fmt::{self, Write as _};

use askama::filters::HtmlSafe;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::shown::When;

/// What a path part may hold as it is.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// A name: kept on one line, shortened by the style, its writing direction its own affair.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name<'a>(pub(crate) &'a str);

/// Words in which names may stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a>(pub(crate) &'a str);

/// From here on the style may have to shorten it, and the whole of it is shown on demand.
const LONG: usize = 28;

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = plain(self.0);
        if name.chars().count() > LONG {
            write!(f, "<bdi class=\"n\" title=\"{0}\">{0}</bdi>", Escaped(&name))
        } else {
            write!(f, "<bdi class=\"n\">{}</bdi>", Escaped(&name))
        }
    }
}

/// Times that stand in them are shown as everywhere on the page: by the clock, with the date on demand.
impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = plain(self.0);
        let mut rest = &*words;
        f.write_str("<bdi class=\"w\">")?;
        while let Some((before, at, after)) = split_at_time(rest) {
            write!(f, "{}{}", Escaped(before), When::at(at))?;
            rest = after;
        }
        write!(f, "{}</bdi>", Escaped(rest))
    }
}

/// What stands before the first time in the words, such as `2026-01-01T11:06:46Z`, the time, and what stands after it.
fn split_at_time(words: &str) -> Option<(&str, Timestamp, &str)> {
    let is_part = |letter: char| letter.is_ascii_digit() || "-:.TZ".contains(letter);
    let mut from = 0;
    while let Some(start) = words[from..].find(|letter: char| letter.is_ascii_digit()) {
        let start = from + start;
        let length = words[start..].find(|letter| !is_part(letter));
        let end = length.map_or(words.len(), |length| start + length);
        let text = words[start..end].trim_end_matches(['.', ':', '-']);
        let is_whole = text.ends_with('Z') && text.contains('T');
        if let Some(at) = is_whole.then(|| text.parse().ok()).flatten() {
            return Some((&words[..start], at, &words[start + text.len()..]));
        }
        from = end;
    }
    None
}

// What they print is escaped already.
impl HtmlSafe for Name<'_> {}
impl HtmlSafe for Words<'_> {}

pub(crate) use roost_views::foreign::spelled as plain;

/// A part of a path, for an address.
pub(crate) fn part(text: &str) -> String {
    percent_encode(text.as_bytes(), PART).to_string()
}

struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_anything_and_does_nothing() {
        for (name, html) in [
            ("w-1", r#"<bdi class="n">w-1</bdi>"#),
            ("<script>'\"&", r#"<bdi class="n">&lt;script&gt;&#39;&quot;&amp;</bdi>"#),
            ("a\u{202e}gpj", r#"<bdi class="n">a⟨U+202E⟩gpj</bdi>"#),
            ("a\n\0b", r#"<bdi class="n">a⟨U+000A⟩⟨U+0000⟩b</bdi>"#),
            ("שלום", r#"<bdi class="n">שלום</bdi>"#),
        ] {
            assert_eq!(Name(name).to_string(), html, "{name:?}");
        }
    }

    #[test]
    fn a_long_name_is_there_as_a_whole() {
        let name = "x".repeat(80);
        let html = Name(&name).to_string();
        assert!(html.contains(&format!("title=\"{name}\"")), "{html}");
    }

    #[test]
    fn times_in_words_are_shown_by_the_clock() {
        let time = r#"<time datetime="2026-01-01T11:06:46Z" title="2026-01-01 11:06:46 UTC">11:06:46</time>"#;
        for (words, html) in [
            ("stays until 2026-01-01T11:06:46Z; then", format!("stays until {time}; then")),
            ("at 2026-01-01T11:06:46Z.", format!("at {time}.")),
            ("3 of 2026-01-01T11:06:46Z, 7", format!("3 of {time}, 7")),
            ("2026-13-01T11:06:46Z", "2026-13-01T11:06:46Z".to_owned()),
            ("10.0.0.7 has 2026-01-01", "10.0.0.7 has 2026-01-01".to_owned()),
            ("<i>1Z", "&lt;i&gt;1Z".to_owned()),
            ("é1TZ", "é1TZ".to_owned()),
        ] {
            assert_eq!(Words(words).to_string(), format!(r#"<bdi class="w">{html}</bdi>"#));
        }
    }

    #[test]
    fn an_address_holds_a_name_as_one_part() {
        assert_eq!(part("a/b c?#%<"), "a%2Fb%20c%3F%23%25%3C");
        assert_eq!(part("vm-7_a.b"), "vm-7_a.b");
    }
}
