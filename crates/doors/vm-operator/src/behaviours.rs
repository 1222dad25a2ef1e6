//! `docs/vm-operator-behaviours.md` names tests that exist.

use std::fs;
use std::path::Path;

#[test]
fn every_test_that_the_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let page = fs::read_to_string(root.join("docs/vm-operator-behaviours.md")).unwrap();
    let mut count = 0;
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if cells[0].starts_with("---") || cells.get(2) == Some(&"Shown by") {
            continue;
        }
        assert_eq!(cells.len(), 3, "{line}");
        for test in cells[2].split("<br>").map(|test| test.trim_matches('`')) {
            let (path, name) = test.rsplit_once("::").unwrap_or_else(|| panic!("{test} in {line}"));
            let text = fs::read_to_string(root.join(path))
                .unwrap_or_else(|error| panic!("{path}: {error}"));
            let place =
                text.find(&format!("fn {name}(")).unwrap_or_else(|| panic!("{path} has no {name}"));
            let is_test = text[..place].lines().rev().take(5).any(|line| {
                let line = line.trim();
                line == "#[test]" || line.starts_with("#[tokio::test")
            });
            assert!(is_test, "{name} in {path} is no test");
            count += 1;
        }
    }
    assert!(count > 30, "only {count} tests are named");
}
