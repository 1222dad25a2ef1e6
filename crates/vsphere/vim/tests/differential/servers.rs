//! The two servers, with inventories of the same names.

use std::sync::Arc;

use roost_clock::SystemClock;
use roost_oracle::{Vcsim, VcsimOptions};
use roost_vcenter_sim::{Options, Product, Server, Timings, Vcenter};
use roost_vim::{Client, Credentials, HttpTransport, Settings, TlsTrust};

/// A client and what it is connected to, which ends with it.
pub(crate) struct Connected<T> {
    pub(crate) client: Client,
    _server: T,
}

pub(crate) async fn vcsim(esx: bool) -> Option<Connected<Vcsim>> {
    let options = VcsimOptions { esx, standalone_hosts: 0, ..VcsimOptions::default() };
    let vcsim = tokio::task::spawn_blocking(|| Vcsim::start(options)).await.unwrap()?;
    let client =
        connect(&vcsim.endpoint(), Credentials::new(vcsim.username(), vcsim.password())).await;
    Some(Connected { client, _server: vcsim })
}

pub(crate) async fn our_simulator(esx: bool) -> Connected<tokio::task::JoinHandle<()>> {
    let product = if esx { Product::HostAgent } else { Product::VirtualCenter };
    let options =
        Options { product, standalone_hosts: 0, timings: Timings::instant(), ..Options::default() };
    let vcenter = Vcenter::start(options, Arc::new(SystemClock));
    let server = Server::bind(vcenter, "127.0.0.1:0".parse().unwrap(), None).await.unwrap();
    let url = server.url();
    let running = tokio::spawn(server.run_until(std::future::pending::<()>()));
    Connected { client: connect(&url, Credentials::new("user", "pass")).await, _server: running }
}

async fn connect(url: &str, credentials: Credentials) -> Client {
    let settings = Settings::new(url, credentials).unwrap();
    let transport = Arc::new(HttpTransport::new(&TlsTrust::System).unwrap());
    Client::connect(settings, transport, Arc::new(SystemClock)).await.unwrap()
}
