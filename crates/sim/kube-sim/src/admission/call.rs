//! Reaching a webhook.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use base64::Engine as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::sim::KubeSim;

type Answer = Pin<Box<dyn Future<Output = Value> + Send>>;

/// A webhook in this process: from an `AdmissionReview` or a `ConversionReview` to the same with a response.
#[derive(Clone)]
pub struct WebhookHandler(Arc<dyn Fn(Value) -> Answer + Send + Sync>);

impl WebhookHandler {
    pub fn new<F, A>(handler: F) -> Self
    where
        F: Fn(Value) -> A + Send + Sync + 'static,
        A: Future<Output = Value> + Send + 'static,
    {
        Self(Arc::new(move |review| Box::pin(handler(review))))
    }
}

impl fmt::Debug for WebhookHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookHandler")
    }
}

impl KubeSim {
    /// Answers calls of webhooks in process. `address` is what their `clientConfig` says: a URL, or
    /// `NAMESPACE/NAME/PATH` of a service.
    pub fn serve_webhook(&self, address: &str, handler: WebhookHandler) {
        self.handlers().insert(address.to_owned(), handler);
    }

    pub(crate) async fn call(&self, client_config: &Value, review: Value) -> Result<Value, String> {
        let service = &client_config["service"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let address = if service.is_object() {
            format!(
                "{}/{}{}",
                text(&service["namespace"]),
                text(&service["name"]),
                text(&service["path"])
            )
        } else {
            text(&client_config["url"])
        };
        let handler = self.handlers().get(&address).cloned();
        match handler {
            Some(handler) => Ok((handler.0)(review).await),
            None if service.is_object() => {
                Err(format!("service {address} has no address in a simulated cluster"))
            }
            None => post(&address, &text(&client_config["caBundle"]), &review).await,
        }
    }
}

/// Posts over HTTPS, trusting only the bundle.
async fn post(url: &str, ca_bundle: &str, review: &Value) -> Result<Value, String> {
    let uri: http::Uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
    let host = uri.host().ok_or_else(|| format!("{url} names no host"))?.to_owned();
    let address = format!("{host}:{}", uri.port_u16().unwrap_or(443));
    let stream = TcpStream::connect(&address)
        .await
        .map_err(|error| format!("dial tcp {address}: connect: {error}"))?;
    let name = ServerName::try_from(host.clone()).map_err(|error| format!("{host}: {error}"))?;
    let connector = TlsConnector::from(Arc::new(trust(ca_bundle)?));
    let stream = connector.connect(name, stream).await.map_err(|error| format!("tls: {error}"))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let request = http::Request::post(uri.path_and_query().map_or("/", |path| path.as_str()))
        .header(http::header::HOST, &address)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(review.to_string())))
        .map_err(|error| error.to_string())?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body =
            response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        if !status.is_success() {
            return Err(format!("an error on the server ({status})"));
        }
        serde_json::from_slice(&body).map_err(|error| error.to_string())
    };
    tokio::select! {
        answer = exchange => answer,
        ended = connection => Err(format!("the connection ended: {ended:?}")),
    }
}

fn trust(ca_bundle: &str) -> Result<rustls::ClientConfig, String> {
    let pem = base64::engine::general_purpose::STANDARD
        .decode(ca_bundle)
        .map_err(|error| format!("caBundle: {error}"))?;
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| format!("caBundle: {error}"))?;
        roots.add(certificate).map_err(|error| format!("caBundle: {error}"))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
