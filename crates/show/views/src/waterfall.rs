//! The phases of a VM as bars on one axis of time.

use jiff::Timestamp;

use crate::words::ms_between;
use crate::{Ended, Part, StepView};

/// Bars that share an axis; what they are drawn with is the business of whoever draws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waterfall<'a> {
    /// In the order of the timeline.
    pub bars: Vec<Bar<'a>>,
    /// Of the whole axis; at least 1.
    pub length_ms: u64,
    /// From the beginning of the axis until what the VM is for began in it.
    pub started_ms: Option<u64>,
    /// What it went through as a spare, before this request.
    pub as_spare: Vec<(&'a str, u64)>,
    /// The same as bars, on an axis with a zero of its own.
    pub spare: Option<Box<Self>>,
    /// How long it has been doing what it is for; not on the axis.
    pub working_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar<'a> {
    pub words: &'a str,
    pub kind: BarKind,
    /// From the beginning of the axis.
    pub from_ms: u64,
    pub took_ms: u64,
    pub deadline_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarKind {
    /// Before anything was begun.
    Queue,
    Going,
    Done,
    Broken(Ended),
}

impl<'a> Waterfall<'a> {
    /// From when the request was queued until what it is for began. `None` if nothing has begun.
    pub fn of_request(
        steps: &'a [StepView],
        queued: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Self> {
        let claimed = steps.iter().rposition(|step| step.part == Part::Claiming);
        let (as_spare, steps) = steps.split_at(claimed.unwrap_or_default());
        let until = steps.iter().position(|step| step.part.is_afterwards());
        let steps = &steps[..until.unwrap_or(steps.len())];
        let first = steps.first()?.began;
        let queued = queued.filter(|queued| *queued < first);
        let mut waterfall = Self::new(steps, queued.unwrap_or(first), now);
        if let Some(queued) = queued {
            let took_ms = ms_between(queued, first);
            let queue = Bar {
                words: "in the queue",
                kind: BarKind::Queue,
                from_ms: 0,
                took_ms,
                deadline_ms: None,
            };
            waterfall.bars.insert(0, queue);
        }
        waterfall.add_spare(as_spare, now);
        Some(waterfall)
    }

    /// What it went through before it was claimed. How long it then waited to be claimed is no part of it.
    fn add_spare(&mut self, steps: &'a [StepView], now: Timestamp) {
        self.as_spare = spare(steps, now);
        let begin = steps.iter().map(|step| step.began).min();
        self.spare = begin.map(|begin| Box::new(Self::new(steps, begin, now)));
    }

    /// All that a VM went through but its work.
    pub fn of_vm(steps: &'a [StepView], now: Timestamp) -> Option<Self> {
        let claimed = steps.iter().rposition(|step| step.part == Part::Claiming);
        let (as_spare, steps) = steps.split_at(claimed.unwrap_or_default());
        let begin = steps.iter().map(|step| step.began).min()?;
        let mut waterfall = Self::new(steps, begin, now);
        waterfall.add_spare(as_spare, now);
        Some(waterfall)
    }

    fn new(steps: &'a [StepView], begin: Timestamp, now: Timestamp) -> Self {
        // Hours of work would make all that led to it a dot, and what comes after stands right behind it.
        let worked = |until: Timestamp| -> u64 {
            let work = steps.iter().filter(|it| it.part == Part::Working && it.began < until);
            work.map(|step| took_ms(step, now)).sum()
        };
        let bar = |step: &'a StepView| Bar {
            words: &step.words,
            kind: match step.ended {
                None => BarKind::Going,
                Some(Ended::Done) => BarKind::Done,
                Some(other) => BarKind::Broken(other),
            },
            from_ms: ms_between(begin, step.began).saturating_sub(worked(step.began)),
            took_ms: took_ms(step, now),
            // Nothing ends within no time: it has none.
            deadline_ms: Some(step.deadline_ms).filter(|deadline| *deadline > 0),
        };
        let waits = steps.iter().filter(|step| step.part != Part::Working);
        let bars: Vec<Bar<'a>> = waits.map(bar).collect();
        let end = |bar: &Bar<'_>| bar.from_ms.saturating_add(bar.took_ms);
        let launched = |step: &&StepView| step.part == Part::Launching && step.took_ms.is_some();
        let launched = steps.iter().rev().find(launched).map(bar);
        let working = steps.iter().rev().find(|step| step.part == Part::Working);
        Self {
            length_ms: bars.iter().map(end).max().unwrap_or_default().max(1),
            started_ms: launched.as_ref().map(end),
            as_spare: Vec::new(),
            spare: None,
            working_ms: working.map(|step| took_ms(step, now)),
            bars,
        }
    }
}

fn spare(steps: &[StepView], now: Timestamp) -> Vec<(&str, u64)> {
    let waits = steps.iter().filter(|step| step.part != Part::Working);
    waits.map(|step| (step.words.as_str(), took_ms(step, now))).collect()
}

fn took_ms(step: &StepView, now: Timestamp) -> u64 {
    step.took_ms.unwrap_or_else(|| ms_between(step.began, now))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH + Duration::from_secs(secs)
    }

    fn step(part: Part, began: u64, took: Option<u64>) -> StepView {
        StepView {
            phase: String::new(),
            words: format!("{part:?}"),
            part,
            began: at(began),
            took_ms: took.map(|took| took * 1_000),
            deadline_ms: 60_000,
            ended: took.map(|_| Ended::Done),
        }
    }

    fn bars<'a>(waterfall: &Waterfall<'a>) -> Vec<(&'a str, u64, u64)> {
        waterfall.bars.iter().map(|bar| (bar.words, bar.from_ms, bar.took_ms)).collect()
    }

    #[test]
    fn a_request_waits_in_the_queue_and_then_for_each_phase() {
        let steps = [
            step(Part::Making, 0, Some(50)),
            step(Part::Claiming, 100, Some(10)),
            step(Part::Starting, 110, Some(70)),
            step(Part::Launching, 180, Some(10)),
            step(Part::Working, 190, Some(9_999)),
            step(Part::Leaving, 10_189, Some(5)),
        ];
        let waterfall = Waterfall::of_request(&steps, Some(at(90)), at(20_000)).unwrap();
        assert_eq!(
            bars(&waterfall),
            [
                ("in the queue", 0, 10_000),
                ("Claiming", 10_000, 10_000),
                ("Starting", 20_000, 70_000),
                ("Launching", 90_000, 10_000),
            ]
        );
        assert_eq!((waterfall.length_ms, waterfall.started_ms), (100_000, Some(100_000)));
        assert_eq!(waterfall.as_spare, [("Making", 50_000)]);
        let spare = waterfall.spare.as_ref().unwrap();
        assert_eq!((bars(spare), spare.length_ms), (vec![("Making", 0, 50_000)], 50_000));
        let of_vm = Waterfall::of_vm(&steps, at(20_000)).unwrap();
        assert_eq!(of_vm.bars.len(), 4, "all but its work and its time as a spare");
        assert_eq!(of_vm.working_ms, Some(9_999_000));
        assert_eq!(bars(&of_vm)[3], ("Leaving", 90_000, 5_000), "right behind its work");
    }

    #[test]
    fn what_goes_on_reaches_until_now() {
        let steps = [step(Part::Making, 10, None)];
        let waterfall = Waterfall::of_request(&steps, Some(at(0)), at(20)).unwrap();
        assert_eq!(bars(&waterfall), [("in the queue", 0, 10_000), ("Making", 10_000, 10_000)]);
        assert_eq!((waterfall.started_ms, waterfall.length_ms), (None, 20_000));
        assert_eq!(Waterfall::of_request(&[], Some(at(0)), at(20)), None);
    }
}
