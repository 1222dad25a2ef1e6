//! Heartbeats: what they keep alive, what they survive, and when they say that they gave up.

use crate::lab::{HATCHERY, Lab, chain, mins, secs};
use roost_cds::{
    HeartbeatGaveUp, HeartbeatSettings, Level, MonitoringLine, MonitoringStatus, Protocol,
};
use roost_cds_sim::Fault;
use roost_clock::Clock;
use tokio::task::JoinHandle;
use tokio::time::{self, Instant};

const V1: &str = "POST /services/heartbeat";
const V2: &str = "POST /v2/hatchery/heartbeat";

fn start(lab: &Lab) -> Vec<JoinHandle<HeartbeatGaveUp>> {
    let clock = lab.clock.clone();
    let status = move || {
        let line = MonitoringLine {
            component: "Version".into(),
            value: "roost 1".into(),
            ..MonitoringLine::default()
        };
        MonitoringStatus::new(clock.now(), vec![line])
    };
    let beats = lab.client.heartbeats(HeartbeatSettings::default()).into_iter();
    beats.map(|beat| tokio::spawn(beat.run(status.clone()))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_heart_beats_at_once_and_then_every_thirty_seconds() {
    let lab = Lab::new();
    start(&lab);
    time::sleep(secs(301)).await;
    assert_eq!((lab.api.calls(V1), lab.api.calls(V2)), (11, 11));
    let status = &lab.api.services()[0].monitoring_status;
    let line = &status.lines.as_ref().unwrap()[0];
    assert_eq!(line.status, Level::Warn, "the API warns of another version than its own");
    assert!(lab.api.hatchery(HATCHERY).unwrap().last_heartbeat.is_some());
}

#[tokio::test(start_paused = true)]
async fn without_heartbeats_the_api_deletes_the_service_after_three_minutes() {
    let lab = Lab::new();
    lab.client.sign_in().await.unwrap();
    time::sleep(mins(3)).await;
    assert_eq!(lab.api.services().len(), 1);
    time::sleep(secs(40)).await;
    assert_eq!(lab.api.services().len(), 0);
    assert_eq!(lab.v1().workers().await.unwrap_err().status().unwrap().as_u16(), 403);
}

/// The Go hatchery dies here: error 11 ends its heartbeat, and the heartbeat ends the process.
#[tokio::test(start_paused = true)]
async fn a_service_that_the_api_deleted_registers_again_and_lives_on() {
    let lab = Lab::new();
    let beats = start(&lab);
    time::sleep(secs(45)).await;
    lab.api.delete_service(HATCHERY);
    time::sleep(secs(30)).await;
    assert_eq!(lab.api.services()[0].name, HATCHERY);
    assert!(beats.iter().all(|beat| !beat.is_finished()));
    lab.v1().workers().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_session_expires_many_times_in_a_day_and_no_beat_is_missed() {
    let lab = Lab::new();
    let beats = start(&lab);
    time::sleep(mins(24 * 60)).await;
    assert!(beats.iter().all(|beat| !beat.is_finished()));
    assert_eq!(lab.api.services().len(), 1);
    assert!((24..27).contains(&lab.api.calls("POST /auth/consumer/builtin/signin")));
}

#[tokio::test(start_paused = true)]
async fn after_eleven_failures_in_a_row_it_gives_up_and_says_so() {
    let lab = Lab::new();
    lab.client.sign_in().await.unwrap();
    lab.api.inject(Fault::on(V1).answer(500, 0));
    lab.api.inject(Fault::on(V2).answer(403, 11));
    let started = Instant::now();
    for (beat, protocol) in start(&lab).into_iter().zip([Protocol::V1, Protocol::V2]) {
        let gave_up = beat.await.unwrap();
        assert_eq!((gave_up.protocol, gave_up.failures), (protocol, 11));
        let text = chain(&gave_up);
        let wanted = format!("the {protocol} heartbeat gave up after 11 failures in a row: POST /");
        assert!(text.starts_with(&wanted), "{text}");
    }
    assert!(started.elapsed() >= secs(300), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn one_success_forgives_all_failures() {
    let lab = Lab::new();
    let mut beats = lab.client.heartbeats(HeartbeatSettings::default()).into_iter();
    let beat = beats.next().unwrap();
    let health = beat.health();
    let beat = tokio::spawn(beat.run(MonitoringStatus::default));
    for _ in 0..5 {
        lab.api.go_down();
        time::sleep(secs(280)).await;
        assert!(health.borrow().failures > 5);
        assert!(health.borrow().last_error.as_ref().unwrap().contains("no whole answer"));
        lab.api.come_back();
        time::sleep(secs(60)).await;
        assert_eq!((health.borrow().failures, health.borrow().last_error.clone()), (0, None));
        assert!(health.borrow().last_success.is_some());
    }
    assert!(!beat.is_finished());
}
