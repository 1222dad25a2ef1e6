use crate::command::Simple;
use crate::page::{Place, root};

/// What cannot be run here, and why. The shell still has to be able to read it.
pub(crate) const LISTED: [(&str, &str); 11] = [
    ("systemctl", "speaks to the service manager of the machine"),
    ("journalctl", "reads the journal of the machine"),
    ("df", "looks at the disks of the machine"),
    ("systemd-sysusers", "makes users on the machine"),
    ("timedatectl", "reads the clock of the machine"),
    ("podman", "builds an image, for which it fetches others"),
    ("cdsctl", "a client of a real CDS"),
    ("helm", "installs into a cluster; tests hold the charts against the kustomize files"),
    ("kubectl", "needs a server that goes on; the tests of kube-sim run it on one"),
    (
        "cargo",
        "would build and test inside of a test; packages and targets that it names are looked for",
    ),
    (".ci/run", "runs this very test"),
];

/// Programs that are run as they are, where they are.
const RUN: [&str; 10] =
    ["cat", "curl", "export", "govc", "grep", "install", "jq", "openssl", "promtool", "sed"];

/// Subcommands of `roost` that are whole by themselves: in a sentence, too, they are something to type.
const WHOLE: [&str; 10] =
    ["status", "jobs", "vms", "pools", "decisions", "pause", "resume", "drain", "freeze", "thaw"];

/// What is done with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treatment {
    Run,
    /// The program is not on this machine, which was said.
    Absent,
    /// Looked at, not run: it is in the list above.
    Listed,
    /// Words like `roost check`, the name of a command and not a whole one; or one that would not end here.
    Mentioned,
    /// Goes on until it is interrupted; `more` keeps it from ports that others may have.
    Serves {
        ready: &'static str,
        more: &'static str,
    },
    /// Takes the place of the service that all others ask.
    IsTheService,
    /// Would take the whole terminal; this shows one picture of it.
    Once {
        more: &'static str,
    },
}

pub(crate) fn treatment(command: &Simple, place: Place) -> Result<Treatment, String> {
    let program = command.program.as_str();
    if program == "cargo" {
        return match command.behind_cargo_run() {
            Some(roost) => roost_treatment(&roost, place),
            None => command.cargo_names_what_is_there().map(|()| Treatment::Listed),
        };
    }
    if program == "roost" {
        return roost_treatment(&command.args, place);
    }
    if LISTED.iter().any(|(listed, _)| *listed == program) {
        return Ok(Treatment::Listed);
    }
    if !RUN.contains(&program) {
        return Err(format!("{program} is neither run nor listed"));
    }
    let is_there = program != "govc" || roost_oracle::govc().is_some();
    let is_there = is_there && (program != "promtool" || roost_oracle::promtool().is_some());
    Ok(if is_there { Treatment::Run } else { Treatment::Absent })
}

fn roost_treatment(args: &[String], place: Place) -> Result<Treatment, String> {
    let word = |at: usize| args.get(at).map(String::as_str);
    let first = word(0).ok_or("roost without anything")?;
    let is_name = |word: &String| {
        word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') && !word.starts_with('-')
    };
    let is_whole = args.len() == 1 && WHOLE.contains(&first);
    if place == Place::Span && !is_whole && args.iter().all(is_name) {
        return Ok(Treatment::Mentioned);
    }
    if args.iter().any(|arg| arg == "--help") {
        return Ok(Treatment::Run);
    }
    let free_port = " --listen 127.0.0.1:0";
    Ok(match (first, word(1)) {
        // Another service is at work here; a test of its own starts one that observes.
        ("run", _) if args.iter().any(|arg| arg == "--observe-only") => Treatment::Mentioned,
        ("run", Some(_)) => Treatment::IsTheService,
        ("demo", _) if args.iter().any(|arg| arg == "--print-config") => Treatment::Run,
        ("demo", _) => Treatment::Serves { ready: "shows what happens", more: free_port },
        ("sim", _) => Treatment::Serves { ready: "Ctrl-C", more: free_port },
        // The worker of this world works for an hour.
        ("drain", _) if args.iter().any(|arg| arg == "--wait") => Treatment::Mentioned,
        // Serve or check a cluster, which is not here; their own tests start them on one.
        ("agent-forge" | "kubelet" | "vm-operator", _)
        | ("doctor", Some("agent-forge" | "kubelet" | "vm-operator")) => Treatment::Mentioned,
        // Asks about an object of such a cluster.
        ("explain", Some(kind)) if args.len() > 2 && kind != "vm" => Treatment::Mentioned,
        // An object of a cluster.
        _ if args.iter().any(|arg| arg == "NAMESPACE/NAME") => Treatment::Mentioned,
        ("top", _) => Treatment::Once { more: " --once" },
        _ => Treatment::Run,
    })
}

impl Simple {
    /// What `cargo run ... -- ARGS` gives to the binary.
    pub(crate) fn behind_cargo_run(&self) -> Option<Vec<String>> {
        let at = self.args.iter().position(|arg| arg == "--")?;
        let is_run = self.args.first().is_some_and(|arg| arg == "run");
        is_run.then(|| self.args[at + 1..].to_vec())
    }

    /// Packages, tests and benchmarks that a `cargo` command names.
    fn cargo_names_what_is_there(&self) -> Result<(), String> {
        let folder = |package: &str| match package {
            "roost" => "roost".to_owned(),
            other => {
                let name = other.trim_start_matches("roost-");
                let groups = ["base", "vsphere", "kube", "doors", "show", "sim"];
                let places = groups.map(|group| format!("crates/{group}/{name}"));
                let there = places.into_iter().find(|place| root().join(place).is_dir());
                there.unwrap_or_else(|| format!("crates/*/{name}"))
            }
        };
        let mut package = "roost".to_owned();
        for pair in self.args.windows(2) {
            let (option, name) = (pair[0].as_str(), pair[1].as_str());
            let places = match option {
                "-p" => {
                    package = folder(name);
                    vec![format!("{package}/Cargo.toml")]
                }
                "--test" => vec![
                    format!("{package}/tests/{name}.rs"),
                    format!("{package}/tests/{name}/main.rs"),
                ],
                "--bench" => vec![
                    format!("{package}/benches/{name}.rs"),
                    format!("{package}/benches/{name}/main.rs"),
                ],
                _ => continue,
            };
            if !places.iter().any(|place| root().join(place).is_file()) {
                return Err(format!("cargo {option} {name}: there is none of {places:?}"));
            }
        }
        Ok(())
    }
}

/// The README's first command names no binary.
#[test]
fn cargo_run_means_roost() {
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root());
    let said = cargo.output().unwrap();
    let said: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    let members = said["workspace_default_members"].as_array().unwrap();
    let packages = said["packages"].as_array().unwrap().iter();
    let targets = packages
        .filter(|package| members.contains(&package["id"]))
        .flat_map(|package| package["targets"].as_array().unwrap());
    let is_binary = |target: &&serde_json::Value| target["kind"][0] == "bin";
    let names: Vec<_> = targets.filter(is_binary).map(|target| target["name"].clone()).collect();
    assert_eq!(names, ["roost"]);
}
