/// Whether `text` fits `pattern`: `*` stands for anything within one segment of a path, `**` for anything at all.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let Some((literal, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(literal) else { return false };
    let (rest, crosses) = match rest.strip_prefix('*') {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let end = if crosses { text.len() } else { text.find('/').unwrap_or(text.len()) };
    (0..=end).filter(|at| text.is_char_boundary(*at)).any(|at| matches(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_star_stays_within_a_segment_and_two_do_not() {
        for (pattern, text, wanted) in [
            (
                "POST /v2/queue/*/job/*/hatchery/take",
                "POST /v2/queue/eu/job/1-2/hatchery/take",
                true,
            ),
            ("POST /v2/queue/*/job/*", "POST /v2/queue/eu/job/1-2/info", false),
            ("* /worker/**", "GET /worker/model/enabled", true),
            ("**", "GET /ws", true),
            ("GET /ws", "GET /ws", true),
            ("GET /ws", "GET /wsx", false),
            ("GET /w*s", "GET /workers", true),
        ] {
            assert_eq!(matches(pattern, text), wanted, "{pattern} {text}");
        }
    }
}
