//! `roost sim kube`: the embedded Kubernetes API server on a port.

mod args;

pub use self::args::SimKube;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use roost_client::{interruption, say};
use roost_clock::{Random, SystemClock};
use roost_kube_sim::{KubeSim, Options, Server, User};

pub(crate) async fn serve(args: SimKube) -> anyhow::Result<()> {
    let mut random = args.seed.map_or_else(Random::from_system, Random::from_seed);
    let options = Options {
        seed: random.seed(),
        history: args.history,
        controllers: !args.no_controllers,
        control_endpoint: args.control,
        open: false,
        ..Options::default()
    };
    let seed = options.seed;
    let sim = KubeSim::start(options, Arc::new(SystemClock));
    // Whoever can read the kubeconfig may do everything, and nobody else.
    sim.add_token(&random.uuid(), User::admin());
    let mut objects = 0;
    for path in &args.manifests {
        let text =
            fs::read_to_string(path).with_context(|| format!("--apply {}", path.display()))?;
        objects += sim
            .apply_manifest(&text)
            .await
            .with_context(|| format!("--apply {}", path.display()))?;
    }
    let server = Server::bind(sim, args.listen).await?;
    write_private(&args.kubeconfig, &server.kubeconfig())
        .with_context(|| format!("--kubeconfig {}", args.kubeconfig.display()))?;
    let interrupted = interruption()?;
    let mut lines = vec![
        format!(
            "Embedded Kubernetes API server on {} with {objects} applied objects (seed {seed})",
            server.url()
        ),
        String::new(),
        format!("export KUBECONFIG={}", absolute(&args.kubeconfig)),
        String::new(),
        "Try:".into(),
        "  kubectl get namespaces".into(),
        "  kubectl create configmap greeting --from-literal=hello=world".into(),
        "  kubectl get configmaps --watch".into(),
    ];
    if args.control {
        lines.push(format!("Control endpoint: {}/roost/control/", server.url()));
    }
    lines.push("Ctrl-C ends it and forgets everything.".into());
    say(&(lines.join("\n") + "\n"));
    server.run_until(interrupted).await;
    say("Stopped.\n");
    Ok(())
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// The kubeconfig holds a token.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}
