use std::future::pending;
use std::time::Duration;

use tokio::time;

/// How the steps of a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worked {
    Success,
    Fail,
    /// The worker's own process was killed.
    Died,
    /// It was asked to end, and signs out.
    Left,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Line {
    Sleep(Duration),
    SleepForever,
    Exit { success: bool },
    Kill,
    Leave,
    Nothing,
}

impl Line {
    fn parse(line: &str) -> Self {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["sleep", "infinity"] => Self::SleepForever,
            ["sleep", secs] => {
                let secs =
                    secs.parse().ok().and_then(|secs| Duration::try_from_secs_f64(secs).ok());
                secs.map_or(Self::Nothing, Self::Sleep)
            }
            ["exit", code] => Self::Exit { success: *code == "0" },
            ["kill", "-15", ..] => Self::Leave,
            ["kill", ..] => Self::Kill,
            _ => Self::Nothing,
        }
    }
}

/// Carries out the little that simulated jobs consist of: `sleep`, `exit` and `kill`. Other lines do nothing.
pub(crate) async fn work(scripts: &[String]) -> Worked {
    for line in scripts.iter().flat_map(|script| script.lines()) {
        match Line::parse(line) {
            Line::Sleep(duration) => time::sleep(duration).await,
            Line::SleepForever => pending().await,
            Line::Exit { success: true } => return Worked::Success,
            Line::Exit { success: false } => return Worked::Fail,
            Line::Kill => return Worked::Died,
            Line::Leave => return Worked::Left,
            Line::Nothing => {}
        }
    }
    Worked::Success
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::demand::{Outcome, Work};

    #[tokio::test(start_paused = true)]
    async fn what_demand_asks_for_is_what_the_worker_does() {
        for (outcome, wanted) in [
            (Outcome::Success, Worked::Success),
            (Outcome::Fail, Worked::Fail),
            (Outcome::Crash, Worked::Died),
            (Outcome::Leave, Worked::Left),
        ] {
            let (started, duration) = (Instant::now(), Duration::from_millis(12_500));
            let script = Work { duration, outcome }.script();
            assert_eq!(work(&[script]).await, wanted);
            assert_eq!(started.elapsed(), duration);
        }
        let script = Work { outcome: Outcome::Hang, ..Work::default() }.script();
        assert!(time::timeout(Duration::from_hours(100), work(&[script])).await.is_err());
        assert_eq!(work(&["echo hello\nsleep never".into()]).await, Worked::Success);
    }
}
