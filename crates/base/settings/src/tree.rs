//! The file as it is read: names in any case, values with the line they stand on.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::fmt;

use toml::de::{DeTable, DeValue};

use crate::problem::Problems;

/// Its values may be secret: `Debug` prints the names only.
#[derive(Clone, Default)]
pub struct Table {
    /// By lower-case name.
    entries: BTreeMap<String, Entry>,
}

/// A value of a table.
#[derive(Debug, Clone)]
pub struct Entry {
    /// As the file spells it.
    pub spelled: String,
    /// Absent for what comes from the environment.
    pub line: Option<usize>,
    pub value: Value,
}

/// What stands behind a name. `Debug` prints its kind only.
#[derive(Clone)]
pub enum Value {
    Text(String),
    Integer(i64),
    Boolean(bool),
    List(Vec<Item>),
    Table(Table),
    /// What no key has: a fraction, a date, a number beyond 64 bits.
    Other(&'static str),
}

/// A value of a list.
#[derive(Debug, Clone)]
pub struct Item {
    pub line: Option<usize>,
    pub value: Value,
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.entries.keys()).finish()
    }
}

impl Value {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Integer(_) => "an integer",
            Self::Boolean(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(kind) => kind,
        }
    }
}

impl Table {
    /// Reports every syntax error, by line and without the text around it, which may be a password.
    pub fn parse(text: &str, problems: &Problems) -> Option<Self> {
        let (document, errors) = DeTable::parse_recoverable(text);
        let lines = Lines::of(text);
        for error in &errors {
            let line = error.span().map(|span| lines.at(span.start));
            problems.problem("", line, format!("is not TOML: {}", error.message()));
        }
        errors.is_empty().then(|| Self::convert(document.get_ref(), &lines, "", problems))
    }

    fn convert(table: &DeTable<'_>, lines: &Lines, at: &str, problems: &Problems) -> Self {
        let mut entries = BTreeMap::new();
        for (key, value) in table {
            let spelled = key.get_ref().to_string();
            let line = Some(lines.at(key.span().start));
            let path = if at.is_empty() { spelled.clone() } else { format!("{at}.{spelled}") };
            let value = convert(value.get_ref(), lines, &path, problems);
            match entries.entry(spelled.to_lowercase()) {
                btree_map::Entry::Vacant(vacant) => {
                    vacant.insert(Entry { spelled, line, value });
                }
                btree_map::Entry::Occupied(other) => {
                    let other: &Entry = other.get();
                    let message = format!(
                        "is the same key as {}; names differ by more than case",
                        other.spelled
                    );
                    problems.problem(path, line, message);
                }
            }
        }
        Self { entries }
    }

    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(&name.to_lowercase())
    }

    /// The table of that name; `None` too if it is something else.
    pub fn table(&self, name: &str) -> Option<&Self> {
        match self.get(name) {
            Some(Entry { value: Value::Table(table), .. }) => Some(table),
            _ => None,
        }
    }

    /// All but the entry of that name.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut other = self.clone();
        other.entries.remove(&name.to_lowercase());
        other
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// Puts a text at a dotted path, as an environment variable does. Leaves a path alone that leads through something else
    /// than tables: that is reported when it is read.
    pub fn set(&mut self, path: &str, text: String) {
        let (name, rest) =
            path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
        let Some(rest) = rest else {
            let entry = Entry { spelled: name.to_owned(), line: None, value: Value::Text(text) };
            self.entries.insert(name.to_lowercase(), entry);
            return;
        };
        let entry = self.entries.entry(name.to_lowercase()).or_insert_with(|| Entry {
            spelled: name.to_owned(),
            line: None,
            value: Value::Table(Self::default()),
        });
        if let Value::Table(table) = &mut entry.value {
            table.set(rest, text);
        }
    }
}

fn convert(value: &DeValue<'_>, lines: &Lines, at: &str, problems: &Problems) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Value::Other("a number beyond 64 bits"), Value::Integer),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Float(_) => Value::Other("a fraction"),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(items) => Value::List(
            items
                .iter()
                .enumerate()
                .map(|(index, item)| Item {
                    line: Some(lines.at(item.span().start)),
                    value: convert(item.get_ref(), lines, &format!("{at}[{index}]"), problems),
                })
                .collect(),
        ),
        DeValue::Table(table) => Value::Table(Table::convert(table, lines, at, problems)),
    }
}

/// Byte offsets to line numbers.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    /// Counted from 1.
    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|end| *end < offset) + 1
    }
}
