//! One of the three lists at a time, with a mark that stays on its line while the list changes around it.

use ratatui::text::{Line, Span};
use roost_views::Overview;

use super::Look;
use super::entry::Entry;
use super::paint::{Paint, STRONG};
use super::view::View;
use super::words::shortened;
use crate::ask::Row;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum List {
    Requests,
    Vms,
    #[default]
    Decisions,
}

impl List {
    pub(super) const ALL: [Self; 3] = [Self::Requests, Self::Vms, Self::Decisions];

    /// With one door its requests are called as it calls them.
    pub(super) fn name(self, overview: &Overview) -> &str {
        match self {
            Self::Requests => overview.noun(2),
            Self::Vms => "VMs",
            Self::Decisions => "decisions",
        }
    }

    pub(super) fn place(self) -> usize {
        Self::ALL.iter().position(|list| *list == self).unwrap_or_default()
    }

    pub(super) fn after(self, steps: usize) -> Self {
        Self::ALL[(self.place() + steps) % Self::ALL.len()]
    }

    /// The lines of it that the filter lets through, in the order of the tables: what waits first, and the newest decision last.
    pub(super) fn entries(self, look: &Look, filter: &str) -> Vec<Entry> {
        let now = look.picture.overview.now;
        let entries: Vec<Entry> = match self {
            Self::Requests => in_order(&look.requests).into_iter().map(Entry::of_request).collect(),
            Self::Vms => in_order(&look.vms).into_iter().map(|vm| Entry::of_vm(vm, now)).collect(),
            Self::Decisions => look.picture.decisions.iter().map(Entry::of_decision).collect(),
        };
        let filter = filter.to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        entries.into_iter().filter(|entry| entry.has_all(&words)).collect()
    }

    /// Where the eye is when nothing is marked: at the newest decision, at the request that waits longest.
    pub(super) fn begins_at_the_end(self) -> bool {
        self == Self::Decisions
    }
}

fn in_order<T: Row>(rows: &[T]) -> Vec<&T> {
    let mut rows: Vec<&T> = rows.iter().collect();
    rows.sort_by(|a, b| a.usual(b));
    rows
}

/// The line on which somebody is, by what it is about and by its place, in case that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) id: String,
    pub(super) at: usize,
}

impl Mark {
    pub(super) fn place_in(&self, entries: &[Entry]) -> Option<usize> {
        let same = entries.iter().position(|entry| entry.id == self.id);
        same.or_else(|| entries.len().checked_sub(1).map(|last| self.at.min(last)))
    }
}

pub(super) fn lines(
    look: &Look,
    view: &View,
    width: usize,
    height: usize,
    paint: Paint,
) -> Vec<Line<'static>> {
    let list = view.list;
    let entries = list.entries(look, &view.filter);
    let mut lines = vec![heading(look, view, entries.len(), width, paint)];
    let room = height.saturating_sub(lines.len());
    let marked = view.marked_in(&entries);
    let most = entries.len().saturating_sub(room);
    let first = match marked {
        Some(at) => at.saturating_sub(room / 2).min(most),
        None if list.begins_at_the_end() => most,
        None => 0,
    };
    if entries.is_empty() {
        let words =
            if view.filter.is_empty() { "none" } else { "none that the filter lets through" };
        lines.push(Line::styled(format!("  {words}"), paint.quiet()));
    }
    let shown = entries.iter().enumerate().skip(first).take(room);
    lines.extend(shown.map(|(at, entry)| entry.line(width, marked == Some(at), paint)));
    lines
}

/// All lists by name, with a bracket around the one that is shown.
fn heading(look: &Look, view: &View, shown: usize, width: usize, paint: Paint) -> Line<'static> {
    let mut spans = vec![Span::styled("─ ", paint.quiet())];
    for list in List::ALL {
        let count = match list {
            List::Requests => look.requests.len(),
            List::Vms => look.vms.len(),
            List::Decisions => look.picture.decisions.len(),
        };
        let number = list.place() + 1;
        spans.push(if list == view.list {
            let of = if view.filter.is_empty() { String::new() } else { format!("{shown} of ") };
            let count = if list == List::Decisions && of.is_empty() {
                String::new()
            } else {
                format!(" {of}{count}")
            };
            Span::styled(format!("[{number} {}{count}]", list.name(&look.picture.overview)), STRONG)
        } else {
            Span::styled(format!(" {number} {} ", list.name(&look.picture.overview)), paint.quiet())
        });
        spans.push(Span::styled(" ", paint.quiet()));
    }
    if !view.filter.is_empty() {
        spans.push(Span::styled(format!("/{} ", shortened(&view.filter, 20)), STRONG));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::styled("─".repeat(width.saturating_sub(used + 1)), paint.quiet()));
    spans.into()
}
