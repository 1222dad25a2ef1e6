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
    vcsim_with(VcsimOptions { esx, standalone_hosts: 0, ..VcsimOptions::default() }).await
}

/// An inventory with one of everything that the flags can ask for.
pub(crate) async fn full_vcsim() -> Option<Connected<Vcsim>> {
    vcsim_with(VcsimOptions { pools: 1, apps: 1, pods: 1, folders: 1, ..VcsimOptions::default() })
        .await
}

/// The inventory that both have when no flag asks for another.
pub(crate) async fn usual_vcsim() -> Option<Connected<Vcsim>> {
    vcsim_with(VcsimOptions::default()).await
}

pub(crate) async fn usual_simulator() -> Connected<tokio::task::JoinHandle<()>> {
    serve(Options::default()).await
}

pub(crate) async fn full_simulator() -> Connected<tokio::task::JoinHandle<()>> {
    serve(Options { pools: 1, apps: 1, pods: 1, folders: 1, ..Options::default() }).await
}

async fn vcsim_with(options: VcsimOptions) -> Option<Connected<Vcsim>> {
    let vcsim = tokio::task::spawn_blocking(|| Vcsim::start(options)).await.unwrap()?;
    let client =
        connect(&vcsim.endpoint(), Credentials::new(vcsim.username(), vcsim.password())).await;
    Some(Connected { client, _server: vcsim })
}

pub(crate) async fn our_simulator(esx: bool) -> Connected<tokio::task::JoinHandle<()>> {
    let product = if esx { Product::HostAgent } else { Product::VirtualCenter };
    serve(Options { product, standalone_hosts: 0, ..Options::default() }).await
}

async fn serve(options: Options) -> Connected<tokio::task::JoinHandle<()>> {
    let options = Options { timings: Timings::instant(), ..options };
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
