//! The transport on real sockets: TLS trust, compression, and what it does not do.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use http::{Request, Uri};
use http_body_util::{BodyExt, Empty};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use roost_vim::{Body, HttpTransport, Thumbprint, TlsTrust, Transport};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ResolvesServerCertUsingSni;
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const PLAIN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    response: &[u8],
) -> io::Result<String> {
    let (mut request, mut buffer) = (Vec::new(), [0; 1024]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer).await? {
            0 => break,
            read => request.extend_from_slice(&buffer[..read]),
        }
    }
    stream.write_all(response).await?;
    stream.shutdown().await?;
    Ok(String::from_utf8_lossy(&request).to_ascii_lowercase())
}

/// Serves one answer to each connection, with TLS if there is a configuration for it.
async fn serve(
    tls: Option<ServerConfig>,
    response: Vec<u8>,
) -> (SocketAddr, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (requests, seen) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let tls = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
        while let Ok((stream, _)) = listener.accept().await {
            let request = match &tls {
                None => answer(stream, &response).await,
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => answer(stream, &response).await,
                    Err(refused) => Err(refused),
                },
            };
            if let Ok(request) = request {
                let _ = requests.send(request);
            }
        }
    });
    (address, seen)
}

struct Identity {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

fn self_signed(host: &str) -> Identity {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec![host.to_owned()]).unwrap().self_signed(&key).unwrap();
    Identity { certificate: certificate.der().clone(), key }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn config(identity: &Identity) -> ServerConfig {
    let key = PrivateKeyDer::try_from(identity.key.serialize_der()).unwrap();
    ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate.clone()], key)
        .unwrap()
}

async fn get(transport: &HttpTransport, url: &str) -> io::Result<(u16, String)> {
    let body: Body = Empty::new().map_err(|never| match never {}).boxed();
    let mut request = Request::new(body);
    *request.uri_mut() = Uri::try_from(url).unwrap();
    let response = transport.send(request).await?;
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
}

#[tokio::test]
async fn a_certificate_is_believed_only_for_a_reason() {
    let identity = self_signed("localhost");
    let right = Thumbprint::of(&identity.certificate);
    let wrong = Thumbprint::of(b"another certificate");
    let (address, _seen) = serve(Some(config(&identity)), PLAIN.to_vec()).await;
    let url = format!("https://localhost:{}/", address.port());
    let new = |trust| HttpTransport::new(&trust).unwrap();
    for (case, transport, wanted) in [
        ("the system knows it not", new(TlsTrust::System), false),
        ("the right thumbprint", new(TlsTrust::Thumbprint(right)), true),
        ("a wrong thumbprint", new(TlsTrust::Thumbprint(wrong)), false),
        ("everyone is believed", new(TlsTrust::Insecure), true),
        ("pinned for this host", new(TlsTrust::System).with_pin("localhost", right), true),
        ("pinned for another host", new(TlsTrust::System).with_pin("esx-1", right), false),
    ] {
        match get(&transport, &url).await {
            Ok((200, text)) => assert!(wanted && text == "hello", "{case}"),
            Ok(other) => panic!("{case}: {other:?}"),
            Err(error) => {
                assert!(!wanted, "{case}: {error}");
                let line = error.to_string();
                assert!(line.contains("certificate") && !line.contains('\n'), "{case}: {line}");
            }
        }
    }
    // A pin can come later, with an answer of a server that is trusted already.
    let transport = new(TlsTrust::System);
    assert!(get(&transport, &url).await.is_err());
    transport.trust("localhost", right);
    assert!(get(&transport, &url).await.is_ok());
}

#[tokio::test]
async fn a_ca_file_is_believed_and_nothing_beside_it() {
    let mut ca = CertificateParams::new(vec![]).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("core_http_ca.pem");
    let other = rcgen::generate_simple_self_signed(vec!["other".to_owned()]).unwrap();
    std::fs::write(&path, format!("{}{}", other.cert.pem(), ca.pem())).unwrap();
    let transport = HttpTransport::new(&TlsTrust::CaFile(path)).unwrap();

    let key = KeyPair::generate().unwrap();
    let signed =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &ca).unwrap();
    let (address, _seen) =
        serve(Some(config(&Identity { certificate: signed.der().clone(), key })), PLAIN.to_vec())
            .await;
    assert!(get(&transport, &format!("https://localhost:{}/", address.port())).await.is_ok());
    let wrong_name = get(&transport, &format!("https://127.0.0.1:{}/", address.port())).await;
    assert!(wrong_name.is_err(), "the name is part of it");

    let (address, _seen) = serve(Some(config(&self_signed("localhost"))), PLAIN.to_vec()).await;
    assert!(get(&transport, &format!("https://localhost:{}/", address.port())).await.is_err());
}

/// Who has copied a pinned certificate still lacks its key.
#[tokio::test]
async fn a_pinned_certificate_without_its_key_is_refused() {
    let (identity, thief) = (self_signed("localhost"), KeyPair::generate().unwrap());
    let key = PrivateKeyDer::try_from(thief.serialize_der()).unwrap();
    let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
    let stolen = CertifiedKey::new(vec![identity.certificate.clone()], key);
    let mut resolver = ResolvesServerCertUsingSni::new();
    resolver.add("localhost", stolen).unwrap();
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    let (address, _seen) = serve(Some(config), PLAIN.to_vec()).await;
    let url = format!("https://localhost:{}/", address.port());
    for trust in [TlsTrust::Thumbprint(Thumbprint::of(&identity.certificate)), TlsTrust::Insecure] {
        assert!(get(&HttpTransport::new(&trust).unwrap(), &url).await.is_err(), "{trust:?}");
    }
}

#[tokio::test]
async fn compressed_answers_are_unpacked() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(b"<Envelope/>").unwrap();
    let packed = gzip.finish().unwrap();
    let mut response = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        packed.len()
    )
    .into_bytes();
    response.extend(packed);
    let (address, mut seen) = serve(None, response).await;
    let transport = HttpTransport::new(&TlsTrust::Insecure).unwrap();
    assert_eq!(
        get(&transport, &format!("http://{address}/")).await.unwrap(),
        (200, "<Envelope/>".to_owned())
    );
    assert!(seen.recv().await.unwrap().contains("accept-encoding: gzip"));
}

#[tokio::test]
async fn redirects_are_not_followed_and_cookies_not_kept() {
    let redirect = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n";
    let (address, mut seen) = serve(None, redirect.to_vec()).await;
    let transport = HttpTransport::new(&TlsTrust::Insecure).unwrap();
    for _ in 0..2 {
        assert_eq!(get(&transport, &format!("http://{address}/")).await.unwrap().0, 302);
        assert!(!seen.recv().await.unwrap().contains("cookie:"));
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_and_one_that_hangs_up_are_told_apart() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let transport = HttpTransport::new(&TlsTrust::Insecure).unwrap();
    let refused = get(&transport, &format!("http://{gone}/?ticket=secret")).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    assert!(!refused.to_string().contains("secret"), "{refused}");
    let (address, _seen) =
        serve(None, b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf".to_vec()).await;
    let cut = get(&transport, &format!("http://{address}/")).await.unwrap_err();
    assert_ne!(cut.kind(), io::ErrorKind::ConnectionRefused);
}
