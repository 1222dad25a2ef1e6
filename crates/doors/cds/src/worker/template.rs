//! The template language of launch scripts, as plain text: nothing in a value is escaped, so a base64 `+` stays a `+` and a
//! script may contain `<`, `&` and quotes.
//!
//! It is the part of Go's language that such scripts use: `{{.Field}}`, `{{if .Field}}`, `{{if not .Field}}`, `{{else}}`,
//! `{{end}}`, comments, and `{{-`, `-}}` that take white space away.

/// Why a script cannot be rendered.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ScriptError {
    #[error("the launch script uses {{{{.{field}}}}}, which does not exist")]
    UnknownField { field: String },
    #[error("the launch script uses {{{{{action}}}}}, which is not understood")]
    UnknownAction { action: String },
    #[error("the launch script has {{{{{action}}}}} without {{{{if}}}}")]
    Unopened { action: String },
    #[error("the launch script has {{{{if}}}} without {{{{end}}}}")]
    Unclosed,
    #[error("the launch script has {{{{ without }}}}")]
    Unfinished,
}

/// The value of a field: how it prints and whether `if` takes it for true.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    Bool(bool),
    Number(i64),
    EmptyMap,
}

impl Value<'_> {
    fn is_true(self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::Bool(flag) => flag,
            Self::Number(number) => number != 0,
            Self::EmptyMap => false,
        }
    }

    fn print(self) -> String {
        match self {
            Self::Text(text) => text.to_owned(),
            Self::Bool(flag) => flag.to_string(),
            Self::Number(number) => number.to_string(),
            Self::EmptyMap => "map[]".to_owned(),
        }
    }
}

/// Renders `text`; `field` says what a field is, `None` if it does not exist.
pub(crate) fn render<'a>(
    text: &str,
    field: impl Fn(&str) -> Option<Value<'a>>,
) -> Result<String, ScriptError> {
    let value = |name: &str| {
        field(name).ok_or_else(|| ScriptError::UnknownField { field: name.to_owned() })
    };
    let mut out = String::new();
    // One entry for each open `if`: whether its current branch is written.
    let mut branches: Vec<bool> = Vec::new();
    let mut rest = text;
    let mut trim_next = false;
    loop {
        let (before, action) = match rest.split_once("{{") {
            Some((before, action)) => (before, Some(action)),
            None => (rest, None),
        };
        let before = if trim_next { before.trim_start() } else { before };
        let trim_this = action.is_some_and(trims_before);
        let before = if trim_this { before.trim_end() } else { before };
        let written = branches.iter().all(|branch| *branch);
        if written {
            out.push_str(before);
        }
        let Some(action) = action else { break };
        let (action, after) = action.split_once("}}").ok_or(ScriptError::Unfinished)?;
        rest = after;
        trim_next = action.ends_with(" -") || action.ends_with("\t-") || action.ends_with("\n-");
        let action = action.trim_start_matches(|c| trim_this && c == '-');
        let action = if trim_next { action.trim_end_matches('-') } else { action };
        match Action::parse(action.trim())? {
            Action::Comment => {}
            // Go checks fields when it gets to them; a typing error in a branch not taken is found here all the same.
            Action::Print(name) => {
                let printed = value(name)?.print();
                if written {
                    out.push_str(&printed);
                }
            }
            Action::If { name, negated } => branches.push(value(name)?.is_true() != negated),
            Action::Else => match branches.last_mut() {
                Some(branch) => *branch = !*branch,
                None => return Err(ScriptError::Unopened { action: "else".to_owned() }),
            },
            Action::End => {
                if branches.pop().is_none() {
                    return Err(ScriptError::Unopened { action: "end".to_owned() });
                }
            }
        }
    }
    if branches.is_empty() { Ok(out) } else { Err(ScriptError::Unclosed) }
}

fn trims_before(action: &str) -> bool {
    action.strip_prefix('-').is_some_and(|rest| rest.starts_with(char::is_whitespace))
}

enum Action<'a> {
    Comment,
    Print(&'a str),
    If { name: &'a str, negated: bool },
    Else,
    End,
}

impl<'a> Action<'a> {
    fn parse(action: &'a str) -> Result<Self, ScriptError> {
        let unknown = || ScriptError::UnknownAction { action: action.to_owned() };
        if action.starts_with("/*") && action.ends_with("*/") {
            return Ok(Self::Comment);
        }
        let words: Vec<&str> = action.split_whitespace().collect();
        match words.as_slice() {
            ["if", "not", name] => {
                Ok(Self::If { name: field(name).ok_or_else(unknown)?, negated: true })
            }
            ["if", name] => Ok(Self::If { name: field(name).ok_or_else(unknown)?, negated: false }),
            ["else"] => Ok(Self::Else),
            ["end"] => Ok(Self::End),
            [name] => field(name).map(Self::Print).ok_or_else(unknown),
            _ => Err(unknown()),
        }
    }
}

fn field(word: &str) -> Option<&str> {
    word.strip_prefix('.')
        .filter(|name| !name.is_empty())
        .filter(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> Result<String, ScriptError> {
        render(text, |name| match name {
            "API" => Some(Value::Text("http://api")),
            "Config" => Some(Value::Text("a+b/<&>\"'=")),
            "Yes" => Some(Value::Bool(true)),
            "Port" => Some(Value::Number(0)),
            "Vars" => Some(Value::EmptyMap),
            _ => None,
        })
    }

    #[test]
    fn values_and_text_stay_as_they_are() {
        let script =
            "echo '{{.Config}}' <<EOF 2>&1 && echo \"$x\" {{ .API }} {{.Yes}} {{.Port}} {{.Vars}}";
        assert_eq!(
            rendered(script).unwrap(),
            "echo 'a+b/<&>\"'=' <<EOF 2>&1 && echo \"$x\" http://api true 0 map[]"
        );
        assert_eq!(rendered("if [ $a ]; then }} fi").unwrap(), "if [ $a ]; then }} fi");
    }

    #[test]
    fn branches_comments_and_trimming_work_as_in_go() {
        for (text, wanted) in [
            ("{{if .Yes}}a{{else}}b{{end}}", "a"),
            ("{{if .Port}}a{{else}}b{{end}}c", "bc"),
            ("{{if not .Port}}a{{end}}", "a"),
            ("{{if .Port}}{{if .Yes}}a{{else}}b{{end}}{{end}}c", "c"),
            ("a{{/* {nothing} */}}b", "ab"),
            ("a \n {{- .API -}} \n b", "ahttp://apib"),
            ("a {{- /* gone */ -}} b", "ab"),
        ] {
            assert_eq!(rendered(text).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn what_does_not_exist_is_named() {
        let unknown = |field: &str| ScriptError::UnknownField { field: field.into() };
        assert_eq!(rendered("{{.Hatchery}}"), Err(unknown("Hatchery")));
        assert_eq!(rendered("{{if .Port}}{{.Hatchery}}{{end}}"), Err(unknown("Hatchery")));
        assert_eq!(
            rendered("{{.Hatchery}}").unwrap_err().to_string(),
            "the launch script uses {{.Hatchery}}, which does not exist"
        );
        for (text, action) in
            [("{{range .Vars}}", "range .Vars"), ("{{.A.B}}", ".A.B"), ("{{}}", "")]
        {
            let error = ScriptError::UnknownAction { action: action.into() };
            assert_eq!(rendered(text), Err(error), "{text}");
        }
        assert_eq!(rendered("{{if .Yes}}"), Err(ScriptError::Unclosed));
        assert_eq!(rendered("{{end}}"), Err(ScriptError::Unopened { action: "end".into() }));
        assert_eq!(rendered("{{.API"), Err(ScriptError::Unfinished));
    }
}
