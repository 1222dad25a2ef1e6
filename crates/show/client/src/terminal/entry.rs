//! The lines of the lists: one for each request, VM and decision.

use jiff::Timestamp;
use ratatui::text::{Line, Span};
use roost_views::words::{secs_between, short_id};
use roost_views::{DecisionView, RequestId, RequestView, SubjectKind, VmView};
use unicode_width::UnicodeWidthStr as _;

use super::decisions::subject_words;
use super::paint::{MARKED, Paint};
use super::words::{clock_time, shortened};
use super::{Mood, Opened};
use crate::ask::{memory, span};

/// The width that every terminal has.
const NARROW: usize = 80;

/// One line of a list, and what can be done with it.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Stays the same from look to look.
    pub(super) id: String,
    pub(super) opens: Opened,
    /// The request that is explained, and the VM that is deleted, from here.
    pub(super) request: Option<RequestId>,
    pub(super) vm: Option<String>,
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
struct Part {
    text: String,
    /// In columns; the last part takes what is left.
    width: usize,
    /// How much wider it may be on a wide screen.
    grows: usize,
    is_number: bool,
    mood: Mood,
}

fn part(text: impl Into<String>, width: usize, mood: Mood) -> Part {
    Part { text: text.into(), width, grows: 0, is_number: false, mood }
}

fn number(text: impl Into<String>, width: usize) -> Part {
    Part { text: text.into(), width, grows: 0, is_number: true, mood: Mood::Plain }
}

impl Entry {
    /// Of a long id the first part tells it from others on a screen.
    pub(super) fn of_request(request: &RequestView) -> Self {
        let why = request.verdict.as_ref();
        let why =
            why.map_or(String::new(), |said| format!("{}: {}", said.verdict.as_str(), said.reason));
        let standing = request.state;
        Self {
            id: format!("{}/{}", request.id.door, request.id.id),
            opens: Opened::Request(request.id.clone()),
            request: Some(request.id.clone()),
            vm: request.vm.clone(),
            parts: vec![
                part(short_id(&request.id.id), 8, Mood::Plain),
                part(standing.as_str(), 8, standing.mood()),
                number(request.waited_secs.map(span).unwrap_or_default(), 6),
                part(request.wants.as_deref().unwrap_or("-"), 16, Mood::Plain),
                part(why, usize::MAX, Mood::Plain),
            ],
        }
    }

    pub(super) fn of_vm(vm: &VmView, now: Timestamp) -> Self {
        let phase = vm.phase.as_ref();
        let since = phase.and_then(|phase| phase.since).or(vm.created);
        let since = since.map(|then| span(secs_between(then, now))).unwrap_or_default();
        let phase = phase.map_or(vm.power.as_str(), |phase| phase.words.as_str());
        let size = [vm.cpus.map(|cpus| format!("{cpus} CPUs")), vm.memory_mb.map(memory)];
        let request = vm.request.as_ref().map(|request| format!("for {}", short_id(&request.id)));
        let more = [vm.address.clone(), request, vm.fate.clone()].into_iter().chain(size);
        let more = more.flatten().collect::<Vec<_>>().join(", ");
        Self {
            id: vm.id.clone(),
            opens: Opened::Vm(vm.name.clone()),
            request: vm.request.clone(),
            vm: Some(vm.name.clone()),
            parts: vec![
                Part { grows: 30, ..part(vm.name.as_str(), 24, Mood::Plain) },
                part(vm.kind.as_str(), 8, vm.kind.mood()),
                part(phase, 13, Mood::Plain),
                number(since, 6),
                part(more, usize::MAX, Mood::Quiet),
            ],
        }
    }

    pub(super) fn of_decision(decision: &DecisionView) -> Self {
        let id = decision.subject.clone();
        let request = decision.request();
        let (opens, vm) = match (&decision.subject_kind, &request) {
            (_, Some(request)) => (Opened::Request(request.clone()), decision.vm.clone()),
            (SubjectKind::Vm, None) => {
                let name = decision.subject_name.clone().unwrap_or(id);
                (Opened::Vm(name.clone()), Some(name))
            }
            (_, None) => (Opened::Decision(decision.seq), None),
        };
        let times = match decision.times {
            0 | 1 => String::new(),
            times => format!(" ({times} times)"),
        };
        let kind = decision.subject_kind.as_str();
        let words = format!("{kind} {}: {}{times}", subject_words(decision), decision.reason);
        Self {
            id: decision.seq.to_string(),
            opens,
            request,
            vm,
            parts: vec![
                part(clock_time(decision.at), 8, Mood::Quiet),
                part(decision.verdict.as_str(), 9, decision.verdict.mood()),
                part(words, usize::MAX, Mood::Plain),
            ],
        }
    }

    /// `words` are in small letters.
    pub(super) fn has_all(&self, words: &[&str]) -> bool {
        let text = |part: &Part| part.text.to_lowercase();
        words.iter().all(|word| {
            self.parts.iter().any(|part| text(part).contains(word))
                || self.id.to_lowercase().contains(word)
                || self.request.as_ref().is_some_and(|it| it.id.to_lowercase().contains(word))
        })
    }

    pub(super) fn line(&self, width: usize, is_marked: bool, paint: Paint) -> Line<'static> {
        let mut spans = vec![Span::raw(if is_marked { ">" } else { " " })];
        let mut left = width.saturating_sub(2);
        for part in &self.parts {
            let grown = part.grows.min(width.saturating_sub(NARROW) / 2);
            let room = part.width.saturating_add(grown).min(left);
            let text = shortened(&part.text, room);
            let pad = if part.width == usize::MAX { 0 } else { room.saturating_sub(text.width()) };
            let pad = " ".repeat(pad);
            let text =
                if part.is_number { format!("{pad}{text}  ") } else { format!("{text}{pad}  ") };
            left = left.saturating_sub(text.width());
            spans.push(Span::styled(text, paint.mood(part.mood)));
        }
        let line = Line::from(spans);
        if is_marked { line.style(MARKED) } else { line }
    }
}
