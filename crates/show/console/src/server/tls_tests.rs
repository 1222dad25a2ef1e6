//! HTTPS over a real socket, with certificates made for the test.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use reqwest::{Certificate, Client, Identity, StatusCode};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::Console;
use crate::fake::{Fake, FakeSteer};
use crate::{ServerTls, Settings};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.distinguished_name = named(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

/// Certificate and key in PEM form.
fn signed(by: &Authority, name: &str, usage: ExtendedKeyUsagePurpose) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.distinguished_name = named(name);
    params.extended_key_usages = vec![usage];
    (params.signed_by(&key, by).unwrap().pem(), key.serialize_pem())
}

struct Lab {
    servers: Authority,
    steer: Arc<FakeSteer>,
    port: u16,
}

/// With client certificates of this authority, and with or without a token.
async fn lab(clients: Option<&Authority>, token: Option<&str>) -> Lab {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let servers = authority("servers");
    let (chain, key) = signed(&servers, "roost", ExtendedKeyUsagePurpose::ServerAuth);
    let client_ca = clients.map(Authority::pem);
    let client_ca = client_ca.as_deref().map(str::as_bytes);
    let tls = ServerTls::from_pem(chain.as_bytes(), key.as_bytes(), client_ca).unwrap();
    let settings = Settings { token: token.map(Into::into), tls: Some(tls), ..Settings::default() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let fake = Fake::default();
    let steer = Arc::clone(&fake.steer);
    let console = Console { house: Arc::new(fake.house()), settings };
    tokio::spawn(console.serve(listener, std::future::pending()));
    Lab { servers, steer, port }
}

impl Lab {
    fn client(&self, own: Option<&(String, String)>) -> Client {
        let trusted = Certificate::from_pem(self.servers.pem().as_bytes()).unwrap();
        let mut builder = Client::builder().no_proxy().tls_certs_only([trusted]);
        if let Some((certificate, key)) = own {
            let pem = format!("{certificate}\n{key}");
            builder = builder.identity(Identity::from_pem(pem.as_bytes()).unwrap());
        }
        builder.build().unwrap()
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }

    /// As if from another machine: a client that comes through a proxy is one.
    async fn look(&self, client: &Client, path: &str) -> StatusCode {
        let request = client.get(self.url(path)).header("X-Forwarded-For", "10.0.0.7");
        request.send().await.unwrap().status()
    }
}

#[tokio::test]
async fn a_client_certificate_opens_what_the_token_opens_and_the_audit_names_it() {
    let clients = authority("clients");
    let lab = lab(Some(&clients), None).await;
    let ada = lab.client(Some(&signed(&clients, "ada", ExtendedKeyUsagePurpose::ClientAuth)));
    assert_eq!(lab.look(&ada, "/api/v1/jobs").await, StatusCode::OK);
    let post = |client: &Client| client.post(lab.url("/api/v1/actions/pause")).send();
    assert_eq!(post(&ada).await.unwrap().status(), StatusCode::OK);
    assert_eq!(
        lab.steer.0.lock().unwrap()[0].to_string(),
        "ada, by client certificate, from 127.0.0.1"
    );
    let page = ada.get(lab.url("/")).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("data-may=\"ada\""), "the page shows what can be done");

    let nobody = lab.client(None);
    assert_eq!(lab.look(&nobody, "/api/v1/jobs").await, StatusCode::FORBIDDEN);
    assert_eq!(lab.look(&nobody, "/bakery/status").await, StatusCode::OK);
    let refused = post(&nobody).await.unwrap();
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let said: Value = serde_json::from_slice(&refused.bytes().await.unwrap()).unwrap();
    assert_eq!(said["error"], "a client certificate is needed");
    let here = nobody.get(lab.url("/api/v1/jobs")).send().await.unwrap();
    assert_eq!(here.status(), StatusCode::OK, "this machine may look, as without TLS");
    let page = nobody.get(lab.url("/")).send().await.unwrap().text().await.unwrap();
    assert!(!page.contains("data-may"));
    assert_eq!(lab.steer.0.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_certificate_of_somebody_else_lets_nobody_in() {
    let (clients, others) = (authority("clients"), authority("clients"));
    let lab = lab(Some(&clients), Some("s3cret")).await;
    for eve in [
        signed(&others, "eve", ExtendedKeyUsagePurpose::ClientAuth),
        signed(&clients, "eve", ExtendedKeyUsagePurpose::ServerAuth),
        signed(&lab.servers, "eve", ExtendedKeyUsagePurpose::ClientAuth),
    ] {
        let asked = lab.client(Some(&eve)).get(lab.url("/bakery/status")).send().await;
        assert!(asked.is_err(), "{asked:?}");
    }
    let nobody = lab.client(None);
    let with_token = nobody.post(lab.url("/api/v1/actions/pause")).bearer_auth("s3cret");
    assert_eq!(with_token.send().await.unwrap().status(), StatusCode::OK, "the token still counts");
}

#[tokio::test]
async fn without_a_client_authority_certificates_are_not_asked_for() {
    let (lab, clients) = (lab(None, Some("s3cret")).await, authority("clients"));
    let ada = lab.client(Some(&signed(&clients, "ada", ExtendedKeyUsagePurpose::ClientAuth)));
    assert_eq!(lab.look(&ada, "/api/v1/jobs").await, StatusCode::UNAUTHORIZED);
    let events = ada.get(lab.url("/api/v1/events")).send().await.unwrap();
    assert_eq!(events.headers()["content-type"], "text/event-stream");
}

#[tokio::test]
async fn who_speaks_plain_http_or_nothing_at_all_holds_up_nobody() {
    let lab = lab(None, None).await;
    let silent = TcpStream::connect(("127.0.0.1", lab.port)).await.unwrap();
    let mut plain = TcpStream::connect(("127.0.0.1", lab.port)).await.unwrap();
    plain.write_all(b"GET /bakery/status HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1.1 200"), "{answer:?}");
    let served = lab.client(None).get(lab.url("/bakery/status")).send().await.unwrap();
    assert_eq!(served.status(), StatusCode::OK);
    drop(silent);
}
