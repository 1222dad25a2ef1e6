//! The console on a running hatchery, over HTTP: every action does what it says and is in the journal, and a large datacenter costs the page nothing.
//!
//! Both ends of every connection are on the one thread of the test, so that its clock can jump: what one end has written the other can read at once.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use reqwest::{Client, Response};
use roost_cds::JobId;
use roost_cds_sim::V2Demand;
use roost_clock::{Clock, Random, SimClock};
use roost_console::{Console, Settings};
use roost_door::{Feed, FrontDoor, History, House, Links};
use roost_hatchery::metrics::Metrics;
use roost_hatchery::run::Hatchery;
use roost_hatchery::{Build, HatcheryDoor};
use roost_vcenter_sim::{Action, Rule, When};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

use super::config::{self, DEBIAN, REGION};
use super::simulation::wiring;
use super::world::{World, model_name};

const TOKEN: &str = "s3cret";
/// Simulated; a hatchery that does not come so far is broken.
const PATIENCE: Duration = Duration::from_mins(30);

struct Lab {
    world: World,
    _hatchery: Hatchery,
    client: Client,
    base: String,
}

impl Lab {
    async fn start(foreign_vms: usize) -> Self {
        Self::start_as(foreign_vms, false).await
    }

    async fn start_as(foreign_vms: usize, observes_only: bool) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let random = Random::from_seed(7);
        let config = Arc::new(config::load().unwrap());
        let world = World::start(&random, &clock, foreign_vms).unwrap();
        let mut registry = Registry::default();
        let metrics = Arc::new(Metrics::register(&mut registry, &config.identity.name));
        let wiring = wiring(&config, &world, &clock, &random, &metrics, Vec::new()).await.unwrap();
        let hatchery = if observes_only {
            Hatchery::observe(wiring).await.unwrap()
        } else {
            Hatchery::start(wiring).await.unwrap()
        };
        if !observes_only {
            hatchery.opened().await;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let feed = Feed::default();
        let controls = (!observes_only).then(|| hatchery.controls());
        let build = Build::default();
        let door = HatcheryDoor::new(hatchery.window(), controls, registry, metrics, build, &feed);
        let house = House {
            name: hatchery.name().to_owned(),
            version: "0.1.0".to_owned(),
            started: clock.now(),
            clock: Arc::clone(&clock),
            observes_only,
            doors: vec![Arc::clone(&door) as Arc<dyn FrontDoor>],
            core: Some(door),
            feed,
            history: History::default(),
            links: Links::default(),
            demonstration: None,
        };
        let console = Console {
            house: Arc::new(house),
            settings: Settings { token: Some(TOKEN.into()), ..Settings::default() },
        };
        tokio::spawn(console.serve(listener, std::future::pending()));
        // Time flies between two requests, and the server ends what is idle.
        let client = Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        Self { world, _hatchery: hatchery, client, base }
    }

    async fn page(&self, path: &str) -> Response {
        self.client.get(format!("{}{path}", self.base)).send().await.unwrap()
    }

    async fn api(&self, path: &str) -> Value {
        let answer = self.page(&format!("/api/v1{path}")).await;
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    }

    async fn post(&self, path: &str, reason: &str) -> (u16, String) {
        let body = json!({ "reason": reason }).to_string();
        let request = self.client.post(format!("{}/api/v1{path}", self.base));
        let answer = request.bearer_auth(TOKEN).body(body).send().await.unwrap();
        let status = answer.status().as_u16();
        let said: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        let words = said.get("words").or_else(|| said.get("error")).unwrap();
        (status, words.as_str().unwrap().to_owned())
    }

    /// Waits until what is at this path is so.
    async fn until(&self, path: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.api(path).await;
            if holds(&found) {
                return found;
            }
            assert!(Instant::now() < deadline, "not so within {PATIENCE:?}: {what}: {found:#}");
            sleep(Duration::from_millis(500)).await;
        }
    }

    async fn until_pools_are_full(&self) {
        let is_full = |pools: &Value| {
            pools.as_array().unwrap().iter().all(|pool| pool["ready"] == pool["wanted"])
        };
        self.until("/pools", "the pools are full", is_full).await;
    }

    /// The last that a person has said, as the journal has it: who, why and what came of it, at this moment.
    async fn assert_recorded(&self, reason: &str, result: &str) {
        let said = self.api("/decisions?verdict=steered").await;
        let last = said.as_array().unwrap().last().unwrap();
        let wanted = format!("whoever has the token, from 127.0.0.1 ({reason}): {result}");
        assert_eq!(last["reason"], wanted.as_str());
        assert_eq!(last["subject_kind"], "service");
        let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        let now = time(&self.api("/overview").await["now"]);
        let ago = now.duration_since(time(&last["at"]));
        assert!(ago.as_secs() < 60, "{ago:?} ago");
    }

    fn has_vm(&self, name: &str) -> bool {
        self.world.vcenter.glance().iter().any(|vm| *vm.name == *name)
    }
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_is_to_be_deleted_goes_through_the_guard() {
    let lab = Lab::start(5).await;
    lab.until_pools_are_full().await;
    let vms = lab.api("/vms").await;
    let spare = vms.as_array().unwrap().iter().find(|vm| vm["kind"] == "spare").unwrap();
    let (id, name) = (spare["id"].as_str().unwrap(), spare["name"].as_str().unwrap());
    let done = format!("VM {name} is marked for deletion");
    let posted = lab.post(&format!("/vms/{id}/delete"), "its disk is odd").await;
    assert_eq!(posted, (200, done.clone()));
    lab.assert_recorded("its disk is odd", &done).await;
    let deleted = format!("/decisions?verdict=deleted&subject={id}");
    let said =
        lab.until(&deleted, "it is deleted", |found| found.as_array().unwrap().len() == 1).await;
    assert!(said[0]["reason"].as_str().unwrap().contains("asked for it"), "{said}");
    let gates = said[0]["gates"].as_array().unwrap().iter();
    let passed: Vec<_> =
        gates.filter(|gate| gate["passed"] == true).map(|gate| &gate["name"]).collect();
    for gate in ["own", "sightings", "grace", "budget"] {
        assert!(passed.contains(&&json!(gate)), "not past the guard: {said:#}");
    }
    assert!(!lab.has_vm(name));
    lab.until_pools_are_full().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ours_is_not_deleted_and_who_tried_is_recorded() {
    let lab = Lab::start(5).await;
    let foreign = lab.world.vcenter.glance().into_iter().find(|vm| !vm.template).unwrap();
    let not_ours = format!("VM {} is not this hatchery's", foreign.name);
    let posted = lab.post(&format!("/vms/{}/delete", foreign.name), "a mistake").await;
    assert_eq!(posted, (409, not_ours.clone()));
    lab.assert_recorded("a mistake", &format!("deleting {}: {not_ours}", foreign.name)).await;
    let unknown = lab.post("/vms/none/delete", "a typo").await;
    assert_eq!(unknown, (404, "VM none is not known".to_owned()));
    lab.assert_recorded("a typo", "deleting none: VM none is not known").await;
    sleep(Duration::from_mins(5)).await;
    assert!(lab.has_vm(&foreign.name));
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_waits_after_failures_is_refilled_now() {
    let lab = Lab::start(5).await;
    let fault = Action::fail_task("NoDiskSpace", "the datastore is full");
    lab.world.vcenter.faults().add(Rule::new("CloneVM_Task", fault).when(When::Always));
    let debian = |pools: &Value| {
        pools.as_array().unwrap().iter().find(|pool| pool["model"] == DEBIAN).unwrap().clone()
    };
    // After so many failures it waits for minutes.
    let waits = |pools: &Value| {
        let waiting = debian(pools)["waiting"].as_str().unwrap_or_default().to_owned();
        debian(pools)["coming"] == 0 && waiting.contains("failed 5 times in a row")
    };
    lab.until("/pools", "it waits after failures", waits).await;
    lab.world.vcenter.faults().clear();
    let asked = Instant::now();
    let posted = lab.post(&format!("/pools/{DEBIAN}/refill"), "there is room again").await;
    let done = format!("pool {DEBIAN} is looked at now");
    assert_eq!(posted, (200, done.clone()));
    lab.until("/pools", "spares are made", |pools| debian(pools)["coming"] != 0).await;
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    lab.assert_recorded("there is room again", &done).await;
    lab.until_pools_are_full().await;
    let unknown = lab.post("/pools/none/refill", "a typo").await;
    assert_eq!(unknown, (404, "pool none is not known".to_owned()));
    lab.assert_recorded("a typo", "refilling: pool none is not known").await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_to_be_looked_at_again_is_asked_about_anew() {
    let lab = Lab::start(5).await;
    let demand = V2Demand::new(&model_name(DEBIAN)).region(REGION).flavor("gigantic");
    let id = lab.world.cds.add_v2_job(demand).unwrap();
    let path = format!("/jobs/{id}");
    let is_refused = |job: &Value| job["job"]["verdict"]["verdict"] == "refused";
    lab.until(&path, "it is refused", is_refused).await;
    let asked = || lab.world.cds.calls("GET /v2/queue/*/job/*");
    let before = asked();
    let posted = lab.post(&format!("{path}/recheck"), "the flavor is there now").await;
    let done = format!("job {id} is looked at now");
    assert_eq!(posted, (200, done.clone()));
    sleep(Duration::from_secs(1)).await;
    assert!(asked() > before, "CDS was asked again at once");
    lab.assert_recorded("the flavor is there now", &done).await;
    let unknown = lab.post("/jobs/none/recheck", "a typo").await;
    assert_eq!(unknown, (404, "job none is not known".to_owned()));
    lab.assert_recorded("a typo", "looking again: job none is not known").await;
    assert!(JobId::parse(&id).is_some());
}

#[tokio::test(start_paused = true)]
async fn what_holds_the_whole_service_is_seen_until_it_is_taken_back() {
    let lab = Lab::start(5).await;
    for (action, result, spawning, is_frozen) in [
        ("pause", "spawning is paused; what is under way goes on", "paused", false),
        ("drain", "no new workers; 0 are left to end", "draining", false),
        ("resume", "spawning is resumed", "open", false),
        ("freeze", "deleting is frozen", "open", true),
        ("thaw", "deleting is resumed", "open", false),
    ] {
        let posted = lab.post(&format!("/actions/{action}"), "a test").await;
        assert_eq!(posted, (200, result.to_owned()), "{action}");
        lab.assert_recorded("a test", result).await;
        let steering = lab.api("/steering").await;
        assert_eq!(steering["spawning"], spawning, "{action}");
        assert_eq!(!steering["frozen"].is_null(), is_frozen, "{action}");
    }
}

/// How much a page has, and how much of it is told again while jobs come and go.
struct Weight {
    page: usize,
    deltas: Vec<usize>,
}

async fn weigh(lab: &Lab, path: &str) -> Weight {
    let page = lab.page(path).await.bytes().await.unwrap().len();
    let mut live = lab.page(&format!("/live{path}")).await;
    let (mut text, mut deltas) = (String::new(), Vec::new());
    while deltas.len() < 41 {
        text.push_str(std::str::from_utf8(&live.chunk().await.unwrap().unwrap()).unwrap());
        while let Some((event, rest)) = text.split_once("\n\n") {
            deltas.push(event.len());
            text = rest.to_owned();
        }
    }
    // The first is the page as a whole, for whatever has changed since it was made.
    deltas.remove(0);
    Weight { page, deltas }
}

/// The bound of a second for the first page is for a person with a release build; a debug build on a busy machine keeps it, too, and says how long it took.
#[tokio::test(start_paused = true)]
async fn a_large_datacenter_costs_the_page_nothing_and_deltas_are_small() {
    let mut pages = Vec::new();
    for foreign_vms in [100, 10_000] {
        let lab = Lab::start(foreign_vms).await;
        for _ in 0..500 {
            let demand = V2Demand::new(&model_name(DEBIAN)).region(REGION).flavor("medium");
            lab.world.cds.add_v2_job(demand).unwrap();
        }
        let is_known = |seen: &Value| seen["queue"]["waiting"].as_u64().unwrap() > 450;
        lab.until("/overview", "the jobs are known", is_known).await;
        sleep(Duration::from_mins(1)).await;
        for path in ["/", "/jobs", "/vms", "/decisions"] {
            let began = real_time();
            assert_eq!(lab.page(path).await.status(), 200);
            let took = began.elapsed();
            let Weight { page, deltas } = weigh(&lab, path).await;
            let mean = deltas.iter().sum::<usize>() / deltas.len();
            let most = deltas.iter().max().unwrap();
            println!(
                "{foreign_vms} foreign VMs, 500 jobs, {path}: {page} bytes in {took:?}; deltas {mean} on average, at most {most}"
            );
            assert!(mean * 10 < page, "{path}: deltas of {mean} for a page of {page}");
            pages.push((path, page));
        }
    }
    let (small, large) = pages.split_at(pages.len() / 2);
    for ((path, small), (_, large)) in small.iter().zip(large) {
        assert!(*large < small * 12 / 10, "{path} grows from {small} to {large}");
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a person waits is real time")]
fn real_time() -> std::time::Instant {
    std::time::Instant::now()
}

/// All of the VMs that somebody else could change.
fn inventory(lab: &Lab) -> Vec<String> {
    let seen = lab.world.vcenter.glance().into_iter();
    let facts = seen.map(|vm| (vm.moref, vm.name, vm.annotation, vm.template, vm.power, vm.cpus));
    facts.map(|facts| format!("{facts:?}")).collect()
}

#[tokio::test(start_paused = true)]
async fn whoever_observes_only_changes_nothing_and_does_not_speak_to_cds() {
    let lab = Lab::start_as(12, true).await;
    let before = inventory(&lab);
    let job = lab.world.cds.add_v2_job(V2Demand::new(&model_name(DEBIAN)).region(REGION)).unwrap();
    lab.until("/overview", "the inventory is read", |seen| seen["link"]["synced"] == true).await;
    // Pools would be filled, the job be served, and a clean-up pass be made by then.
    sleep(Duration::from_mins(30)).await;
    assert_eq!(inventory(&lab), before, "nothing was made, changed or deleted");
    let overview = lab.api("/overview").await;
    assert_eq!(overview["observes_only"], true);
    assert!(overview["link"]["vms_seen"].as_u64().unwrap() >= 12, "{overview:#}");
    assert_eq!(overview["link"]["calls"]["logins"], 1);
    let (cds, id) = (&lab.world.cds, JobId::parse(&job).unwrap());
    assert_eq!(cds.job(&id).unwrap().hatchery, None, "the job is left to others");
    assert_eq!((cds.services().len(), cds.open_websockets()), (0, 0), "nobody signed in");
    assert_eq!(lab.page("/readyz").await.status().as_u16(), 200);
    let html = lab.page("/").await.text().await.unwrap();
    assert!(html.contains("Observing only."), "{html}");
    for path in ["/actions/pause", "/actions/freeze", "/vms/vm-1/delete"] {
        assert_eq!(lab.post(path, "a test").await.0, 501, "{path}");
    }
}
