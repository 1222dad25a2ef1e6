//! The wire door: sockets, TLS, and what a client sees when a connection goes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::lab::Lab;
use roost_vcenter_sim::{Action, Options, Outage, Rule, Server, TlsIdentity, Vcenter};
use roost_vim_wire::methods::{CurrentTime, Login, RetrieveServiceContent};
use roost_vim_wire::types::Password;
use roost_vim_wire::{Method, MoRef, MoType, encode_request};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A server that runs until it is told to stop.
struct Running {
    vcenter: Vcenter,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn serve(tls: Option<TlsIdentity>) -> Running {
    let vcenter = Lab::start(Options::default()).await.vcenter;
    let server = Server::bind(vcenter.clone(), "127.0.0.1:0".parse().unwrap(), tls).await.unwrap();
    let address = server.address();
    let (stop, stopped) = oneshot::channel::<()>();
    Running { vcenter, address, stop, task: tokio::spawn(server.run_until(stopped)) }
}

fn post<M: Method>(call: &M, cookie: Option<&str>) -> Vec<u8> {
    let body = encode_request(call, None);
    let cookie = cookie.map(|cookie| format!("cookie: {cookie}\r\n")).unwrap_or_default();
    let head =
        format!("POST /sdk HTTP/1.1\r\nhost: x\r\n{cookie}content-length: {}\r\n\r\n", body.len());
    [head.into_bytes(), body].concat()
}

fn content() -> RetrieveServiceContent {
    RetrieveServiceContent { this: MoRef::service_instance() }
}

/// Sends a request and reads its answer; an empty one means that the connection was closed.
async fn exchange<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
    stream: &mut S,
    request: &[u8],
) -> String {
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    if stream.write_all(request).await.is_err() {
        return String::new();
    }
    loop {
        let count = stream.read(&mut buffer).await.unwrap_or(0);
        answer.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let length = text
            .split_once("content-length: ")
            .and_then(|(_, rest)| rest.split("\r\n").next()?.parse().ok());
        let body = text.split_once("\r\n\r\n").map_or(0, |(_, body)| body.len());
        if count == 0 || length.is_some_and(|length: usize| body >= length) {
            return text;
        }
    }
}

#[tokio::test]
async fn one_connection_carries_many_calls() {
    let running = serve(None).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let answer = exchange(&mut stream, &post(&content(), None)).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 OK")
            && answer.contains("<apiType>VirtualCenter</apiType>"),
        "{answer}"
    );
    let login = Login {
        this: MoRef::new(MoType::SessionManager, "SessionManager"),
        user_name: "user".into(),
        password: Password("pass".into()),
        locale: None,
    };
    let answer = exchange(&mut stream, &post(&login, None)).await;
    assert!(
        answer.contains("<ipAddress>127.0.0.1</ipAddress>") && !answer.contains("; Secure"),
        "{answer}"
    );
    let cookie = answer.split_once("set-cookie: ").unwrap().1.split(';').next().unwrap().to_owned();
    let ask = post(&CurrentTime { this: MoRef::service_instance() }, Some(&cookie));
    assert!(exchange(&mut stream, &ask).await.contains("CurrentTimeResponse"));
    assert_eq!(running.vcenter.counters().open_sessions, 1);
}

#[tokio::test]
async fn tls_shows_a_certificate_that_fits_its_thumbprint() {
    let identity = TlsIdentity::self_signed("vCenter simulator", &["vcenter.example"]).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.certificate_der().to_vec().into()).unwrap();
    let thumbprint = identity.thumbprint().to_string();
    assert_eq!((thumbprint.len(), thumbprint.split(':').count()), (95, 32));
    let running = serve(Some(identity)).await;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    for name in ["localhost", "127.0.0.1", "vcenter.example"] {
        let stream = TcpStream::connect(running.address).await.unwrap();
        let mut stream =
            connector.connect(ServerName::try_from(name).unwrap(), stream).await.unwrap();
        assert!(
            exchange(&mut stream, &post(&content(), None))
                .await
                .contains("<rootFolder type=\"Folder\">")
        );
    }
    let mut plain = TcpStream::connect(running.address).await.unwrap();
    let answer = exchange(&mut plain, &post(&content(), None)).await;
    assert!(!answer.contains("HTTP/1.1"), "nothing is answered in the clear");
}

#[tokio::test]
async fn a_certificate_can_be_given_and_a_bad_one_is_refused() {
    assert!(TlsIdentity::from_pem(b"", b"").is_err());
    assert!(
        TlsIdentity::from_pem(
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            b"x"
        )
        .is_err()
    );
}

#[tokio::test]
async fn a_cut_connection_is_closed_without_an_answer() {
    let running = serve(None).await;
    running.vcenter.faults().add(Rule::new("RetrieveServiceContent", Action::CutAfter).once());
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    assert_eq!(exchange(&mut stream, &post(&content(), None)).await, "");
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    assert!(exchange(&mut stream, &post(&content(), None)).await.contains("200 OK"));
}

#[tokio::test]
async fn a_restart_closes_connections_and_refuses_new_ones_for_a_while() {
    let running = serve(None).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    exchange(&mut stream, &post(&content(), None)).await;
    running.vcenter.restart(Outage { lasts: Duration::from_millis(500), refuses: true });
    assert_eq!(exchange(&mut stream, &post(&content(), None)).await, "");
    let mut refused = false;
    // A level, not a moment: sooner or later it refuses, and sooner or later it is back.
    let mut stream = loop {
        match TcpStream::connect(running.address).await {
            Ok(mut stream) if refused => {
                if exchange(&mut stream, &post(&content(), None)).await.contains("200 OK") {
                    break stream;
                }
            }
            Ok(_) => {}
            Err(_) => refused = true,
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert!(exchange(&mut stream, &post(&content(), None)).await.contains("200 OK"));
}

#[tokio::test]
async fn a_server_that_stops_closes_its_port_and_connections() {
    let running = serve(None).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    exchange(&mut stream, &post(&content(), None)).await;
    running.stop.send(()).unwrap();
    running.task.await.unwrap();
    assert_eq!(exchange(&mut stream, &post(&content(), None)).await, "");
    assert!(TcpStream::connect(running.address).await.is_err());
}
