use std::collections::BTreeMap;

/// Which numbers are free, as runs: the first free one is found at once, however many are taken.
#[derive(Debug, Clone, Default)]
pub(super) struct FreeRuns {
    /// From its first number to one past its last. No two touch.
    runs: BTreeMap<u64, u64>,
    count: u64,
}

impl FreeRuns {
    pub(super) fn below(total: u64) -> Self {
        let runs = if total == 0 { BTreeMap::new() } else { BTreeMap::from([(0, total)]) };
        Self { runs, count: total }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn first(&self) -> Option<u64> {
        self.runs.keys().next().copied()
    }

    fn run_of(&self, number: u64) -> Option<(u64, u64)> {
        let (&from, &to) = self.runs.range(..=number).next_back()?;
        (number < to).then_some((from, to))
    }

    /// Does nothing if it is taken already.
    pub(super) fn take(&mut self, number: u64) {
        let Some((from, to)) = self.run_of(number) else { return };
        self.runs.remove(&from);
        if from < number {
            self.runs.insert(from, number);
        }
        if number + 1 < to {
            self.runs.insert(number + 1, to);
        }
        self.count -= 1;
    }

    /// Does nothing if it is free already.
    pub(super) fn give(&mut self, number: u64) {
        if self.run_of(number).is_some() {
            return;
        }
        let from = match self.runs.range(..number).next_back() {
            Some((&from, &to)) if to == number => from,
            _ => number,
        };
        let to = self.runs.remove(&(number + 1)).unwrap_or(number + 1);
        self.runs.insert(from, to);
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_are_a_set_of_numbers(steps in prop::collection::vec((any::<bool>(), 0..40_u64), 0..200)) {
            let (mut runs, mut model) = (FreeRuns::below(40), (0..40).collect::<BTreeSet<u64>>());
            for (take, number) in steps {
                if take {
                    runs.take(number);
                    model.remove(&number);
                } else {
                    runs.give(number);
                    model.insert(number);
                }
                prop_assert_eq!(runs.first(), model.first().copied());
                prop_assert_eq!(runs.count(), model.len() as u64);
            }
            let listed: Vec<u64> = runs.runs.iter().flat_map(|(from, to)| *from..*to).collect();
            prop_assert!(listed.iter().eq(model.iter()));
            let ends = runs.runs.iter().zip(runs.runs.iter().skip(1));
            prop_assert!(ends.into_iter().all(|((_, to), (from, _))| to < from), "runs do not touch");
        }
    }
}
