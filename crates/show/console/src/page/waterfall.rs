//! A waterfall as a table of bars.

use askama::Template;
use jiff::Timestamp;
use roost_views::words::{Style, millis};
use roost_views::{Bar, BarKind, StepView, Waterfall};

use super::shown::share;

pub(super) fn of_request(
    steps: &[StepView],
    queued: Option<Timestamp>,
    now: Timestamp,
) -> Result<String, askama::Error> {
    render("From the queue to work", Waterfall::of_request(steps, queued, now))
}

pub(super) fn of_vm(steps: &[StepView], now: Timestamp) -> Result<String, askama::Error> {
    render("Phases", Waterfall::of_vm(steps, now))
}

/// Empty if nothing has begun.
fn render(title: &'static str, seen: Option<Waterfall<'_>>) -> Result<String, askama::Error> {
    let Some(seen) = seen else { return Ok(String::new()) };
    let Some(spare) = &seen.spare else { return Drawn::new(title, &seen).render() };
    // Days as a spare would make all that came after a dot.
    let before = Drawn::new("As a spare", spare).render()?;
    Ok(format!("{before}{}", Drawn::new("Then, for its request", &seen).render()?))
}

#[derive(Debug, Template)]
#[template(path = "waterfall.html")]
struct Drawn {
    title: &'static str,
    bars: Vec<Row>,
    /// How long until it did what it is for.
    started: Option<String>,
    whole: String,
}

#[derive(Debug)]
struct Row {
    words: String,
    class: &'static str,
    x: u64,
    width: u64,
    took: String,
    /// For those who read the page by machine.
    took_ms: u64,
    state: String,
}

impl Drawn {
    fn new(title: &'static str, seen: &Waterfall<'_>) -> Self {
        Self {
            title,
            started: seen.started_ms.map(|ms| millis(ms, Style::Long)),
            whole: millis(seen.length_ms, Style::Long),
            bars: seen.bars.iter().map(|bar| Row::new(bar, seen.length_ms)).collect(),
        }
    }
}

impl Row {
    fn new(bar: &Bar<'_>, length_ms: u64) -> Self {
        let x = share(bar.from_ms, length_ms).min(996);
        let until = share(bar.from_ms + bar.took_ms, length_ms);
        Self {
            words: bar.words.to_owned(),
            class: match bar.kind {
                BarKind::Queue => "queue",
                BarKind::Going => "going",
                BarKind::Done => "done",
                BarKind::Broken(_) => "broken",
            },
            x,
            // Everything that happened can be seen.
            width: until.saturating_sub(x).max(4),
            took: millis(bar.took_ms, Style::Long),
            took_ms: bar.took_ms,
            state: match (bar.kind, bar.deadline_ms) {
                (BarKind::Going, Some(deadline)) => {
                    format!("goes on, at most {}", millis(deadline, Style::Long))
                }
                (BarKind::Going, None) => "goes on".to_owned(),
                (BarKind::Broken(ended), _) => ended.as_str().to_owned(),
                _ => String::new(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use roost_views::{Ended, Part};

    use super::*;
    use crate::fake::NOW;

    fn step(part: Part, began: u64, took: u64) -> StepView {
        StepView {
            phase: String::new(),
            words: format!("{part:?}"),
            part,
            began: NOW + Duration::from_secs(began),
            took_ms: Some(took * 1_000),
            deadline_ms: 60_000,
            ended: Some(Ended::Done),
        }
    }

    #[test]
    fn what_took_no_time_is_seen_within_the_axis() {
        let steps = [step(Part::Making, 0, 100), step(Part::Launching, 100, 0)];
        let seen = Waterfall::of_vm(&steps, NOW).unwrap();
        let drawn = Drawn::new("Phases", &seen);
        let bars: Vec<_> = drawn.bars.iter().map(|bar| (bar.x, bar.width)).collect();
        assert_eq!(bars, [(0, 1_000), (996, 4)]);
        assert_eq!(drawn.started.as_deref(), Some("1 min 40 s"));
    }

    #[test]
    fn what_goes_on_without_a_deadline_names_none() {
        // A pod that did not answer yet "goes on, at most 0 ms".
        let going = |deadline_ms| StepView {
            took_ms: None,
            ended: None,
            deadline_ms,
            ..step(Part::Joining, 0, 0)
        };
        for (deadline, said) in [(0, "goes on"), (60_000, "goes on, at most 1 min 0 s")] {
            let steps = [going(deadline)];
            let seen = Waterfall::of_vm(&steps, NOW + Duration::from_secs(9)).unwrap();
            assert_eq!(Drawn::new("Phases", &seen).bars[0].state, said);
        }
    }
}
