//! The wire door: HTTP/1.1, with TLS or without.

mod connection;

use std::io;
use std::net::SocketAddr;

use roost_tls::IdentityError;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub use roost_tls::TlsIdentity;

use crate::door::Vcenter;

/// A simulated vCenter on a port.
#[derive(Debug)]
pub struct Server {
    vcenter: Vcenter,
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
}

struct Tls {
    acceptor: TlsAcceptor,
    thumbprint: String,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("thumbprint", &self.thumbprint).finish_non_exhaustive()
    }
}

/// Why the server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("listening on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("TLS")]
    Tls { source: IdentityError },
}

impl Server {
    /// Listens; port 0 takes a free one. Nothing is answered before [`run_until`](Self::run_until).
    pub async fn bind(
        vcenter: Vcenter,
        listen: SocketAddr,
        tls: Option<TlsIdentity>,
    ) -> Result<Self, ServeError> {
        let tls = tls.map(|identity| {
            let thumbprint = identity.thumbprint().to_string();
            let config = identity.server_config().map_err(|source| ServeError::Tls { source })?;
            Ok(Tls { acceptor: TlsAcceptor::from(config), thumbprint })
        });
        let tls = tls.transpose()?;
        let failed = |source| ServeError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        vcenter.handle.set_port(address.port());
        if let Some(tls) = &tls {
            vcenter.handle.set_thumbprint(&tls.thumbprint);
        }
        Ok(Self { vcenter, listener, address, tls })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where clients connect to: `https://127.0.0.1:8989/sdk`.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/sdk", self.address)
    }

    /// SHA-256 of the certificate: upper-case octets joined by colons.
    pub fn thumbprint(&self) -> Option<&str> {
        self.tls.as_ref().map(|tls| tls.thumbprint.as_str())
    }

    /// Serves until `shutdown` completes, then drops every connection.
    pub async fn run_until(self, shutdown: impl Future) {
        tokio::select! {
            _ = shutdown => {}
            () = connection::accept(self) => {}
        }
    }
}
