//! The phases of a VM as bars on one axis of time.

use jiff::Timestamp;
use roost_console::views::StepView;

use super::table::{Table, left, right};
use super::words::{millis, ms_since};

/// Where nobody looks at the screen.
const BAR: usize = 40;

/// Narrower ones show nothing.
const LEAST_BAR: usize = 10;

/// What the other columns take at most, with some air.
const OTHER_COLUMNS: usize = 52;

/// From here on a VM does what it was made for. That may last for hours; on the same axis, all that led to it would be a dot.
const WORKING: &str = "working";

/// Before it, a VM was a spare, perhaps for days: what it went through then is no part of what a job waited for.
const CLAIMING: &str = "claiming";

pub(super) fn render(steps: &[StepView], now: Timestamp, width: Option<usize>) -> Vec<String> {
    let claimed = steps.iter().rposition(|step| step.phase == CLAIMING).unwrap_or_default();
    let (as_spare, steps) = steps.split_at(claimed);
    let Some(begin) = steps.iter().map(|step| step.began).min() else {
        return vec!["no phases are known".to_owned()];
    };
    let bar = width.map_or(BAR, |width| width.saturating_sub(OTHER_COLUMNS).max(LEAST_BAR));
    let axis = Axis { begin, length_ms: length_ms(steps, begin, now), bar };
    let mut table = Table::new([
        left("PHASE"),
        left("").goes(2),
        right("TOOK"),
        left("ENDED"),
        right("DEADLINE").goes(1),
    ]);
    for step in steps {
        table.row([
            step.words.clone(),
            axis.draw(step, now),
            millis(took_ms(step, now)),
            step.ended.clone().unwrap_or_else(|| "goes on".to_owned()),
            millis(step.deadline_ms),
        ]);
    }
    let spare =
        as_spare.iter().map(|step| format!("{} {}", step.words, millis(took_ms(step, now))));
    let spare = spare.collect::<Vec<_>>().join(", ");
    let before = (!spare.is_empty()).then(|| format!("As a spare, before: {spare}"));
    before.into_iter().chain(table.render(width)).collect()
}

fn took_ms(step: &StepView, now: Timestamp) -> u64 {
    step.took_ms.unwrap_or_else(|| ms_since(now, step.began))
}

/// Until work begins, or all of it if nothing came before.
fn length_ms(steps: &[StepView], begin: Timestamp, now: Timestamp) -> u64 {
    let end = |step: &StepView| ms_since(step.began, begin).saturating_add(took_ms(step, now));
    let until_work = steps.iter().take_while(|step| step.phase != WORKING).map(end).max();
    until_work.or_else(|| steps.iter().map(end).max()).unwrap_or_default().max(1)
}

struct Axis {
    begin: Timestamp,
    length_ms: u64,
    bar: usize,
}

impl Axis {
    /// `#` for the time that it took, `>` at the edge if it goes on beyond it, spaces before.
    fn draw(&self, step: &StepView, now: Timestamp) -> String {
        let from_ms = ms_since(step.began, self.begin);
        let until_ms = from_ms.saturating_add(took_ms(step, now));
        let last = self.bar - 1;
        let from = self.place(from_ms).min(last);
        // Everything that happened can be seen.
        let until = self.place(until_ms).clamp(from + 1, self.bar);
        let mut drawn = format!("{}{}", " ".repeat(from), "#".repeat(until - from));
        if until_ms > self.length_ms || step.ended.is_none() {
            drawn.pop();
            drawn.push('>');
        }
        drawn
    }

    fn place(&self, ms: u64) -> usize {
        let place = u128::from(ms) * self.bar as u128 / u128::from(self.length_ms);
        usize::try_from(place).unwrap_or(usize::MAX)
    }
}
