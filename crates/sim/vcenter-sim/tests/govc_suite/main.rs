//! govc's own tests, with the simulator in vcsim's place.

#![allow(clippy::unwrap_used, reason = "it is a test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

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

/// As many files at once: each test waits for programs to start more than it works.
const AT_ONCE: usize = 4;

#[test]
fn what_passed_before_still_passes() {
    let Some(suite) = govc_suite(&stand_in()) else { return };
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let pinned = include_str!("passing.txt").lines().filter(|line| !line.starts_with('#'));
    for (file, name) in pinned.filter_map(|line| line.split_once(": ")) {
        files.entry(file).or_default().push(name);
    }
    // The longest first, so that none is left over at the end.
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by_key(|(_, names)| names.len());
    let (files, lost) = (Mutex::new(files), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some((file, names)) = files.lock().unwrap().pop() else { return };
                    let passed = suite.passed(file, &names);
                    let fails = |name: &&&str| !passed.iter().any(|one| one == **name);
                    let gone = names.iter().filter(fails).map(|name| format!("{file}: {name}"));
                    lost.lock().unwrap().extend(gone);
                }
            });
        }
    });
    let lost = lost.into_inner().unwrap();
    assert!(lost.is_empty(), "these passed before:\n{}", lost.join("\n"));
}
