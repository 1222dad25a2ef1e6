use crate::key::{Key, Sample, Shape};
use crate::section::Section;

impl Section {
    /// The section as a sample: every key worth setting, with its meaning above it. Each table begins with an empty line.
    pub fn sample(&self) -> String {
        let (root, mut text) = (self.root, String::new());
        let mut tables: Vec<&str> = Vec::new();
        for key in self.keys.iter().filter(|key| is_in(key)) {
            if !tables.contains(&key.table()) {
                tables.push(key.table());
            }
        }
        for table in tables {
            let keys: Vec<&Key> = self
                .keys
                .iter()
                .filter(|key| is_in(key) && key.table() == table)
                .copied()
                .collect();
            text.push('\n');
            let list = self.keys.iter().find(|key| Some(key.path) == table.strip_suffix("[]"));
            if let Some(list) = list {
                comment(&mut text, list.meaning);
            }
            let is_set = keys.iter().any(|key| matches!(key.sample, Sample::Set(_)));
            let mark = if is_set { "" } else { "# " };
            let header = match (table, table.strip_suffix("[]")) {
                ("", _) => format!("{mark}[{root}]"),
                (_, Some(list)) => format!("{mark}[[{root}.{list}]]"),
                (table, None) => format!("{mark}[{root}.{table}]"),
            };
            push_line(&mut text, &header);
            for key in keys {
                write_key(&mut text, key);
            }
        }
        text
    }
}

/// Lists appear as their entries.
fn is_in(key: &Key) -> bool {
    key.sample != Sample::Absent && !matches!(key.shape, Shape::Tables | Shape::NamedTables)
}

fn write_key(text: &mut String, key: &Key) {
    comment(text, key.meaning);
    let name = key.name();
    let line = match (key.sample, key.shape) {
        (Sample::Set(place), Shape::Secret) => format!("{name}{place}"),
        (Sample::Set(value), _) => format!("{name} = {value}"),
        (Sample::Shown(value), _) => format!("# {name} = {value}"),
        (Sample::Default | Sample::Absent, shape) => format!("# {name} = {}", shape.default_toml()),
    };
    push_line(text, &line);
}

fn comment(text: &mut String, meaning: &str) {
    push_line(text, &format!("# {meaning}"));
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}
