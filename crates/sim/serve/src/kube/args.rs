use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;

#[derive(Debug, Parser)]
pub struct SimKube {
    /// Address and port to listen on; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:6443", value_name = "ADDR:PORT")]
    pub(crate) listen: SocketAddr,

    /// File to write the kubeconfig to; it is replaced
    #[arg(long, default_value = "kube-sim.kubeconfig", value_name = "FILE")]
    pub(crate) kubeconfig: PathBuf,

    /// Manifest to apply at start; give it again for more, in their order
    #[arg(long = "apply", value_name = "FILE")]
    pub(crate) manifests: Vec<PathBuf>,

    /// Seed of uids, names and faults; without it a fresh one is taken and printed
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Changes that are kept per kind; a watch from before them gets 410 Gone
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub(crate) history: usize,

    /// Leave owned objects, namespaces and their contents alone, as a server without controller manager does
    #[arg(long)]
    pub(crate) no_controllers: bool,

    /// Serve the control endpoint, by which anyone who reaches it can make requests fail
    #[arg(long)]
    pub(crate) control: bool,
}
