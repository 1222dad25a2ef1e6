//! The form of the section: environment variables put in, every name known, every table a table.
//!
//! An unknown key is a warning and not a problem: a file that served another version, older or newer, must still start. A misspelt
//! key is seen all the same, with the name that was probably meant.

use crate::environment::Surroundings;
use crate::key::{Key, Shape};
use crate::problem::Problems;
use crate::section::Section;
use crate::tree::{Entry, Table, Value};

impl Section {
    /// Puts the variables of the environment over what the file has. An empty variable counts as not set.
    pub(crate) fn override_from_environment(
        &self,
        section: &mut Table,
        surroundings: &dyn Surroundings,
    ) {
        for key in self.keys {
            let Some(variable) = self.variable(key) else { continue };
            let suffixes: &[&str] =
                if key.shape == Shape::Secret { &["", "File", "Env"] } else { &[""] };
            for suffix in suffixes {
                let text = surroundings.variable(&format!("{variable}{}", suffix.to_uppercase()));
                if let Some(text) = text.filter(|text| !text.is_empty()) {
                    if key.shape == Shape::Secret {
                        // The variable stands for all three, or a file's password would conflict with it.
                        for other in suffixes {
                            section.set(&format!("{}{other}", key.path), String::new());
                        }
                    }
                    section.set(&format!("{}{suffix}", key.path), text);
                }
            }
        }
    }

    /// Warns of unknown names and reports what is not of the form that its name asks for.
    pub fn check(&self, section: &Table, problems: &Problems) {
        self.check_table(section, "", self.root, problems);
    }

    fn check_table(&self, table: &Table, prefix: &str, at: &str, problems: &Problems) {
        for (name, entry) in table.iter() {
            let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
            let at = format!("{at}.{}", entry.spelled);
            match self.known(&path) {
                Known::Value => {}
                Known::Table => match &entry.value {
                    Value::Table(table) => self.check_table(table, &path, &at, problems),
                    other => problems.problem(
                        at,
                        entry.line,
                        format!("must be a table, is {}", other.kind()),
                    ),
                },
                Known::List { named } => self.check_list(entry, &path, &at, named, problems),
                Known::Not => problems.warn(at, entry.line, self.unknown(&path)),
            }
        }
    }

    fn check_list(&self, entry: &Entry, path: &str, at: &str, named: bool, problems: &Problems) {
        let inner = format!("{path}[]");
        match &entry.value {
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    let at = format!("{at}[{index}]");
                    match &item.value {
                        Value::Table(table) => self.check_table(table, &inner, &at, problems),
                        other => problems.problem(
                            at,
                            item.line,
                            format!("must be a table, is {}", other.kind()),
                        ),
                    }
                }
            }
            Value::Table(table) if named => {
                for (_, entry) in table.iter() {
                    let at = format!("{at}.{}", entry.spelled);
                    match &entry.value {
                        Value::Table(table) => self.check_table(table, &inner, &at, problems),
                        other => problems.problem(
                            at,
                            entry.line,
                            format!("must be a table, is {}", other.kind()),
                        ),
                    }
                }
            }
            // `guestCredentials = ""`, as an exported environment writes an empty list.
            Value::Text(text) if text.trim().is_empty() => {}
            other => {
                let message = format!("must be a list of tables ([[{at}]]), is {}", other.kind());
                problems.problem(at, entry.line, message);
            }
        }
    }

    /// `path` is in lower case.
    fn known(&self, path: &str) -> Known {
        for key in self.keys {
            let Some(rest) = strip_prefix_ignoring_case(key.path, path) else { continue };
            match (rest, key.shape) {
                ("", Shape::Tables) => return Known::List { named: false },
                ("", Shape::NamedTables) => return Known::List { named: true },
                ("", _) => return Known::Value,
                (rest, _) if rest.starts_with('.') => return Known::Table,
                _ => {}
            }
        }
        let place = self.keys.iter().filter(|key| key.shape == Shape::Secret).any(|key| {
            strip_prefix_ignoring_case(path, key.path)
                .is_some_and(|suffix| matches!(suffix, "file" | "env"))
        });
        if place { Known::Value } else { Known::Not }
    }

    fn unknown(&self, path: &str) -> String {
        if let Some((_, what)) =
            self.former.iter().find(|(former, _)| former.eq_ignore_ascii_case(path))
        {
            return format!("is not used: it {what}");
        }
        match self.nearest(path) {
            Some(near) => format!("is not a known key and has no effect; did you mean {near}?"),
            None => "is not a known key and has no effect".to_owned(),
        }
    }

    /// The most similar name in the same table; else the same name in another one.
    fn nearest(&self, path: &str) -> Option<String> {
        let (table, name) = path.rsplit_once('.').unwrap_or(("", path));
        let siblings = self.keys.iter().flat_map(|key| names_in(key, table));
        let similar = siblings
            .map(|sibling| (strsim::osa_distance(name, &sibling.to_lowercase()), sibling))
            .min_by_key(|(distance, _)| *distance)
            // A third of the letters wrong is still a slip; more is another word.
            .filter(|(distance, sibling)| distance * 3 <= sibling.len());
        if let Some((_, sibling)) = similar {
            return Some(sibling);
        }
        let elsewhere = self.keys.iter().find(|key| key.name().eq_ignore_ascii_case(name))?;
        Some(format!("{}.{}", self.root, elsewhere.path))
    }
}

enum Known {
    Value,
    Table,
    List { named: bool },
    Not,
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// The names that a key contributes to a table: its own, those of its places, or that of a table on the way to it.
fn names_in(key: &Key, table: &str) -> Vec<String> {
    let rest = if table.is_empty() {
        Some(key.path)
    } else {
        strip_prefix_ignoring_case(key.path, table).and_then(|rest| rest.strip_prefix('.'))
    };
    let Some(rest) = rest else { return Vec::new() };
    match rest.split_once('.') {
        Some((first, _)) => vec![first.trim_end_matches("[]").to_owned()],
        None if key.shape == Shape::Secret => {
            ["", "File", "Env"].map(|suffix| format!("{rest}{suffix}")).to_vec()
        }
        None => vec![rest.to_owned()],
    }
}
