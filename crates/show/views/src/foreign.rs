//! Text that somebody else chose: names of VMs, requests and projects, and words that hold them.

use std::borrow::Cow;

/// Whether it would command a terminal, turn the writing direction, or cannot be seen where it stands. The one list of such characters.
pub fn is_unsafe(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// For terminals: what is unsafe is one sign that something was there, so that columns stay straight.
pub fn replaced(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let replace = |letter| if is_unsafe(letter) { char::REPLACEMENT_CHARACTER } else { letter };
    Cow::Owned(text.chars().map(replace).collect())
}

/// For pages: what is unsafe is spelled out.
pub fn spelled(text: &str) -> Cow<'_, str> {
    escape(text, is_unsafe, |letter| format!("\u{27e8}U+{:04X}\u{27e9}", u32::from(letter)))
}

/// For logs: what is unsafe is spelled as Rust spells it, tabs and line breaks too.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, is_unsafe, |letter| letter.escape_unicode().to_string())
}

/// For text that is JSON already: what is unsafe in its strings is spelled as JSON spells it. Line breaks between its parts stay.
pub fn escaped_json(text: &str) -> Cow<'_, str> {
    let is_to_be_spelled = |letter| is_unsafe(letter) && letter != '\n';
    escape(text, is_to_be_spelled, |letter| {
        let mut units = [0; 2];
        let units: Vec<String> =
            letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect();
        units.concat()
    })
}

fn escape(
    text: &str,
    is_to_be_spelled: impl Fn(char) -> bool,
    spell: impl Fn(char) -> String,
) -> Cow<'_, str> {
    if !text.chars().any(&is_to_be_spelled) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if is_to_be_spelled(letter) {
            shown.push_str(&spell(letter));
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_json_and_says_the_same() {
        let value = "a\u{85}b\u{202e}c\u{e0001}d\ne";
        let text = serde_json::to_string_pretty(&[value]).unwrap();
        let safe = escaped_json(&text);
        assert!(safe.chars().all(|letter| letter == '\n' || !is_unsafe(letter)), "{safe}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&safe).unwrap(), [value]);
    }

    #[test]
    fn terminal_and_page_know_the_same_characters() {
        // The page showed Hangul fillers as they are, which the terminal replaced.
        for letter in
            ['\u{1b}', '\u{202e}', '\u{115f}', '\u{3164}', '\u{200b}', '\u{e0001}', '\u{fe0f}']
        {
            let text = format!("a{letter}b");
            assert_eq!(replaced(&text), "a\u{fffd}b");
            assert_eq!(spelled(&text), format!("a⟨U+{:04X}⟩b", u32::from(letter)));
        }
        for plain in ["שלום", "名前", "<script>", "é"] {
            assert_eq!((replaced(plain), spelled(plain)), (plain.into(), plain.into()));
        }
    }
}
