//! What a pod's VM went through, step by step, as far as people want to look back.

use std::collections::VecDeque;

use jiff::Timestamp;

use super::table::Activity;

/// A pod that fails again and again keeps the last of its steps.
const KEPT: usize = 16;

/// One step, from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) activity: Activity,
    pub(crate) began: Timestamp,
    /// When it ended, and whether well.
    pub(crate) ended: Option<(Timestamp, bool)>,
}

/// The last steps of one pod, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct History(VecDeque<Passed>);

impl History {
    /// The step before ended well, or it would have been left.
    pub(crate) fn enter(&mut self, activity: Activity, now: Timestamp) {
        if self.0.back().is_some_and(|last| last.ended.is_none() && last.activity == activity) {
            return;
        }
        self.leave(now, true);
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(Passed { activity, began: now, ended: None });
    }

    pub(crate) fn leave(&mut self, now: Timestamp, well: bool) {
        if let Some(last) = self.0.back_mut().filter(|last| last.ended.is_none()) {
            last.ended = Some((now, well));
        }
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = &Passed> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::table::Waiting;

    #[test]
    fn one_step_ends_where_the_next_begins_and_the_oldest_are_forgotten() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut history = History::default();
        history.enter(Activity::Creating(Waiting::Queued), at(1));
        history.enter(Activity::Creating(Waiting::Queued), at(2));
        history.enter(Activity::Creating(Waiting::Cloning), at(3));
        history.leave(at(5), false);
        history.leave(at(6), true);
        let ends: Vec<_> = history.steps().map(|step| (step.began, step.ended)).collect();
        assert_eq!(ends, [(at(1), Some((at(3), true))), (at(3), Some((at(5), false)))]);
        for second in 10..60 {
            history.enter(Activity::Deleting, at(second));
            history.leave(at(second), true);
        }
        assert_eq!(history.steps().count(), KEPT);
    }
}
