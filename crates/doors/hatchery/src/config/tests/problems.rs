//! Every mistake at once, each with the path to edit.

use std::time::Duration;

use super::*;

#[test]
fn all_mistakes_are_reported_at_once_with_path_and_line() {
    let text = r#"[hatchery.vsphere]
user = "svc"
cardName = "token-ring"
workerTTL = -1
maxCpus = "many"
defaultFlavor = "huge"
iprange = "10.0.0.0"
[[hatchery.vsphere.flavors]]
name = "small"
cpus = 2
[[hatchery.vsphere.flavors]]
cpus = 4
[[hatchery.vsphere.flavors]]
name = "SMALL"
cpus = 20000
memoryMB = 1023
[[hatchery.vsphere.networks]]
iprange = "10.0.0.0/26"
subnetMask = "255.0.255.0"
[[hatchery.vsphere.workerProvisioning]]
number = 3
[[hatchery.vsphere.defaultWorkerModelsV2]]
workerModelV2 = "debian12"
[hatchery.vsphere.commonConfiguration]
rsaPrivateKey = "not a key"
http = 3
[hatchery.vsphere.commonConfiguration.api.http]
url = "ftp://api"
[hatchery.vsphere.commonConfiguration.provision]
maxWorker = 5
maxConcurrentRegistering = 6
"#;
    let invalid = Config::load(text, &Pretend::default()).unwrap_err();
    insta::assert_snapshot!(invalid);
}

#[test]
fn an_empty_file_says_what_is_missing() {
    assert_eq!(problems(""), ["hatchery.vsphere: is missing: the file has no such section"]);
    assert_eq!(
        problems("[hatchery.vsphere]"),
        [
            "hatchery.vsphere.user: is mandatory",
            "hatchery.vsphere.endpoint: is mandatory",
            "hatchery.vsphere.password: is mandatory; give it as password, passwordFile or passwordEnv",
            "hatchery.vsphere.datacenterString: is mandatory",
            "hatchery.vsphere.commonConfiguration.name: is mandatory",
            "hatchery.vsphere.commonConfiguration.rsaPrivateKey: is mandatory; give it as rsaPrivateKey, rsaPrivateKeyFile or rsaPrivateKeyEnv",
            "hatchery.vsphere.commonConfiguration.api.token: is mandatory, unless there is a tokenV2",
        ]
    );
}

#[test]
fn counts_are_held_against_max_worker_unless_that_is_unlimited() {
    let provision = |lines: &str| {
        file("", &format!("[hatchery.vsphere.commonConfiguration.provision]\n{lines}"))
    };
    let at = "hatchery.vsphere.commonConfiguration.provision";
    assert_eq!(
        problems(&provision(
            "maxWorker = 4\nmaxConcurrentProvisioning = 5\nmaxConcurrentRegistering = 5"
        )),
        [
            format!("{at}.maxConcurrentProvisioning: must be at most maxWorker, which is 4; is 5"),
            format!("{at}.maxConcurrentRegistering: must be at most maxWorker, which is 4; is 5"),
        ]
    );
    assert_eq!(
        problems(&provision("maxWorker = 4")),
        [format!(
            "{at}.maxConcurrentProvisioning: must be at most maxWorker, which is 4; is 10 by default"
        )]
    );
    load(&provision(
        "maxWorker = 0\nmaxConcurrentProvisioning = 50\nmaxConcurrentRegistering = 50",
    ));
    let Loaded { config, warnings } = load(&provision("maxWorker = -1"));
    assert_eq!((config.counts.max_workers, warnings.len()), (None, 1));
}

#[test]
fn unknown_keys_are_warnings_with_the_name_that_was_probably_meant() {
    let at = "hatchery.vsphere";
    assert_eq!(
        warnings("datacentreString = 1\nworkerTLT = 3\nmaxWorker = 3\nzzz = 1", ""),
        [
            format!(
                "{at}.datacentreString: is not a known key and has no effect; did you mean datacenterString?"
            ),
            format!(
                "{at}.workerTLT: is not a known key and has no effect; did you mean workerTTL?"
            ),
            format!(
                "{at}.maxWorker: is not a known key and has no effect; did you mean {at}.commonConfiguration.provision.maxWorker?"
            ),
            format!("{at}.zzz: is not a known key and has no effect"),
        ]
    );
    assert_eq!(
        warnings(
            "[[hatchery.vsphere.flavors]]\nname = \"a\"\ncpu = 2\n[hatchery.vsphere.comonConfiguration]\nname = \"x\"",
            ""
        ),
        [
            format!(
                "{at}.flavors[0].cpu: is not a known key and has no effect; did you mean cpus?"
            ),
            format!(
                "{at}.comonConfiguration: is not a known key and has no effect; did you mean commonConfiguration?"
            ),
        ]
    );
    assert_eq!(
        warnings("createImageTimeout = 180\npaswordFile = \"x\"", ""),
        [
            format!("{at}.createImageTimeout: is not used: it is gone from CDS"),
            format!(
                "{at}.paswordFile: is not a known key and has no effect; did you mean passwordFile?"
            ),
        ]
    );
}

#[test]
fn other_services_of_the_shared_file_are_left_alone() {
    let others = "[api]\ntoken = 1\n[ui]\nx = []\n[hatchery.swarm]\nmaxWorker = \"?\"\n[telemetry]\ntracingEnabled = true\n[log.graylog]\nhost = \"g\"";
    assert_eq!(warnings("", others), [""; 0]);
}

#[test]
fn syntax_errors_are_named_by_line_and_never_show_the_text() {
    let text = "[hatchery.vsphere]\npassword = \"hunter2\nuser = svc\n";
    let invalid = Config::load(text, &Pretend::default()).unwrap_err();
    let lines: Vec<_> = invalid.problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [Some(2), Some(3)]);
    assert!(!format!("{invalid} {invalid:?}").contains("hunter2"));
}

#[test]
fn two_spellings_of_one_name_are_a_mistake() {
    assert_eq!(
        problems(&file("User = \"x\"", "")),
        ["hatchery.vsphere.user: is the same key as User; names differ by more than case"]
    );
}

#[test]
fn ways_to_trust_the_vcenter_exclude_each_other() {
    assert_eq!(
        problems(&file("insecure = true\ncaFile = \"/ca.pem\"", "")),
        [
            "hatchery.vsphere.caFile: is one way too many: use one of caFile, thumbprint and insecure"
        ]
    );
    let sha1 = "thumbprint = \"4C:3D:58:4C:3D:58:4C:3D:58:4C:3D:58:4C:3D:58:4C:3D:58:4C:3D\"";
    assert!(problems(&file(sha1, ""))[0].contains("SHA-256"));
}

#[test]
fn flavors_that_can_never_fit_are_named_before_a_job_waits_for_them() {
    let flavors = "[hatchery.vsphere.flavors]\nsmall = { cpus = 2, memoryMB = 4096 }\nlarge = { cpus = 8, memoryMB = 16384 }";
    assert_eq!(
        warnings(&format!("maxCpus = 10\ncountSmallerFlavorToKeep = 2\n{flavors}"), ""),
        [
            "hatchery.vsphere.flavors.large.cpus: never fits: needs 12 with what is kept for smaller flavors, and maxCpus is 10"
        ]
    );
    assert_eq!(
        warnings(&format!("maxMemoryMB = 8192\n{flavors}"), ""),
        [
            "hatchery.vsphere.flavors.large.memoryMB: never fits: needs 16384 alone, and maxMemoryMB is 8192"
        ]
    );
    assert_eq!(
        warnings("countSmallerFlavorToKeep = 2", ""),
        ["hatchery.vsphere.countSmallerFlavorToKeep: has no effect without maxCpus or maxMemoryMB"]
    );
}

#[test]
fn odd_lists_are_used_as_far_as_they_go() {
    let lists = r#"
onlyProvisioned = true
[[hatchery.vsphere.workerProvisioning]]
number = 0
[[hatchery.vsphere.guestCredentials]]
modelVMWare = "debian12"
[[hatchery.vsphere.models]]
modelVMWare = "debian12"
[[hatchery.vsphere.models]]
modelVMWare = "debian12"
"#;
    assert_eq!(
        warnings(
            lists,
            "[hatchery.vsphere.commonConfiguration.provision]\ninjectEnvVars = [\"NOTHING\"]"
        ),
        [
            "hatchery.vsphere.onlyProvisioned: without workerProvisioning means that no worker ever starts",
            "hatchery.vsphere.workerProvisioning[0].modelVMWare: is missing, and so is modelPath: the entry has no effect",
            "hatchery.vsphere.guestCredentials[0].username: or password is missing: the entry has no effect",
            "hatchery.vsphere.models[1].modelVMWare: \"debian12\" has an entry already; the first one is used",
            "hatchery.vsphere.commonConfiguration.provision.injectEnvVars: entry 0 is not NAME=value and is left out",
        ]
    );
}

proptest::proptest! {
    #[test]
    fn no_text_breaks_the_reader(lines in proptest::collection::vec("[\\[\\]a-zA-Z.\"=0-9 ,{}#-]{0,30}", 0..12)) {
        let text = format!("[hatchery.vsphere]\n{}", lines.join("\n"));
        let _ = Config::load(&text, &Pretend::default());
    }

    /// Any value under any name gets an answer that leads with a path, and never a panic.
    #[test]
    fn no_value_breaks_the_reader(key in 0..SECTION.keys.len(), value in "(-?[1-9][0-9]{0,19}|\"[a-z]{0,5}\"|true|\\[\\]|\\{\\}|\\[\\{\\}\\]|1\\.5|2026-01-01)") {
        let path = SECTION.keys[key].path;
        if !path.contains("[]") {
            let text = format!("[hatchery.vsphere]\n{path} = {value}\n");
            let invalid = Config::load(&text, &Pretend::default()).unwrap_err();
            let at_path = |problem: &Problem| problem.path.starts_with("hatchery.vsphere");
            proptest::prop_assert!(invalid.problems.iter().all(at_path), "{}", invalid);
        }
    }
}

#[test]
fn what_the_service_could_not_use_is_refused_before_it_starts() {
    let common = "hatchery.vsphere.commonConfiguration";
    for (vsphere, rest, wanted) in [
        (
            "folderString = \"a\\u001bb\"",
            "",
            "hatchery.vsphere.folderString: must not hold control characters".to_owned(),
        ),
        (
            "",
            "[[hatchery.vsphere.defaultWorkerModelsV2]]\nbinaries = [\"git\\u0007\"]\nworkerModelV2 = \"P/v/o/r/m\"",
            "hatchery.vsphere.defaultWorkerModelsV2[0].binaries: must not hold control characters"
                .to_owned(),
        ),
        (
            "",
            "[hatchery.vsphere.flavors.\"big\\u001b\"]\ncpus = 2\nmemoryMB = 4",
            "hatchery.vsphere.flavors.big\\u{1b}: must not hold control characters".to_owned(),
        ),
        (
            "",
            "token = \"a\\nb\"",
            format!(
                "{common}.api.token: holds characters that no HTTP header can carry, such as a line break"
            ),
        ),
        (
            "",
            "[hatchery.vsphere.commonConfiguration.http]\nport = 99999",
            format!("{common}.http.port: must be from 0 to 65535, is 99999"),
        ),
        (
            "",
            "[hatchery.vsphere.commonConfiguration.http]\naddr = \"999.1.1.1\"",
            format!(
                "{common}.http.addr: must be an address or a name of this machine, is \"999.1.1.1\""
            ),
        ),
        (
            "",
            "[hatchery.vsphere.commonConfiguration.http]\naddr = \"not an address\"",
            format!(
                "{common}.http.addr: must be an address or a name of this machine, is \"not an address\""
            ),
        ),
    ] {
        assert_eq!(problems(&file(vsphere, rest)), [wanted], "{vsphere}{rest}");
    }
    let lines = "[hatchery.vsphere.commonConfiguration.provision]\ninjectEnvVars = [\"CA=a\\nb\"]";
    assert_eq!(config("", lines).workers.environment.len(), 1, "a variable may have lines");
    for addr in ["127.0.0.1", "::1", "[::1]", "0.0.0.0", "localhost", "ci-1.example.org"] {
        let rest = format!("[hatchery.vsphere.commonConfiguration.http]\naddr = \"{addr}\"");
        assert_eq!(config("", &rest).listen.address.as_deref(), Some(addr));
    }
}

fn flavors(number: usize) -> String {
    let one = |number: usize| {
        format!("[[hatchery.vsphere.flavors]]\nname = \"f{number}\"\ncpus = 2\nmemoryMB = 4\n")
    };
    file("", &(0..number).map(one).collect::<String>())
}

/// By ratio: twice as many that take four times as long are compared each with each. The best of as many as it takes, as other things run on this machine.
#[test]
fn many_flavors_are_read_without_comparing_each_with_each() {
    let timed = |text: &str| {
        let began = tokio::time::Instant::now();
        assert!(load(text).config.flavors.iter().count() > 0);
        began.elapsed()
    };
    let texts = [flavors(10_000), flavors(20_000)];
    assert_eq!(load(&texts[1]).config.flavors.iter().count(), 20_000);
    let [mut half, mut whole] = [Duration::MAX; 2];
    for _ in 0..10 {
        half = half.min(timed(&texts[0]));
        whole = whole.min(timed(&texts[1]));
        if whole < half * 3 {
            return;
        }
    }
    panic!("10,000 took {half:?} and 20,000 took {whole:?}");
}

#[test]
fn only_regular_files_of_a_sane_size_are_read() {
    for path in ["/dev/zero", "/"] {
        let refused = SystemSurroundings.read_file(Path::new(path)).unwrap_err();
        assert_eq!(refused.to_string(), "it is not a regular file", "{path}");
    }
    let folder = std::env::temp_dir().join(format!("roost-large-file-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("roost.toml");
    std::fs::File::create(&path).unwrap().set_len((16 << 20) + 1).unwrap();
    let refused = SystemSurroundings.read_file(&path).unwrap_err();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(refused.to_string(), "it is larger than 16 MiB");
}

#[test]
fn a_phase_that_is_none_or_that_another_key_bounds_is_refused() {
    let phase = |name: &str, seconds: i64| {
        let rest =
            format!("[[hatchery.vsphere.fleet.phases]]\nname = \"{name}\"\nseconds = {seconds}\n");
        problems(&file("", &rest)).join("\n")
    };
    let at = "hatchery.vsphere.fleet.phases[0]";
    let unknown = phase("sleeping", 5);
    assert!(
        unknown.starts_with(&format!("{at}.name: must be one of claiming, cloning, ")),
        "{unknown}"
    );
    assert!(!unknown.contains("registering"), "{unknown}");
    let bounded = phase("registering", 5);
    assert_eq!(bounded, format!("{at}.name: \"registering\" is bounded by workerRegistrationTTL"));
    assert_eq!(phase("cloning", 0), format!("{at}.seconds: must be 1 at least"));
}
