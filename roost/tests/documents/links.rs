//! Links and pictures lead somewhere.

use std::path::{Component, Path, PathBuf};

use crate::page::{Page, pages, root};

/// Targets of links and pictures.
fn targets(page: &Page) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in page.prose() {
        for rest in line.split("](").skip(1) {
            if let Some((target, _)) = rest.split_once(')') {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

/// As seen from the root of the repository.
fn resolve(page: &Page, target: &str) -> PathBuf {
    let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
    let mut resolved = PathBuf::new();
    for part in folder.join(target).components() {
        match part {
            Component::ParentDir => assert!(resolved.pop(), "{}: {target} is outside", page.path),
            Component::CurDir => {}
            other => resolved.push(other),
        }
    }
    resolved
}

/// What GitHub and others make of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
}

fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter_map(|line| line.strip_prefix('#'));
    headings.map(|heading| anchor(heading.trim_start_matches('#').trim())).collect()
}

#[test]
fn every_link_and_every_picture_is_there() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for page in pages() {
        for (line, target) in targets(&page) {
            if target.contains("://") {
                continue;
            }
            seen += 1;
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let path =
                if file.is_empty() { PathBuf::from(&page.path) } else { resolve(&page, file) };
            let place = format!("{}:{line}: {target}", page.path);
            if !root().join(&path).exists() {
                wrong.push(format!("{place}: is not there"));
            } else if !heading.is_empty() {
                let text = std::fs::read_to_string(root().join(&path)).unwrap();
                if !anchors(&text).iter().any(|anchor| anchor == heading) {
                    wrong.push(format!("{place}: there is no such heading"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 50, "only {seen} links were found");
}

#[test]
fn every_page_below_docs_is_in_its_table_of_contents() {
    let pages = pages();
    let contents = pages.iter().find(|page| page.path == "docs/README.md").unwrap();
    let linked: Vec<PathBuf> =
        targets(contents).iter().map(|(_, target)| resolve(contents, target)).collect();
    for page in
        pages.iter().filter(|page| Path::new(&page.path).parent() == Some(Path::new("docs")))
    {
        let is_linked =
            page.path == contents.path || linked.iter().any(|path| path == Path::new(&page.path));
        assert!(is_linked, "docs/README.md does not lead to {}", page.path);
    }
}

#[test]
fn headings_become_anchors_as_on_the_web() {
    assert_eq!(anchor("A VM stays"), "a-vm-stays");
    assert_eq!(
        anchor("10,000 VMs, beside govmomi and vcsim"),
        "10000-vms-beside-govmomi-and-vcsim"
    );
}
