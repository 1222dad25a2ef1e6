//! The phases of a VM as bars on one axis of time.

use askama::Template;
use jiff::Timestamp;

use super::shown::share;
use super::words::{millis, ms_between};
use crate::views::StepView;

/// From here on a VM does what it was made for. That may last for hours; on the same axis, all that led to it would be a dot.
const WORKING: &str = "working";
/// Before it, a VM was a spare, perhaps for days: what it went through then is no part of what a job waited for.
const CLAIMING: &str = "claiming";
/// What comes after its work is no part of it either.
const AFTERWARDS: [&str; 4] = [WORKING, "shutting-down", "powering-off", "destroying"];
/// When it has ended, the worker's script runs.
const LAUNCHING: &str = "launching";

#[derive(Debug, Template)]
#[template(path = "waterfall.html")]
pub(super) struct Waterfall {
    title: &'static str,
    bars: Vec<Step>,
    /// How long until the script started.
    started: Option<String>,
    /// What it went through as a spare.
    before: Option<String>,
    whole: String,
}

#[derive(Debug)]
struct Step {
    words: String,
    class: &'static str,
    x: u64,
    width: u64,
    took: String,
    /// For those who read the page by machine.
    took_ms: u64,
    state: String,
}

struct Span<'a> {
    words: &'a str,
    class: &'static str,
    from: Timestamp,
    took_ms: u64,
    state: String,
}

impl Waterfall {
    /// From when the job was queued until its script started. `None` if nothing has begun.
    pub(super) fn of_job(
        steps: &[StepView],
        queued: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Self> {
        let claimed = steps.iter().rposition(|step| step.phase == CLAIMING).unwrap_or_default();
        let (as_spare, steps) = steps.split_at(claimed);
        let until = steps.iter().position(|step| AFTERWARDS.contains(&&*step.phase));
        let steps = &steps[..until.unwrap_or(steps.len())];
        let first = steps.first()?.began;
        let queued = queued.filter(|queued| *queued < first);
        let queue = queued.map(|queued| Span {
            words: "in the queue",
            class: "queue",
            from: queued,
            took_ms: ms_between(queued, first),
            state: String::new(),
        });
        let spans = queue.into_iter().chain(until_work(steps, now)).collect();
        Some(Self::new("From the queue to the script", spans, as_spare, steps, now))
    }

    pub(super) fn of_vm(steps: &[StepView], now: Timestamp) -> Option<Self> {
        steps.first()?;
        let spans: Vec<Span<'_>> = until_work(steps, now).collect();
        Some(Self::new("Phases", spans, &[], steps, now))
    }

    fn new(
        title: &'static str,
        spans: Vec<Span<'_>>,
        as_spare: &[StepView],
        steps: &[StepView],
        now: Timestamp,
    ) -> Self {
        let begin = spans.iter().map(|span| span.from).min().unwrap_or(now);
        let end = |span: &Span<'_>| ms_between(begin, span.from).saturating_add(span.took_ms);
        let length = spans.iter().map(end).max().unwrap_or_default().max(1);
        let launched =
            steps.iter().rev().find(|step| step.phase == LAUNCHING && step.took_ms.is_some());
        let started = launched
            .map(|step| ms_between(begin, step.began).saturating_add(step.took_ms.unwrap_or(0)));
        let spare = as_spare
            .iter()
            .map(|step| format!("{} {}", step.words, millis(took_ms(step, now))))
            .collect::<Vec<_>>()
            .join(", ");
        Self {
            title,
            started: started.map(millis),
            before: (!spare.is_empty()).then_some(spare),
            whole: millis(length),
            bars: spans
                .into_iter()
                .map(|span| {
                    let x = share(ms_between(begin, span.from), length).min(996);
                    let until = share(ms_between(begin, span.from) + span.took_ms, length);
                    Step {
                        words: span.words.to_owned(),
                        class: span.class,
                        x,
                        // Everything that happened can be seen.
                        width: until.saturating_sub(x).max(4),
                        took: millis(span.took_ms),
                        took_ms: span.took_ms,
                        state: span.state,
                    }
                })
                .collect(),
        }
    }
}

fn until_work(steps: &[StepView], now: Timestamp) -> impl Iterator<Item = Span<'_>> {
    let steps = steps.iter().filter(|step| step.phase != WORKING);
    steps.map(move |step| Span {
        words: &step.words,
        class: match step.ended.as_deref() {
            None => "going",
            Some("done") => "done",
            Some(_) => "broken",
        },
        from: step.began,
        took_ms: took_ms(step, now),
        state: match step.ended.as_deref() {
            None => format!("goes on, at most {}", millis(step.deadline_ms)),
            Some("done") => String::new(),
            Some(other) => other.to_owned(),
        },
    })
}

fn took_ms(step: &StepView, now: Timestamp) -> u64 {
    step.took_ms.unwrap_or_else(|| ms_between(step.began, now))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fake::NOW;

    fn at(secs: u64) -> Timestamp {
        NOW + Duration::from_secs(secs)
    }

    fn step(phase: &str, began: u64, took: Option<u64>) -> StepView {
        StepView {
            phase: phase.into(),
            words: phase.into(),
            began: at(began),
            took_ms: took.map(|took| took * 1_000),
            deadline_ms: 60_000,
            ended: took.map(|_| "done".into()),
        }
    }

    fn bars(waterfall: &Waterfall) -> Vec<(&str, u64, u64, u64)> {
        let bars = waterfall.bars.iter();
        bars.map(|bar| (bar.words.as_str(), bar.x, bar.width, bar.took_ms)).collect()
    }

    #[test]
    fn a_job_waits_in_the_queue_and_then_for_each_phase() {
        let steps = [
            step("cloning", 0, Some(50)),
            step("claiming", 100, Some(10)),
            step("booting", 110, Some(70)),
            step("launching", 180, Some(10)),
            step("working", 190, Some(9_999)),
            step("destroying", 10_189, Some(5)),
        ];
        let waterfall = Waterfall::of_job(&steps, Some(at(90)), at(20_000)).unwrap();
        assert_eq!(
            bars(&waterfall),
            [
                ("in the queue", 0, 100, 10_000),
                ("claiming", 100, 100, 10_000),
                ("booting", 200, 700, 70_000),
                ("launching", 900, 100, 10_000),
            ]
        );
        assert_eq!(waterfall.started.as_deref(), Some("1 min 40 s"));
        assert_eq!(waterfall.before.as_deref(), Some("cloning 50.0 s"));
    }

    #[test]
    fn what_goes_on_reaches_until_now() {
        let waterfall =
            Waterfall::of_job(&[step("cloning", 10, None)], Some(at(0)), at(20)).unwrap();
        assert_eq!(
            bars(&waterfall),
            [("in the queue", 0, 500, 10_000), ("cloning", 500, 500, 10_000)]
        );
        assert_eq!(waterfall.started, None);
        assert!(Waterfall::of_job(&[], Some(at(0)), at(20)).is_none());
    }

    #[test]
    fn what_took_no_time_is_seen_within_the_axis() {
        let steps = [step("cloning", 0, Some(100)), step("launching", 100, Some(0))];
        let waterfall = Waterfall::of_vm(&steps, at(200)).unwrap();
        assert_eq!(bars(&waterfall)[1], ("launching", 996, 4, 0));
    }
}
