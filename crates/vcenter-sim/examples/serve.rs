//! Serves a simulated vCenter on a port: `cargo run -p roost-vcenter-sim --example serve -- [address] [vms] [--tls] [--esx]`.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use roost_clock::SystemClock;
use roost_vcenter_sim::{Options, Product, Server, TemplateOptions, TlsIdentity, Vcenter};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (flags, plain): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    let listen: SocketAddr = plain.first().map_or("127.0.0.1:8989", String::as_str).parse()?;
    let options = Options {
        vms: plain.get(1).map_or(Ok(2), |text| text.parse())?,
        product: if has("--esx") { Product::HostAgent } else { Product::VirtualCenter },
        templates: vec![TemplateOptions::new("debian12")],
        control_endpoint: true,
        ..Options::default()
    };
    let tls = has("--tls").then(|| TlsIdentity::self_signed(&[])).transpose()?;
    let server = Server::bind(Vcenter::start(options, Arc::new(SystemClock)), listen, tls).await?;
    println!(
        "export GOVC_URL={} GOVC_INSECURE=1 GOVC_USERNAME=user GOVC_PASSWORD=pass",
        server.url()
    );
    server.thumbprint().into_iter().for_each(|thumbprint| println!("SHA-256 {thumbprint}"));
    server.run_until(tokio::signal::ctrl_c()).await;
    Ok(())
}
