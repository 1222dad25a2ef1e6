//! A day in one picture, without any other program: what waited, started and worked, minute by minute.

use std::fmt::{self, Write as _};

use askama::Template;
use askama::filters::HtmlSafe;
use jiff::Timestamp;
use roost_views::words::{Style, clock, secs};
use roost_views::{HistoryView, MarkView, QueueView, RequestState, SampleView};

use super::foreign::plain;

/// In the picture's own units.
const WIDTH: i64 = 1_000;
const HEIGHT: u64 = 80;
/// Where less is known than this, the axis is as long nevertheless: a curve of two minutes says nothing.
const LEAST_SECS: i64 = 15 * 60;
/// Minutes of a curve at a number.
const SPARK: usize = 60;

/// The curve of one number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spark {
    points: String,
    label: String,
}

fn number(sample: &SampleView, state: RequestState) -> u64 {
    match state {
        RequestState::Waiting => sample.waiting,
        RequestState::Refused => sample.refused,
        RequestState::Starting => sample.starting,
        RequestState::Joining => sample.joining,
        RequestState::Working => sample.working,
        RequestState::Leaving => sample.leaving,
        RequestState::Skipped | RequestState::Ended => 0,
    }
}

impl Spark {
    /// `None` while there is nothing to compare.
    pub(super) fn of(history: &HistoryView, state: RequestState) -> Option<Self> {
        Self::drawn(history, |sample| number(sample, state))
    }

    /// The same of one of several doors.
    pub(super) fn of_door(history: &HistoryView, door: &str, state: RequestState) -> Option<Self> {
        let place = history.doors.iter().position(|name| name == door)?;
        let states = QueueView::default().in_order();
        let column = states.iter().position(|(known, _)| *known == state)?;
        Self::drawn(history, |sample| sample.doors.get(place).map_or(0, |it| it[column].into()))
    }

    fn drawn(history: &HistoryView, number: impl Fn(&SampleView) -> u64) -> Option<Self> {
        let first = history.samples.len().saturating_sub(SPARK);
        let values: Vec<u64> = history.samples[first..].iter().map(number).collect();
        let most = values.iter().copied().max()?;
        if values.len() < 2 {
            return None;
        }
        let last = values.len() as u64 - 1;
        let mut points = String::new();
        for (at, value) in (0_u64..).zip(&values) {
            let (x, y) = (at * 60 / last, 14 - value * 13 / most.max(1));
            let _ = write!(points, "{x},{y} ");
        }
        let label = format!("the last {} minutes, at most {most}", values.len());
        Some(Self { points: points.trim_end().to_owned(), label })
    }
}

impl fmt::Display for Spark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { points, label } = self;
        write!(
            f,
            "<svg class=\"spark\" viewBox=\"0 0 60 15\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{label}\"><polyline points=\"{points}\"/></svg>"
        )
    }
}

impl HtmlSafe for Spark {}

#[derive(Template)]
#[template(path = "band.html")]
struct Band {
    areas: Vec<(&'static str, String)>,
    marks: Vec<Mark>,
    from: String,
    until: String,
    most: u64,
    last: Option<String>,
}

/// What is below it at one minute, and how much it is.
type Layer = fn(&SampleView) -> (u64, u64);

struct Mark {
    class: &'static str,
    x: i64,
    width: i64,
    title: String,
}

/// Empty until there is something to compare.
pub(super) fn render(history: &HistoryView) -> Result<String, askama::Error> {
    let (Some(first), Some(last)) = (history.samples.first(), history.samples.last()) else {
        return Ok(String::new());
    };
    if history.samples.len() < 2 {
        return Ok(String::new());
    }
    let until = last.at;
    let length = (until.as_second() - first.at.as_second()).max(LEAST_SECS);
    let x = |at: Timestamp| {
        (WIDTH - (until.as_second() - at.as_second()) * WIDTH / length).clamp(0, WIDTH)
    };
    let open = |sample: &SampleView| sample.starting + sample.joining;
    let height = |sample: &SampleView| sample.working + open(sample) + sample.waiting;
    let most = history.samples.iter().map(height).max().unwrap_or_default().max(1);
    // From the bottom up: what works, what is on its way, what waits.
    let layers: [(&'static str, Layer); 3] = [
        ("works", |sample| (0, sample.working)),
        ("starts", |sample| (sample.working, sample.starting + sample.joining)),
        ("waits", |it| (it.working + it.starting + it.joining, it.waiting)),
    ];
    let area = |layer: Layer| {
        let y = |value: u64| HEIGHT - value * HEIGHT / most;
        let (mut upper, mut lower) = (String::new(), Vec::new());
        for sample in &history.samples {
            let (below, own) = layer(sample);
            let _ = write!(upper, "{},{} ", x(sample.at), y(below + own));
            lower.push(format!("{},{}", x(sample.at), y(below)));
        }
        lower.reverse();
        format!("{upper}{}", lower.join(" "))
    };
    let mark = |mark: &MarkView| {
        let (from, to) = (x(mark.at), x(mark.until.unwrap_or(until)));
        let lasts = mark.until.filter(|until| *until > mark.at);
        let lasts = lasts.map(|until| format!(" to {}", clock(until))).unwrap_or_default();
        Mark {
            class: match mark.kind {
                roost_views::MarkKind::Restart => "restart",
                roost_views::MarkKind::Pause => "pause",
                roost_views::MarkKind::Freeze => "freeze",
                roost_views::MarkKind::LinkLost | roost_views::MarkKind::Other => "lost",
            },
            x: from.min(WIDTH - 2),
            width: (to - from).max(2),
            title: format!(
                "{} at {}{lasts}: {}",
                mark.kind.as_str(),
                clock(mark.at),
                plain(&mark.words)
            ),
        }
    };
    Band {
        areas: layers.into_iter().map(|(class, layer)| (class, area(layer))).collect(),
        marks: history.marks.iter().map(mark).collect(),
        from: clock(first.at),
        until: clock(until),
        most,
        last: of_last_hour(&history.samples),
    }
    .render()
}

/// Waits and warm starts of the last hour, in words.
fn of_last_hour(samples: &[SampleView]) -> Option<String> {
    let lately = &samples[samples.len().saturating_sub(60)..];
    let started: u64 = lately.iter().map(|sample| sample.started).sum();
    let warm: u64 = lately.iter().map(|sample| sample.warm).sum();
    if started == 0 {
        return None;
    }
    let middle = |of: fn(&SampleView) -> Option<u64>| {
        let mut all: Vec<u64> = lately.iter().filter_map(of).collect();
        all.sort_unstable();
        all.get(all.len() / 2).map(|wait| secs(*wait, Style::Long))
    };
    let wait = middle(|sample| sample.wait_p50_secs).unwrap_or_else(|| "not known".to_owned());
    let slow = middle(|sample| sample.wait_p95_secs).unwrap_or_else(|| "not known".to_owned());
    let (calls, faults) =
        lately.iter().fold((0, 0), |sum, it| (sum.0 + it.calls, sum.1 + it.faults));
    Some(format!(
        "In the last {} minutes {started} started, {warm} of them from a spare. Half waited {wait} or less, 95 % {slow} or less. {calls} vCenter calls, {faults} faults.",
        lately.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(minute: i64, waiting: u64, working: u64) -> SampleView {
        let at = Timestamp::from_second(minute * 60).unwrap();
        SampleView { at, waiting, working, started: 1, warm: 1, ..SampleView::default() }
    }

    #[test]
    fn a_day_is_one_picture_and_a_curve_stands_at_each_number() {
        let samples = (0..1_440).map(|minute| sample(minute, 3, 7)).collect();
        let pause = MarkView {
            at: Timestamp::from_second(600 * 60).unwrap(),
            until: None,
            kind: roost_views::MarkKind::Pause,
            words: "by <ada>".into(),
        };
        let history =
            HistoryView { limits: Vec::new(), doors: Vec::new(), samples, marks: vec![pause] };
        let html = render(&history).unwrap();
        assert!(html.contains("at most 10 at once"), "{html}");
        assert!(html.contains("pause at 10:00:00") && !html.contains("<ada>"), "{html}");
        assert!(html.contains("60 started, 60 of them from a spare"), "{html}");
        assert!(html.len() < 80_000, "{}", html.len());
        assert!(Spark::of(&history, RequestState::Waiting).is_some());
        assert_eq!(render(&HistoryView::default()).unwrap(), "");
    }
}
