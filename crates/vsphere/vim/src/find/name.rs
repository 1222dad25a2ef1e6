//! Names as vCenter keeps them, and the patterns that people write to find them.
//!
//! vCenter stores `%`, `/` and `\` in a name as `%25`, `%2f` and `%5c`. A person may write either form, so both sides are
//! compared unescaped; only a `/` that separates the parts of a path must stay what it is.

use std::borrow::Cow;

/// `name` as a person reads it.
pub(crate) fn unescape(name: &str) -> Cow<'_, str> {
    const FORMS: [(&str, char); 5] =
        [("%2f", '/'), ("%2F", '/'), ("%5c", '\\'), ("%5C", '\\'), ("%25", '%')];
    if !name.contains('%') {
        return Cow::Borrowed(name);
    }
    let (mut plain, mut rest) = (String::with_capacity(name.len()), name);
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let form = FORMS.iter().find(|(form, _)| rest.starts_with(form));
        let (length, character) =
            form.map_or((1, '%'), |(form, character)| (form.len(), *character));
        plain.push(character);
        rest = &rest[length..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// `name` as it is sent for an object that gets it: unescaped, because the server escapes what needs it.
pub(crate) fn plain_name(name: &str) -> String {
    unescape(name).into_owned()
}

/// `name` as vCenter stores it, which is the form that its search index knows.
pub(crate) fn stored_name(name: &str) -> String {
    unescape(name).replace('%', "%25").replace('/', "%2f").replace('\\', "%5c")
}

/// One part of a path: a name, or a pattern with `*`, `?` and `[a-z]` (`[^a-z]` for all but these; `\` takes the next
/// character as it is).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    plain: String,
    /// Empty if the part has no pattern characters.
    tokens: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Literal(char),
    One,
    Many,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Pattern {
    /// `None` if the text is no pattern, such as one with an unclosed bracket.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = unescape(text).into_owned();
        let tokens = if plain.contains(['*', '?', '[']) { tokens(&plain)? } else { Vec::new() };
        Some(Self { plain, tokens })
    }

    /// Whether a name can match other than by being equal.
    pub(crate) fn is_glob(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// Whether the stored `name` is this very text: what looks like a pattern can also be a name.
    pub(crate) fn is_exactly(&self, name: &str) -> bool {
        self.plain == unescape(name)
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        if self.tokens.is_empty() {
            return self.is_exactly(name);
        }
        let name: Vec<char> = unescape(name).chars().collect();
        matches(&self.tokens, &name)
    }
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let (mut tokens, mut rest) = (Vec::new(), text.chars());
    while let Some(character) = rest.next() {
        tokens.push(match character {
            '*' => Token::Many,
            '?' => Token::One,
            '[' => class(&mut rest)?,
            '\\' => Token::Literal(rest.next()?),
            other => Token::Literal(other),
        });
    }
    Some(tokens)
}

/// The rest of `[…]` behind its opening bracket.
fn class(rest: &mut std::str::Chars<'_>) -> Option<Token> {
    let negated = rest.as_str().starts_with('^');
    if negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    loop {
        let from = match rest.next()? {
            ']' if ranges.is_empty() => return None,
            ']' => return Some(Token::Class { negated, ranges }),
            '\\' => rest.next()?,
            other => other,
        };
        let is_range = rest.as_str().starts_with('-');
        if !is_range {
            ranges.push((from, from));
            continue;
        }
        rest.next();
        let to = match rest.next()? {
            ']' => return None,
            '\\' => rest.next()?,
            other => other,
        };
        ranges.push((from, to));
    }
}

/// Backtracks to the last `*` only, so time is at most the product of the two lengths whatever the pattern.
fn matches(tokens: &[Token], name: &[char]) -> bool {
    let (mut t, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match tokens.get(t) {
            Some(Token::Many) => {
                retry = Some((t + 1, n));
                t += 1;
            }
            Some(token) if token.takes(name[n]) => {
                t += 1;
                n += 1;
            }
            _ => {
                let Some((star, from)) = retry else { return false };
                retry = Some((star, from + 1));
                (t, n) = (star, from + 1);
            }
        }
    }
    tokens[t..].iter().all(|token| *token == Token::Many)
}

impl Token {
    fn takes(&self, character: char) -> bool {
        match self {
            Self::Literal(literal) => *literal == character,
            Self::One => true,
            Self::Many => false,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&character)) != *negated
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_govmomi_does() {
        for (pattern, name, want) in [
            ("debian12", "debian12", true),
            ("debian12", "debian1", false),
            ("deb*", "debian12", true),
            ("*12", "debian12", true),
            ("d*b*2", "debian12", true),
            ("d*x*2", "debian12", false),
            ("debian1?", "debian12", true),
            ("debian?", "debian12", false),
            ("debian1[0-2]", "debian12", true),
            ("debian1[^0-2]", "debian12", false),
            ("debian1[^0-2]", "debian13", true),
            ("[abd]ebian*", "debian12", true),
            (r"a\*", "a*", true),
            ("*", "", true),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap().matches(name), want, "{pattern} on {name}");
        }
    }

    #[test]
    fn an_unclosed_or_empty_class_is_no_pattern() {
        for text in ["a[", "a[]", "a[b", "a[b-]", "*\\"] {
            assert_eq!(Pattern::parse(text), None, "{text}");
        }
    }

    #[test]
    fn stored_and_written_escapes_are_the_same_name() {
        for (written, stored) in [
            ("a%2fb", "a%2fb"),
            ("a%2Fb", "a%2fb"),
            ("50% off", "50%25 off"),
            ("50%25 off", "50%25 off"),
            ("x%", "x%25"),
        ] {
            assert!(Pattern::parse(written).unwrap().is_exactly(stored), "{written} is {stored}");
        }
        assert_eq!(stored_name(r"a/b\c%"), "a%2fb%5cc%25");
        assert_eq!(stored_name(r"a%2fb%5cc%25"), "a%2fb%5cc%25");
        assert_eq!(unescape("a%252fb"), "a%2fb");
    }

    #[test]
    fn a_name_that_looks_like_a_pattern_is_still_found_by_it() {
        let pattern = Pattern::parse("vm[1]").unwrap();
        assert!(pattern.is_glob());
        assert!(pattern.is_exactly("vm[1]"));
        assert!(pattern.matches("vm1"));
    }

    #[test]
    fn many_stars_do_not_take_forever() {
        let pattern = Pattern::parse(&"*a".repeat(40)).unwrap();
        assert!(!pattern.matches(&"a".repeat(2000).replace('a', "b")));
        assert!(pattern.matches(&"a".repeat(2000)));
    }
}
