//! The file that `roost config new` prints.

use super::key::{Key, Sample, Shape};
use super::keys::ALL;
use super::reader::ROOT;

const HEAD: &str = "\
# Configuration of a Roost hatchery for CDS. Every line with a # shows a default or an example.
#
# The file is CDS's own: a [hatchery.vsphere] section that served a CDS hatchery works here unchanged, other sections may stay.
# Variables such as CDS_HATCHERY_VSPHERE_USER override it. A secret `x` may also be given as `xFile` (a file) or `xEnv` (a variable).
";

const LOG: &str = "
# [log]
# debug, info, notice, warning or error
# level = \"info\"
# text, json or discard
# format = \"text\"
";

/// A commented file that shows every key worth setting. It is valid once the files that it names exist.
pub fn sample() -> String {
    let mut text = HEAD.to_owned();
    let mut tables: Vec<&str> = Vec::new();
    for key in ALL.iter().filter(|key| is_in(key)) {
        if !tables.contains(&key.table()) {
            tables.push(key.table());
        }
    }
    for table in tables {
        let keys: Vec<&Key> =
            ALL.iter().filter(|key| is_in(key) && key.table() == table).copied().collect();
        text.push('\n');
        if let Some(list) = ALL.iter().find(|key| Some(key.path) == table.strip_suffix("[]")) {
            comment(&mut text, list.meaning);
        }
        let mark =
            if keys.iter().any(|key| matches!(key.sample, Sample::Set(_))) { "" } else { "# " };
        let header = match (table, table.strip_suffix("[]")) {
            ("", _) => format!("{mark}[{ROOT}]"),
            (_, Some(list)) => format!("{mark}[[{ROOT}.{list}]]"),
            (table, None) => format!("{mark}[{ROOT}.{table}]"),
        };
        push_line(&mut text, &header);
        for key in keys {
            write_key(&mut text, key);
        }
    }
    text + LOG
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
