use std::sync::{Arc, Mutex};
use std::time::Duration;

use roost_clock::SimClock;
use tokio::time::sleep;

use super::*;

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<(Phase, Ended, Duration)>>);

impl PhaseHook for Heard {
    fn ended(&self, phase: Phase, ended: Ended, took: Duration) {
        self.0.lock().unwrap().push((phase, ended, took));
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_phase_ends_at_its_own_deadline_and_is_remembered() {
    let heard = Arc::<Heard>::default();
    let timelines = Timelines::new(Arc::new(SimClock::new()), Some(heard.clone()));
    let done = timelines
        .run("w1", Phase::CLONING, 60 * SECOND, async {
            sleep(40 * SECOND).await;
            Ok::<_, std::fmt::Error>(7)
        })
        .await;
    assert_eq!(done, Ok(7));
    let failed: Result<(), _> =
        timelines.run("w1", Phase::POWERING_ON, SECOND, async { Err(std::fmt::Error) }).await;
    assert_eq!(
        failed,
        Err(PhaseError::Failed { phase: Phase::POWERING_ON, source: std::fmt::Error })
    );
    timelines.rename("w1", "w2");
    let late = timelines
        .run(
            "w2",
            Phase::BOOTING,
            180 * SECOND,
            std::future::pending::<Result<(), std::fmt::Error>>(),
        )
        .await
        .unwrap_err();
    assert_eq!(late.to_string(), "booting took longer than 180s");
    drop(timelines.begin("w2", Phase::IN_GUEST, SECOND));

    let steps = timelines.of("w2").unwrap().steps;
    let story: Vec<_> = steps.iter().map(|step| (step.phase, step.took_ms, step.ended)).collect();
    assert_eq!(
        story,
        [
            (Phase::CLONING, Some(40_000), Some(Ended::Done)),
            (Phase::POWERING_ON, Some(0), Some(Ended::Failed)),
            (Phase::BOOTING, Some(180_000), Some(Ended::Overdue)),
            (Phase::IN_GUEST, Some(0), Some(Ended::Abandoned)),
        ]
    );
    assert_eq!(heard.0.lock().unwrap().len(), 4);
    assert_eq!(timelines.of("w1"), None);
}

#[tokio::test(start_paused = true)]
async fn a_renamed_machine_keeps_the_phase_that_lasts() {
    let timelines = Timelines::new(Arc::new(SimClock::new()), None);
    let claim = timelines.begin("provision-1", Phase::RECONFIGURING, SECOND);
    let other = timelines.begin("provision-2", Phase::RECONFIGURING, SECOND);
    timelines.rename("provision-1", "worker-1");
    assert_eq!(claim.end(Ended::Done), Duration::ZERO);
    assert_eq!(timelines.of("worker-1").unwrap().steps[0].ended, Some(Ended::Done));
    assert_eq!(timelines.of("provision-2").unwrap().steps[0].ended, None);
    drop(other);
    let json = serde_json::to_value(timelines.of("worker-1").unwrap()).unwrap();
    assert_eq!(json["steps"][0]["phase"], "reconfiguring");
    assert_eq!(json["steps"][0]["deadline_ms"], 1_000);
}

#[test]
fn every_phase_has_a_label_and_a_deadline() {
    let deadlines = PhaseDeadlines::default().with(Phase::BOOTING, SECOND);
    let labels: std::collections::BTreeSet<_> =
        Phase::COMMON.iter().map(|phase| phase.as_str()).collect();
    assert_eq!(labels.len(), Phase::COMMON.len());
    assert!(Phase::COMMON.iter().all(|phase| deadlines.of(*phase) >= SECOND));
    assert_eq!(deadlines.of(Phase::BOOTING), SECOND);
    assert_eq!(
        serde_json::to_value(Phase::WAITING_FOR_ADDRESS).unwrap(),
        Phase::WAITING_FOR_ADDRESS.as_str()
    );
}

#[tokio::test]
async fn what_is_kept_is_bounded() {
    let timelines = Timelines::new(Arc::new(SimClock::new()), None);
    for number in 0..1_100 {
        timelines.begin(&format!("w{number}"), Phase::CLONING, SECOND).end(Ended::Done);
    }
    for _ in 0..100 {
        timelines.begin("w1099", Phase::IN_GUEST, SECOND).end(Ended::Failed);
    }
    assert_eq!(timelines.all().len(), 1_024);
    assert_eq!(timelines.of("w1099").unwrap().steps.len(), 64);
}
