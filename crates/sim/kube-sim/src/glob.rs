//! Patterns with `*`.

pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut parts: Vec<_> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, want) in [
            ("*", "", true),
            ("pods", "pods", true),
            ("pods", "pods/status", false),
            ("pods*", "pods/status", true),
            ("*.example.com", "widgets.example.com", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c", false),
            ("ab*ab", "ab", false),
        ] {
            assert_eq!(fits(pattern, text), want, "{pattern} {text}");
        }
    }
}
