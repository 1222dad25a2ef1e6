//! The command lines of `cocoon`, word by word. The order of flags is part of the contract: wrappers and tests of its users depend on it.

use crate::runtime::{CloneFrom, CloneOptions, ExecOptions, LogOptions, RunOptions};

fn words(fixed: &[&str]) -> Vec<String> {
    fixed.iter().map(|word| (*word).to_owned()).collect()
}

fn flag(to: &mut Vec<String>, name: &str, value: Option<impl ToString>) {
    if let Some(value) = value {
        to.extend([name.to_owned(), value.to_string()]);
    }
}

fn switch(to: &mut Vec<String>, name: &str, is_on: bool) {
    if is_on {
        to.push(name.to_owned());
    }
}

pub(super) fn run(options: &RunOptions) -> Vec<String> {
    let mut argv = words(&["vm", "run", "--output", "json", "--name", &options.name]);
    flag(&mut argv, "--cpu", options.cpus);
    flag(&mut argv, "--memory", options.memory);
    flag(&mut argv, "--storage", options.storage.as_ref());
    flag(&mut argv, "--network", options.network.as_ref());
    switch(&mut argv, "--windows", options.windows);
    switch(&mut argv, "--fc", options.backend.is_firecracker());
    switch(&mut argv, "--no-direct-io", options.no_direct_io && !options.backend.is_firecracker());
    argv.push(options.image.clone());
    argv
}

pub(super) fn clone_vm(options: &CloneOptions) -> Vec<String> {
    let mut argv = words(&["vm", "clone", "--output", "json", "--name", &options.name]);
    flag(&mut argv, "--network", options.network.as_ref());
    switch(&mut argv, "--no-direct-io", options.no_direct_io && !options.backend.is_firecracker());
    switch(&mut argv, "--pull", options.pull);
    switch(&mut argv, "--on-demand", options.on_demand && !options.backend.is_firecracker());
    flag(&mut argv, "--nics", options.nics);
    match &options.from {
        CloneFrom::Snapshot(name) => argv.push(name.clone()),
        CloneFrom::Folder(path) => {
            argv.extend(["--from-dir".to_owned(), path.to_string_lossy().into_owned()]);
        }
    }
    argv
}

pub(super) fn inspect(vm: &str) -> Vec<String> {
    words(&["vm", "inspect", vm])
}

pub(super) fn list() -> Vec<String> {
    words(&["vm", "list", "-o", "json"])
}

pub(super) fn start(vm: &str) -> Vec<String> {
    words(&["vm", "start", vm])
}

pub(super) fn stop(vm: &str, grace_seconds: u64) -> Vec<String> {
    words(&["vm", "stop", "--timeout", &grace_seconds.to_string(), vm])
}

pub(super) fn remove(vm: &str) -> Vec<String> {
    words(&["vm", "rm", "--force", vm])
}

pub(super) fn resize_nics(vm: &str, nics: u32) -> Vec<String> {
    words(&["vm", "net", "--nics", &nics.to_string(), vm])
}

/// `interactive`: this release forwards standard input only if it is told to.
pub(super) fn exec(vm: &str, options: &ExecOptions, interactive: bool) -> Vec<String> {
    let mut argv = words(&["vm", "exec"]);
    switch(&mut argv, "-i", interactive);
    for (name, value) in &options.env {
        argv.extend(["-e".to_owned(), format!("{name}={value}")]);
    }
    argv.extend([vm.to_owned(), "--".to_owned()]);
    argv.extend(options.argv.iter().cloned());
    argv
}

pub(super) fn exec_help() -> Vec<String> {
    words(&["vm", "exec", "--help"])
}

pub(super) fn logs(vm: &str, options: LogOptions) -> Vec<String> {
    let mut argv = words(&["vm", "logs"]);
    flag(&mut argv, "--tail", options.tail);
    switch(&mut argv, "--follow", options.follow);
    argv.push(vm.to_owned());
    argv
}

pub(super) fn watch() -> Vec<String> {
    words(&["vm", "status", "--event", "--format", "json"])
}

pub(super) fn snapshot_save(name: &str, vm: &str) -> Vec<String> {
    words(&["snapshot", "save", "--name", name, vm])
}

pub(super) fn snapshot_inspect(name: &str) -> Vec<String> {
    words(&["snapshot", "inspect", name])
}

pub(super) fn snapshot_list() -> Vec<String> {
    words(&["snapshot", "list", "-o", "json"])
}

pub(super) fn snapshot_remove(name: &str) -> Vec<String> {
    words(&["snapshot", "rm", name])
}

pub(super) fn snapshot_import(name: &str) -> Vec<String> {
    words(&["snapshot", "import", "--name", name])
}

pub(super) fn snapshot_export(name: &str) -> Vec<String> {
    words(&["snapshot", "export", name, "-o", "-"])
}

pub(super) fn image_pull(image: &str, force: bool) -> Vec<String> {
    let mut argv = words(&["image", "pull"]);
    switch(&mut argv, "--force", force);
    argv.push(image.to_owned());
    argv
}

pub(super) fn image_inspect(image: &str) -> Vec<String> {
    words(&["image", "inspect", image])
}

pub(super) fn image_import(name: &str) -> Vec<String> {
    words(&["image", "import", name])
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::record::Backend;

    fn line(argv: &[String]) -> String {
        argv.join(" ")
    }

    #[test]
    fn run_names_only_what_was_asked_for() {
        let bare = RunOptions { name: "n".into(), image: "img".into(), ..RunOptions::default() };
        assert_eq!(line(&run(&bare)), "vm run --output json --name n img");
        let all = RunOptions {
            cpus: Some(2),
            memory: Some(4_294_967_296),
            storage: Some("10737418240".into()),
            network: Some("cocoon-dhcp".into()),
            windows: true,
            no_direct_io: true,
            ..bare
        };
        assert_eq!(
            line(&run(&all)),
            "vm run --output json --name n --cpu 2 --memory 4294967296 --storage 10737418240 --network cocoon-dhcp --windows --no-direct-io img"
        );
        let firecracker =
            RunOptions { backend: Backend::new(Backend::FIRECRACKER), windows: false, ..all };
        assert!(
            line(&run(&firecracker)).ends_with("--network cocoon-dhcp --fc img"),
            "direct I/O is Cloud Hypervisor's alone"
        );
    }

    #[test]
    fn a_clone_says_no_sizes_and_its_source_last() {
        let options = CloneOptions {
            name: "n".into(),
            from: CloneFrom::Snapshot("repo:v1".into()),
            network: Some("net".into()),
            backend: Backend::new(Backend::CLOUD_HYPERVISOR),
            no_direct_io: true,
            pull: true,
            on_demand: true,
            nics: Some(1),
        };
        assert_eq!(
            line(&clone_vm(&options)),
            "vm clone --output json --name n --network net --no-direct-io --pull --on-demand --nics 1 repo:v1"
        );
        let folder = CloneOptions {
            from: CloneFrom::Folder(PathBuf::from("/data/warm")),
            backend: Backend::new(Backend::FIRECRACKER),
            nics: None,
            ..options
        };
        assert_eq!(
            line(&clone_vm(&folder)),
            "vm clone --output json --name n --network net --pull --from-dir /data/warm"
        );
    }

    #[test]
    fn exec_sorts_its_environment_and_ends_its_flags() {
        let options = ExecOptions {
            argv: ["sh", "-c", "echo -- hi"].map(str::to_owned).to_vec(),
            env: [("B", "2"), ("A", "1")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        };
        assert_eq!(
            line(&exec("id", &options, false)),
            "vm exec -e A=1 -e B=2 id -- sh -c echo -- hi"
        );
        assert!(line(&exec("id", &options, true)).starts_with("vm exec -i -e A=1"));
    }

    #[test]
    fn the_other_verbs_are_spelled_as_cocoon_spells_them() {
        for (argv, want) in [
            (inspect("x"), "vm inspect x"),
            (list(), "vm list -o json"),
            (start("x"), "vm start x"),
            (stop("x", 30), "vm stop --timeout 30 x"),
            (remove("x"), "vm rm --force x"),
            (resize_nics("x", 0), "vm net --nics 0 x"),
            (
                logs("x", LogOptions { tail: Some(200), follow: false, ..LogOptions::default() }),
                "vm logs --tail 200 x",
            ),
            (
                logs("x", LogOptions { tail: None, follow: true, ..LogOptions::default() }),
                "vm logs --follow x",
            ),
            (watch(), "vm status --event --format json"),
            (snapshot_save("s", "x"), "snapshot save --name s x"),
            (snapshot_inspect("s"), "snapshot inspect s"),
            (snapshot_remove("s"), "snapshot rm s"),
            (snapshot_import("s"), "snapshot import --name s"),
            (snapshot_export("s"), "snapshot export s -o -"),
            (image_pull("i", false), "image pull i"),
            (image_pull("i", true), "image pull --force i"),
            (image_inspect("i"), "image inspect i"),
            (image_import("i"), "image import i"),
        ] {
            assert_eq!(line(&argv), want);
        }
    }
}
