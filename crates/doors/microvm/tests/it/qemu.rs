//! Real guests: Debian's QEMU and kernel, without hardware support where the machine has none.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use roost_clock::{Random, SystemClock};
use roost_microvm::{
    Backend, CloneFrom, CloneOptions, EventKind, ExecOptions, ExecStreams, LogOptions, Qemu,
    QemuSettings, RunOptions, Runtime, RuntimeError, VmRecord, Watch,
};
use roost_oracle::microvm;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// A guest without hardware support on a machine under load takes its time; nobody waits this long for what works.
const PATIENCE: Duration = Duration::from_mins(3);
const DISK: usize = 4 * 1024 * 1024;

struct Lab {
    root: PathBuf,
    settings: QemuSettings,
    qemu: Option<Qemu>,
}

impl Lab {
    async fn start() -> Option<Self> {
        let tools = tokio::task::spawn_blocking(microvm).await.unwrap()?;
        let root = std::env::temp_dir().join(format!("roost-qemu-{}", std::process::id()));
        let mut settings = QemuSettings::new(&root);
        (settings.binary, settings.disk_tool) = (tools.qemu, tools.qemu_img);
        settings.memory = 256 * 1024 * 1024;
        let image = root.join("images/tiny");
        std::fs::create_dir_all(&image).unwrap();
        std::fs::copy(&tools.kernel, image.join("vmlinuz")).unwrap();
        std::fs::copy(&tools.initrd, image.join("initrd")).unwrap();
        std::fs::write(image.join("cmdline"), tools.cmdline).unwrap();
        let mut lab = Self { root, settings, qemu: None };
        lab.open();
        // A disk makes the image one with both.
        let disk: &[u8] = vec![0; DISK].leak();
        lab.qemu().import_image("tiny", Box::new(disk)).await.unwrap();
        Some(lab)
    }

    /// As a kubelet that starts anew would.
    fn open(&mut self) {
        self.qemu = None;
        let random = Random::from_system();
        let opened = Qemu::open(self.settings.clone(), Arc::new(SystemClock), random);
        self.qemu = Some(opened.unwrap());
    }

    fn qemu(&self) -> &Qemu {
        self.qemu.as_ref().unwrap()
    }

    async fn exec(&self, vm: &str, script: &str, input: &'static str) -> (i32, String, String) {
        let (out, mut stdout) = tokio::io::duplex(1 << 20);
        let (err, mut stderr) = tokio::io::duplex(1 << 20);
        let streams = ExecStreams {
            stdin: (!input.is_empty()).then(|| Box::new(input.as_bytes()) as _),
            stdout: Some(Box::new(out)),
            stderr: Some(Box::new(err)),
        };
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        let options = ExecOptions { argv, env: [("GREETING".into(), "hi".into())].into() };
        let (mut said, mut complained) = (String::new(), String::new());
        let work = async {
            tokio::join!(
                self.qemu().exec(vm, options, streams),
                stdout.read_to_string(&mut said),
                stderr.read_to_string(&mut complained)
            )
        };
        let (code, ..) = timeout(PATIENCE, work).await.unwrap();
        (code.unwrap(), said, complained)
    }

    async fn counter(&self, vm: &str) -> u64 {
        self.exec(vm, "cat /srv/counter", "").await.1.trim().parse().unwrap()
    }

    async fn until_there(&self, vm: &VmRecord) {
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.qemu().ping(&vm.id).unwrap().await {
            assert!(Instant::now() < deadline, "{error}\n{}", self.serial(vm));
            sleep(Duration::from_millis(100)).await;
        }
    }

    fn serial(&self, vm: &VmRecord) -> String {
        let log = self.root.join("vms").join(&vm.id).join("serial.log");
        String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned()
    }

    fn processes(&self) -> usize {
        processes_of(&self.root)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for entry in std::fs::read_dir(self.root.join("vms")).into_iter().flatten().flatten() {
            let pid = std::fs::read_to_string(entry.path().join("pid")).unwrap_or_default();
            if !pid.trim().is_empty() && processes_of(&entry.path()) > 0 {
                let _ = std::process::Command::new("kill").args(["-9", pid.trim()]).status();
            }
        }
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// Processes that name something of this folder.
fn processes_of(folder: &Path) -> usize {
    let is_ours = |process: PathBuf| {
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&*folder.to_string_lossy())
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| is_ours(entry.path())).count()
}

fn run(name: &str) -> RunOptions {
    RunOptions { name: name.to_owned(), image: "tiny".to_owned(), ..RunOptions::default() }
}

fn clone(name: &str, from: &str) -> CloneOptions {
    CloneOptions {
        name: name.to_owned(),
        from: CloneFrom::Snapshot(from.to_owned()),
        network: None,
        backend: Backend::default(),
        no_direct_io: false,
        pull: true,
        on_demand: true,
        nics: None,
    }
}

async fn event_of(events: &mut Watch, vm: &VmRecord, kind: EventKind) -> VmRecord {
    let find = async {
        loop {
            let event = events.next().await.unwrap().unwrap();
            if event.vm.id == vm.id && event.event == kind {
                return event.vm;
            }
        }
    };
    timeout(PATIENCE, find).await.unwrap_or_else(|_| panic!("no {kind:?} of {}", vm.name()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_guests_live_sleep_wake_and_leave_nothing() {
    let Some(mut lab) = Lab::start().await else { return };
    let vm = lab.qemu().run(run("a")).await.unwrap();
    let taken = lab.qemu().run(run("a")).await.unwrap_err();
    assert!(matches!(taken, RuntimeError::NameTaken { .. }), "{taken}");
    lab.until_there(&vm).await;
    programs(&lab, &vm).await;
    ports_and_logs(&lab, &vm).await;
    let count = fork(&lab, &vm).await;
    woken_from_archive(&mut lab, count).await;
    restart(&lab, &vm).await;
    for name in ["a", "b"] {
        lab.qemu().remove(name).await.unwrap();
        lab.qemu().remove(name).await.unwrap();
    }
    for snapshot in ["s", "t"] {
        lab.qemu().snapshot_remove(snapshot).await.unwrap();
    }
    assert_eq!(lab.processes(), 0, "no process stays");
    for folder in ["vms", "snapshots"] {
        let left: Vec<_> = std::fs::read_dir(lab.root.join(folder)).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

async fn programs(lab: &Lab, vm: &VmRecord) {
    let said = lab.exec(&vm.id, "echo $GREETING; echo oh >&2; exit 3", "").await;
    assert_eq!(said, (3, "hi\n".to_owned(), "oh\n".to_owned()));
    let said = lab.exec(&vm.id, "wc -c", "twelve bytes").await;
    assert_eq!((said.0, said.1.trim()), (0, "12"));
    let nothing = ExecOptions { argv: vec!["false".to_owned()], ..ExecOptions::default() };
    let code = lab.qemu().exec(&vm.id, nothing, ExecStreams::default()).await.unwrap();
    assert_eq!(code, 1);
    // Output is passed on while the program runs, and a program that nobody waits for ends.
    let (out, mut stdout) = tokio::io::duplex(1 << 16);
    let argv = ["sh", "-c", "echo first; exec sleep 86399"].map(str::to_owned).to_vec();
    let options = ExecOptions { argv, ..ExecOptions::default() };
    let streams = ExecStreams { stdout: Some(Box::new(out)), ..ExecStreams::default() };
    let mut program = lab.qemu().exec(&vm.id, options, streams);
    let mut first = [0; 6];
    tokio::select! {
        read = stdout.read_exact(&mut first) => assert_eq!((read.unwrap(), &first), (6, b"first\n")),
        ended = &mut program => panic!("{ended:?}"),
        () = sleep(PATIENCE) => panic!("nothing is heard"),
    }
    drop(program);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, said, _) = lab.exec(&vm.id, "ps | grep -c '[s]leep 86399'; ls -A /tmp", "").await;
        if said.starts_with("0\n") && said.matches(".roost-exec-").count() <= 2 {
            break;
        }
        assert!(Instant::now() < deadline, "{said}");
        sleep(Duration::from_millis(200)).await;
    }
}

async fn ports_and_logs(lab: &Lab, vm: &VmRecord) {
    lab.qemu().reach(&vm.id, 8080).await.unwrap();
    lab.qemu().reach(&vm.id, 8080).await.unwrap();
    let address = format!("{}:8080", vm.address().unwrap());
    let mut stream = timeout(PATIENCE, TcpStream::connect(address)).await.unwrap().unwrap();
    stream.write_all(b"GET /counter HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (near, mut far) = tokio::io::duplex(1 << 20);
    let options = LogOptions { tail: Some(50), follow: false, ..LogOptions::default() };
    lab.qemu().logs("a", options, Box::new(near)).await.unwrap();
    let mut text = String::new();
    far.read_to_string(&mut text).await.unwrap();
    assert!(text.contains("guest is ready"), "{text}");
}

/// A snapshot of a running VM: the VM goes on, and so does its copy. The copy's count when it was last seen.
async fn fork(lab: &Lab, vm: &VmRecord) -> u64 {
    lab.exec(&vm.id, "echo on disk | dd of=/dev/vda conv=fsync; echo in memory > /run/note", "")
        .await;
    let before = lab.counter(&vm.id).await;
    lab.qemu().snapshot_save("s", "a").await.unwrap();
    lab.qemu().snapshot_save("s", "a").await.unwrap();
    lab.exec(&vm.id, "echo changed > /run/note; echo changed | dd of=/dev/vda conv=fsync", "")
        .await;
    let missing = lab.qemu().clone_vm(clone("b", "none")).await.unwrap_err();
    assert!(missing.is_snapshot_gone(), "{missing}");
    let copy = lab.qemu().clone_vm(clone("b", "s")).await.unwrap();
    assert_ne!(copy.address(), vm.address());
    lab.until_there(&copy).await;
    let said = lab.exec("b", "cat /run/note; head -c 7 /dev/vda", "").await.1;
    assert_eq!(said, "in memory\non disk");
    assert!(lab.counter("b").await > before, "it goes on where it was");
    assert!(lab.counter("a").await > before, "and so does its source");
    assert_eq!(lab.processes(), 2);
    lab.counter("b").await
}

/// Saved, taken out, removed, brought back under another name by a runtime that starts anew: what hibernation needs.
async fn woken_from_archive(lab: &mut Lab, count: u64) {
    lab.qemu().snapshot_save("s", "b").await.unwrap();
    lab.qemu().remove("b").await.unwrap();
    let (near, mut far) = tokio::io::duplex(1 << 20);
    let mut archive = Vec::new();
    let (exported, read) = tokio::join!(
        lab.qemu().snapshot_export("s", Box::new(near)),
        far.read_to_end(&mut archive)
    );
    exported.unwrap();
    read.unwrap();
    lab.open();
    let cut: &[u8] = archive[..archive.len() / 2].to_vec().leak();
    assert!(lab.qemu().snapshot_import("t", Box::new(cut)).await.is_err());
    assert!(lab.qemu().snapshot("t").await.unwrap().is_none(), "half a snapshot is none");
    let whole: &[u8] = archive.leak();
    lab.qemu().snapshot_import("t", Box::new(whole)).await.unwrap();
    let record = lab.qemu().snapshot("t").await.unwrap().unwrap();
    assert_eq!((record.name.as_str(), record.hypervisor.as_str()), ("t", Backend::QEMU));
    let woken = lab.qemu().clone_vm(clone("b", "t")).await.unwrap();
    lab.until_there(&woken).await;
    assert!(lab.counter("b").await > count, "the count goes on");
    assert_eq!(lab.qemu().list().await.unwrap().len(), 2, "the other one went on meanwhile");
}

/// A VM whose process dies is seen at once, and starts again with its disk.
async fn restart(lab: &Lab, vm: &VmRecord) {
    let mut events = lab.qemu().watch().await.unwrap();
    let seen = event_of(&mut events, vm, EventKind::Added).await;
    let status = std::process::Command::new("kill").args(["-9", &seen.pid.to_string()]).status();
    assert!(status.unwrap().success());
    let dead = event_of(&mut events, vm, EventKind::Modified).await;
    assert_eq!((dead.state.as_str(), dead.pid), ("stopped (stale)", 0));
    lab.qemu().start("a").await.unwrap();
    lab.qemu().start("a").await.unwrap();
    let up = event_of(&mut events, vm, EventKind::Modified).await;
    assert!(up.state.is_running() && up.pid != seen.pid);
    lab.until_there(vm).await;
    let (near, mut far) = tokio::io::duplex(1 << 20);
    let options = LogOptions { previous: true, ..LogOptions::default() };
    lab.qemu().logs("a", options, Box::new(near)).await.unwrap();
    let mut before = String::new();
    far.read_to_string(&mut before).await.unwrap();
    assert_eq!(before.matches("guest is ready").count(), 1, "{before}");
    assert_eq!(lab.exec("a", "head -c 7 /dev/vda; cat /run/note", "").await.1, "changed");
    lab.qemu().stop("a", 1).await.unwrap();
    // What was told of the second start may come first.
    let mut off = event_of(&mut events, vm, EventKind::Modified).await;
    while off.state.is_running() {
        off = event_of(&mut events, vm, EventKind::Modified).await;
    }
    assert_eq!(off.state.as_str(), "stopped");
}
