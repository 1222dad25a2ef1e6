//! A pod that is a real guest, from the API server's side.

use std::sync::Arc;
use std::time::Duration;

use roost_clock::{Random, SystemClock};
use roost_cocoon_sim::EpochRegistry;
use roost_kubelet::key;
use roost_microvm::{Qemu, QemuSettings};
use roost_oracle::{ClusterOptions, microvm};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::lab::{Lab, PATIENCE, scratch};
use crate::registry::{client, serve};

async fn start() -> Option<Lab> {
    let tools = tokio::task::spawn_blocking(microvm).await.unwrap()?;
    let root = scratch("qemu-node");
    let image = root.join("images/tiny");
    std::fs::create_dir_all(&image).unwrap();
    std::fs::copy(&tools.kernel, image.join("vmlinuz")).unwrap();
    std::fs::copy(&tools.initrd, image.join("initrd")).unwrap();
    std::fs::write(image.join("cmdline"), tools.cmdline).unwrap();
    let mut settings = QemuSettings::new(&root);
    (settings.binary, settings.disk_tool) = (tools.qemu, tools.qemu_img);
    let random = Random::from_system();
    let qemu = Qemu::open(settings, Arc::new(SystemClock), random).unwrap();
    let registry = client(serve(&EpochRegistry::default()).await, None);
    let options = ClusterOptions { controller_manager: true, ..ClusterOptions::default() };
    let variables = [("VK_RUNTIME", "qemu")];
    Lab::start_with(options, root, Arc::new(qemu), Some(registry), &variables).await
}

async fn counter(lab: &Lab) -> u64 {
    let said = lab.run(&["exec", "g", "--", "cat", "/srv/counter"], "").await;
    assert_eq!(said.code, 0, "{said:?}");
    said.stdout.trim().parse().unwrap()
}

async fn wait(lab: &Lab, what: &str) {
    let said = lab.run(&["wait", what, "pod/g", "--timeout=110s"], "").await;
    let pod = || lab.kubectl().stdout(&["get", "pod", "g", "-o", "yaml"]);
    assert_eq!(said.code, 0, "{what}: {said:?}\n{}", pod());
}

/// Ends what a failed test leaves.
struct Sweep(std::path::PathBuf);

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
async fn a_pod_is_a_real_guest_that_sleeps_and_wakes() {
    let Some(lab) = start().await else { return };
    let _sweep = Sweep(lab.folder.clone());
    let container = json!({
        "name": "agent", "image": "pause",
        "resources": {"requests": {"memory": "256Mi"}},
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1, "timeoutSeconds": 5},
    });
    lab.run_pod_of("tiny", "g", container).await;
    exec_and_logs(&lab).await;
    port_forward(&lab).await;
    let before = counter(&lab).await;
    let hibernate = format!("{}=true", key::HIBERNATE);
    assert_eq!(lab.run(&["annotate", "pod", "g", &hibernate], "").await.code, 0);
    let state = key::LIFECYCLE_STATE.replace('.', "\\.");
    wait(&lab, &format!("--for=jsonpath={{.metadata.annotations.{state}}}=hibernated")).await;
    assert_eq!(lab.vms(), 0, "it takes neither memory nor disk while it sleeps");
    let wake = format!("{}-", key::HIBERNATE);
    assert_eq!(lab.run(&["annotate", "pod", "g", &wake], "").await.code, 0);
    wait(&lab, "--for=condition=Ready").await;
    let after = counter(&lab).await;
    assert!(after > before, "{before} {after}");
    assert_eq!(lab.run(&["exec", "g", "--", "cat", "/run/note"], "").await.stdout, "kept\n");

    let said = lab.run(&["delete", "pod", "g", "--grace-period=1", "--timeout=110s"], "").await;
    assert_eq!(said.code, 0, "{said:?}");
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
    let is_ours = |process: std::path::PathBuf| {
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
    let said = lab.run(&["exec", "g", "--", "sh", "-c", script], "").await;
    assert_eq!((said.code, said.stdout.as_str()), (4, "Linux\n"), "{said:?}");
    assert!(said.stderr.starts_with("oh\n"), "{said:?}");
    let said = lab.run(&["exec", "-i", "g", "--", "tr", "a-z", "A-Z"], "from here\n").await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "FROM HERE\n"), "{said:?}");
    let said = lab.run(&["logs", "g"], "").await;
    assert!(said.stdout.contains("guest is ready"), "{said:?}");
}

async fn port_forward(lab: &Lab) {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let mut child = lab.spawn_with(&[], &["port-forward", "g", ":8080"]);
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
