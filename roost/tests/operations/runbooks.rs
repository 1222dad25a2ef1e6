use std::collections::BTreeSet;

use crate::alerts::{alerts, values};
use crate::exposed::series;
use crate::promql::metrics;
use crate::{file, read};

const SECTIONS: [&str; 5] = [
    "\n## Symptom\n",
    "\n## What it means\n",
    "\n## Where to look\n",
    "\n## What to do\n",
    "\n## How to know it is over\n",
];

/// Path and text of each page.
fn pages() -> Vec<(String, String)> {
    let files = std::fs::read_dir(file("docs/runbooks")).unwrap();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let paths =
        names.filter(|name| name != "README.md").map(|name| format!("docs/runbooks/{name}"));
    paths.map(|path| (path.clone(), read(&path))).collect()
}

#[test]
fn every_alert_has_a_page_and_every_page_an_alert() {
    let named: BTreeSet<String> = values("runbook_url").into_iter().collect();
    let there: BTreeSet<String> = pages().into_iter().map(|(path, _)| path).collect();
    assert_eq!(named, there);
    for (alert, path) in alerts().into_iter().zip(values("runbook_url")) {
        let title = read(&path).lines().next().unwrap().to_owned();
        assert!(title.contains(&alert), "{path} is not about {alert}: {title}");
    }
}

#[test]
fn every_page_says_what_is_seen_what_it_means_and_what_to_do_in_that_order() {
    for (path, text) in pages() {
        let places: Vec<_> = SECTIONS.iter().map(|section| text.find(section)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{path}: {places:?}");
        assert!(text.contains("roost ") || text.contains("curl "), "{path} names no command");
    }
}

#[test]
fn the_list_of_pages_has_every_alert_with_its_severity() {
    let list = read("docs/runbooks/README.md");
    let pages = values("runbook_url");
    for ((alert, severity), page) in alerts().iter().zip(values("severity")).zip(&pages) {
        let page = page.rsplit('/').next().unwrap();
        let line = list.lines().find(|line| line.starts_with(&format!("| {alert} |")));
        let line = line.unwrap_or_else(|| panic!("{alert} is not in the list"));
        assert!(line.contains(&format!("| {severity} |")) && line.contains(page), "{line}");
    }
}

#[test]
fn pages_name_metrics_that_are_exposed() {
    let exposed = series();
    for (path, text) in pages() {
        let used = metrics(&text);
        let unknown: Vec<_> = used.difference(&exposed).collect();
        assert!(unknown.is_empty(), "{path}: nothing exposes {unknown:?}");
    }
}
