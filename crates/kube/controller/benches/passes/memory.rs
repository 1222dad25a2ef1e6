use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, CustomResourceExt as _};
use prometheus_client::registry::Registry;
use roost_clock::SystemClock;
use roost_controller::crd::install_crds;
use roost_controller::{ControllerSettings, Manager};
use roost_kube_sim::{KubeSim, Options, Server};
use tokio::time::sleep;

use crate::machine::{Machine, Machines, machine};

/// The argument that makes this program the controller, before a kubeconfig and a number of objects.
pub(crate) const CONTROLLER: &str = "--be-the-controller";

/// What a controller process holds in memory once that many objects are settled.
pub(crate) fn resident_mb(objects: usize) -> f64 {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let sim = KubeSim::start(Options::default(), Arc::new(SystemClock));
        let client = sim.client();
        install_crds(&client, &[Machine::crd()], "bench").await.expect("the definition");
        let api: Api<Machine> = Api::namespaced(client, "default");
        for number in 0..objects {
            api.create(&PostParams::default(), &machine(number)).await.expect("an object");
        }
        let address = "127.0.0.1:0".parse().expect("an address");
        let server = Server::bind(sim, address).await.expect("a port");
        let path = kubeconfig_path();
        fs::write(&path, server.kubeconfig()).expect("a kubeconfig");
        tokio::spawn(server.run_until(std::future::pending::<()>()));
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new(program);
        command.args([CONTROLLER, &path.display().to_string(), &objects.to_string()]);
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        let output = output.expect("a thread").expect("a controller");
        let _ = fs::remove_file(kubeconfig_path());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.trim().parse().unwrap_or_else(|_| {
            panic!("the controller said {said} {}", String::from_utf8_lossy(&output.stderr))
        })
    })
}

fn kubeconfig_path() -> PathBuf {
    std::env::temp_dir().join(format!("roost-controller-bench-{}", std::process::id()))
}

/// Settles all objects, then says how much memory it needs, in megabytes.
pub(crate) fn be_the_controller(kubeconfig: &str, objects: &str) {
    let objects: usize = objects.parse().expect("a number");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let read = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(read, &options).await.expect("a config");
        let client = Client::try_from(config).expect("a client");
        let mut manager = Manager::new(client.clone(), "bench", &mut Registry::default());
        let machines = manager.watch(Api::<Machine>::all(client));
        let passes = Arc::new(AtomicUsize::new(0));
        let reconciler = Machines { writer: manager.writer(), passes: Arc::clone(&passes) };
        let status = manager.status();
        manager
            .controller("machine", &machines, ControllerSettings::default())
            .reconcile(Arc::new(reconciler));
        tokio::spawn(manager.run(std::future::pending()));
        while !status.is_synced() || passes.load(Ordering::Relaxed) < objects {
            sleep(Duration::from_millis(10)).await;
        }
        let text = fs::read_to_string("/proc/self/status").expect("a status");
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        println!("{:.1}", kib * 1024.0 / 1e6);
    });
}
