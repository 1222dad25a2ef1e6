//! What there is: pools, capacity, addresses, and how the vCenter is seen.

use ratatui::text::{Line, Span};
use roost_views::{
    AddressesView, GaugeView, LimitView, LinkView, Overview, PoolView, SteeringView, Unit,
};

use super::Mood;
use super::bar::{Bar, Part};
use super::draw::heading;
use super::paint::Paint;
use super::words::shortened;

const NAME: usize = 11;
const NUMBERS: usize = 12;

pub(super) fn lines(
    overview: &Overview,
    steering: &SteeringView,
    width: usize,
    paint: Paint,
) -> Vec<Line<'static>> {
    let mut lines = vec![heading("pools", width, paint)];
    lines.extend(overview.pools.iter().map(|view| pool(view, width, paint)));
    lines.push(heading("capacity", width, paint));
    lines.extend(overview.capacity.iter().map(|view| gauge(view, width, paint)));
    lines.extend(overview.addresses.as_ref().map(|view| addresses(view, width, paint)));
    lines.push(link(&overview.link, width, paint));
    lines.push(deletions(overview, steering, width, paint));
    lines
}

fn row(name: &str, bar: &Bar, numbers: &str, width: usize, paint: Paint) -> Line<'static> {
    let mut spans = vec![Span::raw(format!(" {:<NAME$}", shortened(name, NAME)))];
    spans.extend(bar.spans(width.saturating_sub(NAME + NUMBERS + 3), paint));
    spans.push(Span::raw(format!(" {:>NUMBERS$}", shortened(numbers, NUMBERS))));
    spans.into()
}

fn pool(view: &PoolView, width: usize, paint: Paint) -> Line<'static> {
    let bar = Bar {
        whole: view.wanted,
        parts: vec![
            Part { amount: view.ready, sign: '█', mood: Mood::Good },
            Part { amount: view.coming, sign: '▒', mood: Mood::Busy },
        ],
    };
    let name = view.template.as_deref().unwrap_or(&view.name);
    let name = match &view.size {
        Some(size) => format!("{name}/{size}"),
        None => name.to_owned(),
    };
    let coming = if view.coming > 0 { format!("+{}", view.coming) } else { String::new() };
    row(&name, &bar, &format!("{}{coming} of {}", view.ready, view.wanted), width, paint)
}

fn gauge(view: &GaugeView, width: usize, paint: Paint) -> Line<'static> {
    // Large numbers in few columns; the name says of what.
    let (name, unit) = match view.unit {
        Unit::Mebibytes => (format!("{} GiB", view.brief), 1_024),
        Unit::Pieces | Unit::Megahertz => (view.brief.clone(), 1),
    };
    let (used, reserved) = (view.used / unit, view.reserved.div_ceil(unit));
    let plus = if reserved > 0 { format!("+{reserved}") } else { String::new() };
    let (numbers, whole) = match view.limit {
        LimitView::At(limit) => (format!("{used}{plus} of {}", limit / unit), limit),
        // Nothing to be full of.
        LimitView::Unlimited | LimitView::Unknown => (format!("{used}{plus}"), u64::MAX),
    };
    let is_full = view.used + view.reserved >= whole;
    let bar = Bar {
        whole,
        parts: vec![
            Part {
                amount: view.used,
                sign: '█',
                mood: if is_full { Mood::Waiting } else { Mood::Good },
            },
            Part { amount: view.reserved, sign: '▒', mood: Mood::Busy },
        ],
    };
    row(&name, &bar, &numbers, width, paint)
}

fn addresses(view: &AddressesView, width: usize, paint: Paint) -> Line<'static> {
    let bar = Bar {
        whole: view.total,
        parts: vec![
            Part { amount: view.used, sign: '█', mood: Mood::Good },
            Part { amount: view.reserved, sign: '▒', mood: Mood::Busy },
            Part { amount: view.quarantined, sign: '░', mood: Mood::Waiting },
        ],
    };
    row("addresses", &bar, &format!("{} free", view.free), width, paint)
}

fn link(view: &LinkView, width: usize, paint: Paint) -> Line<'static> {
    let (words, mood) = match (&view.trouble, view.connected && view.synced) {
        (Some(trouble), _) => (trouble.clone(), Mood::Bad),
        (None, false) => ("reading the inventory".to_owned(), Mood::Waiting),
        (None, true) => (format!("{} VMs seen", view.vms_seen), Mood::Good),
    };
    named(&shortened(&view.server, NAME - 1), &words, mood, width, paint)
}

fn deletions(
    overview: &Overview,
    steering: &SteeringView,
    width: usize,
    paint: Paint,
) -> Line<'static> {
    let by_guard = overview.deletions.frozen.as_ref();
    let (words, mood) = match by_guard.or(steering.frozen.as_ref()) {
        Some(why) => (format!("frozen: {why}"), Mood::Bad),
        None => (format!("{} in the last minute", overview.deletions.last_minute), Mood::Good),
    };
    named("deletions", &words, mood, width, paint)
}

fn named(name: &str, words: &str, mood: Mood, width: usize, paint: Paint) -> Line<'static> {
    let room = width.saturating_sub(NAME + 2);
    Line::from(vec![
        Span::raw(format!(" {name:<NAME$}")),
        Span::styled(shortened(words, room), paint.mood(mood)),
    ])
}
