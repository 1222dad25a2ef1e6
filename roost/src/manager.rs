//! What the managers of Kubernetes doors share: their lease, the addresses on which they serve, and the page.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use clap::Args;
use roost_clock::{Clock, Random, SystemClock};
use roost_console::{Console, Port, Settings, Starter};
use roost_controller::LeaseSettings;
use roost_controller::serve::{Tls, serve};
use roost_door::{Core, Feed, FrontDoor, History, House, Links};
use roost_tls::{ServerFiles, ServerTls, TlsIdentity};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::page::{OwnMetrics, keep_open};

/// A lease of this name, held under a name that no other process has.
pub(crate) fn lease(namespace: &str, name: &str) -> LeaseSettings {
    let host = std::env::var("POD_NAME").or_else(|_| std::env::var("HOSTNAME"));
    let part = Random::from_system().fork("identity").next_u64();
    let identity = format!("{}_{part:016x}", host.unwrap_or_else(|_| "roost".to_owned()));
    LeaseSettings::new(namespace, name, &identity)
}

/// How often those who look at the page are told that it may have changed.
const GLANCE: Duration = Duration::from_secs(1);

/// The page beside the upstream manager's own servers.
#[derive(Debug, Args)]
pub(crate) struct PageOptions {
    /// Address of the page and of what `roost explain` asks, such as 127.0.0.1:8086; 0 serves none
    #[arg(long, default_value = "0", value_name = "ADDR")]
    console_bind_address: String,

    /// File with the token that opens the page from other machines and lets people act
    #[arg(long, value_name = "FILE")]
    console_token_file: Option<PathBuf>,

    /// Where a VM is shown in the vSphere client, for links on the page; {id} and {name} are replaced
    #[arg(long = "console-link-vm", value_name = "URL", value_parser = web_address)]
    link_vm: Option<String>,

    /// Where the documentation is, for links to runbooks; {page} is replaced
    #[arg(long = "console-link-docs", value_name = "URL", value_parser = web_address)]
    link_docs: Option<String>,
}

/// A link opens a page, and runs nothing.
fn web_address(text: &str) -> Result<String, String> {
    if text.starts_with("https://") || text.starts_with("http://") {
        return Ok(text.to_owned());
    }
    Err("must begin with https:// or http://".to_owned())
}

impl PageOptions {
    /// Shows the door until the servers are closed.
    pub(crate) async fn show(
        &self,
        servers: &mut Servers,
        own: &OwnMetrics,
        door: Arc<dyn FrontDoor>,
        core: Option<Arc<dyn Core>>,
    ) -> anyhow::Result<()> {
        let Some(address) = address(&self.console_bind_address)? else { return Ok(()) };
        let token = self.console_token_file.as_ref().map(|path| {
            let text = std::fs::read_to_string(path);
            let text =
                text.with_context(|| format!("reading --console-token-file {}", path.display()))?;
            anyhow::Ok(text.trim().to_owned().into())
        });
        let settings = Settings { token: token.transpose()?, forwarded_header: None, tls: None };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("listening on {address}"))?;
        let name = door.words().name.to_owned();
        let starter = Starter {
            service: name.clone(),
            service_type: name.clone(),
            hostname: String::new(),
            clock: Arc::clone(&clock),
        };
        let port = Port::new(listener, None, starter);
        let feed = Feed::default();
        let house = Arc::new(House {
            name,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: clock.now(),
            clock,
            observes_only: false,
            doors: vec![door],
            core,
            feed: feed.clone(),
            history: History::default(),
            links: Links {
                vm: self.link_vm.clone(),
                docs: self.link_docs.clone(),
                ..Links::default()
            },
            demonstration: None,
        });
        port.show(Console { house, settings });
        let tasks = keep_open(&port, servers.closing.subscribe(), own.task_restarted());
        let ended = servers.closed();
        servers.running.spawn(async move {
            let glancing = async {
                loop {
                    tokio::time::sleep(GLANCE).await;
                    if feed.has_listeners() {
                        feed.touch();
                    }
                }
            };
            tokio::select! {
                () = ended => tasks.finished().await,
                () = glancing => {}
            }
        });
        Ok(())
    }
}

/// The files of a certificate.
#[derive(Debug)]
pub(crate) struct CertificateFiles<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) certificate: &'a str,
    pub(crate) key: &'a str,
    /// The option that names the folder.
    pub(crate) option: &'static str,
}

impl CertificateFiles<'_> {
    pub(crate) fn read(&self) -> anyhow::Result<ServerTls> {
        let (certificate, key) = (self.folder.join(self.certificate), self.folder.join(self.key));
        ServerTls::from_files(ServerFiles { certificate, key, client_ca: None })
            .context(self.option)
    }
}

/// From files, or made for this process: who reads metrics does not know its authority anyway.
pub(crate) fn metrics_tls(
    name: &str,
    files: Option<CertificateFiles<'_>>,
) -> anyhow::Result<ServerTls> {
    if let Some(files) = files {
        return files.read();
    }
    let made = TlsIdentity::self_signed(&format!("{name} metrics"), &[]);
    let made = made.context("making a certificate")?;
    let (chain, key) = (made.certificate_pem(), made.key_pem());
    ServerTls::from_pem(chain.as_bytes(), key.as_bytes(), None).context("making a certificate")
}

/// Servers beside the work: probes, metrics, webhooks and the page.
#[derive(Debug)]
pub(crate) struct Servers {
    running: JoinSet<()>,
    closing: watch::Sender<bool>,
}

impl Servers {
    pub(crate) fn new() -> Self {
        Self { running: JoinSet::new(), closing: watch::Sender::new(false) }
    }

    pub(crate) async fn serve(
        &mut self,
        address: SocketAddr,
        tls: Tls,
        router: Router,
    ) -> anyhow::Result<()> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("listening on {address}"))?;
        let ended = self.closed();
        self.running.spawn(serve(listener, tls, router, ended));
        Ok(())
    }

    fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut closing = self.closing.subscribe();
        async move {
            let _ = closing.wait_for(|is_closing| *is_closing).await;
        }
    }

    /// Lets answers that are under way end.
    pub(crate) async fn close(mut self) {
        self.closing.send_replace(true);
        while self.running.join_next().await.is_some() {}
    }
}

/// As Go writes it: `:8443`, `0` for none.
pub(crate) fn address(text: &str) -> anyhow::Result<Option<SocketAddr>> {
    if text == "0" || text.is_empty() {
        return Ok(None);
    }
    let text = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    text.parse()
        .map(Some)
        .with_context(|| format!("{text:?} is no address; write :8443, 127.0.0.1:8443 or 0"))
}
