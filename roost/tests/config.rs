//! `roost config new` and `roost check`.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn roost(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_roost")).args(args).output().unwrap()
}

fn file(name: &str, text: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn check(path: &Path) -> (bool, String) {
    let output = roost(&["check", "-c", &path.to_string_lossy()]);
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

#[test]
fn the_sample_lacks_nothing_but_the_secrets_that_it_names() {
    let sample = roost(&["config", "new"]);
    assert!(sample.status.success());
    let (_, said) = check(&file("sample.toml", &sample.stdout));
    let problems: Vec<_> = said.lines().filter(|line| line.starts_with("problem: ")).collect();
    assert!(
        !problems.is_empty() && problems.iter().all(|line| line.contains("cannot be read")),
        "{said}"
    );
    assert!(!said.contains("warning"), "{said}");
}

#[test]
fn all_problems_are_told_at_once_each_with_the_path_to_edit() {
    let text = "[hatchery.vsphere]\nuser = []\nendpoint = \"vc\"\npassword = \"hunter2\"\nmaxCpuz = 3\n\
                [[hatchery.vsphere.flavors]]\nname = \"small\"\ncpus = -1\n";
    let (passed, said) = check(&file("broken.toml", text.as_bytes()));
    assert!(!passed);
    for part in
        ["hatchery.vsphere.user", "datacenterString", "flavors[0].cpus", "maxCpus", "problems"]
    {
        assert!(said.contains(part), "no {part} in\n{said}");
    }
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn a_file_that_is_not_there_or_no_toml_is_one_clear_line() {
    let (passed, said) = check(Path::new("no-such.toml"));
    assert!(
        !passed && said.starts_with("roost: reading no-such.toml") && said.lines().count() == 1,
        "{said}"
    );
    let (passed, said) = check(&file("no.toml", b"{ json: true }"));
    assert!(!passed && !said.contains("panicked"), "{said}");
}

#[test]
fn a_certificate_that_cannot_be_used_is_a_problem_before_the_service_starts() {
    let key = include_str!("../../crates/doors/cds/testdata/hatchery-pkcs1.pem");
    let junk = file("junk.pem", b"no certificate\n");
    let text = format!(
        "[hatchery.vsphere]\nuser = \"u\"\nendpoint = \"vc\"\npassword = \"p\"\ndatacenterString = \"dc\"\n\
         caFile = \"/no/such/ca.pem\"\n\
         [hatchery.vsphere.commonConfiguration]\nname = \"h\"\nrsaPrivateKey = \"\"\"\n{key}\"\"\"\n\
         [hatchery.vsphere.commonConfiguration.api]\ntokenV2 = \"t\"\n\
         [hatchery.vsphere.commonConfiguration.api.http]\nurl = \"https://cds\"\ncaFile = {junk:?}\n"
    );
    let (passed, said) = check(&file("certificates.toml", text.as_bytes()));
    assert!(!passed, "{said}");
    for part in [
        "vsphere.caFile: the CA file /no/such/ca.pem cannot be read",
        "api.http.caFile: ",
        "2 problems",
    ] {
        assert!(said.contains(part), "no {part} in\n{said}");
    }
    let (passed, said) = check(Path::new("/dev/null"));
    assert!(!passed && said.contains("it is not a regular file"), "{said}");
}

/// The page is written by the same table that reads the file. To write it anew: `ROOST_WRITE_DOCS=1 cargo test -p roost --test config`.
#[test]
fn the_configuration_page_lists_every_key() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let wanted = format!("{HEAD}{}", roost_hatchery::config::SECTION.key_table());
    if std::env::var_os("ROOST_WRITE_DOCS").is_some() {
        std::fs::write(&page, &wanted).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&page).unwrap(),
        wanted,
        "docs/configuration.md is not what the code reads"
    );
}

const HEAD: &str = "# Configuration

The file is the one of the CDS hatchery for vSphere: everything stands below `[hatchery.vsphere]`, keys are matched in any case, other sections are left
alone. `roost config new` prints a commented file to begin with, `roost check -c FILE` lists every problem of one. A scalar key can be set from the environment:
`CDS_` and its path in capitals, joined by `_`. A secret can also come from a file (`passwordFile`) or a variable (`passwordEnv`).

`roost run -c FILE` serves with it. What to put there first, and how large: [operating](operating.md).

## Gates

Each gate that the page and `roost explain` name is weighed against one key:

| Gate | Key |
| --- | --- |
| workers | `commonConfiguration.provision.maxWorker` |
| pending | `commonConfiguration.provision.maxConcurrentProvisioning` |
| registering | `commonConfiguration.provision.maxConcurrentRegistering` |
| cpus | `maxCpus` |
| memory | `maxMemoryMB` |
| cpu-reserve, memory-reserve | `countSmallerFlavorToKeep` |
| address | `networks`, or `iprange` |
| pool-cpu, pool-memory | none: the limits of the vSphere resource pool |

## Keys

";
