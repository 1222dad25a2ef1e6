//! `roost sim cds`: the embedded CDS API on a port; `roost sim worker`: what its guests download as their worker.

mod args;
mod welcome;

pub use self::args::SimCds;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::future::pending;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use roost_cds::{HATCHERY_TYPE, Secret, v2};
use roost_cds_sim::{Arrivals, CdsApi, Options, Server, Timings};
use roost_client::{interruption, say};
use roost_clock::{Random, SystemClock};
use tokio::net::TcpListener;

use self::welcome::{Token, Welcome};

const DEMO_TOKEN: &str = "demo-consumer-token";
const DEMO_TOKEN_V2: &str = "demo-hatchery-token";

pub(crate) async fn serve(args: SimCds) -> anyhow::Result<()> {
    let models = models(&args.templates)?;
    let listening = || format!("listening on {}", args.listen);
    let listener = TcpListener::bind(args.listen).await.with_context(listening)?;
    let url = format!("http://{}", reachable(listener.local_addr().with_context(listening)?));
    let (token, token_v2) = (
        Token::of("--token", args.token.clone(), DEMO_TOKEN)?,
        Token::of("--token-v2", args.token_v2.clone(), DEMO_TOKEN_V2)?,
    );
    let options = options(&args, &url, token.secret(), token_v2.secret())?;
    let seed = options.seed;
    let api = CdsApi::start(options, Arc::new(SystemClock)).context("starting the CDS API")?;
    for model in &models {
        api.add_v2_model(&model.path, model.as_code());
    }
    if args.chaos > 0.0 {
        api.inject_chaos(args.chaos);
    }
    let server = Server::start(api.clone(), listener).with_context(listening)?;
    let interrupted = interruption()?;
    let is_local = server.address().ip().is_loopback();
    let welcome =
        Welcome { args: &args, url: &url, seed, models: &models, token, token_v2, is_local };
    if let Some(path) = &args.write_config {
        let half = welcome.toml();
        std::fs::write(path, half).with_context(|| format!("writing {}", path.display()))?;
    }
    say(&welcome.to_string());
    let arrivals = arrivals(&args, &models);
    tokio::select! {
        biased;
        () = interrupted => {}
        () = async { api.run_arrivals(arrivals).await; pending().await } => {}
    }
    drop(server);
    say(&farewell(&api));
    Ok(())
}

/// The worker as a program. What it is told stands in its environment; arguments are those of a real worker, such as
/// `register`, and say nothing new.
pub(crate) async fn run_worker() -> anyhow::Result<ExitCode> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let environment = std::env::vars_os().filter_map(text).collect();
    // It has a runtime of its own.
    let worker = tokio::task::spawn_blocking(move || roost_cds_sim::worker_main(&environment));
    Ok(ExitCode::from(worker.await.context("running the worker")?))
}

/// A model as code for a template.
struct TemplateModel {
    path: v2::AsCodePath,
    template: String,
}

impl TemplateModel {
    fn of(template: &str) -> Self {
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
        let name = template.chars().map(|char| if is_plain(char) { char } else { '-' }).collect();
        let path = v2::AsCodePath {
            project: "DEMO".into(),
            vcs: "github".into(),
            repository: "roost/models".into(),
            name,
            branch: "master".into(),
        };
        Self { path, template: template.into() }
    }

    /// As jobs name it.
    fn name_in_jobs(&self) -> String {
        let v2::AsCodePath { project, vcs, repository, name, .. } = &self.path;
        format!("{project}/{vcs}/{repository}/{name}")
    }

    fn as_code(&self) -> v2::Model {
        v2::Model {
            name: self.path.name.clone(),
            os_arch: "linux/amd64".into(),
            model_type: HATCHERY_TYPE.into(),
            spec: v2::ModelSpec(serde_json::json!({ "image": self.template })),
            ..v2::Model::default()
        }
    }
}

fn models(templates: &[String]) -> anyhow::Result<Vec<TemplateModel>> {
    let mut names = BTreeSet::new();
    let model = |template: &String| {
        let model = TemplateModel::of(template);
        anyhow::ensure!(!template.is_empty(), "--template must not be empty");
        anyhow::ensure!(
            names.insert(model.path.name.clone()),
            "--template {template}: there is a model {} already",
            model.path.name
        );
        Ok(model)
    };
    templates.iter().map(model).collect()
}

fn options(args: &SimCds, url: &str, token: &Secret, token_v2: &Secret) -> anyhow::Result<Options> {
    for (flag, value) in [("--hatchery", &args.hatchery), ("--region", &args.region)] {
        anyhow::ensure!(!value.is_empty(), "{flag} must not be empty");
    }
    let seed = args.seed.unwrap_or_else(|| Random::from_system().seed());
    let executable = std::env::current_exe().context("finding this program's own path")?;
    let options = Options {
        url: url.into(),
        timings: timings(args),
        worker_binary: worker_script(&executable)?.into(),
        control_endpoint: args.control,
        ..Options::new(seed)
    };
    Ok(options.consumer(&args.hatchery, token.clone()).hatchery(
        &args.hatchery,
        token_v2.clone(),
        &args.region,
    ))
}

/// V2 jobs are looked at on every sixth look; a short timeout needs looks that are close enough to see it pass.
fn timings(args: &SimCds) -> Timings {
    let usual = Timings::default();
    let look = (args.scheduling_timeout / 12).clamp(Duration::from_millis(100), usual.look);
    Timings { look, v2_scheduling: args.scheduling_timeout, booking: args.booking, ..usual }
}

/// What a guest that is a process of this machine downloads: this very program, whatever is in its `PATH`.
fn worker_script(executable: &Path) -> anyhow::Result<String> {
    let path = executable.to_str().context("this program's own path is not text")?;
    let quoted = path.replace('\'', r"'\''");
    Ok(format!("#!/bin/sh\nexec '{quoted}' sim worker -- \"$@\"\n"))
}

fn arrivals(args: &SimCds, models: &[TemplateModel]) -> Arrivals {
    Arrivals {
        jobs: args.jobs,
        every: args.every,
        models: models.iter().map(TemplateModel::name_in_jobs).collect(),
        flavors: args.flavors.clone(),
        region: args.region.clone(),
        takes: args.work,
        v1_share: args.v1_share,
    }
}

/// Where a client on this machine connects to.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn farewell(api: &CdsApi) -> String {
    let (summary, table) = (api.summary(), api.clients().table());
    if api.jobs().is_empty() {
        return format!("{table}Stopped.\n");
    }
    format!(
        "{table}Jobs: {} done, {} failed, {} running, {} waiting.\nStopped.\n",
        summary.done, summary.failed, summary.running, summary.waiting
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_in_a_folder_has_a_model_that_jobs_can_name() {
        let model = TemplateModel::of("ci/debian 12@x");
        assert_eq!(model.name_in_jobs(), "DEMO/github/roost/models/ci-debian-12-x");
        assert_eq!(v2::AsCodePath::parse(&model.name_in_jobs()), Some(model.path));
        let error = models(&["a/b".into(), "a-b".into()]).err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("a-b already")));
    }

    #[test]
    fn the_worker_is_this_program_wherever_it_is() {
        assert_eq!(
            worker_script(Path::new("/opt/it's/roost")).unwrap(),
            "#!/bin/sh\nexec '/opt/it'\\''s/roost' sim worker -- \"$@\"\n"
        );
    }

    #[test]
    fn every_address_is_shown_as_one_to_connect_to() {
        for (listen, shown) in [
            ("0.0.0.0:81", "127.0.0.1:81"),
            ("[::]:81", "[::1]:81"),
            ("10.0.0.1:81", "10.0.0.1:81"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), shown);
        }
    }
}
