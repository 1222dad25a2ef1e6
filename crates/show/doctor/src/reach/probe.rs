//! Connecting step by step, so that the step that fails has a name.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use roost_tls::TlsTrust;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

use super::Target;
use super::proxy::proxy_for;
use crate::patience::{CONNECT, HANDSHAKE, NAME, within};
use crate::report::Fact;

/// A server that is waited for at more addresses than this would take all of a person's patience.
const MOST_ADDRESSES: usize = 3;

/// How far a connection got.
#[derive(Debug)]
pub struct Reach {
    pub addresses: Fact<Vec<IpAddr>>,
    pub connected: Fact<SocketAddr>,
    /// The chain that the server shows, leaf first; `None` without TLS.
    pub chain: Option<Fact<Vec<CertificateDer<'static>>>>,
}

pub async fn probe(target: &Target) -> Reach {
    let variable = |name: &str| std::env::var(name).ok();
    if let Some(name) = proxy_for(&target.host, target.trust.is_some(), variable) {
        let why = format!("calls go through the proxy that {name} names");
        return Reach {
            addresses: Fact::Skipped(why.clone()),
            connected: Fact::Skipped(why.clone()),
            chain: target.trust.is_some().then_some(Fact::Skipped(why)),
        };
    }
    let addresses = within(NAME, look_up(target)).await;
    let (connected, chain) = if let Ok(addresses) = &addresses {
        connect(target, addresses).await
    } else {
        let why = "the name has no address";
        (Fact::Skipped(why.into()), Fact::Skipped(why.into()))
    };
    let addresses = addresses.map(|all| all.into_iter().map(|address| address.ip()).collect());
    Reach { addresses: addresses.into(), connected, chain: target.trust.is_some().then_some(chain) }
}

async fn look_up(target: &Target) -> io::Result<Vec<SocketAddr>> {
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in lookup_host((target.host.as_str(), target.port)).await? {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

type Chain = Vec<CertificateDer<'static>>;

async fn connect(target: &Target, addresses: &[SocketAddr]) -> (Fact<SocketAddr>, Fact<Chain>) {
    let mut troubles = Vec::new();
    for address in addresses.iter().take(MOST_ADDRESSES) {
        match within(CONNECT, TcpStream::connect(address)).await {
            Err(why) => troubles.push(format!("{address}: {why}")),
            Ok(stream) => {
                let chain = if target.trust.is_some() {
                    within(HANDSHAKE, show_chain(&target.host, stream)).await.into()
                } else {
                    Fact::Skipped("not encrypted".into())
                };
                return (Fact::Known(*address), chain);
            }
        }
    }
    let skipped = Fact::Skipped("there is no connection".into());
    (Fact::Failed(troubles.join("; ")), skipped)
}

/// Shakes hands with whoever is there. Nothing is sent over the connection but the handshake.
async fn show_chain(host: &str, stream: TcpStream) -> io::Result<Chain> {
    // Any certificate will do whose key the server has: what to make of it is decided afterwards.
    let config = TlsTrust::Insecure.client_config().map_err(io::Error::other)?;
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    Ok(chain.to_vec())
}
