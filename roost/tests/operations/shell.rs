//! Completions and manual pages, from the binary. That they have every command is tested beside the code that writes them.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::roost;

#[test]
fn every_shell_gets_a_script() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = roost(&["completions", shell]);
        assert!(output.status.success(), "{shell}");
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("completions") && script.contains("roost"), "{shell}");
    }
    assert!(!roost(&["completions", "abacus"]).status.success());
}

/// The other shells are rarely there; bash nearly always is.
#[test]
fn bash_reads_its_script() {
    let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join("roost.bash");
    std::fs::write(&script, roost(&["completions", "bash"]).stdout).unwrap();
    let ask = "source \"$0\"; COMP_WORDS=(roost sim v) COMP_CWORD=2; _roost roost v sim; echo \"${COMPREPLY[@]}\"";
    let bash =
        Command::new("bash").args(["-c", ask]).arg(&script).stderr(Stdio::inherit()).output();
    let Ok(output) = bash else {
        eprintln!("skipped: no bash - its completions not run");
        return;
    };
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "vcenter");
}

#[test]
fn the_manual_goes_to_the_terminal_or_into_a_folder() {
    let output = roost(&["man"]);
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && page.contains(".TH roost 1"), "{page}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("man/man1");
    let output = roost(&["man", "--dir", &folder.to_string_lossy()]);
    assert!(output.status.success());
    for page in
        ["roost.1", "roost-run.1", "roost-explain.1", "roost-config-new.1", "roost-sim-vcenter.1"]
    {
        assert!(folder.join(page).is_file(), "{page}");
    }
    assert!(!folder.join("roost-sim-worker.1").exists(), "what is hidden has no page");
}
