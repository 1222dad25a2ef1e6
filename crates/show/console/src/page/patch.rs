//! What reads differently than before.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::Rendered;
use super::block::{Block, Content, Row, Table};
use super::edits::{Text, changes};

/// For a page that is open: what to change in it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Patch<'a> {
    /// By the service's clock, for "12 s ago".
    now: i64,
    /// For the title of the window.
    waiting: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    set: BTreeMap<&'static str, Text<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tables: BTreeMap<&'static str, TablePatch<'a>>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct TablePatch<'a> {
    /// How the list of keys changed, in its order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    order: Vec<Moved<'a>>,
    /// The cells of rows that are new or read differently.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    rows: BTreeMap<&'a str, Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    below: Option<&'a str>,
}

/// Where in the old list, how many keys go, and which come instead.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Moved<'a>(usize, usize, Vec<&'a str>);

impl<'a> Patch<'a> {
    /// From what was sent to what is.
    pub(crate) fn between(before: &Rendered, after: &'a Rendered) -> Self {
        let mut patch = Self {
            now: after.now.as_millisecond(),
            waiting: after.waiting,
            set: BTreeMap::new(),
            tables: BTreeMap::new(),
        };
        let old: HashMap<&str, &Block> =
            before.blocks.iter().map(|block| (block.id, block)).collect();
        for block in &after.blocks {
            match (&block.content, old.get(block.id).map(|block| &block.content)) {
                (now, Some(then)) if now == then => {}
                (Content::Whole(html), then) => {
                    let text = match then {
                        Some(Content::Whole(then)) => Text::between(then, html),
                        _ => Text::Whole(html),
                    };
                    patch.set.insert(block.id, text);
                }
                (Content::Table(table), then) => {
                    let none = Table {
                        above: String::new(),
                        columns: Vec::new(),
                        rows: Vec::new(),
                        below: String::new(),
                    };
                    let then = match then {
                        Some(Content::Table(then)) => then,
                        _ => &none,
                    };
                    patch.tables.insert(block.id, TablePatch::between(then, table));
                }
            }
        }
        patch
    }

    /// Only the time has passed.
    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.tables.is_empty()
    }
}

impl<'a> TablePatch<'a> {
    fn between(before: &Table, after: &'a Table) -> Self {
        let old: HashMap<&str, &str> =
            before.rows.iter().map(|row| (row.key.as_str(), row.html.as_str())).collect();
        let (old_keys, keys): (Vec<&str>, Vec<&'a str>) =
            (before.rows.iter().map(key).collect(), after.rows.iter().map(key).collect());
        let order = changes(&old_keys, &keys).into_iter();
        let rows = after.rows.iter().filter_map(|row| {
            let text = match old.get(row.key.as_str()) {
                Some(then) if *then == row.html => return None,
                Some(then) => Text::between(then, &row.html),
                None => Text::Whole(&row.html),
            };
            Some((row.key.as_str(), text))
        });
        Self {
            order: order
                .map(|it| Moved(it.old.start, it.old.len(), keys[it.new].to_vec()))
                .collect(),
            rows: rows.collect(),
            below: (before.below != after.below).then_some(&*after.below),
        }
    }
}

fn key(row: &Row) -> &str {
    &row.key
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn rendered(blocks: Vec<Block>) -> Rendered {
        Rendered {
            title: "t".into(),
            place: "/".into(),
            places: Vec::new(),
            service: "nest".into(),
            version: "1".into(),
            now: Timestamp::UNIX_EPOCH,
            waiting: 0,
            demo: None,
            blocks,
        }
    }

    fn table(rows: &[(&str, &str)]) -> Block {
        let row = |(key, html): &(&str, &str)| Row { key: (*key).into(), html: (*html).into() };
        Block::table(
            "jobs",
            Table {
                above: String::new(),
                columns: Vec::new(),
                rows: rows.iter().map(row).collect(),
                below: String::new(),
            },
        )
    }

    fn patch(before: Vec<Block>, after: Vec<Block>) -> serde_json::Value {
        let (before, after) = (rendered(before), rendered(after));
        let mut patch = serde_json::to_value(Patch::between(&before, &after)).unwrap();
        let said = patch.as_object_mut().unwrap();
        said.retain(|name, _| !["now", "waiting"].contains(&name.as_str()));
        patch
    }

    #[test]
    fn only_what_reads_differently_is_sent() {
        let whole = |html: &str| Block::whole("queue", html.into());
        assert_eq!(patch(vec![whole("a")], vec![whole("a")]), json!({}));
        assert_eq!(patch(vec![whole("a")], vec![whole("b")]), json!({"set": {"queue": "b"}}));
        let long = |number: u32| whole(&format!("<p>{number} jobs wait</p>\n<p>and so on</p>"));
        assert_eq!(patch(vec![long(1)], vec![long(2)]), json!({"set": {"queue": [[3, 1, "2"]]}}));
    }

    #[test]
    fn of_a_table_only_rows_that_changed_are_sent() {
        let before = || vec![table(&[("1", "a"), ("2", "b"), ("3", "c")])];
        assert_eq!(
            patch(before(), vec![table(&[("1", "a"), ("2", "B"), ("3", "c")])]),
            json!({"tables": {"jobs": {"rows": {"2": "B"}}}})
        );
        assert_eq!(
            patch(before(), vec![table(&[("2", "b"), ("3", "c"), ("4", "d")])]),
            json!({"tables": {"jobs": {"order": [[0, 1, []], [3, 0, ["4"]]], "rows": {"4": "d"}}}})
        );
        assert_eq!(
            patch(before(), vec![table(&[("2", "b")])]),
            json!({"tables": {"jobs": {"order": [[0, 1, []], [2, 1, []]]}}})
        );
    }
}
