//! Whether pods could become microVMs on this host: the API server, the runtime, the registry, certificate and leases.

use std::time::Duration;

use roost_doctor::{CALL, Finding, Section, Telling, within};
use roost_kubelet::Settings;
use tokio::process::Command;

use super::cluster;
use crate::kubelet::{registry, runtime};
use crate::serve::sections::Cluster;

pub(super) const ROLES: &str = include_str!("../../../deploy/kubelet/rbac.yaml");

/// A list of VMs is read from files; a host that takes longer is not well.
const LIST: Duration = Duration::from_secs(10);

pub(super) async fn examine(cluster: &Cluster, settings: &Settings, telling: &mut Telling) {
    telling.begin("Kubernetes API server");
    let (client, mut findings) = cluster::connect(cluster).await;
    if let Some(client) = client {
        let path = "deploy/kubelet/rbac.yaml";
        findings.push(cluster::rights(&client, ROLES, "roost-kubelet", path).await);
    }
    findings.push(certificate(settings));
    findings.push(runtime_answers(settings).await);
    findings.push(registry_answers(settings).await);
    findings.push(leases(settings));
    let about = format!("node {}", settings.node_name);
    telling.tell(Section { system: "kubelet", about, findings });
}

fn certificate(settings: &Settings) -> Finding {
    const CHECK: &str = "certificate";
    let (certificate, key) = (&settings.tls_cert, &settings.tls_key);
    match (std::fs::read(certificate), std::fs::read(key)) {
        (Ok(_), Ok(_)) => Finding::pass(CHECK, certificate.display().to_string()),
        (Err(error), _) if error.kind() == std::io::ErrorKind::NotFound => Finding::warn(
            CHECK,
            format!("{} is not there: one is made that no API server knows", certificate.display()),
        )
        .advice("kubectl logs and exec work then only if the API server does not verify kubelets; set VK_TLS_CERT and VK_TLS_KEY"),
        (Err(error), _) => Finding::fail(CHECK, format!("{}: {error}", certificate.display())),
        (_, Err(error)) => Finding::fail(CHECK, format!("{}: {error}", key.display())),
    }
}

async fn runtime_answers(settings: &Settings) -> Finding {
    const CHECK: &str = "runtime";
    if let Some(qemu) = &settings.qemu {
        let asked = Command::new(&qemu.binary).arg("--version").output();
        return match within(CALL, asked).await {
            Ok(output) if output.status.success() => {
                let said = String::from_utf8_lossy(&output.stdout);
                Finding::pass(CHECK, said.lines().next().unwrap_or_default().to_owned())
            }
            Ok(output) => {
                Finding::fail(CHECK, format!("{} --version: {}", qemu.binary, output.status))
            }
            Err(why) => Finding::fail(CHECK, format!("{}: {why}", qemu.binary))
                .advice("install qemu-system-x86, or name it in VK_QEMU_BIN"),
        };
    }
    let runtime = match runtime(settings) {
        Ok(runtime) => runtime,
        Err(error) => return Finding::fail(CHECK, roost_supervise::Chain(&*error).to_string()),
    };
    match tokio::time::timeout(LIST, runtime.list()).await {
        Ok(Ok(vms)) => {
            Finding::pass(CHECK, format!("{}: {} VMs", settings.cocoon.display(), vms.len()))
        }
        Ok(Err(error)) => {
            Finding::fail(CHECK, format!("{} vm list: {error}", settings.cocoon.display())).advice(
                "VK_COCOON_BIN names the program, VK_COCOON_SUDO says whether sudo is needed",
            )
        }
        Err(_) => Finding::unanswered(CHECK, format!("no answer within {} s", LIST.as_secs())),
    }
}

async fn registry_answers(settings: &Settings) -> Finding {
    const CHECK: &str = "registry";
    let registry = match registry(settings) {
        Ok(Some(registry)) => registry,
        Ok(None) => return Finding::skip(CHECK, "none is set: VMs are cloned from what is here"),
        Err(error) => return Finding::fail(CHECK, roost_supervise::Chain(&*error).to_string()),
    };
    // One that is reached says that it has no such thing.
    match within(CALL, registry.has_manifest("roost/doctor", "none")).await {
        Ok(_) => Finding::pass(CHECK, settings.registry.clone().unwrap_or_default()),
        Err(why) => Finding::fail(CHECK, why)
            .advice("EPOCH_URL, EPOCH_TOKEN and EPOCH_CA_CERT say how it is reached"),
    }
}

fn leases(settings: &Settings) -> Finding {
    const CHECK: &str = "leases";
    let path = &settings.leases;
    match std::fs::metadata(path) {
        Ok(_) => Finding::pass(CHECK, path.display().to_string()),
        Err(error) => Finding::warn(CHECK, format!("{}: {error}", path.display()))
            .advice("VMs get their address from this file of the DHCP server; set VK_LEASES_PATH"),
    }
}
