//! A wire between a client and a real server that can be cut.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

/// Passes bytes on until it is cut; then every connection breaks, and new ones can be made.
pub(crate) struct Wire {
    url: String,
    cut: broadcast::Sender<()>,
    broken: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Wire {
    pub(crate) async fn to(server: &str) -> Self {
        let server = server.trim_start_matches("https://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let (cut, broken) = (broadcast::channel(1).0, Arc::new(AtomicUsize::new(0)));
        let task = tokio::spawn(pass_on(listener, server, cut.clone(), Arc::clone(&broken)));
        Self { url, cut, broken, task }
    }

    /// As the kubeconfig has it, through the wire.
    pub(crate) async fn client(&self, kubeconfig: &Path) -> Client {
        let read = Kubeconfig::read_from(kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(read, &options).await.unwrap();
        config.cluster_url = self.url.parse().unwrap();
        Client::try_from(config).unwrap()
    }

    pub(crate) fn cut(&self) {
        let _ = self.cut.send(());
    }

    /// How many connections were cut so far.
    pub(crate) fn cuts(&self) -> usize {
        self.broken.load(Ordering::Relaxed)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass_on(
    listener: TcpListener,
    server: String,
    cut: broadcast::Sender<()>,
    broken: Arc<AtomicUsize>,
) {
    while let Ok((mut near, _)) = listener.accept().await {
        let (server, mut cut, broken) = (server.clone(), cut.subscribe(), Arc::clone(&broken));
        tokio::spawn(async move {
            // A server that is away refuses, and so does the wire.
            let Ok(mut far) = TcpStream::connect(&server).await else { return };
            tokio::select! {
                _ = copy_bidirectional(&mut near, &mut far) => {}
                _ = cut.recv() => {
                    broken.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
}
