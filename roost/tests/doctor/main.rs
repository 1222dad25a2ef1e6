//! `roost doctor` as an operator runs it: against simulators where all is well, and against each thing that can be wrong.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

#[path = "../wire/mod.rs"]
mod wire;

mod examination;
mod page;
mod places;
mod servers;
mod vcsim;

use std::process::Output;

use examination::{Examination, Scene};

#[test]
fn where_all_is_well_nothing_fails_and_it_says_so() {
    let scene = Scene::new("doctor-well");
    let found = scene.examine(&["--sign-in"]);
    assert_eq!(found.code, Some(0), "{found}");
    for verdict in ["warn", "fail", "skip"] {
        assert_eq!(found.count(verdict), 0, "{verdict}: {found}");
    }
    for check in [
        "file",
        "connection",
        "certificate",
        "version",
        "clock",
        "V1 token",
        "V1 models",
        "V2 token",
        "login",
        "datacenter",
        "folder",
        "datastore",
        "network",
        "pool",
        "template",
        "privileges",
        "space",
        "addresses",
        "own VMs",
    ] {
        found.expect("pass", check, "");
    }
}

#[tokio::test]
async fn nothing_is_changed_and_no_session_is_left_behind() {
    let scene = Scene::new("doctor-reads");
    scene.examine(&[]);
    let counters = scene.vcenter.control.get("counters").await;
    let calls = counters["calls"].as_object().unwrap();
    assert!(calls.contains_key("HasPrivilegeOnEntities"), "{calls:?}");
    let changes: Vec<_> = calls.keys().filter(|name| name.ends_with("_Task")).collect();
    assert!(changes.is_empty(), "{changes:?}");
    assert_eq!(scene.vcenter.control.get("sessions").await, serde_json::json!([]));
}

#[test]
fn by_default_the_hatchery_is_not_registered_in_cds() {
    let scene = Scene::new("doctor-gentle");
    let found = scene.examine(&[]);
    found.expect("pass", "V1 token", "nothing was registered");
    found.expect("skip", "V1 models", "--sign-in");
    found.expect("skip", "V2 token", "not tried");
    assert_eq!(found.code, Some(0), "{found}");
    let found = scene.examine(&["--sign-in"]);
    found.expect("pass", "V2 token", "region \"default\"");
    found.expect("pass", "V1 models", "none of type vsphere");
}

#[test]
fn a_file_with_problems_fails_by_each_and_nothing_is_asked() {
    let scene = Scene::new("doctor-file");
    scene.write("[hatchery.vsphere]\nuser = []\nendpoint = \"vc\"\npassword = \"hunter2\"\n");
    let found = scene.examine(&[]);
    assert_eq!(found.code, Some(1), "{found}");
    found.expect("fail", "file", "hatchery.vsphere.user");
    found.expect("fail", "file", "datacenterString");
    found.expect("skip", "all of it", "the file cannot be used");
    let gone = scene.doctor(&["-c", "no-such.toml", "--json"]);
    Examination::of(&gone).expect("fail", "file", "cannot be read");
}

#[test]
fn text_has_no_colours_in_a_pipe_and_no_secrets_anywhere() {
    let scene = Scene::new("doctor-text");
    scene.rewrite("password = \"demo\"", "password = \"hunter2\"");
    scene.rewrite("demo-hatchery-token", "hunter3");
    for args in [
        &["-c", "roost.toml"][..],
        &["-c", "roost.toml", "--json"],
        &["-c", "roost.toml", "--sign-in"],
    ] {
        let Output { stdout, stderr, .. } = scene.doctor(args);
        let said = [stdout, stderr].concat();
        let said = String::from_utf8(said).unwrap();
        for never in ["\x1b", "hunter2", "hunter3", "demo-consumer-token", "PRIVATE KEY"] {
            assert!(!said.contains(never), "{never} in {said}");
        }
        assert!(said.contains("roost.toml"), "{said}");
    }
    let text = String::from_utf8(scene.doctor(&["-c", "roost.toml"]).stdout).unwrap();
    assert!(text.contains("\n  pass  login         roost\n"), "{text}");
    assert!(text.lines().last().unwrap().contains(" 0 fail, "), "{text}");
}
