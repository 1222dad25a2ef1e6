use std::time::Duration;

use roost_cds::JobId;
use roost_cds::v2::VsphereSpec;
use roost_clock::{Clock as _, SimClock};
use roost_fleet::{Decided, Mirror, Power, VmId, Wrote};

use super::*;
use crate::annotation::HatcheryVms;
use crate::config::tests::config;
use crate::config::{SpareKind, SpareModel};
use crate::door::HATCHERY;
use crate::job::ModelRequest;
use crate::model::ModelAsCode;
use crate::spares::SpareState;
use crate::time::later;

const FLAVORS: &str = r#"
iprange = "10.0.0.0/29"
gateway = "10.0.0.1"
maxCpus = 16
flavors = [{ name = "Small", cpus = 2, memoryMB = 4096 }, { name = "large", cpus = 8, memoryMB = 16384 }]
"#;

struct Table {
    config: Config,
    mirror: Mirror,
    clock: Arc<SimClock>,
    ledger: Ledger,
    attempts: Attempts,
    cold: ColdStarts,
    spares: Vec<Spare>,
    drawn: u32,
}

impl Table {
    fn new(vsphere: &str, rest: &str) -> Self {
        let clock = Arc::new(SimClock::new());
        let config = config(vsphere, rest);
        let mirror = Mirror::new(vec![Arc::new(HatcheryVms)], clock.clone());
        let template = Wrote::new().name("debian12").template(true).cpus(4).memory_mb(8192);
        mirror.created(&VmId::new("vm-1"), template);
        Self {
            ledger: Ledger::default().with_account(
                HATCHERY,
                config.ledger_limits(),
                config.addresses.clone(),
            ),
            attempts: Attempts::new(config.counts.max_attempts),
            cold: ColdStarts::default(),
            spares: Vec::new(),
            drawn: 0,
            config,
            mirror,
            clock,
        }
    }

    fn spare(&mut self, id: &str) {
        self.spares.push(Spare {
            vm: VmId::new(id),
            name: format!("provision-v2-{id}"),
            kind: SpareKind { model: SpareModel::V2("debian12".into()), flavor: None },
            state: SpareState::Ready,
            born: None,
            is_outdated: false,
            shares_address: false,
        });
    }

    fn turn(&mut self, candidate: &Candidate) -> Turn {
        let snapshot = self.mirror.snapshot();
        let facts = Facts {
            config: &self.config,
            snapshot: &snapshot,
            models: None,
            spares: &self.spares,
            pool: &PoolId::new("resgroup-1"),
        };
        self.drawn += 1;
        let name = format!("worker-{}", self.drawn).into();
        let (ledger, attempts, cold) = (&mut self.ledger, &mut self.attempts, &mut self.cold);
        turn(candidate, facts, ledger, attempts, cold, &name, self.clock.now())
    }

    fn bound_by(&mut self, candidate: &Candidate) -> LedgerGate {
        match self.turn(candidate) {
            Turn::NoRoom(refusal) => refusal.bound_by,
            other => panic!("{other:?}"),
        }
    }

    fn starts(&mut self, candidate: &Candidate) -> Reservation {
        match self.turn(candidate) {
            Turn::Start { reservation, .. } => reservation,
            other => panic!("{other:?}"),
        }
    }
}

fn job(number: u32, image: &str, flavor: Option<&str>) -> Candidate {
    let model = ModelAsCode {
        path: "P/github/org/repo/m".into(),
        name: "m".into(),
        os_arch: "linux/amd64".into(),
        spec: VsphereSpec { image: image.into(), ..VsphereSpec::default() },
    };
    let job = Job {
        id: JobId::V2(format!("00000000-0000-4000-8000-{number:012}")),
        queued: None,
        project: "P".into(),
        workflow: "w".into(),
        region: None,
        requirements: Vec::new(),
        model: ModelRequest::Any,
        flavor: flavor.map(str::to_owned),
        groups: Vec::new(),
    };
    Candidate {
        job: Arc::new(job),
        model: Choice::Fixed(Arc::new(WorkerModel::V2(Box::new(model)))),
    }
}

#[tokio::test]
async fn a_flavor_or_template_that_is_not_there_is_refused_by_name_before_anything_is_reserved() {
    let mut table = Table::new(FLAVORS, "");
    let Turn::Refused(refusal) = table.turn(&job(1, "debian12", Some("huge"))) else { panic!() };
    assert_eq!(
        refusal.to_string(),
        "flavor \"huge\", named by the job's runs-on, is not one of the flavors: Small, large"
    );
    let Turn::Refused(refusal) = table.turn(&job(2, "debian11", None)) else { panic!() };
    assert_eq!(refusal.to_string(), "there is no template \"debian11\" in the datacenter");
    let now = table.clock.now();
    assert_eq!(table.ledger.taken(HATCHERY, now).reservations, 0);
    assert!(table.attempts.is_empty(), "what was refused was no attempt");
}

#[tokio::test]
async fn a_worker_takes_what_its_flavor_says_and_its_templates_size_without_one() {
    let mut table = Table::new(FLAVORS, "");
    let large = table.starts(&job(1, "debian12", Some("LARGE")));
    assert_eq!((large.amounts().cpus, large.amounts().memory_mb), (8, 16384));
    let plain = table.starts(&job(2, "debian12", None));
    assert_eq!((plain.amounts().cpus, plain.amounts().memory_mb), (4, 8192));
    assert_eq!(table.bound_by(&job(3, "debian12", Some("large"))), LedgerGate::Cpus);
    drop(large);
    drop(table.starts(&job(3, "debian12", Some("large"))));
}

#[tokio::test]
async fn the_last_spare_goes_to_one_job_and_the_next_gets_a_clone_with_an_address() {
    let mut table = Table::new(FLAVORS, "");
    table.spare("vm-7");
    let warm = table.starts(&job(1, "debian12", Some("small")));
    assert_eq!(warm.spare(), Some(&VmId::new("vm-7")));
    assert_eq!(warm.address(), None, "a spare has its address");
    let cold = table.starts(&job(2, "debian12", Some("small")));
    assert_eq!(cold.spare(), None);
    assert_eq!(cold.address().unwrap().address.to_string(), "10.0.0.2");
}

#[tokio::test]
async fn with_only_provisioned_a_job_waits_for_a_spare() {
    let mut table = Table::new(
        "onlyProvisioned = true\nworkerProvisioning = [{ modelVMWare = 'debian12', number = 1 }]",
        "",
    );
    assert_eq!(table.bound_by(&job(1, "debian12", None)), LedgerGate::Spare);
    table.spare("vm-7");
    drop(table.starts(&job(1, "debian12", None)));
}

#[tokio::test]
async fn one_job_never_gets_two_machines() {
    let mut table = Table::new("", "");
    let first = table.starts(&job(1, "debian12", None));
    let again = job(1, "debian12", None);
    table.attempts.forget(&again.job.id);
    assert_eq!(table.bound_by(&again), LedgerGate::Request);
    drop(first);
    drop(table.starts(&job(1, "debian12", None)));
}

#[tokio::test(start_paused = true)]
async fn behind_a_template_that_fails_one_job_tries_and_a_spare_is_claimed_all_the_same() {
    let mut table = Table::new("", "");
    let (template, begun) = (Arc::from("debian12"), table.clock.now());
    table.cold.failed(&template, begun, begun);
    let tries = table.starts(&job(1, "debian12", None));
    let Turn::Later { why, until } = table.turn(&job(2, "debian12", None)) else { panic!() };
    assert_eq!((why.reason(), why.decided()), ("template-fails", Decided::Deferred));
    assert_eq!(until, later(begun, Duration::from_mins(3)));
    assert_eq!(table.attempts.len(), 1, "the second keeps its attempts");
    table.spare("vm-77");
    let claims = table.starts(&job(2, "debian12", None));
    assert!(claims.spare().is_some());
    tokio::time::advance(Duration::from_mins(3)).await;
    assert!(table.starts(&job(3, "debian12", None)).spare().is_none(), "nothing was found out");
    drop(tries);
}

#[tokio::test(start_paused = true)]
async fn a_job_has_had_enough_at_its_sixth_sight_and_is_tried_again_after_an_hour() {
    let mut table = Table::new("", "");
    for attempt in 1..=5 {
        let Turn::Start { reservation, attempt: counted, .. } =
            table.turn(&job(1, "debian12", None))
        else {
            panic!("attempt {attempt}");
        };
        assert_eq!(counted, attempt);
        reservation.release();
        let next = table.turn(&job(1, "debian12", None));
        let is_pausing =
            matches!(next, Turn::Later { why: Refusal::Pause { made }, .. } if made == attempt);
        assert!(is_pausing || attempt == 5, "{next:?}");
        tokio::time::advance(Duration::from_mins(5)).await;
    }
    let Turn::Exhausted(exhausted) = table.turn(&job(1, "debian12", None)) else { panic!() };
    assert_eq!(exhausted.made, 5);
    assert_eq!(exhausted.until, later(table.clock.now(), Duration::from_mins(35)));
    tokio::time::advance(Duration::from_mins(35)).await;
    drop(table.starts(&job(1, "debian12", None)));
}

#[tokio::test]
async fn a_worker_that_is_called_like_a_template_is_not_cloned() {
    let table = Table::new("", "");
    let (snapshot, id) = (table.mirror.snapshot(), VmId::new("vm-2"));
    assert!(find_template(&snapshot, "keen-bohr").is_none());
    let worker = Wrote::new()
        .name("keen-bohr")
        .annotation(r#"{"hatchery_name":"hv1","job_id":"7"}"#)
        .power(Power::On);
    table.mirror.created(&id, worker);
    assert!(find_template(&table.mirror.snapshot(), "keen-bohr").is_none());
    table.mirror.created(&VmId::new("vm-3"), Wrote::new().name("golden").power(Power::Off));
    assert!(find_template(&table.mirror.snapshot(), "golden").is_some(), "any other VM may be");
}
