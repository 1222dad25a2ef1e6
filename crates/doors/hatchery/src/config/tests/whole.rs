//! The table of keys against everything that follows from it.

use roost_settings::{Sample, Shape};
use toml::{Table as Toml, Value};

use super::*;

/// A valid file with one entry in each list, as a TOML tree.
fn full() -> Toml {
    let lists = r#"
[[hatchery.vsphere.flavors]]
name = "small"
cpus = 2
[[hatchery.vsphere.models]]
modelVMWare = "debian12"
username = "cds"
password = "x"
[[hatchery.vsphere.workerProvisioning]]
modelVMWare = "debian12"
number = 1
[[hatchery.vsphere.guestCredentials]]
modelVMWare = "debian12"
username = "cds"
password = "x"
[[hatchery.vsphere.defaultWorkerModelsV2]]
workerModelV2 = "P/github/org/repo/debian12"
[[hatchery.vsphere.networks]]
iprange = "10.0.0.0/26"
gateway = "10.0.0.62"
subnetMask = "255.255.255.192"
[[hatchery.vsphere.fleet.phases]]
name = "cloning"
seconds = 600
"#;
    file(lists, "").parse().unwrap()
}

fn set(tree: &mut Toml, path: &str, value: Value) {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    match rest {
        None => {
            tree.insert(name.into(), value);
        }
        Some(rest) => {
            let (name, is_list) =
                name.strip_suffix("[]").map_or((name, false), |name| (name, true));
            let inner = tree.entry(name).or_insert_with(|| Value::Table(Toml::new()));
            let inner = if is_list { &mut inner[0] } else { inner };
            set(inner.as_table_mut().unwrap(), rest, value);
        }
    }
}

#[test]
fn every_key_of_the_table_is_read() {
    let wrong: Value = Value::Array(vec![Value::Array(vec![Value::Integer(1)])]);
    for key in SECTION.keys {
        let mut tree = full();
        let path = format!("hatchery.vsphere.{}", key.path);
        set(&mut tree, &path, wrong.clone());
        let shown = format!("{}: ", path.replace("[]", "[0]"));
        let seen = problems(&tree.to_string());
        let at_key = seen.iter().any(|problem| problem.starts_with(&shown));
        let in_list =
            seen.iter().any(|problem| problem.starts_with(&format!("{path}[0]: must be a table")));
        assert!(at_key || in_list, "{path} is not read: {seen:?}");
    }
}

#[test]
fn every_scalar_key_can_be_overridden_by_its_variable() {
    for key in
        SECTION.keys.iter().filter(|key| matches!(key.shape, Shape::Integer(_) | Shape::Boolean(_)))
    {
        let Some(variable) = SECTION.variable(key) else { continue };
        let surroundings = Pretend::default().variable(&variable, "no such value");
        let invalid = Config::load(&full().to_string(), &surroundings).unwrap_err();
        assert!(invalid.to_string().contains(key.path), "{variable}");
    }
    let variable = "CDS_HATCHERY_VSPHERE_COMMONCONFIGURATION_PROVISION_MAXWORKER";
    assert_eq!(SECTION.variable(&keys::common::MAX_WORKER).as_deref(), Some(variable));
}

#[test]
fn paths_are_told_apart_and_lists_have_keys() {
    for (index, key) in SECTION.keys.iter().enumerate() {
        let twice =
            SECTION.keys[..index].iter().any(|other| other.path.eq_ignore_ascii_case(key.path));
        assert!(!twice, "{} stands twice", key.path);
        assert!(!key.meaning.ends_with('.'), "{}", key.path);
        if let Some((list, _)) = key.path.split_once("[]") {
            assert!(SECTION.keys.iter().any(|other| other.path == list), "{list} is no key");
        }
    }
}

#[test]
fn the_sample_loads_cleanly() {
    let surroundings = Pretend::default()
        .file("/etc/roost/hatchery-key.pem", KEY)
        .file("/etc/roost/vcenter-password", "x\n")
        .file("/etc/roost/cds-token-v2", "x\n")
        .file("/etc/roost/guest-password", "x\n");
    let loaded =
        Config::load(&sample(), &surroundings).unwrap_or_else(|invalid| panic!("{invalid}"));
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.config.listen.port, 8086);
    insta::assert_snapshot!(sample());
}

#[test]
fn every_line_that_the_sample_comments_out_is_of_the_right_form() {
    let mut text = String::new();
    for line in sample().lines() {
        let bare = line.strip_prefix("# ").unwrap_or(line);
        let is_key =
            bare.split_once(" = ").is_some_and(|(name, _)| name.chars().all(char::is_alphanumeric));
        if is_key || bare.starts_with('[') {
            text.push_str(bare);
            text.push('\n');
        }
    }
    let surroundings = Pretend::default()
        .file("/etc/roost/hatchery-key.pem", KEY)
        .file("/etc/roost/vcenter-password", "x")
        .file("/etc/roost/cds-token-v2", "x")
        .file("/etc/roost/guest-password", "x");
    let loaded = Config::load(&text, &surroundings).unwrap_or_else(|invalid| panic!("{invalid}"));
    assert_eq!(loaded.warnings, []);
    for key in SECTION.keys.iter().filter(|key| key.sample != Sample::Absent) {
        assert!(sample().contains(key.name()), "{} is missing", key.path);
    }
}

#[test]
fn the_documentation_follows_the_table() {
    insta::assert_snapshot!(SECTION.key_table());
}

#[test]
fn what_is_sent_at_sign_in_is_what_cds_sends_and_the_os_arch_on_top() {
    let config = load(&full().to_string()).config;
    insta::assert_snapshot!(serde_json::to_string_pretty(&config.public_config()).unwrap());
}
