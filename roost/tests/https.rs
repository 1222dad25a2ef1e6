//! `roost run` over HTTPS, with client certificates: the service, the commands that ask it, and `roost check` of its files.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod wire;

use std::fs;
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use serde_json::Value;
use wire::{CdsSim, Process, Service, Site, VcenterSim, roost};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

/// Its certificate is in the site's folder as `<name>.pem`.
fn authority(site: &Site, name: &str) -> Authority {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.distinguished_name = named(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let made = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    fs::write(site.file(&format!("{name}.pem")), made.pem()).unwrap();
    made
}

/// `<name>.pem` and `<name>-key.pem` in the site's folder.
fn certificate(site: &Site, by: &Authority, name: &str, usage: ExtendedKeyUsagePurpose) {
    let key = KeyPair::generate().unwrap();
    let hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name = named(name);
    params.extended_key_usages = vec![usage];
    let made = params.signed_by(&key, by).unwrap();
    fs::write(site.file(&format!("{name}.pem")), made.pem()).unwrap();
    fs::write(site.file(&format!("{name}-key.pem")), key.serialize_pem()).unwrap();
}

struct Scene {
    site: Site,
    config: PathBuf,
    _vcenter: VcenterSim,
    _cds: CdsSim,
}

impl Scene {
    fn set(name: &str) -> Self {
        let site = Site::new(name);
        let (servers, clients) = (authority(&site, "servers"), authority(&site, "clients"));
        certificate(&site, &servers, "server", ExtendedKeyUsagePurpose::ServerAuth);
        certificate(&site, &clients, "ada", ExtendedKeyUsagePurpose::ClientAuth);
        let vcenter = VcenterSim::start(&site, &["--vms", "3", "--pace", "quick"]);
        let cds = CdsSim::start(&site, &[]);
        let http = "[hatchery.vsphere.commonConfiguration.http]";
        let config = site.write_config(&vcenter, &cds, "", "");
        let text = fs::read_to_string(&config).unwrap();
        assert!(text.contains(http), "{text}");
        let files = "certFile = \"server.pem\"\nkeyFile = \"server-key.pem\"\nclientCaFile = \"clients.pem\"";
        fs::write(&config, text.replace(http, &format!("{http}\n{files}"))).unwrap();
        Self { site, config, _vcenter: vcenter, _cds: cds }
    }

    fn path(&self, name: &str) -> String {
        self.site.file(name).to_string_lossy().into_owned()
    }

    fn check(&self) -> (bool, String) {
        let mut command = roost(&["check", "-c", "roost.toml"]);
        let output = command.current_dir(self.site.folder()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_speaks_https_and_knows_its_clients_by_their_certificates() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let scene = Scene::set("https");
    let (passed, said) = scene.check();
    assert!(passed, "{said}");
    let mut command = roost(&["run", "-c", "roost.toml"]);
    command.current_dir(scene.site.folder()).env("ROOST_LOG", "info");
    let service = Process::start(command, &scene.site.file(Service::LOG), "serves, https://");
    let url = service.word("https://").trim_end_matches("/mon/status").to_owned();

    let status = |variables: &[(&str, String)]| {
        let mut command = roost(&["status", "--url", &url]);
        command.env_remove("ROOST_TOKEN").envs(variables.iter().map(|(name, path)| (name, path)));
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let ca = ("ROOST_CA_FILE", scene.path("servers.pem"));
    let own =
        [("ROOST_CERT_FILE", scene.path("ada.pem")), ("ROOST_KEY_FILE", scene.path("ada-key.pem"))];
    assert_eq!(status(std::slice::from_ref(&ca)), (true, String::new()), "this machine may look");
    let [certificate, key] = own;
    assert_eq!(status(&[ca, certificate, key]), (true, String::new()));
    let other = ("ROOST_CA_FILE", scene.path("clients.pem"));
    let (passed, said) = status(&[other]);
    assert!(!passed && said.contains("certificate"), "{said}");

    let pem = |name: &str| fs::read(scene.site.file(name)).unwrap();
    let trusted = reqwest::Certificate::from_pem(&pem("servers.pem")).unwrap();
    let ada = [pem("ada.pem"), pem("ada-key.pem")].concat();
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([trusted])
        .identity(reqwest::Identity::from_pem(&ada).unwrap())
        .build()
        .unwrap();
    let paused = client.post(format!("{url}/api/v1/actions/pause")).send().await.unwrap();
    assert_eq!(paused.status(), 200);
    let said = client.get(format!("{url}/api/v1/decisions?verdict=steered")).send().await.unwrap();
    let said: Value = serde_json::from_slice(&said.bytes().await.unwrap()).unwrap();
    let words = said[0]["reason"].as_str().unwrap();
    assert!(words.starts_with("ada, by client certificate, from 127.0.0.1: "), "{said}");
}

#[test]
fn files_that_cannot_be_used_are_told_with_the_path_to_edit() {
    let scene = Scene::set("https-check");
    let good = fs::read_to_string(&scene.config).unwrap();
    for (from, to, words) in [
        ("server.pem", "none.pem", "commonConfiguration.http.certFile: none.pem cannot be read"),
        ("server-key.pem", "ada-key.pem", "http.keyFile: ada-key.pem cannot be used"),
        ("server-key.pem", "ada.pem", "http.keyFile: ada.pem cannot be used"),
        ("clients.pem", "roost.toml", "http.clientCaFile: roost.toml cannot be used"),
        ("keyFile = \"server-key.pem\"\n", "", "http.certFile"),
        ("certFile = \"server.pem\"\n", "", "http.keyFile"),
    ] {
        fs::write(&scene.config, good.replace(from, to)).unwrap();
        let (passed, said) = scene.check();
        assert!(!passed && said.contains(words), "{from} to {to}: {said}");
        assert!(!said.contains("PRIVATE KEY"), "{said}");
    }
}
