//! `docs/behaviours.md` names a test for every row of its tables; they exist, and no row is missing.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use roost_hatchery::door::{PENDING, REGISTERING, WORKERS};

/// Rows of the differences and of the weaknesses.
const ROWS: [(char, usize); 2] = [('D', 44), ('W', 34)];

/// How the line above a test begins.
const TESTS: [&str; 3] = ["#[test]", "#[tokio::test]", "#[tokio::test("];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The cells of every row, headings and rules aside.
fn rows() -> Vec<Vec<String>> {
    let page = fs::read_to_string(root().join("docs/behaviours.md")).unwrap();
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()
    };
    let rows = page.lines().filter(|line| line.starts_with("| ")).map(cells);
    rows.filter(|row| !row[0].starts_with("---") && row[2] != "Shown by").collect()
}

/// `path::name` of each test that a row names.
fn tests_of(row: &[String]) -> Vec<(String, String)> {
    let named = row[2].split("<br>").map(|test| test.trim_matches('`'));
    named
        .map(|test| {
            let (path, name) =
                test.rsplit_once("::").unwrap_or_else(|| panic!("{test} in {row:?}"));
            (path.to_owned(), name.to_owned())
        })
        .collect()
}

#[test]
fn no_row_is_missing_and_each_says_something() {
    let rows = rows();
    for (letter, number) in ROWS {
        let wanted: Vec<String> = (1..=number).map(|row| format!("{letter}{row}")).collect();
        let is_of = |name: &str| {
            name.strip_prefix(letter).is_some_and(|rest| rest.parse::<usize>().is_ok())
        };
        let found: Vec<&String> =
            rows.iter().map(|row| &row[0]).filter(|name| is_of(name)).collect();
        assert_eq!(found, wanted.iter().collect::<Vec<_>>());
    }
    for row in &rows {
        assert_eq!(row.len(), 3, "{row:?}");
        assert!(!row[1].is_empty(), "{row:?}");
    }
}

#[test]
fn every_test_that_is_named_exists() {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for row in rows() {
        for (path, name) in tests_of(&row) {
            let text = files.entry(path.clone()).or_insert_with(|| {
                let read = fs::read_to_string(root().join(&path));
                read.unwrap_or_else(|error| panic!("{path}, named by {}: {error}", row[0]))
            });
            let place = text.find(&format!("fn {name}("));
            let place = place.unwrap_or_else(|| panic!("{path} has no {name}, see {}", row[0]));
            let above: Vec<&str> = text[..place].lines().rev().take(5).collect();
            let marks = |line: &&str| TESTS.iter().any(|mark| line.trim().starts_with(mark));
            let is_test = above.iter().any(marks);
            // The campaign has a harness of its own.
            assert!(is_test || path.contains("/campaign/"), "{name} in {path} is no test");
        }
    }
    assert!(files.len() > 15, "only {} files are named", files.len());
}

/// What may stand in a decision as the gate that bound it.
#[test]
fn every_gate_has_its_row() {
    let source = fs::read_to_string(root().join("crates/doors/hatchery/src/refusal.rs")).unwrap();
    let names =
        source.split_once("fn reason(").and_then(|(_, rest)| rest.split_once("fn decided("));
    let names = names.unwrap().0.split('"').skip(1).step_by(2);
    let gates = roost_fleet::LedgerGate::COMMON.iter().map(|gate| gate.as_str());
    let gates = gates.chain([WORKERS, PENDING, REGISTERING].map(|quota| quota.name));
    let mut count = 0;
    for name in names.chain(gates) {
        count += 1;
        let cell = format!("`{name}`");
        assert!(rows().iter().any(|row| row[0].contains(&cell)), "{name} has no row");
    }
    assert!(count > 30, "only {count} gates were found");
}
