//! Secrets come from three places and are seen in none.

use roost_cds::v1::ModelPath;

use super::*;

#[test]
fn a_secret_is_given_or_stands_in_a_file_or_in_a_variable() {
    let surroundings = Pretend::default()
        .file("/run/secrets/vcenter", " hunter2 \r\n")
        .file("/etc/key.pem", KEY)
        .variable("CDS_TOKEN", "hunter3");
    let text = r#"
[hatchery.vsphere]
user = "u"
endpoint = "e"
passwordFile = "/run/secrets/vcenter"
datacenterString = "d"
[hatchery.vsphere.commonConfiguration]
name = "h"
rsaPrivateKeyFile = "/etc/key.pem"
[hatchery.vsphere.commonConfiguration.api]
tokenEnv = "CDS_TOKEN"
"#;
    let config = Config::load(text, &surroundings).unwrap().config;
    let read = |source: &SecretSource| source.read(&surroundings).unwrap().expose().to_owned();
    assert_eq!(read(&config.vcenter.password), " hunter2 ", "only the line end goes");
    assert_eq!(read(config.api.tokens.v1.as_ref().unwrap()), "hunter3");
    assert_eq!(config.api.tokens.v2, None);
}

#[test]
fn a_place_that_cannot_be_read_is_a_problem_and_so_are_two_places() {
    let swap = |lines: &str| file("", "").replace("password = \"hunter2-vcenter\"", lines);
    for (lines, wanted) in [
        ("passwordFile = \"/nowhere\"", "/nowhere cannot be read: entity not found"),
        ("passwordEnv = \"NOT_SET\"", "the variable NOT_SET is not set"),
        (
            "password = \"hunter2\"\npasswordEnv = \"X\"",
            "is given more than once: use one of password, passwordFile and passwordEnv",
        ),
        ("password = []", "must be text, is a list"),
    ] {
        assert_eq!(problems(&swap(lines)), [format!("hatchery.vsphere.password: {wanted}")]);
    }
}

#[test]
fn nothing_that_is_printed_or_sent_holds_a_secret() {
    let text = file(
        r#"
[[hatchery.vsphere.models]]
modelVMWare = "debian12"
username = "cds"
password = "hunter2-model"
[[hatchery.vsphere.guestCredentials]]
modelPath = "team/build"
username = "cds"
password = "hunter2-guest"
"#,
        r#"
token = "hunter2-v1"
[hatchery.vsphere.commonConfiguration.provision]
injectEnvVars = ["TOKEN=hunter2-env"]
[hatchery.vsphere.commonConfiguration.provision.workerLogsOptions.graylog]
extraValue = "hunter2-graylog"
"#,
    );
    let loaded = load(&text);
    let seen = format!("{loaded:?} {}", loaded.config.public_config());
    assert!(!seen.contains("preStartScript"), "{seen}");
    assert!(!seen.contains("hunter2"), "{seen}");
    assert!(!seen.contains("PRIVATE KEY"), "{seen}");
}

#[test]
fn d32_guests_are_logged_in_to_by_models_then_guest_credentials_then_the_model_itself() {
    let config = config(
        r#"
[[hatchery.vsphere.models]]
modelVMWare = "debian12"
username = "from-models"
password = "m"
preStartScript = "resize"
[[hatchery.vsphere.models]]
modelVMWare = "ubuntu24"
preStartScript = "true"
[[hatchery.vsphere.guestCredentials]]
modelVMWare = "debian12"
username = "never"
password = "n"
[[hatchery.vsphere.guestCredentials]]
modelVMWare = "ubuntu24"
username = "from-credentials"
password = "c"
[[hatchery.vsphere.guestCredentials]]
modelPath = "team/build"
username = "from-path"
password = "p"
"#,
        "",
    );
    let path = ModelPath::parse("team/build");
    let own = roost_cds::Secret::from("o");
    let login = |template, model, own| {
        config
            .guests
            .login(GuestOf { template, model, own }, &Pretend::default())
            .map(|login| login.user)
    };
    assert_eq!(login("debian12", None, Some(("own", &own))).unwrap(), "from-models");
    assert_eq!(login("ubuntu24", None, Some(("own", &own))).unwrap(), "from-credentials");
    assert_eq!(login("build", Some(&path), None).unwrap(), "from-path");
    assert_eq!(login("fedora", None, Some(("own", &own))).unwrap(), "own");
    let nobody = login("fedora", None, Some(("", &own))).unwrap_err().to_string();
    assert!(nobody.starts_with("no user and password for the guests of fedora"), "{nobody}");
    assert_eq!(config.guests.pre_start_script("debian12"), Some("resize"));
    assert_eq!(config.guests.pre_start_script("fedora"), None);
}
