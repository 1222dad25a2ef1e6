//! Typed reading of one table, by key. Lenient about types: a number may be written as text and the other way round, and a list as text
//! with commas, which is also how environment variables give them.

use std::fmt;

use crate::environment::Surroundings;
use crate::key::{Key, Shape};
use crate::problem::Problems;
use crate::secret::Secret;
use crate::source::SecretSource;
use crate::tree::{Entry, Item, Table, Value};

const NO_CONTROLS: &str = "must not hold control characters";

/// Reads one table of a section by its keys, and reports what is wrong with it.
#[derive(Clone)]
pub struct Reader<'a> {
    table: &'a Table,
    /// The part of a key's path that leads to `table`: empty, or `networks[].`.
    prefix: &'static str,
    /// How problems call the table: `doors.example.networks[2]`.
    at: String,
    /// Where the table begins.
    line: Option<usize>,
    problems: &'a Problems,
}

/// One entry of a list of tables.
#[derive(Debug)]
pub struct Listed<'a> {
    pub reader: Reader<'a>,
    /// The key under which it stands, if the list is written as a table.
    pub name: Option<&'a str>,
}

/// Without the values, which may be secret.
impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("at", &self.at).finish_non_exhaustive()
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn root(at: &str, table: &'a Table, problems: &'a Problems) -> Self {
        Self { table, prefix: "", at: at.to_owned(), line: None, problems }
    }

    fn relative(&self, key: &Key) -> &'static str {
        debug_assert!(key.path.starts_with(self.prefix), "{} is read in {}", key.path, self.at);
        key.path.strip_prefix(self.prefix).unwrap_or(key.path)
    }

    fn find(&self, relative: &str) -> Option<&'a Entry> {
        let mut table = self.table;
        let mut parts = relative.split('.');
        let name = parts.next_back()?;
        for part in parts {
            table = table.table(part)?;
        }
        table.get(name)
    }

    pub fn entry(&self, key: &Key) -> Option<&'a Entry> {
        self.find(self.relative(key))
    }

    /// The entry `passwordFile` beside the key `password`.
    pub fn beside(&self, key: &Key, suffix: &str) -> Option<&'a Entry> {
        self.find(&format!("{}{suffix}", self.relative(key)))
    }

    pub fn path(&self, key: &Key) -> String {
        format!("{}.{}", self.at, self.relative(key))
    }

    pub fn is_set(&self, key: &Key) -> bool {
        self.entry(key).is_some()
    }

    /// The key's line, or that of its table.
    pub fn line(&self, key: &Key) -> Option<usize> {
        self.entry(key).map_or(self.line, |entry| entry.line)
    }

    pub fn problem(&self, key: &Key, message: impl Into<String>) {
        self.problems.problem(self.path(key), self.line(key), message);
    }

    pub fn warn(&self, key: &Key, message: impl Into<String>) {
        self.problems.warn(self.path(key), self.line(key), message);
    }

    /// For a path that somebody else named.
    pub fn problem_at(&self, path: &str, line: Option<usize>, message: &str) {
        self.problems.problem(path, line, message);
    }

    pub fn warn_at(&self, path: &str, line: Option<usize>, message: &str) {
        self.problems.warn(path, line, message);
    }

    fn wrong_type(&self, key: &Key, value: &Value) {
        self.problem(key, format!("must be {}, is {}", with_article(&key.shape), value.kind()));
    }

    /// The text, or the default. White space around it never means anything.
    pub fn text(&self, key: &Key) -> String {
        let default = if let Shape::Text(text) = key.shape { text } else { "" };
        let Some(entry) = self.entry(key) else { return default.to_owned() };
        let Some(text) = as_text(&entry.value) else {
            self.wrong_type(key, &entry.value);
            return default.to_owned();
        };
        if is_odd(key, &text) {
            self.problem(key, NO_CONTROLS);
        }
        text
    }

    /// As [`Self::text`]; `None` when empty.
    pub fn filled(&self, key: &Key) -> Option<String> {
        Some(self.text(key)).filter(|text| !text.is_empty())
    }

    /// As [`Self::text`]; empty is a problem.
    pub fn mandatory(&self, key: &Key) -> Option<String> {
        let text = self.filled(key);
        if text.is_none() {
            self.problem(key, "is mandatory");
        }
        text
    }

    /// An address of this machine, or a name of it. What is made of digits and dots only is meant as an address.
    pub fn host(&self, key: &Key) -> Option<String> {
        let host = self.filled(key)?;
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_address = bare.unwrap_or(&host).parse::<std::net::IpAddr>().is_ok();
        let is_name = host.chars().any(char::is_alphabetic)
            && host.split('.').all(|label| {
                !label.is_empty()
                    && label.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
            });
        if !is_address && !is_name {
            let words = format!("must be an address or a name of this machine, is {host:?}");
            self.problem(key, words);
        }
        Some(host)
    }

    /// A secret that goes into a header.
    pub fn header_secret(
        &self,
        key: &Key,
        surroundings: &dyn Surroundings,
    ) -> Option<(SecretSource, Secret)> {
        let (source, secret) = self.secret(key, surroundings)?;
        let is_fit = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
        if !secret.expose().bytes().all(is_fit) {
            let words = "holds characters that no HTTP header can carry, such as a line break";
            self.problem(key, words);
        }
        Some((source, secret))
    }

    pub fn integer(&self, key: &Key) -> i64 {
        let default = if let Shape::Integer(number) = key.shape { number } else { 0 };
        let Some(entry) = self.entry(key) else { return default };
        let number = match &entry.value {
            Value::Integer(number) => Some(*number),
            // An empty variable or text is as good as none.
            Value::Text(text) if text.trim().is_empty() => Some(default),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        number.unwrap_or_else(|| {
            self.wrong_type(key, &entry.value);
            default
        })
    }

    /// A number that is not negative and not beyond `most`.
    pub fn amount(&self, key: &Key, most: u64) -> Option<u64> {
        let number = self.integer(key);
        let amount = u64::try_from(number).ok().filter(|amount| *amount <= most);
        if amount.is_none() {
            // A bound that only the type has is of no interest.
            let is_open = most >= u32::MAX.into() && number < 0;
            let bounds = if is_open { "0 or more".to_owned() } else { format!("from 0 to {most}") };
            self.problem(key, format!("must be {bounds}, is {number}"));
        }
        amount
    }

    pub fn boolean(&self, key: &Key) -> bool {
        let default = matches!(key.shape, Shape::Boolean(true));
        let Some(entry) = self.entry(key) else { return default };
        let value = match &entry.value {
            Value::Boolean(value) => Some(*value),
            Value::Integer(number) => Some(*number != 0),
            Value::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
                "" => Some(default),
                "1" | "t" | "true" => Some(true),
                "0" | "f" | "false" => Some(false),
                _ => None,
            },
            _ => None,
        };
        value.unwrap_or_else(|| {
            self.wrong_type(key, &entry.value);
            default
        })
    }

    /// Its texts, trimmed and without empty ones.
    pub fn texts(&self, key: &Key) -> Vec<String> {
        let default: &[&str] = if let Shape::Texts(texts) = key.shape { texts } else { &[] };
        let default = || default.iter().map(|text| (*text).to_owned()).collect();
        let Some(entry) = self.entry(key) else { return default() };
        let texts: Option<Vec<String>> = match &entry.value {
            Value::List(items) => items.iter().map(|item| as_text(&item.value)).collect(),
            Value::Text(text) => Some(text.split(',').map(|text| text.trim().to_owned()).collect()),
            _ => None,
        };
        if let Some(texts) = texts {
            if texts.iter().any(|text| is_odd(key, text)) {
                self.problem(key, NO_CONTROLS);
            }
            return texts.into_iter().filter(|text| !text.is_empty()).collect();
        }
        let (wanted, is) = (with_article(&key.shape), list_kind(&entry.value));
        self.problem(key, format!("must be {wanted}, is {is}"));
        default()
    }

    /// The entries of a list of tables, in the order of the file.
    pub fn tables(&self, key: &Key, prefix: &'static str) -> Vec<Listed<'a>> {
        debug_assert_eq!(prefix.strip_suffix("[]."), Some(key.path));
        let at = self.path(key);
        let mut listed: Vec<Listed<'a>> = match self.entry(key).map(|entry| &entry.value) {
            Some(Value::List(items)) => items
                .iter()
                .enumerate()
                .filter_map(|(index, Item { line, value })| match value {
                    Value::Table(table) => {
                        let at = format!("{at}[{index}]");
                        let reader =
                            Reader { table, prefix, at, line: *line, problems: self.problems };
                        Some(Listed { reader, name: None })
                    }
                    // Reported by the check of the tree's form.
                    _ => None,
                })
                .collect(),
            Some(Value::Table(table)) if key.shape == Shape::NamedTables => table
                .iter()
                .filter_map(|(_, entry)| match &entry.value {
                    Value::Table(table) => {
                        let at = format!("{at}.{}", entry.spelled.escape_debug());
                        if entry.spelled.contains(char::is_control) {
                            self.problem_at(&at, entry.line, NO_CONTROLS);
                        }
                        let reader =
                            Reader { table, prefix, at, line: entry.line, problems: self.problems };
                        Some(Listed { reader, name: Some(&entry.spelled) })
                    }
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        listed.sort_by_key(|listed| listed.reader.line);
        listed
    }
}

/// Whether it holds control characters, and is neither a script nor a variable, which may have several lines. No server takes them in a name, and
/// logs and headers would carry them on.
fn is_odd(key: &Key, text: &str) -> bool {
    let has_lines = key.path.ends_with("Script") || key.path.ends_with("EnvVars");
    !has_lines && text.contains(char::is_control)
}

/// Text, or what can be read as text.
pub(crate) fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.trim().to_owned()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Boolean(value) => Some(value.to_string()),
        _ => None,
    }
}

fn with_article(shape: &Shape) -> String {
    match shape {
        Shape::Text(_) | Shape::Secret => "text".to_owned(),
        Shape::Boolean(_) => "true or false".to_owned(),
        Shape::Integer(_) => "an integer".to_owned(),
        other => format!("a {other}"),
    }
}

fn list_kind(value: &Value) -> &'static str {
    if let Value::List(_) = value { "a list of something else" } else { value.kind() }
}
