//! govc's own tests, with the simulator in vcsim's place.

#![allow(clippy::unwrap_used, reason = "it is a test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use roost_oracle::govc_suite;

/// The example that takes vcsim's flags, built by the Cargo that built this test.
fn stand_in() -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args([
            "build",
            "--locked",
            "--quiet",
            "--package",
            "roost-vcenter-sim",
            "--example",
            "vcsim",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(built.success(), "the example could not be built");
    let own = std::env::current_exe().unwrap();
    // The test is in `deps`, beside `examples`.
    own.ancestors().nth(2).map(Path::to_path_buf).unwrap().join("examples/vcsim")
}

#[test]
fn what_passed_before_still_passes() {
    let Some(suite) = govc_suite() else { return };
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let pinned = include_str!("passing.txt").lines().filter(|line| !line.starts_with('#'));
    for (file, name) in pinned.filter_map(|line| line.split_once(": ")) {
        files.entry(file).or_default().push(name);
    }
    let vcsim = stand_in();
    let mut lost = Vec::new();
    for (file, names) in files {
        let passed = suite.passed(&vcsim, file, &names);
        let fails = |name: &&&str| !passed.iter().any(|one| one == **name);
        lost.extend(names.iter().filter(fails).map(|name| format!("{file}: {name}")));
    }
    assert!(lost.is_empty(), "these passed before:\n{}", lost.join("\n"));
}
