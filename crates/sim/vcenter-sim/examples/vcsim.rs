//! Stands in for govmomi's `vcsim` where scripts start one: the same flags, the same environment file, our server.
//!
//! ```sh
//! cargo run -p roost-vcenter-sim --example vcsim -- -l 127.0.0.1:8989 -cluster 2 -vm 10
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use roost_clock::{Random, SystemClock};
use roost_vcenter_sim::{
    Credentials, Options, Product, Server, TemplateOptions, Timings, TlsIdentity, Vcenter,
};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|command| command == "uuidgen") {
        println!("{}", Random::from_system().uuid());
        return Ok(());
    }
    let flags = Flags::parse(&arguments)?;
    let is_tls = flags.is_on("tls", true)?;
    let listen = flags.text("l").unwrap_or("127.0.0.1:8989").parse()?;
    let tls = is_tls
        .then(|| TlsIdentity::self_signed("vcsim", &["127.0.0.1", "localhost"]))
        .transpose()?;
    let options = flags.options()?;
    let (user, password) = match &options.credentials {
        Some(only) => (only.user.clone(), only.password.clone()),
        None => ("user".into(), "pass".into()),
    };
    let vcenter = Vcenter::start(options, Arc::new(SystemClock));
    let server = Server::bind(vcenter, listen, tls).await?;
    let url = server.url().replacen("://", &format!("://{user}:{password}@"), 1);
    let exports = format!("export GOVC_URL={url} GOVC_SIM_PID={}\n", std::process::id());
    match flags.text("E") {
        Some(file) => std::fs::write(file, exports)?,
        None => print!("{exports}"),
    }
    // Ending on request is no failure: scripts look at the status.
    let mut ended = signal(SignalKind::terminate())?;
    let mut quit = signal(SignalKind::quit())?;
    let stop = async {
        tokio::select! {
            _ = ended.recv() => {}
            _ = quit.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    };
    server.run_until(stop).await;
    Ok(())
}

/// What Go's flag package makes of `-vm 2`, `--vm=2` and `-esx`.
#[derive(Debug)]
struct Flags(BTreeMap<String, String>);

/// Flags that need no value behind them.
const SWITCHES: &[&str] = &["esx", "tls", "autostart", "trace", "stdinexit"];

impl Flags {
    fn parse(arguments: &[String]) -> Result<Self, Box<dyn Error>> {
        let (mut flags, mut rest) = (BTreeMap::new(), arguments.iter());
        while let Some(argument) = rest.next() {
            let flag = argument.trim_start_matches('-');
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None if SWITCHES.contains(&flag) => (flag, "true".to_owned()),
                None => {
                    (flag, rest.next().ok_or_else(|| format!("-{flag} needs a value"))?.clone())
                }
            };
            flags.insert(name.to_owned(), value);
        }
        Ok(Self(flags))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn number(&self, name: &str, default: usize) -> Result<usize, Box<dyn Error>> {
        Ok(self.text(name).map(str::parse).transpose()?.unwrap_or(default))
    }

    fn is_on(&self, name: &str, default: bool) -> Result<bool, Box<dyn Error>> {
        Ok(self.text(name).map(str::parse).transpose()?.unwrap_or(default))
    }

    /// A login may be a file that holds it.
    fn secret(&self, name: &str) -> Option<String> {
        let given = self.text(name)?;
        Some(
            std::fs::read_to_string(given).map_or_else(|_| given.into(), |text| text.trim().into()),
        )
    }

    fn options(&self) -> Result<Options, Box<dyn Error>> {
        let usual = Options::default();
        let credentials = match (self.secret("username"), self.secret("password")) {
            (None, None) => None,
            (user, password) => Some(Credentials {
                user: user.unwrap_or_else(|| "user".into()),
                password: password.unwrap_or_else(|| "pass".into()),
            }),
        };
        Ok(Options {
            product: if self.is_on("esx", false)? {
                Product::HostAgent
            } else {
                Product::VirtualCenter
            },
            datacenters: self.number("dc", usual.datacenters)?,
            clusters: self.number("cluster", usual.clusters)?,
            hosts: self.number("host", usual.hosts)?,
            standalone_hosts: self.number("standalone-host", usual.standalone_hosts)?,
            pools: self.number("pool", usual.pools)?,
            apps: self.number("app", usual.apps)?,
            vms: self.number("vm", usual.vms)?,
            autostart: self.is_on("autostart", true)?,
            templates: Vec::<TemplateOptions>::new(),
            datastores: self.number("ds", usual.datastores)?,
            pods: self.number("pod", usual.pods)?,
            portgroups: self.number("pg", usual.portgroups)?,
            folders: self.number("folder", usual.folders)?,
            api_version: self.text("api-version").unwrap_or(&usual.api_version).into(),
            timings: Timings::instant(),
            credentials,
            ..usual
        })
    }
}
