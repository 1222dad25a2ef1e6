//! Persons steer a running service from the command line: `roost run` between both simulators, over the wire.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod wire;

use std::fs;
use std::process::Output;
use std::time::Duration;

use roost_vim::{Client, Reconfigure};
use serde_json::{Value, json};
use tokio::time::sleep;
use wire::{CdsSim, Service, Site, VcenterSim, Vm, account, comes_true, roost, within};

const TOKEN: &str = "t0p-s3cret";
/// A VM that is not ours.
const NEIGHBOUR: &str = "DC0_C0_RP0_VM0";

/// One spare, and nothing that is waited for without need.
const VSPHERE: &str = r#"
dns = "10.77.0.1"
finishedWorkerGracePeriod = 1
killAwolServersInterval = 2
workerProvisioningInterval = 5
workerProvisioningPoolSize = 1

[[hatchery.vsphere.networks]]
iprange = "10.77.0.0/27"
gateway = "10.77.0.1"
subnetMask = "255.255.255.224"

[[hatchery.vsphere.workerProvisioning]]
modelVMWare = "debian12"
number = 1
"#;

struct Scene {
    site: Site,
    vcenter: VcenterSim,
    cds: CdsSim,
    client: Client,
    service: Service,
    url: String,
}

impl Scene {
    async fn set(name: &str) -> Self {
        let site = Site::new(name);
        let vcenter = VcenterSim::start(&site, &["--vms", "1", "--pace", "quick"]);
        let cds = CdsSim::start(&site, &[]);
        let config = site.write_config(
            &vcenter,
            &cds,
            VSPHERE,
            "maxWorker = 4\nmaxConcurrentProvisioning = 4",
        );
        fs::write(site.file("token"), format!("{TOKEN}\n")).unwrap();
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, text.replace("port = 0", "port = 0\ntokenFile = \"token\"")).unwrap();
        let client = vcenter.client().await;
        let service = Service::start(&site);
        let url = service.process.word("http://").trim_end_matches("/mon/status").to_owned();
        Self { site, vcenter, cds, client, service, url }
    }

    /// As a person types it, without a token.
    async fn bare(&self, line: &str) -> Output {
        let mut command = roost(&line.split(' ').collect::<Vec<_>>());
        command.args(["--url", &self.url]).env_remove("ROOST_TOKEN");
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    async fn run(&self, line: &str) -> Output {
        let file = self.site.file("token");
        self.bare(&format!("{line} --token-file {}", file.display())).await
    }

    /// What it said, after it did what it was told.
    async fn done(&self, line: &str) -> String {
        let output = self.run(line).await;
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The one line that it said, after it did not.
    async fn refused(&self, line: &str) -> String {
        complaint(line, &self.run(line).await)
    }

    async fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.done(&format!("{line} --json")).await).unwrap()
    }

    async fn until(&self, what: &str, holds: impl AsyncFnMut() -> bool) {
        if !comes_true(within(120), holds).await {
            let more = account(&self.site, &self.cds, &self.client, Some(&self.service)).await;
            panic!("not in time: {what}{more}");
        }
    }

    /// In a datacenter where nothing happens, each side confirms its view only once in a minute, and what has to be seen twice waits for that.
    async fn is_gone(&self, id: &str) -> bool {
        let finder = self.client.finder("DC0").await.unwrap();
        let vm = finder.vm(NEIGHBOUR).await.unwrap().moref;
        self.client.reconfigure(&vm, &Reconfigure::annotation("made by hand")).await.unwrap();
        Vm::read_all(&self.client).await.iter().all(|vm| *vm.moref.id != *id)
    }

    async fn has_decided(&self, filters: &str) -> bool {
        let found = self.json(&format!("decisions {filters}")).await;
        !found.as_array().unwrap().is_empty()
    }

    async fn spare(&self) -> Option<(String, String)> {
        let spares = self.json("vms --kind spare --power off").await;
        let spare = spares.as_array().unwrap().first()?;
        let text = |name: &str| spare[name].as_str().unwrap().to_owned();
        Some((text("id"), text("name")))
    }
}

fn complaint(line: &str, output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{line}: {output:?}");
    assert_eq!(output.stdout, b"", "{line}");
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(said.lines().count(), 1, "{line}: {said}");
    said.trim_end().to_owned()
}

#[tokio::test]
async fn a_running_service_does_what_it_is_told_and_records_who_said_so() {
    let scene = Scene::set("steer").await;
    scene.until("a spare is ready", async || scene.spare().await.is_some()).await;
    tokens_are_asked_for(&scene).await;
    spawning_is_paused_and_resumed(&scene).await;
    deletions_are_frozen_and_thawed(&scene).await;
    one_vm_is_deleted_and_its_pool_filled(&scene).await;
    a_drain_is_waited_for(&scene).await;
    everything_is_in_the_journal(&scene).await;
    drop(scene.vcenter);
    scene.client.shutdown().await;
}

async fn tokens_are_asked_for(scene: &Scene) {
    let said = complaint("pause", &scene.bare("pause").await);
    assert!(said.starts_with("roost: an action needs the service's token: give it with"), "{said}");
    let wrong = scene.site.file("wrong");
    fs::write(&wrong, "wr0ng").unwrap();
    let line = format!("pause --token-file {}", wrong.display());
    let said = complaint(&line, &scene.bare(&line).await);
    assert!(said.contains("the bearer token is not the right one"), "{said}");
    assert!(!said.contains("wr0ng"), "{said}");
    assert!(!scene.has_decided("--verdict steered").await, "nothing was done");
    // The file of the service is enough: it names the port and the token.
    let port = scene.url.rsplit(':').next().unwrap();
    let text = fs::read_to_string(scene.site.file("roost.toml")).unwrap();
    fs::write(scene.site.file("here.toml"), text.replace("port = 0", &format!("port = {port}")))
        .unwrap();
    let mut command = roost(&["resume", "-c", "here.toml", "--json"]);
    command.current_dir(scene.site.folder()).env_remove("ROOST_TOKEN");
    let output = command.output().unwrap();
    let done: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(done, json!({"done": true, "words": "spawning was not paused"}));
}

async fn spawning_is_paused_and_resumed(scene: &Scene) {
    let said = scene.done("pause --reason host-upgrade").await;
    assert_eq!(said, "spawning is paused; what is under way goes on\n");
    let job = scene.cds.add_job("v2", &json!({})).await;
    let filters = format!("--subject {job} --bound-by paused");
    scene.until("the job is told to wait", async || scene.has_decided(&filters).await).await;
    let why = scene.done(&format!("explain {job}")).await;
    assert!(why.contains("spawning is paused") && why.contains("host-upgrade"), "{why}");
    let status = scene.done("status").await;
    assert!(status.contains("HELD BACK: spawning is paused since"), "{status}");

    let said = scene.done(&format!("recheck {job}")).await;
    assert_eq!(said, format!("job {job} is looked at now\n"));
    assert_eq!(scene.refused("recheck no-job").await, "roost: job no-job is not known");
    // Longer than a job takes to get a worker here, and than any look at it takes.
    sleep(Duration::from_secs(3)).await;
    assert_eq!(scene.cds.status(&job).await, "Waiting");
    assert_eq!(scene.json("vms --kind worker").await, json!([]));

    assert_eq!(scene.done("resume").await, "spawning is resumed\n");
    scene.until("the job is done", async || scene.cds.status(&job).await == "Success").await;
}

async fn deletions_are_frozen_and_thawed(scene: &Scene) {
    scene
        .until("nothing is left of it", async || {
            scene.is_gone("").await && scene.json("vms --kind worker,leaving").await == json!([])
        })
        .await;
    assert_eq!(scene.done("freeze").await, "deleting is frozen\n");
    let job = scene.cds.add_job("v2", &json!({})).await;
    scene.until("the job is done", async || scene.cds.status(&job).await == "Success").await;
    scene
        .until("its VM is kept", async || {
            scene.is_gone("").await && scene.has_decided("--verdict kept --bound-by held").await
        })
        .await;
    let status = scene.done("status").await;
    assert!(status.contains("FROZEN until `roost thaw`: deleting is frozen since"), "{status}");
    let kept = scene.json("decisions --verdict kept --bound-by held").await;
    let id = kept[0]["subject"].as_str().unwrap().to_owned();
    assert!(!scene.is_gone(&id).await);
    assert_eq!(scene.done("thaw --approve").await, "deleting is resumed\n");
    scene.until("its VM goes", async || scene.is_gone(&id).await).await;
    assert_eq!(scene.done("thaw").await, "deleting was not frozen\n");
}

async fn one_vm_is_deleted_and_its_pool_filled(scene: &Scene) {
    scene.until("a spare is ready", async || scene.spare().await.is_some()).await;
    let (id, name) = scene.spare().await.unwrap();
    assert_eq!(
        scene.done(&format!("delete {name}")).await,
        format!("VM {name} is marked for deletion\n")
    );
    scene.until("it is gone", async || scene.is_gone(&id).await).await;
    let gone = format!("--subject {id} --verdict deleted");
    scene.until("that is recorded", async || scene.has_decided(&gone).await).await;
    let evidence = scene.json(&format!("decisions {gone}")).await;
    assert!(evidence[0]["gates"].as_array().is_some_and(|gates| !gates.is_empty()), "{evidence}");
    let foreign = format!("delete {NEIGHBOUR}");
    assert_eq!(
        scene.refused(&foreign).await,
        format!("roost: VM {NEIGHBOUR} is not this hatchery's")
    );
    assert_eq!(scene.refused("delete nobody").await, "roost: VM nobody is not known");

    assert_eq!(scene.done("refill debian12").await, "pool debian12 is looked at now\n");
    assert_eq!(scene.refused("refill nothing").await, "roost: pool nothing is not known");
    scene.until("there is a spare again", async || scene.spare().await.is_some()).await;
}

async fn a_drain_is_waited_for(scene: &Scene) {
    let job = scene.cds.add_job("v2", &json!({"takes_ms": 3_000})).await;
    scene.until("it is at work", async || scene.cds.status(&job).await == "Building").await;
    let drained = scene.run("drain --wait --reason maintenance");
    let others_work = async {
        // Until the last one is gone.
        loop {
            scene.is_gone("").await;
            sleep(Duration::from_millis(200)).await;
        }
    };
    let output = tokio::select! {
        output = drained => output,
        () = others_work => unreachable!(),
    };
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.starts_with("no new workers; 1 is left to end\n1 worker is left\n"), "{said}");
    assert!(said.ends_with("no worker is left\n"), "{said}");
    assert_eq!(scene.cds.status(&job).await, "Success", "it was not disturbed");
    let late = scene.cds.add_job("v2", &json!({})).await;
    let filters = format!("--subject {late} --bound-by paused");
    scene.until("no more is begun", async || scene.has_decided(&filters).await).await;
    scene.done("resume").await;
    scene.until("it goes on", async || scene.cds.status(&late).await == "Success").await;
}

async fn everything_is_in_the_journal(scene: &Scene) {
    let steered = scene.json("decisions --verdict steered --kind service").await;
    let steered = steered.as_array().unwrap();
    let words: Vec<&str> = steered.iter().map(|each| each["reason"].as_str().unwrap()).collect();
    for (number, part) in [
        "spawning was not paused",
        "(host-upgrade): spawning is paused",
        "is looked at now",
        "looking again: job no-job is not known",
        "spawning is resumed",
        "deleting is frozen",
        "deleting is resumed",
        "deleting was not frozen",
        "is marked for deletion",
        "is not this hatchery's",
        "VM nobody is not known",
        "pool debian12 is looked at now",
        "pool nothing is not known",
        "(maintenance): no new workers",
        "spawning is resumed",
    ]
    .into_iter()
    .enumerate()
    {
        let said = words.get(number).unwrap_or_else(|| panic!("{part} is missing: {words:#?}"));
        assert!(said.starts_with("whoever has the token, from 127.0.0.1"), "{said}");
        assert!(said.contains(part), "{part} is not in {said}");
        assert!(steered[number]["at"].is_string(), "when");
    }
    let table = scene.done("decisions --verdict steered --filter maintenance").await;
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(table.contains("steered") && table.contains("no new workers"), "{table}");
}
