//! Servers that cannot be reached, not be believed, or do not let us in.

use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use roost_clock::SystemClock;
use roost_vcenter_sim::{Options, Server, TlsIdentity, Vcenter};
use serde_json::json;
use tokio::time::Instant;

use crate::examination::{Examination, Scene, doctor};

#[test]
fn a_wrong_password_fails_the_login_and_the_rest_is_skipped() {
    let scene = Scene::with("doctor-password", &["--login", "roost:right"]);
    let found = scene.examine(&[]);
    found.expect_failures(&["login"]);
    found.expect("fail", "login", "the vCenter refuses roost");
    found.expect("fail", "login", "hatchery.vsphere.user");
    for check in ["clock", "datacenter", "pool", "privileges", "addresses", "own VMs"] {
        found.expect("skip", check, "not logged in");
    }
    found.expect("skip", "template", "debian12: not logged in");
}

#[test]
fn a_dead_port_fails_the_connection_and_the_rest_is_skipped() {
    let scene = Scene::new("doctor-dead-port");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    scene.rewrite(scene.vcenter.endpoint(), &port.to_string());
    let found = scene.examine(&[]);
    found.expect_failures(&["connection"]);
    found.expect("fail", "connection", "refused");
    found.expect("skip", "certificate", "there is no connection");
    found.expect("skip", "all else", "there is no connection");
}

#[test]
fn a_name_without_an_address_is_told_as_such() {
    let scene = Scene::new("doctor-name");
    scene.rewrite(scene.vcenter.endpoint(), "vcenter.invalid:443");
    scene.rewrite(scene.cds.url(), "http://cds.invalid");
    let found = scene.examine(&[]);
    found.expect_failures(&["name", "name"]);
    found.expect("skip", "connection", "the name has no address");
}

/// As a server whose process is stopped: its port answers, and nobody is behind it.
#[tokio::test]
async fn servers_that_hang_end_the_doctor_in_time() {
    let scene = Scene::new("doctor-hangs");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    scene.rewrite(scene.cds.url(), &format!("http://{}", silent.local_addr().unwrap()));
    scene
        .vcenter
        .control
        .post("rules", &json!({"method": "HasPrivilegeOnEntities", "action": "hang"}))
        .await;
    let began = Instant::now();
    let found = scene.examine(&[]);
    assert!(began.elapsed() < Duration::from_mins(2), "{:?}", began.elapsed());
    found.expect_failures(&["version"]);
    found.expect("fail", "version", "no answer within");
    found.expect("skip", "V1 token", "the API does not answer");
    found.expect("warn", "privileges", "does not tell them");
    found.expect("pass", "own VMs", "");
}

#[test]
fn a_server_that_says_nothing_in_the_handshake_fails_the_certificate() {
    let scene = Scene::new("doctor-silent");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    scene.rewrite(scene.vcenter.endpoint(), &silent.local_addr().unwrap().to_string());
    let found = scene.examine(&[]);
    found.expect_failures(&["certificate"]);
    found.expect("fail", "certificate", "no answer within");
    found.expect("skip", "all else", "no connection that can be trusted");
}

fn pem(identity: &TlsIdentity) -> String {
    let text = STANDARD.encode(identity.certificate_der());
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

#[tokio::test]
async fn a_certificate_is_believed_by_its_authority_or_it_is_said_how_it_can_be() {
    let scene = Scene::new("doctor-ca");
    let identity = TlsIdentity::self_signed("vCenter simulator", &[]).unwrap();
    let (thumbprint, own) = (identity.thumbprint().to_string(), pem(&identity));
    let vcenter = Vcenter::start(Options::default(), Arc::new(SystemClock));
    let server =
        Server::bind(vcenter, "127.0.0.1:0".parse().unwrap(), Some(identity)).await.unwrap();
    let address = server.address().to_string();
    let serving = tokio::spawn(server.run_until(std::future::pending::<()>()));
    scene.rewrite(scene.vcenter.endpoint(), &address);
    let pinned = format!("thumbprint = \"{}\"", scene.vcenter.thumbprint());
    fs::write(scene.site.file("own.pem"), own).unwrap();
    let other = TlsIdentity::self_signed("vCenter simulator", &[]).unwrap();
    fs::write(scene.site.file("other.pem"), pem(&other)).unwrap();
    let examine = async |site: crate::wire::Site| {
        let examined = tokio::task::spawn_blocking(move || {
            let found = Examination::of(&doctor(&site, &["-c", "roost.toml", "--json"]));
            (found, site)
        });
        examined.await.unwrap()
    };
    let Scene { site, vcenter: _vcenter, cds: _cds } = scene;
    let rewrite = |site: &crate::wire::Site, from: &str, to: &str| {
        let text = fs::read_to_string(site.file("roost.toml")).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(site.file("roost.toml"), text.replace(from, to)).unwrap();
    };

    let (found, site) = examine(site).await;
    let line = found.expect("fail", "certificate", "not trusted");
    assert!(line.contains(&thumbprint) && line.contains("caFile"), "{line}");
    found.expect_failures(&["certificate"]);
    found.expect("skip", "all else", "no connection that can be trusted");

    rewrite(&site, &pinned, "caFile = \"own.pem\"");
    let (found, site) = examine(site).await;
    found.expect("pass", "certificate", "trusted by own.pem");
    found.expect("pass", "login", "roost");

    rewrite(&site, "own.pem", "other.pem");
    let (found, site) = examine(site).await;
    let line = found.expect("fail", "certificate", "not trusted");
    assert!(line.contains(&thumbprint), "{line}");

    rewrite(&site, "caFile = \"other.pem\"", "insecure = true");
    let (found, site) = examine(site).await;
    found.expect("warn", "certificate", "not verified");

    rewrite(&site, "insecure = true", "caFile = \"no-such.pem\"");
    let (found, _) = examine(site).await;
    found.expect("fail", "certificate", "no-such.pem cannot be read");
    serving.abort();
}

#[test]
fn a_wrong_clock_is_a_warning_or_by_much_a_failure() {
    let found = Scene::with("doctor-clock", &["--clock-skew", "30"]).examine(&[]);
    let line = found.expect("warn", "clock", "s ahead of this machine");
    // As far as the way of the answer is unknown on a busy machine.
    let is_about = |secs: u32| line.contains(&format!("the vCenter is {secs} s ahead of"));
    assert!((29..=31).any(is_about), "{line}");
    assert_eq!(found.code, Some(0));
    let found = Scene::with("doctor-clock-much", &["--clock-skew", "-3600"]).examine(&[]);
    found.expect_failures(&["clock"]);
    found.expect("fail", "clock", "behind this machine");
    found.expect("fail", "clock", "time servers");
}

#[test]
fn a_wrong_token_is_refused_by_name() {
    let scene = Scene::new("doctor-tokens");
    scene.rewrite("demo-consumer-token", "stolen-token");
    let found = scene.examine(&[]);
    found.expect_failures(&["V1 token"]);
    found.expect("fail", "V1 token", "api.token");
    found.expect("skip", "V1 models", "not signed in");
    scene.rewrite("demo-hatchery-token", "other-token");
    let found = scene.examine(&["--sign-in"]);
    found.expect_failures(&["V1 token", "V2 token"]);
    found.expect("fail", "V2 token", "api.tokenV2");
}

#[test]
fn a_host_without_a_vcenter_cannot_clone() {
    let scene = Scene::with("doctor-esx", &["--esx"]);
    scene.rewrite("datacenterString = \"DC0\"", "datacenterString = \"ha-datacenter\"");
    scene.examine(&[]).expect("fail", "version", "no vCenter");
}
