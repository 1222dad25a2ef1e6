//! A pod that is a real guest, from the API server's side, on the way that `docs/kubelet.md` shows for a laptop.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use roost_clock::{Random, SystemClock};
use roost_cocoon_sim::EpochRegistry;
use roost_microvm::{Qemu, QemuSettings};
use roost_oracle::{ClusterOptions, microvm};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::lab::{Lab, PATIENCE, scratch};
use crate::registry::{client, serve};

async fn start() -> Option<Lab> {
    let tools = tokio::task::spawn_blocking(microvm).await.unwrap()?;
    let root = scratch("qemu-node");
    let packages = tools.packages.each_ref().map(|folder| folder.display().to_string());
    let made = std::process::Command::new(repository().join("deploy/qemu/tiny-image.sh"))
        .arg(root.join("images/tiny"))
        .env("PACKAGES", packages.join(":"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut settings = QemuSettings::new(&root);
    (settings.binary, settings.disk_tool) = (tools.qemu, tools.qemu_img);
    let random = Random::from_system();
    let qemu = Qemu::open(settings, Arc::new(SystemClock), random).unwrap();
    let registry = client(serve(&EpochRegistry::default()).await, None);
    let options =
        ClusterOptions { controller_manager: true, scheduler: true, ..ClusterOptions::default() };
    let variables = [("VK_RUNTIME", "qemu")];
    Lab::start_with(options, root, Arc::new(qemu), Some(registry), &variables).await
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// The section of the page: its pod, and the lines that call `kubectl`.
fn page() -> (String, Vec<String>) {
    let page = std::fs::read_to_string(repository().join("docs/kubelet.md")).unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with("On a laptop")).unwrap();
    let block = |language: &str| {
        let from = section.split(&format!("```{language}\n")).nth(1).unwrap();
        from.split("```").next().unwrap().to_owned()
    };
    let script = block("text");
    assert!(script.contains("deploy/qemu/tiny-image.sh") && section.contains("`roost kubelet`"));
    let lines = block("console");
    let lines = lines.lines().filter_map(|line| Some(line.strip_prefix("$ kubectl ")?.to_owned()));
    (block("yaml"), lines.collect())
}

/// One line of the page.
async fn follow(lab: &Lab, line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let said = lab.run(&words, "").await;
    let pod = || lab.kubectl().stdout(&["get", "pods", "-o", "yaml"]);
    assert_eq!(said.code, 0, "kubectl {line}: {said:?}\n{}", pod());
    said.stdout
}

async fn counter(lab: &Lab) -> u64 {
    let said = lab.run(&["exec", "tiny", "--", "cat", "/srv/counter"], "").await;
    assert_eq!(said.code, 0, "{said:?}");
    said.stdout.trim().parse().unwrap()
}

/// Ends what a failed test leaves.
struct Sweep(PathBuf);

impl Drop for Sweep {
    fn drop(&mut self) {
        for vm in std::fs::read_dir(self.0.join("vms")).into_iter().flatten().flatten() {
            let pid = std::fs::read_to_string(vm.path().join("pid")).unwrap_or_default();
            if !pid.trim().is_empty() {
                let _ = std::process::Command::new("kill").args(["-9", pid.trim()]).status();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_is_a_real_guest_that_sleeps_and_wakes_as_the_page_shows() {
    let Some(lab) = start().await else { return };
    let _sweep = Sweep(lab.folder.clone());
    let (pod, lines) = page();
    let file = lab.kubectl().file("tiny.yaml", &pod);
    let [apply, wait_ready, exec, logs, sleep_line, asleep, wake, awake, delete] = &lines[..]
    else {
        panic!("the page has other lines than are followed here: {lines:#?}");
    };
    assert_eq!(apply, "apply -f tiny.yaml");
    lab.account_is_there().await;
    follow(&lab, &apply.replace("tiny.yaml", &file)).await;
    follow(&lab, wait_ready).await;
    assert!(follow(&lab, exec).await.trim().parse::<u64>().is_ok());
    assert!(follow(&lab, logs).await.contains("guest is ready"));
    exec_and_logs(&lab).await;
    port_forward(&lab).await;
    let before = counter(&lab).await;
    follow(&lab, sleep_line).await;
    follow(&lab, asleep).await;
    assert_eq!(lab.vms(), 0, "it takes neither memory nor disk while it sleeps");
    follow(&lab, wake).await;
    follow(&lab, awake).await;
    let after = counter(&lab).await;
    assert!(after > before, "{before} {after}");
    assert_eq!(lab.run(&["exec", "tiny", "--", "cat", "/run/note"], "").await.stdout, "kept\n");

    follow(&lab, delete).await;
    let deadline = Instant::now() + PATIENCE;
    while lab.vms() > 0 || processes(&lab) > 0 {
        assert!(Instant::now() < deadline, "something stays");
        sleep(Duration::from_millis(100)).await;
    }
    let left = std::fs::read_dir(lab.folder.join("snapshots")).unwrap().count();
    assert_eq!(left, 0, "no snapshot stays on the host");
}

fn processes(lab: &Lab) -> usize {
    let folder = lab.folder.to_string_lossy().into_owned();
    let is_ours = |process: PathBuf| {
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&folder)
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| is_ours(entry.path())).count()
}

impl Lab {
    fn vms(&self) -> usize {
        std::fs::read_dir(self.folder.join("vms")).unwrap().count()
    }
}

async fn exec_and_logs(lab: &Lab) {
    let script = "echo kept > /run/note; uname -s; echo oh >&2; exit 4";
    let said = lab.run(&["exec", "tiny", "--", "sh", "-c", script], "").await;
    assert_eq!((said.code, said.stdout.as_str()), (4, "Linux\n"), "{said:?}");
    assert!(said.stderr.starts_with("oh\n"), "{said:?}");
    let said = lab.run(&["exec", "-i", "tiny", "--", "tr", "a-z", "A-Z"], "from here\n").await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "FROM HERE\n"), "{said:?}");
    let said = lab.run(&["logs", "tiny"], "").await;
    assert!(said.stdout.contains("guest is ready"), "{said:?}");
}

async fn port_forward(lab: &Lab) {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let mut child = lab.spawn_with(&[], &["port-forward", "tiny", ":8080"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    let port = line.strip_prefix("Forwarding from 127.0.0.1:").unwrap();
    let port: u16 = port.split(' ').next().unwrap().parse().unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(b"GET /counter HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.contains(" 200 "), "{answer}");
    child.kill().await.unwrap();
}
