use crate::call::Failure;

/// vCenter stores names with the three characters that its paths use replaced; clients send either form.
pub(crate) fn stored_name(name: &str) -> String {
    let mut stored = String::with_capacity(name.len());
    for (at, char) in name.char_indices() {
        match char {
            '/' => stored.push_str("%2f"),
            '\\' => stored.push_str("%5c"),
            '%' if !is_escape(&name[at..]) => stored.push_str("%25"),
            _ => stored.push(char),
        }
    }
    stored
}

fn is_escape(text: &str) -> bool {
    ["%2f", "%5c", "%25"]
        .iter()
        .any(|escape| text.get(..3).is_some_and(|head| head.eq_ignore_ascii_case(escape)))
}

/// The longest name that vCenter takes.
const MAX_NAME: usize = 80;

/// The name as it is stored, if it is one.
pub(crate) fn checked_name(name: &str) -> Result<String, Failure> {
    let stored = stored_name(name);
    if stored.trim().is_empty() || stored.chars().count() > MAX_NAME {
        let message = format!("The name '{name}' is invalid.");
        return Err(Failure::of("InvalidName", message).with("name", &name.to_owned()));
    }
    Ok(stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_characters_are_stored_escaped_and_escapes_are_kept() {
        for (name, stored) in [
            ("plain", "plain"),
            ("a/b", "a%2fb"),
            ("a%2fb", "a%2fb"),
            ("50%", "50%25"),
            ("a\\b", "a%5cb"),
        ] {
            assert_eq!(stored_name(name), stored);
        }
    }

    #[test]
    fn empty_and_overlong_names_are_refused() {
        assert_eq!(checked_name(" ").unwrap_err().fault.class, "InvalidName");
        assert_eq!(checked_name(&"x".repeat(81)).unwrap_err().fault.class, "InvalidName");
        assert_eq!(checked_name(&"é".repeat(80)).unwrap(), "é".repeat(80));
    }
}
