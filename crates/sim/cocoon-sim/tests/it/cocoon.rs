use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use roost_cocoon_sim::{Fault, Faults};
use roost_microvm::{
    Backend, CloneFrom, CloneOptions, CocoonCli, CocoonSettings, EventKind, ExecOptions,
    ExecStreams, LogOptions, RunOptions, Runtime, RuntimeError,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// A simulated host of its own, ended with all of its VMs.
struct Lab {
    folder: PathBuf,
    cli: CocoonCli,
}

impl Lab {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("roost-cocoon-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let settings = CocoonSettings {
            binary: PathBuf::from(env!("CARGO_BIN_EXE_cocoon-sim")),
            wrapper: vec!["env".to_owned(), format!("COCOON_SIM_DIR={}", folder.display())],
            run_dir: folder.join("run"),
            root_dir: folder.clone(),
        };
        Self { cli: CocoonCli::new(settings), folder }
    }

    fn faults(&self, faults: impl IntoIterator<Item = Fault>) {
        let mut all = Faults::default();
        faults.into_iter().for_each(|fault| all.add(fault));
        std::fs::write(self.folder.join("faults.json"), serde_json::to_vec(&all).unwrap()).unwrap();
    }

    fn journal(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join("journal.jsonl")).unwrap();
        text.lines()
            .map(|line| serde_json::from_str::<Vec<String>>(line).unwrap().join(" "))
            .collect()
    }

    async fn run(&self, name: &str) -> roost_microvm::VmRecord {
        self.cli.ensure_image("img", false).await.unwrap();
        let options =
            RunOptions { name: name.into(), image: "img".into(), ..RunOptions::default() };
        self.cli.run(options).await.unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let text = std::fs::read_to_string(self.folder.join("host.json")).unwrap_or_default();
        let host: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        for vm in host["vms"].as_object().into_iter().flatten().map(|(_, vm)| vm) {
            if vm["pid"].as_u64().is_some_and(|pid| pid > 1) {
                let _ = std::process::Command::new("kill")
                    .args(["-9", &vm["pid"].to_string()])
                    .status();
            }
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn clone_of(snapshot: &str, name: &str) -> CloneOptions {
    CloneOptions {
        name: name.into(),
        from: CloneFrom::Snapshot(snapshot.into()),
        network: None,
        backend: Backend::default(),
        no_direct_io: false,
        pull: false,
        on_demand: false,
        nics: None,
    }
}

fn exec(argv: &[&str]) -> ExecOptions {
    ExecOptions {
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        ..ExecOptions::default()
    }
}

#[tokio::test]
async fn a_vm_runs_is_seen_and_goes() {
    let lab = Lab::new();
    assert!(lab.cli.list().await.unwrap().is_empty(), "an empty host says so in words");
    let vm = lab.run("a").await;
    assert!(vm.state.is_running() && vm.pid != 0);
    assert_eq!(lab.cli.inspect("a").await.unwrap().id, vm.id);
    assert_eq!(lab.cli.list().await.unwrap().len(), 1);
    let taken = lab
        .cli
        .run(RunOptions { name: "a".into(), image: "img".into(), ..RunOptions::default() })
        .await;
    assert!(matches!(taken, Err(RuntimeError::NameTaken { .. })), "{taken:?}");
    lab.cli.remove(&vm.id).await.unwrap();
    lab.cli.remove(&vm.id).await.unwrap();
    assert!(lab.cli.inspect("a").await.unwrap_err().is_vm_gone());
    assert!(!Path::new(&format!("/proc/{}/cwd", vm.pid)).exists());
}

#[tokio::test]
async fn snapshots_are_saved_replaced_moved_and_cloned() {
    let lab = Lab::new();
    lab.run("a").await;
    lab.cli.snapshot_save("s", "a").await.unwrap();
    lab.cli.snapshot_save("s", "a").await.unwrap();
    assert_eq!(lab.cli.snapshots().await.unwrap().len(), 1, "the second replaced the first");
    let (mut near, far) = tokio::io::duplex(64 * 1024);
    let (exported, archive) = tokio::join!(lab.cli.snapshot_export("s", Box::new(far)), async {
        let mut bytes = Vec::new();
        near.read_to_end(&mut bytes).await.unwrap();
        bytes
    });
    exported.unwrap();
    lab.cli.snapshot_import("t", Box::new(std::io::Cursor::new(archive))).await.unwrap();
    let vm = lab.cli.clone_vm(clone_of("t", "b")).await.unwrap();
    assert!(vm.pid != 0, "a clone has its process");
    lab.cli.snapshot_remove("t").await.unwrap();
    lab.cli.snapshot_remove("t").await.unwrap();
    assert_eq!(lab.cli.snapshot("t").await.unwrap(), None);
    let missing = lab.cli.clone_vm(clone_of("t", "c")).await.unwrap_err();
    assert!(missing.is_snapshot_gone(), "{missing}");
}

#[tokio::test]
async fn a_broken_archive_is_never_imported() {
    let lab = Lab::new();
    let (mut near, far) = tokio::io::duplex(1024);
    near.write_all(&[0; 100]).await.unwrap();
    drop(near);
    assert!(lab.cli.snapshot_import("s", Box::new(far)).await.is_err());
    assert_eq!(lab.cli.snapshot("s").await.unwrap(), None);
}

#[tokio::test]
async fn programs_in_guests_have_streams_exit_codes_and_folders_of_their_own() {
    let lab = Lab::new();
    lab.run("a").await;
    let (mut out, far) = tokio::io::duplex(64 * 1024);
    let (stdin, mut feed) = tokio::io::duplex(1024);
    feed.write_all(b"hello\n").await.unwrap();
    drop(feed);
    let streams =
        ExecStreams { stdin: Some(Box::new(stdin)), stdout: Some(Box::new(far)), stderr: None };
    let code =
        lab.cli.exec("a", exec(&["sh", "-c", "cat; echo $TMPDIR; exit 3"]), streams).await.unwrap();
    assert_eq!(code, 3);
    let mut text = String::new();
    out.read_to_string(&mut text).await.unwrap();
    let (said, folder) = text.trim_end().split_once('\n').unwrap();
    assert_eq!(said, "hello");
    assert!(
        Path::new(folder).starts_with(lab.folder.canonicalize().unwrap())
            || Path::new(folder).starts_with(&lab.folder)
    );
    let missing =
        lab.cli.exec("nobody", exec(&["true"]), ExecStreams::default()).await.unwrap_err();
    assert!(missing.is_vm_gone(), "{missing}");
}

#[tokio::test]
async fn a_call_that_hangs_ends_with_whoever_waits_for_it() {
    let lab = Lab::new();
    lab.faults([Fault::of("vm inspect").hangs()]);
    let waited = timeout(Duration::from_secs(2), lab.cli.inspect("a")).await;
    assert!(waited.is_err(), "it hangs");
    // Nothing of the group is left: the folder's lock is free and the next call answers.
    assert!(lab.cli.inspect("a").await.unwrap_err().is_vm_gone());
}

#[tokio::test]
async fn failures_say_what_the_command_said() {
    let lab = Lab::new();
    lab.faults([
        Fault::of("vm start").fails("vm start: no space left on device"),
        Fault { garbage: true, ..Fault::of("vm list") },
    ]);
    let error = lab.cli.start("a").await.unwrap_err();
    assert!(error.to_string().contains("no space left on device"), "{error}");
    let odd = lab.cli.list().await.unwrap_err();
    assert!(matches!(odd, RuntimeError::Unreadable { .. }), "{odd}");
    let missing = CocoonCli::new(CocoonSettings {
        binary: "/nonexistent/cocoon".into(),
        wrapper: Vec::new(),
        run_dir: "/nonexistent".into(),
        root_dir: "/nonexistent".into(),
    });
    assert!(matches!(missing.list().await, Err(RuntimeError::Start { .. })));
}

#[tokio::test]
async fn events_tell_of_vms_that_come_crash_and_go() {
    let lab = Lab::new();
    let mut events = lab.cli.watch().await.unwrap();
    let vm = lab.run("a").await;
    let mut next =
        async || timeout(Duration::from_mins(1), events.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(next().await.event, EventKind::Added);
    std::process::Command::new("kill").args(["-9", &vm.pid.to_string()]).status().unwrap();
    let crashed = next().await;
    assert_eq!((crashed.event, crashed.vm.state.is_running()), (EventKind::Modified, false));
    lab.cli.start("a").await.unwrap();
    assert!(next().await.vm.state.is_running());
    lab.cli.remove("a").await.unwrap();
    assert_eq!(next().await.event, EventKind::Deleted);
}

#[tokio::test]
async fn the_command_line_is_what_users_of_cocoon_know() {
    let lab = Lab::new();
    lab.run("a").await;
    let (mut near, far) = tokio::io::duplex(1024);
    lab.cli
        .logs(
            "a",
            LogOptions { tail: Some(200), follow: false, ..LogOptions::default() },
            Box::new(far),
        )
        .await
        .unwrap();
    let mut text = String::new();
    near.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "a booted\n");
    lab.cli.stop("a", 30).await.unwrap();
    assert_eq!(
        lab.journal(),
        [
            "image pull img",
            "vm run --output json --name a img",
            "vm logs --tail 200 a",
            "vm stop --timeout 30 a"
        ]
    );
}
