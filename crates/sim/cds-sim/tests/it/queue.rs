//! Hints about waiting jobs: by websocket, by poll, and through everything that closes one of them.

use std::time::Duration;

use crate::lab::{HATCHERY, Lab, MODEL, REGION, mins, secs, settings};
use roost_cds::{InFlight, JobHint, JobId, Protocol, QueueHealth, QueueSettings};
use roost_cds_sim::{EventFault, Fault, Options, V1Demand, V2Demand};
use tokio::sync::{mpsc, watch};
use tokio::time::{self, Instant};

struct Hints {
    hints: mpsc::Receiver<JobHint>,
    health: Vec<watch::Receiver<QueueHealth>>,
}

impl Hints {
    /// Both queues merged into one stream, after their first polls.
    async fn of(lab: &Lab) -> Self {
        let (sender, hints) = mpsc::channel(64);
        let mut health = Vec::new();
        for watch in lab.client.queue_watches(QueueSettings::default()) {
            health.push(watch.health());
            tokio::spawn(watch.run(sender.clone()));
        }
        let mut this = Self { hints, health };
        this.drain(secs(1)).await;
        this
    }

    /// All hints that come within this time.
    async fn drain(&mut self, within: Duration) -> Vec<JobHint> {
        let until = Instant::now() + within;
        let mut hints = Vec::new();
        while let Ok(Some(hint)) = time::timeout_at(until, self.hints.recv()).await {
            hints.push(hint);
        }
        hints
    }

    async fn pushed(&mut self, within: Duration) -> Vec<JobId> {
        let pushed = |hint| match hint {
            JobHint::Pushed(id) => Some(id),
            JobHint::Polled { .. } => None,
        };
        self.drain(within).await.into_iter().filter_map(pushed).collect()
    }

    /// How long until a poll names this job.
    async fn until_polled(&mut self, job: &JobId) -> Duration {
        let started = Instant::now();
        loop {
            let hint = time::timeout(mins(10), self.hints.recv()).await.unwrap().unwrap();
            if matches!(&hint, JobHint::Polled { jobs, .. } if jobs.iter().any(|w| w.id == *job)) {
                return started.elapsed();
            }
        }
    }

    fn connections(&self) -> Vec<u64> {
        self.health.iter().map(|health| health.borrow().connections).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn jobs_of_both_protocols_are_pushed_at_once_into_one_stream() {
    let lab = Lab::new();
    let mut hints = Hints::of(&lab).await;
    let v1 = lab.api.add_v1_job(V1Demand::new());
    let v2 = lab.api.add_v2_job(V2Demand::new(MODEL)).unwrap();
    let mut pushed = hints.pushed(Duration::from_millis(10)).await;
    pushed.sort();
    assert_eq!(pushed, [JobId::V1(v1), JobId::V2(v2)]);
}

#[tokio::test(start_paused = true)]
async fn the_filter_is_sent_on_every_connection() {
    let lab = Lab::without_need_of_heartbeats();
    let mut hints = Hints::of(&lab).await;
    assert_eq!(hints.connections(), [1, 1]);
    for code in [1000, 1001, 1006, 1011, 1012, 4242] {
        let connections = hints.connections();
        lab.api.close_websockets(code);
        hints.drain(mins(2)).await;
        let now = hints.connections();
        assert_eq!(now, [connections[0] + 1, connections[1] + 1], "after {code}");
        let v1 = lab.api.add_v1_job(V1Demand::new());
        let v2 = lab.api.add_v2_job(V2Demand::new(MODEL)).unwrap();
        let mut pushed = hints.pushed(Duration::from_millis(10)).await;
        pushed.sort();
        assert_eq!(pushed, [JobId::V1(v1), JobId::V2(v2)], "not deaf after {code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_websocket_is_opened_again_after_one_second() {
    let lab = Lab::new();
    let mut hints = Hints::of(&lab).await;
    time::sleep(mins(2)).await;
    hints.drain(secs(1)).await;
    lab.api.close_websockets(1011);
    hints.drain(Duration::from_millis(990)).await;
    assert_eq!(lab.api.open_websockets(), 0);
    hints.drain(Duration::from_millis(20)).await;
    assert_eq!(lab.api.open_websockets(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_api_that_refuses_websockets_is_not_hammered_and_polls_go_on() {
    let lab = Lab::without_need_of_heartbeats();
    lab.api.inject(Fault::on("GET /ws").answer(500, 0));
    let mut hints = Hints::of(&lab).await;
    let id = JobId::V1(lab.api.add_v1_job(V1Demand::new()));
    assert!(hints.until_polled(&id).await <= secs(20));
    hints.drain(mins(60)).await;
    let attempts = lab.sent.requests("cds.invalid/ws").len();
    assert!((115..135).contains(&attempts), "every 30 s in the end, {attempts}");
    let health = hints.health[0].borrow().clone();
    assert_eq!(health.connected, None);
    assert!(health.last_error.unwrap().contains("GET /ws: refused"));
    lab.api.clear_faults();
    hints.drain(secs(31)).await;
    assert!(hints.health[0].borrow().connected.is_some());
}

/// The Go client signs in as a V1 consumer when the session of a V2 websocket has expired, which fails for ever.
#[tokio::test(start_paused = true)]
async fn after_its_session_expired_each_websocket_signs_in_by_its_own_protocol() {
    let lab = Lab::new();
    let mut hints = Hints::of(&lab).await;
    lab.api.forget_sessions();
    lab.api.close_websockets(1006);
    hints.drain(secs(5)).await;
    assert_eq!(hints.connections(), [2, 2]);
    let bodies = |path: &str| -> Vec<_> {
        lab.sent.requests(path).iter().map(crate::lab::Seen::json).collect()
    };
    assert_eq!(bodies("builtin/signin").len(), 2);
    let v2 = bodies("hatchery/signin");
    assert_eq!((v2.len(), v2[1]["type"].as_str()), (2, Some("vsphere")));
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_event_is_lost_is_found_by_the_poll() {
    let lab = Lab::new();
    lab.api.inject_event(EventFault::lose());
    let mut hints = Hints::of(&lab).await;
    let v1 = JobId::V1(lab.api.add_v1_job(V1Demand::new().project(7, "P")));
    let v2 = JobId::V2(lab.api.add_v2_job(V2Demand::new(MODEL).project("P")).unwrap());
    let polled = hints.drain(secs(20)).await;
    let found = |protocol, id: &JobId, project: &str| {
        polled.iter().any(|hint| match hint {
            JobHint::Polled { protocol: of, jobs } => {
                *of == protocol && jobs.iter().any(|job| job.id == *id && job.project == project)
            }
            JobHint::Pushed(_) => false,
        })
    };
    assert!(found(Protocol::V1, &v1, "7") && found(Protocol::V2, &v2, "P"), "{polled:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_queued_while_the_websocket_was_closed_is_polled_for_at_once() {
    let lab = Lab::new();
    let mut hints = Hints::of(&lab).await;
    time::sleep(mins(2)).await;
    hints.drain(secs(1)).await;
    lab.api.close_websockets(1006);
    time::sleep(Duration::from_millis(500)).await;
    let id = JobId::V1(lab.api.add_v1_job(V1Demand::new()));
    assert!(hints.until_polled(&id).await <= secs(1));
}

#[tokio::test(start_paused = true)]
async fn events_may_come_twice_and_late() {
    let lab = Lab::new();
    lab.api.inject_event(EventFault::duplicate(2, secs(3)).nth(1));
    lab.api.inject_event(EventFault::late(secs(90)).nth(2));
    let mut hints = Hints::of(&lab).await;
    let first = JobId::V1(lab.api.add_v1_job(V1Demand::new()));
    let second = JobId::V1(lab.api.add_v1_job(V1Demand::new()));
    assert_eq!(hints.pushed(secs(10)).await, [first.clone(), first.clone(), first]);
    assert_eq!(hints.pushed(secs(90)).await, [second]);
}

#[tokio::test(start_paused = true)]
async fn a_websocket_that_closes_in_place_of_an_event_loses_nothing() {
    for code in [1000, 1001, 1006, 1011] {
        let lab = Lab::new();
        lab.api.inject_event(EventFault::close(code).nth(1));
        let mut hints = Hints::of(&lab).await;
        let id = JobId::V1(lab.api.add_v1_job(V1Demand::new()));
        assert!(hints.until_polled(&id).await <= secs(2), "after {code}");
    }
}

/// In the Go hatchery a job whose information could not be fetched stays "in flight" until the restart.
#[tokio::test(start_paused = true)]
async fn a_job_that_could_not_be_fetched_is_offered_and_looked_at_again() {
    let lab = Lab::new();
    lab.api.inject(Fault::on("GET /queue/workflows/*/infos").first(1).answer(400, 74));
    let mut hints = Hints::of(&lab).await;
    let id = lab.api.add_v1_job(V1Demand::new());
    let in_flight = InFlight::default();
    let mut looked = 0;
    let job = 'found: loop {
        for hint in hints.drain(secs(20)).await {
            let ids = match hint {
                JobHint::Pushed(id) => vec![id],
                JobHint::Polled { jobs, .. } => jobs.into_iter().map(|job| job.id).collect(),
            };
            for hinted in ids {
                let Some(_guard) = in_flight.enter(hinted) else { panic!("nobody is at work") };
                looked += 1;
                if let Ok(job) = lab.v1().job(id).await {
                    break 'found job;
                }
            }
        }
    };
    assert_eq!((job.id, looked), (id, 2));
    assert!(in_flight.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_vanishes_between_event_and_look_is_forgotten() {
    let lab = Lab::new();
    lab.api.inject(Fault::on("GET /v2/queue/*/job/*").vanish());
    let mut hints = Hints::of(&lab).await;
    let id = lab.api.add_v2_job(V2Demand::new(MODEL)).unwrap();
    assert_eq!(hints.pushed(secs(1)).await, [JobId::V2(id.clone())]);
    assert!(lab.v2().job(&id).await.unwrap_err().is_gone());
    let later = hints.drain(mins(2)).await;
    let named = |hint: &JobHint| match hint {
        JobHint::Pushed(_) => true,
        JobHint::Polled { jobs, .. } => !jobs.is_empty(),
    };
    assert!(!later.iter().any(named), "{later:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_poll_is_not_an_empty_queue() {
    let lab = Lab::new();
    let mut hints = Hints::of(&lab).await;
    lab.api.add_v1_job(V1Demand::new());
    lab.api.inject(Fault::on("GET /queue/workflows").answer(500, 0));
    let v1_polls = |hints: Vec<JobHint>| -> Vec<usize> {
        let v1 = hints.into_iter().filter_map(|hint| match hint {
            JobHint::Polled { protocol: Protocol::V1, jobs } => Some(jobs.len()),
            _ => None,
        });
        v1.collect()
    };
    assert_eq!(v1_polls(hints.drain(mins(2)).await), [0; 0]);
    assert!(hints.health[0].borrow().failed_polls >= 5);
    lab.api.clear_faults();
    lab.api.inject(Fault::on("GET /queue/workflows").nth(1).empty_list());
    assert_eq!(v1_polls(hints.drain(secs(41)).await), [0, 1], "a list that is empty by mistake");
    assert_eq!(hints.health[0].borrow().failed_polls, 0);
}

#[tokio::test(start_paused = true)]
async fn only_jobs_that_are_meant_for_this_hatchery_are_heard() {
    let mut settings = settings(HATCHERY);
    settings.registration.region = Some("eu-west".into());
    settings.registration.ignore_job_with_no_region = true;
    let lab = Lab::of(Options::new(1), settings);
    let docker = roost_cds::v1::Model {
        name: "container".into(),
        model_type: "docker".into(),
        ..roost_cds::v1::Model::default()
    };
    lab.api.add_model(docker, vec![]);
    let mut hints = Hints::of(&lab).await;
    let ours = JobId::V1(lab.api.add_v1_job(V1Demand::new().region("eu-west")));
    lab.api.add_v1_job(V1Demand::new().region("us-east"));
    lab.api.add_v1_job(V1Demand::new());
    lab.api.add_v1_job(V1Demand::new().model("container").region("eu-west"));
    lab.api.add_v2_job(V2Demand::new(MODEL).region("us-east")).unwrap();
    assert_eq!(lab.api.add_v2_job(V2Demand::new("P/github/o/r/no-such-model")), None);
    let heard = hints.drain(secs(25)).await;
    let ids: Vec<JobId> = heard
        .into_iter()
        .flat_map(|hint| match hint {
            JobHint::Pushed(id) => vec![id],
            JobHint::Polled { jobs, .. } => jobs.into_iter().map(|job| job.id).collect(),
        })
        .collect();
    assert_eq!(ids, [ours.clone(), ours], "pushed and polled");
}

#[tokio::test(start_paused = true)]
async fn both_websockets_of_two_hatcheries_hear_a_released_job_again() {
    let lab = Lab::new();
    let mut hints = Hints::of(&lab).await;
    let id = lab.api.add_v2_job(V2Demand::new(MODEL)).unwrap();
    assert_eq!(hints.pushed(secs(1)).await.len(), 1);
    let other = lab.other();
    other.v2().unwrap().take(&id).await.unwrap();
    other.v2().unwrap().release(&id).await.unwrap();
    assert_eq!(hints.pushed(secs(1)).await, [JobId::V2(id)]);
    assert_eq!(lab.v2().region().await.unwrap(), REGION);
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_nobody_listens() {
    let lab = Lab::new();
    let (sender, receiver) = mpsc::channel(1);
    let watches = lab.client.queue_watches(QueueSettings::default());
    let watches: Vec<_> =
        watches.into_iter().map(|watch| tokio::spawn(watch.run(sender.clone()))).collect();
    time::sleep(secs(5)).await;
    drop((sender, receiver));
    for watch in watches {
        time::timeout(secs(1), watch).await.unwrap().unwrap();
    }
    time::sleep(secs(1)).await;
    assert_eq!(lab.api.open_websockets(), 0);
}
