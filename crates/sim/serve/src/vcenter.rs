//! `roost sim vcenter`: the embedded vCenter on a port.

mod args;

pub use self::args::SimVcenter;

use std::sync::Arc;

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use roost_client::{interruption, say};
use roost_clock::{Clock, Random, SystemClock};
use roost_vcenter_sim::{
    Credentials, GuestMode, Options, Product, Server, TemplateOptions, Timings, TlsIdentity,
    Vcenter,
};

use self::args::{Guests, Pace};

pub(crate) async fn serve(args: SimVcenter) -> anyhow::Result<()> {
    let (listen, tls, write_config) = (args.listen, args.tls, args.write_config.clone());
    let clock = SkewedClock { ahead: SignedDuration::from_secs(args.clock_skew) };
    if let Some(dir) = &args.datastore_dir {
        std::fs::create_dir_all(dir)
            .with_context(|| format!("--datastore-dir {}", dir.display()))?;
    }
    let options = options(args)?;
    let tls = tls
        .then(|| TlsIdentity::self_signed("vCenter simulator", &[&listen.ip().to_string()]))
        .transpose()?;
    let vcenter = Vcenter::start(options.clone(), Arc::new(clock));
    let summary = Summary::of(&options, &vcenter);
    let counted = vcenter.clone();
    let server = Server::bind(vcenter, listen, tls).await?;
    let interrupted = interruption()?;
    if let Some(path) = &write_config {
        let half = summary
            .half(&server)
            .context("--write-config needs --tls: Roost speaks to a vCenter by HTTPS alone")?;
        std::fs::write(path, half).with_context(|| format!("writing {}", path.display()))?;
    }
    say(&summary.with(&server));
    server.run_until(interrupted).await;
    let table = counted.counters().table();
    say(&format!("{table}Stopped.\n"));
    Ok(())
}

/// A server whose administrators did not look after its clock.
#[derive(Debug)]
struct SkewedClock {
    ahead: SignedDuration,
}

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        SystemClock.now().saturating_add(self.ahead).unwrap_or(Timestamp::MAX)
    }
}

fn options(args: SimVcenter) -> anyhow::Result<Options> {
    let credentials = args.login.as_deref().map(login).transpose()?;
    Ok(Options {
        product: if args.esx { Product::HostAgent } else { Product::VirtualCenter },
        datacenters: args.datacenters,
        clusters: args.clusters,
        hosts: args.hosts,
        standalone_hosts: args.standalone_hosts,
        pools: args.pools,
        vms: args.vms,
        autostart: !args.powered_off,
        templates: args
            .templates
            .iter()
            .filter(|name| !name.is_empty())
            .map(TemplateOptions::new)
            .chain(
                args.templates_without_tools
                    .iter()
                    .map(|name| TemplateOptions { tools: false, ..TemplateOptions::new(name) }),
            )
            .collect(),
        datastores: args.datastores,
        datastore_dir: args.datastore_dir,
        apps: args.apps,
        pods: args.pods,
        folders: args.folders,
        portgroups: args.portgroups,
        seed: args.seed.unwrap_or_else(|| Random::from_system().seed()),
        guests: match args.guests {
            Guests::Scripted => GuestMode::Scripted,
            Guests::Exec => GuestMode::Exec,
        },
        unconfined_guests: args.unconfined_guests,
        timings: match args.pace {
            Pace::Real => Timings::realistic(),
            Pace::Quick => Timings::quick(),
            Pace::Instant => Timings::instant(),
        },
        credentials,
        control_endpoint: args.control,
        ..Options::default()
    })
}

fn login(text: &str) -> anyhow::Result<Credentials> {
    match text.split_once(':') {
        Some((user, password)) if !user.is_empty() && !password.is_empty() => {
            Ok(Credentials { user: user.into(), password: password.into() })
        }
        // The text holds a password: say what is wrong with it, not what it is.
        _ => anyhow::bail!("--login must be USER:PASSWORD, both not empty"),
    }
}

/// What is said at the start: what is there, how to reach it, what to try.
struct Summary {
    product: &'static str,
    contents: String,
    seed: u64,
    first_template: Option<String>,
    credentials: Option<Credentials>,
    is_esx: bool,
    executes: bool,
    control: bool,
}

impl Summary {
    fn of(options: &Options, vcenter: &Vcenter) -> Self {
        let is_esx = options.product == Product::HostAgent;
        // What was made of the wishes: without a host or a datastore there are no VMs.
        let is_there = |template: &&TemplateOptions| vcenter.vm(&template.name).is_some();
        let templates: Vec<_> = options.templates.iter().filter(is_there).collect();
        let vms = vcenter.vm_names().len() - templates.len();
        let contents = [
            (options.datacenters, "datacenter"),
            (options.datacenters * options.clusters, "cluster"),
            (
                options.datacenters * (options.clusters * options.hosts + options.standalone_hosts),
                "host",
            ),
            (vms, "VM"),
            (templates.len(), "template"),
        ];
        let contents: Vec<_> =
            contents.iter().filter(|(n, _)| *n > 0).map(|(n, what)| count(*n, what)).collect();
        Self {
            product: if is_esx { "ESXi host" } else { "vCenter" },
            contents: match (is_esx, contents.is_empty()) {
                (true, _) => count(vms, "VM"),
                (false, true) => "nothing in it".into(),
                (false, false) => contents.join(", "),
            },
            seed: options.seed,
            first_template: templates.first().map(|template| template.name.clone()),
            credentials: options.credentials.clone(),
            is_esx,
            executes: options.guests == GuestMode::Exec,
            control: options.control_endpoint,
        }
    }

    /// Of the configuration file of a hatchery. `None` without TLS: Roost speaks to a vCenter by HTTPS alone.
    fn half(&self, server: &Server) -> Option<String> {
        let thumbprint = server.thumbprint()?;
        let endpoint = server.url();
        let endpoint = endpoint.strip_prefix("https://")?.trim_end_matches("/sdk");
        let user = self.credentials.as_ref().map_or("roost", |login| login.user.as_str());
        // A given password is named, not shown.
        let password = match &self.credentials {
            None => "\"demo\"",
            Some(_) => "\"...\" # as given with --login",
        };
        let template = self.first_template.as_deref().unwrap_or("debian12");
        Some(format!(
            "\
[hatchery.vsphere]
user = \"{user}\"
password = {password}
endpoint = \"{endpoint}\"
thumbprint = \"{thumbprint}\"
datacenterString = \"DC0\"
networkString = \"DC0_DVPG0\"

[[hatchery.vsphere.models]]
modelVMWare = \"{template}\"
username = \"root\"
password = \"demo\"

# Spares that wait for a job.
[[hatchery.vsphere.workerProvisioning]]
modelVMWare = \"{template}\"
number = 2
"
        ))
    }

    fn with(&self, server: &Server) -> String {
        let mut lines = vec![
            format!(
                "Embedded {} on {} with {} (seed {})",
                self.product,
                server.url(),
                self.contents,
                self.seed
            ),
            String::new(),
            format!("export GOVC_URL={}", govc_url(&server.url(), self.credentials.as_ref())),
        ];
        if let Some(thumbprint) = server.thumbprint() {
            lines.push("export GOVC_INSECURE=true".into());
            lines.push(format!("# SHA-256 thumbprint {thumbprint}"));
        }
        if let Some(template) = self.first_template.as_deref().filter(|_| !self.is_esx) {
            lines.push(String::new());
            lines.push("Try:".into());
            lines.push("  govc tree".into());
            lines.push(format!("  govc vm.clone -vm {template} worker-1 && govc vm.ip worker-1"));
            lines.push("  govc guest.run -vm worker-1 -l ci:ci /bin/echo hello".into());
        }
        if let Some(half) = self.half(server).filter(|_| !self.is_esx) {
            lines.push(String::new());
            lines.push(
                "This is what a hatchery needs; `roost sim cds` prints the other half of the file."
                    .into(),
            );
            if !self.executes {
                lines.push("Workers of `roost sim cds` run in guests that execute: start it with --guests exec.".into());
            }
            lines.push(String::new());
            lines.push(half);
        }
        if !server.address().ip().is_loopback() {
            lines.push(
                "Other machines can reach it, and any login will do unless --login says otherwise."
                    .into(),
            );
        }
        if self.executes {
            lines.push("Programs started in guests run on this machine, as this user.".into());
        }
        if self.control {
            lines.push(format!(
                "Control endpoint: {}/roost/control/",
                server.url().trim_end_matches("/sdk")
            ));
        }
        lines.push("Ctrl-C ends it.".into());
        lines.join("\n") + "\n"
    }
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Only a login that anyone may use is printed; a given password is named, not shown.
fn govc_url(url: &str, credentials: Option<&Credentials>) -> String {
    let login = match credentials {
        None => "user:pass".to_owned(),
        Some(credentials) => format!("{}:$PASSWORD", credentials.user),
    };
    match url.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{login}@{rest}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_password_is_not_printed() {
        let credentials = Credentials { user: "ci".into(), password: "s3cret".into() };
        let shown = govc_url("https://127.0.0.1:8989/sdk", Some(&credentials));
        assert_eq!(shown, "https://ci:$PASSWORD@127.0.0.1:8989/sdk");
        assert_eq!(govc_url("http://h/sdk", None), "http://user:pass@h/sdk");
    }

    #[test]
    fn a_login_without_a_password_is_refused_without_repeating_it() {
        for text in ["s3cret", ":s3cret", "user:"] {
            let error = login(text).unwrap_err().to_string();
            assert!(error.contains("USER:PASSWORD") && !error.contains("s3cret"), "{error}");
        }
    }
}
