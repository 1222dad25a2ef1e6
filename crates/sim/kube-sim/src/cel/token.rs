//! Splitting an expression into tokens.

/// The smallest parts of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    /// An operator or a bracket.
    Sign(&'static str),
}

/// Longest first.
const SIGNS: [&str; 24] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",",
    "(", ")", "[", "]", "{", "}",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = if let Some((text, length)) = string(rest)? {
            (Token::Text(text), length)
        } else if first.is_ascii_digit() {
            number(rest)?
        } else if first.is_alphabetic() || first == '_' {
            let length = rest
                .find(|letter: char| !letter.is_alphanumeric() && letter != '_')
                .unwrap_or(rest.len());
            (Token::Name(rest[..length].to_owned()), length)
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            return Err(format!("unexpected {first:?}"));
        };
        found.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(found)
}

/// A string literal at the start of `text` and its length.
fn string(text: &str) -> Result<Option<(String, usize)>, String> {
    let is_raw = text.starts_with("r'") || text.starts_with("r\"");
    let open = usize::from(is_raw);
    let Some(quote @ ('\'' | '"')) = text[open..].chars().next() else { return Ok(None) };
    let mut out = String::new();
    let mut letters = text[open + 1..].char_indices();
    while let Some((at, letter)) = letters.next() {
        if letter == quote {
            return Ok(Some((out, open + 1 + at + 1)));
        }
        if letter == '\\' && !is_raw {
            let Some((_, escaped)) = letters.next() else { break };
            match escaped {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                '\\' | '\'' | '"' | '`' | '?' => out.push(escaped),
                other => return Err(format!("unknown escape \\{other}")),
            }
        } else {
            out.push(letter);
        }
    }
    Err("a string does not end".to_owned())
}

fn number(text: &str) -> Result<(Token, usize), String> {
    let mut length = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let mut is_double = false;
    if text[length..].starts_with('.')
        && text[length + 1..].starts_with(|next: char| next.is_ascii_digit())
    {
        is_double = true;
        let rest = &text[length + 1..];
        length += 1 + rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    }
    let digits = &text[..length];
    let wrong = || format!("{digits} is no number");
    if is_double {
        return Ok((Token::Double(digits.parse().map_err(|_| wrong())?), length));
    }
    if text[length..].starts_with(['u', 'U']) {
        return Ok((Token::Uint(digits.parse().map_err(|_| wrong())?), length + 1));
    }
    Ok((Token::Int(digits.parse().map_err(|_| wrong())?), length))
}
