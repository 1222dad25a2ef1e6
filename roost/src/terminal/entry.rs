//! The lines of the lists: one for each job, VM and decision.

use jiff::Timestamp;
use ratatui::text::{Line, Span};
use roost_console::views::{DecisionView, JobView, SubjectKind, VmKind, VmView};
use unicode_width::UnicodeWidthStr as _;

use super::decisions::{mood, subject_words};
use super::paint::{MARKED, Paint};
use super::words::{clock_time, shortened};
use super::{Mood, Opened};
use crate::ask::{Standing, memory, span};

/// The width that every terminal has.
const NARROW: usize = 80;

/// One line of a list, and what can be done with it.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Stays the same from look to look.
    pub(super) id: String,
    pub(super) opens: Opened,
    /// The job that is explained, and the VM that is deleted, from here.
    pub(super) job: Option<String>,
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
    /// Of a job's long id the first part tells it from others on a screen.
    pub(super) fn of_job(job: &JobView) -> Self {
        let why = job.verdict.as_ref();
        let why = why.map_or(String::new(), |said| format!("{}: {}", said.verdict, said.reason));
        let model = job.model.as_deref().unwrap_or("-").rsplit('/').next().unwrap_or("-");
        let flavor = job.flavor.as_deref().map(|flavor| format!("/{flavor}")).unwrap_or_default();
        let standing = Standing::of(job);
        let mood = match standing {
            Standing::Waiting => Mood::Waiting,
            Standing::Starting => Mood::Busy,
            Standing::Running => Mood::Good,
            Standing::Refused => Mood::Bad,
            Standing::Skipped | Standing::Ended => Mood::Quiet,
        };
        Self {
            id: job.id.clone(),
            opens: Opened::Job(job.id.clone()),
            job: Some(job.id.clone()),
            vm: job.vm.clone(),
            parts: vec![
                part(short_id(&job.id), 8, Mood::Plain),
                part(standing.as_str(), 8, mood),
                number(job.waited_secs.map(span).unwrap_or_default(), 6),
                part(format!("{model}{flavor}"), 16, Mood::Plain),
                part(why, usize::MAX, Mood::Plain),
            ],
        }
    }

    pub(super) fn of_vm(vm: &VmView, now: Timestamp) -> Self {
        let since = vm.phase_since.or(vm.created).map(|then| ago(now, then)).unwrap_or_default();
        let phase = vm.phase.as_deref().or(vm.worker_status.as_deref()).unwrap_or(&vm.power);
        let kind = match vm.kind {
            VmKind::Worker => Mood::Good,
            VmKind::Spare | VmKind::Template => Mood::Quiet,
            VmKind::Registering | VmKind::Building => Mood::Busy,
            VmKind::Leaving => Mood::Waiting,
        };
        let size = [vm.cpus.map(|cpus| format!("{cpus} CPUs")), vm.memory_mb.map(memory)];
        let job = vm.job.as_deref().map(|job| format!("job {}", short_id(job)));
        let more = [vm.address.clone(), job, vm.fate.clone()].into_iter().chain(size);
        let more = more.flatten().collect::<Vec<_>>().join(", ");
        Self {
            id: vm.id.clone(),
            opens: Opened::Vm(vm.name.clone()),
            job: vm.job.clone(),
            vm: Some(vm.name.clone()),
            parts: vec![
                Part { grows: 30, ..part(vm.name.as_str(), 24, Mood::Plain) },
                part(vm.kind.as_str(), 8, kind),
                part(phase, 13, Mood::Plain),
                number(since, 6),
                part(more, usize::MAX, Mood::Quiet),
            ],
        }
    }

    pub(super) fn of_decision(decision: &DecisionView) -> Self {
        let id = decision.subject.clone();
        let (opens, job, vm) = match decision.subject_kind {
            SubjectKind::Job => (Opened::Job(id.clone()), Some(id), decision.vm.clone()),
            SubjectKind::Vm => {
                let name = decision.subject_name.clone().unwrap_or(id);
                (Opened::Vm(name.clone()), None, Some(name))
            }
            SubjectKind::Pool | SubjectKind::Service => {
                (Opened::Decision(decision.seq), None, None)
            }
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
            job,
            vm,
            parts: vec![
                part(clock_time(decision.at), 8, Mood::Quiet),
                part(decision.verdict.as_str(), 9, mood(decision)),
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
                || self.job.as_ref().is_some_and(|job| job.to_lowercase().contains(word))
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

fn short_id(id: &str) -> String {
    match id.split_once('-') {
        Some((first, _)) if id.len() == 36 => first.to_owned(),
        _ => id.to_owned(),
    }
}

fn ago(now: Timestamp, then: Timestamp) -> String {
    span(u64::try_from(now.duration_since(then).as_secs()).unwrap_or_default())
}
