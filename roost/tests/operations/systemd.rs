use std::path::{Path, PathBuf};

use roost_oracle::systemd_analyze;

use crate::read;

/// The unit with a binary that is there.
fn unit() -> PathBuf {
    unit_of("roost.service")
}

fn unit_of(name: &str) -> PathBuf {
    let text = read(&format!("deploy/systemd/{name}"));
    let here = text.replace("/usr/local/bin/roost ", &format!("{} ", env!("CARGO_BIN_EXE_roost")));
    assert_ne!(here, text);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, here).unwrap();
    path
}

#[test]
fn systemd_understands_every_line_of_the_unit() {
    let Some(analyze) = systemd_analyze() else { return };
    for name in ["roost.service", "roost-kubelet.service"] {
        let mut command = analyze.command();
        let output = command.args(["verify", "--man=no"]).arg(unit_of(name)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{said}");
    }
}

#[test]
fn the_service_is_exposed_to_little_more_than_the_network_that_it_needs() {
    let Some(analyze) = systemd_analyze() else { return };
    // In tenths: below 2.0 systemd calls it OK, and what is left here is mostly the network.
    let mut command = analyze.command();
    command.args(["security", "--offline=yes", "--no-pager", "--threshold=15"]);
    let output = command.arg(unit()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn systemd_is_told_when_it_is_ready_and_looks_after_it() {
    let unit = read("deploy/systemd/roost.service");
    for line in [
        "Type=notify",
        "WatchdogSec=60s",
        "Restart=on-failure",
        "EnvironmentFile=-/etc/roost/roost.env",
        "ExecStart=/usr/local/bin/roost run -c /etc/roost/roost.toml",
        "User=roost",
        "MemoryMax=1G",
        "TasksMax=256",
    ] {
        assert!(unit.lines().any(|have| have == line), "{line}");
    }
    assert!(read("deploy/systemd/roost.sysusers.conf").contains("\nu roost "));
}

#[test]
fn the_environment_file_is_read_as_systemd_reads_it() {
    for line in read("deploy/systemd/roost.env").lines().filter(|line| !line.is_empty()) {
        let assignment = line.trim_start_matches('#');
        let is_words = line.starts_with("# ");
        let name = assignment.split_once('=').map(|(name, _)| name);
        let is_name = |name: &str| {
            name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        };
        assert!(is_words || name.is_some_and(is_name), "{line}");
    }
}
