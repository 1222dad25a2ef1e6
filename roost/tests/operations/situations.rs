//! Something breaks in a real service between both simulators; a real Prometheus tells of that and of nothing else, and is quiet again when it is
//! mended in the way that the runbook says.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use roost_oracle::Prometheus;
use serde_json::{Value, json};

use crate::live::{Grace, firing, results, until, watch};
use crate::wire::{CdsSim, Service, Site, VcenterSim, within};

const TOKEN: &str = "operations";

const VSPHERE: &str = r#"
workerProvisioningPoolSize = 2
killAwolServersInterval = 5
finishedWorkerGracePeriod = 1

[[hatchery.vsphere.networks]]
iprange = "10.77.0.0/27"
gateway = "10.77.0.1"
subnetMask = "255.255.255.224"

[[hatchery.vsphere.workerProvisioning]]
modelVMWare = "debian12"
number = 2
"#;

struct Situation {
    vcenter: VcenterSim,
    cds: CdsSim,
    service: Service,
    prometheus: Prometheus,
    address: SocketAddr,
    _site: Site,
}

impl Situation {
    /// `before` is what is wrong with the vCenter from the start.
    async fn begin(name: &str, before: Option<&Value>) -> Option<Self> {
        roost_oracle::promtool()?;
        let site = Site::new(name);
        let vcenter = VcenterSim::start(&site, &["--vms", "1", "--pace", "quick"]);
        if let Some(rule) = before {
            vcenter.control.post("rules", rule).await;
        }
        let cds = CdsSim::start(&site, &["--scheduling-timeout", "30", "--booking", "20"]);
        let config = site.write_config(
            &vcenter,
            &cds,
            VSPHERE,
            "maxWorker = 5\nmaxConcurrentProvisioning = 5",
        );
        let text = std::fs::read_to_string(&config).unwrap();
        let text = text.replace("port = 0", &format!("port = 0\ntoken = \"{TOKEN}\""));
        std::fs::write(&config, text).unwrap();
        let service = Service::start(&site);
        let url = service.process.word("http://").trim_end_matches("/mon/status");
        let address = url.trim_start_matches("http://").parse().unwrap();
        let prometheus = watch(address, name, Grace::None)?;
        Some(Self { vcenter, cds, service, prometheus, address, _site: site })
    }

    async fn queue(&self, jobs: usize) {
        for _ in 0..jobs {
            self.cds.add_job("v2", &json!({})).await;
        }
    }

    async fn pool_is_full(&self) {
        crate::wire::until("the pool is full", within(360), async || {
            let overview = self.service.http.get("api/v1/overview").await;
            overview["ready"] == true && overview["pools"][0]["ready"] == 2
        })
        .await;
    }

    /// Waits until all of these fire at the same time, and no others but those that may.
    async fn fires(&self, wanted: &[&str], may: &[&str]) {
        until(&format!("{wanted:?} fire"), || {
            let firing = firing(&self.prometheus);
            let is_missing = wanted.iter().any(|alert| !firing.contains(*alert));
            let is_among = |alert: &&str| firing.contains(*alert);
            let explained = wanted.iter().chain(may).filter(|alert| is_among(alert)).count();
            if is_missing || explained < firing.len() { Err(format!("{firing:?}")) } else { Ok(()) }
        })
        .await;
    }

    /// Waits until nothing fires, but for what looks back further than a test can wait.
    async fn is_quiet(&self, but: &[&str]) {
        until("nothing fires", || {
            let mut firing = firing(&self.prometheus);
            firing.retain(|alert| !but.contains(&alert.as_str()));
            let is_seen = !results(&self.prometheus, "roost_hatchery_link_up == 1").is_empty();
            if is_seen && firing.is_empty() { Ok(()) } else { Err(format!("{firing:?}")) }
        })
        .await;
    }

    /// `POST`s as a person with the token does.
    async fn act(&self, place: &str) {
        let request = format!(
            "POST /api/v1/{place} HTTP/1.0\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 0\r\n\r\n",
            self.address
        );
        let answer = tokio::task::spawn_blocking({
            let address = self.address;
            move || exchange(address, &request)
        });
        let answer = answer.await.unwrap();
        assert!(answer.contains(" 200 "), "{place}: {answer}");
    }
}

fn exchange(address: SocketAddr, request: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Side by side: most of the time each of them waits for the next reading of the gauges.
#[tokio::test]
async fn what_breaks_is_told_of_until_it_is_mended_and_nothing_else_is() {
    tokio::join!(
        a_template_that_cannot_be_cloned_and_a_freeze_are_told_of_until_they_are_over(),
        a_vcenter_that_is_away_and_jobs_that_wait_for_it_are_told_of_until_it_is_back(),
        a_cds_that_is_away_is_told_of_by_queue_until_it_is_back(),
    );
}

async fn a_template_that_cannot_be_cloned_and_a_freeze_are_told_of_until_they_are_over() {
    let full = json!({"method": "CloneVM_Task", "action": {"failTask": {"class": "NoDiskSpace", "message": "the datastore is full", "fields": {"datastore": "LocalDS_0"}}}});
    let Some(situation) = Situation::begin("alerts-template", Some(&full)).await else { return };
    situation.queue(4).await;
    // Between two attempts jobs wait, and no worker is on its way.
    situation
        .fires(
            &["RoostTemplateKeepsFailing", "RoostPoolBelowTarget", "RoostWorkerStartsFail"],
            &["RoostJobsWaitWithoutWorkers"],
        )
        .await;
    for named in [
        "ALERTS{alertname=\"RoostTemplateKeepsFailing\", template=\"debian12\"}",
        "ALERTS{alertname=\"RoostPoolBelowTarget\", pool=\"debian12\"}",
    ] {
        assert!(!results(&situation.prometheus, named).is_empty(), "{named}");
    }
    situation.vcenter.control.delete("rules").await;
    situation.act("pools/debian12/refill").await;
    situation.pool_is_full().await;
    situation.is_quiet(&["RoostWorkerStartsFail"]).await;

    situation.act("actions/freeze").await;
    situation.fires(&["RoostDeletionsFrozen"], &["RoostWorkerStartsFail"]).await;
    situation.act("actions/thaw").await;
    situation.is_quiet(&["RoostWorkerStartsFail"]).await;
}

async fn a_vcenter_that_is_away_and_jobs_that_wait_for_it_are_told_of_until_it_is_back() {
    let Some(situation) = Situation::begin("alerts-vcenter", None).await else { return };
    situation.pool_is_full().await;
    situation.is_quiet(&[]).await;

    situation.vcenter.control.post("rules", &json!({"method": "*", "action": "cutBefore"})).await;
    // So that the call that waits for news is cut as well, which may else wait for a minute.
    situation.vcenter.control.post("restart", &json!({"lastsMs": 0, "refuses": true})).await;
    situation.fires(&["RoostVcenterLinkDown"], &[]).await;
    // Only now: those that come before the loss is noticed are begun, and fail.
    situation.queue(2).await;
    situation.fires(&["RoostVcenterLinkDown", "RoostJobsWaitWithoutWorkers"], &[]).await;

    situation.vcenter.control.delete("rules").await;
    crate::wire::until("both jobs are done", within(360), async || {
        situation.cds.count("done").await == 2
    })
    .await;
    situation.is_quiet(&[]).await;
}

async fn a_cds_that_is_away_is_told_of_by_queue_until_it_is_back() {
    let Some(situation) = Situation::begin("alerts-cds", None).await else { return };
    situation.pool_is_full().await;
    situation.is_quiet(&[]).await;

    situation.cds.control.post("down", &json!({})).await;
    situation.fires(&["RoostCdsLinkDown"], &[]).await;
    until("both queues are told of", || {
        let alerts = results(&situation.prometheus, "ALERTS{alertname=\"RoostCdsLinkDown\"}");
        let links: BTreeSet<_> =
            alerts.iter().map(|alert| alert["metric"]["link"].to_string()).collect();
        if links.len() == 2 { Ok(()) } else { Err(format!("{links:?}")) }
    })
    .await;

    situation.cds.control.post("up", &json!({})).await;
    situation.is_quiet(&[]).await;
}
