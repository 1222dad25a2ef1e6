use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use prometheus_client::registry::Registry;
use roost_clock::{Random, SystemClock};
use roost_fleet::{Fleet, FleetRules, FleetSettings};
use roost_vim::{Credentials, HttpTransport, Settings, TlsTrust};
use roost_vm_operator::{OwnVms, READ_INSTEAD, VmOperator};
use tokio::time::sleep;

use crate::lab::{passes_in, settings};
use crate::passes::{on_simulated_time, quiet};

/// The argument that makes this program the controller, before a kubeconfig, the address of a vCenter and a number of objects.
pub(crate) const CONTROLLER: &str = "--be-the-controller";

/// What a controller process holds in memory once it has looked at that many settled VMs.
pub(crate) fn resident_mb(objects: usize) -> f64 {
    on_simulated_time(async {
        let lab = quiet(objects).await;
        // From here on a process of its own takes part.
        tokio::time::resume();
        let any = "127.0.0.1:0".parse().unwrap();
        let api = roost_kube_sim::Server::bind(lab.sim().clone(), any).await.unwrap();
        let path = kubeconfig_path();
        fs::write(&path, api.kubeconfig()).unwrap();
        tokio::spawn(api.run_until(std::future::pending::<()>()));
        let vcenter = lab.site.vcenter.clone();
        let vcenter = roost_vcenter_sim::Server::bind(vcenter, any, None).await.unwrap();
        let url = vcenter.url();
        tokio::spawn(vcenter.run_until(std::future::pending::<()>()));
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([CONTROLLER, &path.display().to_string(), &url, &objects.to_string()]);
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        let output = output.unwrap().unwrap();
        let _ = fs::remove_file(kubeconfig_path());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.trim().parse().unwrap_or_else(|_| {
            panic!("the controller said {said} {}", String::from_utf8_lossy(&output.stderr))
        })
    })
}

fn kubeconfig_path() -> PathBuf {
    std::env::temp_dir().join(format!("roost-vm-operator-bench-{}", std::process::id()))
}

/// Looks at all objects, then says how much memory it needs, in megabytes.
pub(crate) fn be_the_controller(kubeconfig: &str, vcenter: &str, objects: &str) {
    let objects: u64 = objects.parse().unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(async {
        let read = Kubeconfig::read_from(kubeconfig).unwrap();
        let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default());
        let client = Client::try_from(config.await.unwrap()).unwrap();
        let mut session = Settings::new(vcenter, Credentials::new("roost", "secret")).unwrap();
        session.stream.read_instead = Some(READ_INSTEAD);
        let fleet = Fleet::open(FleetSettings {
            vcenter: session,
            transport: Arc::new(HttpTransport::new(&TlsTrust::System).unwrap()),
            clock: Arc::new(SystemClock),
            doors: vec![Arc::new(OwnVms)],
            phases: None,
            rules: FleetRules::default(),
        })
        .await
        .unwrap();
        fleet.cover(&fleet.observer().find_datacenter("DC0").await.unwrap().moref);
        let (mut registry, random) = (Registry::default(), Random::from_seed(1));
        let door = VmOperator::new(&client, fleet.clone(), settings(), random, &mut registry);
        tokio::spawn(door.run(std::future::pending()));
        // Each is looked at when it is listed, and once more when it is shown closely.
        let is_done =
            || passes_in(&registry) >= 2 * objects && fleet.close_up().len() as u64 >= objects;
        while !is_done() {
            sleep(Duration::from_millis(100)).await;
        }
        sleep(Duration::from_secs(5)).await;
        let text = fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kib: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        println!("{:.1}", kib * 1024.0 / 1e6);
    });
}
