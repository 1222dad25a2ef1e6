//! Keys of the configuration and metrics that documents name exist.

use std::collections::BTreeSet;

use crate::page::{pages, root};

/// Code spans that are written like a key and are none: tasks, a line of `roost status`, the keys of extensions and snapshots.
const NOT_KEYS: [&str; 9] = [
    "com.vmware.vcenter.wcp",
    "configManager",
    "csi.vsphere.volume.sync",
    "holderIdentity",
    "layoutEx",
    "mainRoutine",
    "missingSet",
    "queuePolling",
    "vCenter",
];

/// Where vSphere's own paths begin, and fields of records and of objects.
const OTHERS: [&str; 7] = ["guest", "config", "runtime", "summary", "docs", "spec", "status"];

/// What files end in.
const FILES: [&str; 16] = [
    "toml", "yaml", "yml", "json", "md", "rs", "svg", "png", "service", "env", "conf", "pem",
    "xml", "qcow2", "raw", "debug",
];

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// The first column of the tables of a generated page.
fn first_column(path: &str) -> BTreeSet<String> {
    let text = read(path);
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    rows.map(|(name, _)| name.to_owned()).collect()
}

/// Every key by its whole path, also as the file or variable that holds a secret.
fn keys() -> BTreeSet<String> {
    let mut keys: BTreeSet<String> = BTreeSet::from(["log.level".into(), "log.format".into()]);
    for key in first_column("docs/configuration.md") {
        for form in ["", "File", "Env"] {
            keys.insert(format!("hatchery.vsphere.{key}{form}"));
        }
    }
    keys.extend(first_column("docs/doors.md"));
    assert!(keys.len() > 200, "{}", keys.len());
    keys
}

/// `http.port`, `models[].username`, `maxCpus`: with a dot, or with a capital inside.
fn looks_like_key(span: &str) -> bool {
    let is_part = |part: &str| {
        let name = part.trim_end_matches("[]");
        name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let parts: Vec<&str> = span.split('.').collect();
    let last = parts[parts.len() - 1];
    let is_other = parts.len() > 1 && (OTHERS.contains(&parts[0]) || FILES.contains(&last));
    let is_camel = span.bytes().any(|byte| byte.is_ascii_uppercase());
    parts.iter().all(|part| is_part(part)) && (parts.len() > 1 || is_camel) && !is_other
}

#[test]
fn keys_of_the_configuration_are_spelt_as_they_are_read() {
    let keys = keys();
    let is_known = |span: &str| {
        keys.iter().any(|key| {
            let (end, begin) = (format!(".{span}"), format!("{span}."));
            let section = format!(".{span}");
            key == span
                || key.ends_with(&end)
                || key.starts_with(&begin)
                || key.contains(&format!("{section}."))
                || key.contains(&format!("{section}[]."))
        })
    };
    let mut wrong = Vec::new();
    let mut seen = 0;
    for page in pages().iter().filter(|page| page.path != "docs/configuration.md") {
        for (line, span) in page.spans() {
            let span = span.split(" = ").next().unwrap_or(span);
            if !looks_like_key(span) || NOT_KEYS.contains(&span) {
                continue;
            }
            seen += 1;
            if !is_known(span) {
                wrong.push(format!("{}:{line}: {span}", page.path));
            }
        }
    }
    assert!(wrong.is_empty(), "no such key:\n{}", wrong.join("\n"));
    assert!(seen > 60, "only {seen} keys were found");
}

#[test]
fn metrics_are_those_that_are_exposed() {
    let metrics = first_column("docs/metrics.md");
    let is_known = |word: &str| {
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end));
        // A family of them is written with a star.
        let is_family = word.ends_with('_') && metrics.iter().any(|name| name.starts_with(word));
        metrics.contains(word) || is_family || base.is_some_and(|base| metrics.contains(base))
    };
    let mut wrong = Vec::new();
    for page in pages() {
        let words =
            page.text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        let ours = words.filter(|word| {
            ["roost_hatchery_", "cds_hatchery_", "cds_http_"]
                .iter()
                .any(|start| word.starts_with(start))
        });
        wrong.extend(
            ours.filter(|word| !is_known(word)).map(|word| format!("{}: {word}", page.path)),
        );
    }
    assert!(wrong.is_empty(), "nothing exposes:\n{}", wrong.join("\n"));
}

#[test]
fn a_key_is_told_from_a_file_and_a_path_of_vsphere() {
    for key in ["http.port", "models[].username", "maxCpus", "hatchery.vsphere.networks"] {
        assert!(looks_like_key(key), "{key}");
    }
    for other in
        ["alerts.yml", "guest.ipAddress", "roost", "CDS_LOG_LEVEL", "up{job=\"roost\"}", "10.0.0.1"]
    {
        assert!(!looks_like_key(other), "{other}");
    }
}
