//! Two hatcheries on one vCenter and one CDS, who never touch each other's VMs.

use roost_cds::JobStatus;
use roost_cds_sim::{Fault, V1Demand, V2Demand};
use roost_fleet::{Decided, Query};
use roost_vcenter_sim::Power;
use tokio::time::sleep;

use crate::lab::{DEBIAN, Lab, Note, Service, Setup, WorldOptions, mins, wait_until};
use roost_hatchery::door::HATCHERY;

struct Pair {
    lab: Lab,
    other: Service,
}

impl Pair {
    async fn of(one: Setup, other: Setup) -> Self {
        let mut lab = Lab::in_world(WorldOptions::default(), one).await;
        lab.truth.expect_of(&other);
        let mut other = Service::new(other);
        other.open(&lab).await;
        Self { lab, other }
    }

    fn names_of(&self, hatchery: &str) -> Vec<String> {
        self.lab.vms_of(hatchery).into_iter().map(|vm| vm.name.to_string()).collect()
    }

    fn check(&self) {
        self.lab.truth.others_are_untouched(&self.lab);
        self.lab.check();
    }
}

/// W15, D42: nobody asked whose a spare was, so hatcheries stole from each other.
#[tokio::test(start_paused = true)]
async fn nobody_claims_the_other_ones_spares() {
    let one = Setup::new("hv1").max_workers(6);
    let pair = Pair::of(one, Setup::new("hv2").pool("debian12", 3).max_workers(1)).await;
    let spares = || pair.names_of("hv2").len();
    wait_until("the other has its spares", mins(15), || spares() == 3).await;
    sleep(mins(5)).await;
    let before = pair.names_of("hv2");
    // Only the first one hears of V1 jobs with this region.
    let jobs = pair.lab.jobs(5);
    pair.lab.wait_for_all(&jobs, JobStatus::Success).await;
    pair.lab.wait_until_clean(0).await;
    for job in &jobs {
        let report = pair.lab.cds.job(job).unwrap();
        let holder = report.holders()[0].to_owned();
        let worker = report.executions()[0].to_owned();
        let was_spare = !before.contains(&worker) && holder == "hv1";
        assert!(was_spare || holder == "hv2", "{holder} {worker}");
    }
    pair.check();
}

/// D37, W4: the other one's workers are not ours to count.
#[tokio::test(start_paused = true)]
async fn each_has_its_own_room() {
    let pair = Pair::of(Setup::new("hv1").max_workers(2), Setup::new("hv2").max_workers(3)).await;
    let jobs: Vec<_> =
        (0..8).map(|_| pair.lab.v2_job(V2Demand::new(DEBIAN).takes(mins(10)))).collect();
    wait_until("both are full", mins(5), || {
        pair.names_of("hv1").len() == 2 && pair.names_of("hv2").len() == 3
    })
    .await;
    pair.lab.wait_for_all(&jobs, JobStatus::Success).await;
    pair.check();
}

/// W26: two V1 hatcheries may book a job at the same moment. Only one worker gets it; the other's VM goes, and nobody calls it a failure.
#[tokio::test(start_paused = true)]
async fn of_two_that_book_a_job_at_once_the_loser_cleans_up_quietly() {
    let pair = Pair::of(Setup::new("hv1").only_v1(), Setup::new("hv2").only_v1()).await;
    let path = pair.lab.v1_model("classic");
    wait_until("the model is registered", mins(40), || {
        pair.lab.cds.model(&path).is_some_and(|model| !model.need_registration)
    })
    .await;
    sleep(mins(10)).await;
    pair.lab.cds.inject(Fault::on("POST /queue/workflows/*/book").booking_race());
    let job = pair.lab.v1_job(V1Demand::new().model("shared.infra/classic").takes(mins(6)));
    pair.lab.wait_for(&job, JobStatus::Success).await;
    let report = pair.lab.cds.job(&job).unwrap();
    assert_eq!((report.holders().len(), report.executions().len()), (2, 1), "{report:?}");
    pair.lab.wait_until_clean(0).await;
    wait_until("the other is clean too", mins(60), || pair.names_of("hv2").is_empty()).await;
    for hatchery in [pair.lab.hatchery(), pair.other.hatchery()] {
        let of_job = Query::of(HATCHERY.about_request(job.to_string()));
        let failed = Query { verdict: Some(Decided::Failed), ..of_job };
        assert!(hatchery.journal().find(&failed).is_empty(), "{}", hatchery.name());
    }
    pair.check();
}

/// A clean-up of one leaves the other's VMs alone, however dead they look to it.
#[tokio::test(start_paused = true)]
async fn the_other_ones_vms_stay_when_it_is_gone() {
    let mut pair =
        Pair::of(Setup::new("hv1").max_workers(1), Setup::new("hv2").pool("debian12", 2)).await;
    let spares = |pair: &Pair| {
        pair.lab
            .vms_of("hv2")
            .iter()
            .filter(|vm| vm.has_run && vm.power == Power::Off && Note::of(vm).unwrap().provisioning)
            .count()
    };
    wait_until("it has its spares", mins(15), || spares(&pair) == 2).await;
    let long = pair.lab.v2_job(V2Demand::new(DEBIAN).takes(mins(20)));
    let more = pair.lab.v2_job(V2Demand::new(DEBIAN).takes(mins(20)));
    pair.lab.wait_for_all(&[long, more], JobStatus::Building).await;
    pair.other.crash();
    sleep(mins(300)).await;
    let left = pair.names_of("hv2");
    assert!(left.len() >= 2, "{left:?} wait for their hatchery");
    pair.check();
    pair.other.open(&pair.lab).await;
    wait_until("it has put its house in order", mins(60), || {
        pair.names_of("hv2").len() == 2 && spares(&pair) == 2
    })
    .await;
    pair.check();
}

/// W25: names are drawn until no VM has them, whosever it is.
#[tokio::test(start_paused = true)]
async fn two_with_the_same_luck_draw_different_names() {
    let draw = async |taken: Option<&str>| {
        let mut lab = Lab::closed(WorldOptions::default(), Setup::new("hv1"));
        if let Some(name) = taken {
            lab.vcenter.add_vm(name, Power::On).unwrap();
        }
        lab.open().await;
        let job = lab.job();
        lab.wait_for(&job, JobStatus::Building).await;
        let releases = lab.cds.job(&job).unwrap().releases().len();
        (lab.vm_of(&job).unwrap().name.to_string(), releases)
    };
    let (first, _) = draw(None).await;
    assert_eq!(draw(None).await.0, first, "a seed is a name");
    let (second, releases) = draw(Some(&first)).await;
    assert_ne!(second, first);
    assert_eq!(releases, 0, "it was not tried either");
}
