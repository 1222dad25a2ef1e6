//! The core and what shows it know no door: whoever reads them finds no word of CI.

use std::fs;
use std::path::Path;

use crate::page::root;

/// Folders whose crates every door shares.
const NEUTRAL: [&str; 3] = ["crates/base", "crates/vsphere", "crates/show"];
const WORDS: [&str; 6] = ["hatchery", "cds", "flavor", "flavors", "job", "jobs"];

#[test]
fn the_core_knows_no_door() {
    let mut found = Vec::new();
    for folder in NEUTRAL {
        look_through(&root().join(folder), &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn look_through(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !matches!(name, "tests" | "benches" | "examples") {
                look_through(&path, found);
            }
        } else if path.extension().is_some_and(|it| it == "rs") && !is_test(&path) {
            let text = fs::read_to_string(&path).unwrap();
            let lines = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().lines();
            for (number, line) in lines.enumerate().filter(|(_, line)| names_a_door(line)) {
                found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
}

/// Modules that only tests have.
fn is_test(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    name.ends_with("tests.rs") || matches!(name, "fake.rs" | "lying_service.rs" | "openapi.rs")
}

fn names_a_door(line: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.to_lowercase().split(|letter| !is_part(letter)).any(|word| WORDS.contains(&word))
}

#[test]
fn a_word_is_found_in_code_and_comments_and_not_within_another() {
    for (line, wanted) in [
        ("/// All Jobs of it.", true),
        ("    jobs: Vec<Job>,", true),
        ("let first_jobs = 1;", false),
        ("the jobless, cdsctl", false),
    ] {
        assert_eq!(names_a_door(line), wanted, "{line}");
    }
}
