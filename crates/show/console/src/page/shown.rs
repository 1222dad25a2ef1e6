//! Small things that stand on many pages: times, bars, verdicts, links.

use std::borrow::Cow;
use std::fmt;

use askama::Template;
use askama::filters::HtmlSafe;
use jiff::Timestamp;
use roost_door::{House, Links};
use roost_views::words::{self, Style};
use roost_views::{DecisionView, Facts, GateView, LimitView, RequestId, SubjectKind};

use super::foreign::{Name, Words, part, plain};

/// A moment. With `ago`, the page shows how long it has been, and keeps that up to date by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct When {
    at: Timestamp,
    ago: bool,
}

impl When {
    pub(crate) fn at(at: Timestamp) -> Self {
        Self { at, ago: false }
    }

    pub(crate) fn ago(at: Timestamp) -> Self {
        Self { at, ago: true }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, ago } = self;
        let mark = if *ago { " data-ago" } else { "" };
        let (date, clock) = (words::date(*at), words::clock(*at));
        write!(f, "<time datetime=\"{at}\" title=\"{date}\"{mark}>{clock}</time>")
    }
}

impl HtmlSafe for When {}

/// Parts of a whole, side by side. What is beyond the whole is cut; what is there is seen, however little it is.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    pub(crate) whole: u64,
    /// Each with the class that gives it its look.
    pub(crate) parts: Vec<(&'static str, u64)>,
    /// For those who do not see it.
    pub(crate) label: String,
}

/// In the bar's own units.
const WIDTH: u64 = 1_000;
const LEAST: u64 = 8;

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "<svg class=\"bar\" viewBox=\"0 0 {WIDTH} 10\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
            askama::filters::escape(&self.label, askama::filters::Html).map_err(|_| fmt::Error)?
        )?;
        let mut at = 0;
        for (class, amount) in self.parts.iter().filter(|(_, amount)| *amount > 0) {
            let width = share(*amount, self.whole).max(LEAST).min(WIDTH.saturating_sub(at));
            write!(f, "<rect class=\"{class}\" x=\"{at}\" width=\"{width}\" height=\"10\"/>")?;
            at += width;
        }
        f.write_str("</svg>")
    }
}

impl HtmlSafe for Bar {}

/// In thousandths of the whole.
pub(crate) fn share(amount: u64, whole: u64) -> u64 {
    if whole == 0 {
        return if amount > 0 { WIDTH } else { 0 };
    }
    let share = u128::from(amount) * u128::from(WIDTH) / u128::from(whole);
    u64::try_from(share).unwrap_or(WIDTH).min(WIDTH)
}

/// What a decision is about: where to read more, and what it is called.
#[derive(Debug)]
pub(crate) struct About<'a> {
    pub(crate) kind: &'a str,
    pub(crate) href: Option<String>,
    pub(crate) name: &'a str,
}

impl<'a> About<'a> {
    pub(crate) fn of(decision: &'a DecisionView, ways: &Ways) -> Self {
        let subject = decision.subject.as_str();
        let href = match decision.subject_kind {
            SubjectKind::Request(_) => decision.request().and_then(|id| ways.request(&id)),
            SubjectKind::Vm => Some(vm_href(subject)),
            SubjectKind::Pool | SubjectKind::Service => None,
        };
        let name = decision.subject_name.as_deref().unwrap_or_else(|| words::short_id(subject));
        Self { kind: decision.subject_kind.as_str(), href, name }
    }
}

/// Where the requests of each door are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ways(Vec<(&'static str, String)>);

impl Ways {
    pub(crate) fn of(house: &House) -> Self {
        let words = house.doors.iter().map(|door| door.words());
        Self(words.map(|words| (words.name, words.path())).collect())
    }

    /// `None` if there is no such door.
    pub(crate) fn request(&self, id: &RequestId) -> Option<String> {
        let (_, path) = self.0.iter().find(|(name, _)| *name == id.door)?;
        Some(request_href(path, &id.id))
    }

    /// Those of a door that belong to this project or namespace.
    pub(crate) fn requests_of(&self, door: &str, group: &str) -> Option<String> {
        let (_, path) = self.0.iter().find(|(name, _)| *name == door)?;
        Some(format!("/{path}?q={}", part(group)))
    }
}

/// A part of a path, for an address.
pub(crate) use super::foreign::part as part_of;

pub(crate) fn request_href(path: &str, id: &str) -> String {
    format!("/{path}/{}", part(id))
}

pub(crate) fn vm_href(name_or_id: &str) -> String {
    format!("/vms/{}", part(name_or_id))
}

/// A decision as the cells of a row.
#[derive(Debug, Template)]
#[template(path = "decision.html")]
pub(crate) struct DecisionRow<'a> {
    decision: &'a DecisionView,
    about: About<'a>,
    at: When,
    mood: &'static str,
    reason: Words<'a>,
    /// About how many others the same was decided beside it.
    more: usize,
}

impl<'a> DecisionRow<'a> {
    pub(crate) const COLUMNS: &'static [&'static str] =
        &["Time", "Verdict", "About", "Why", "Bound by"];

    pub(crate) fn new(decision: &'a DecisionView, ways: &Ways) -> Self {
        Self {
            decision,
            about: About::of(decision, ways),
            at: When::at(decision.at),
            mood: decision.verdict.mood().as_str(),
            reason: Words(&decision.reason),
            more: 0,
        }
    }

    /// For it and so many others at once.
    pub(crate) fn with_more(self, more: usize) -> Self {
        Self { more, ..self }
    }
}

/// What something was weighed against.
#[derive(Debug, Template)]
#[template(path = "gates.html")]
pub(crate) struct Gates<'a> {
    gates: Vec<Gate<'a>>,
}

#[derive(Debug)]
struct Gate<'a> {
    name: Name<'a>,
    /// What it asks, for those who do not know it by name.
    words: Option<Words<'a>>,
    passed: bool,
    need: String,
    have: String,
    limit: String,
    bar: Option<Bar>,
    note: Option<Words<'a>>,
    /// The key that sets its limit, and where that is explained.
    setting: Option<&'static str>,
    docs: Option<String>,
}

impl<'a> Gates<'a> {
    pub(crate) fn new(gates: &'a [GateView]) -> Self {
        Self { gates: gates.iter().map(Gate::new).collect() }
    }

    /// With the way to where the keys are explained.
    pub(crate) fn explained(mut self, links: &Links) -> Self {
        let docs = links.docs("configuration.md#gates");
        self.gates.iter_mut().for_each(|gate| gate.docs.clone_from(&docs));
        self
    }
}

impl<'a> Gate<'a> {
    fn new(gate: &'a GateView) -> Self {
        let amount = |amount: u64| gate.unit().amount(amount, Style::Long);
        let number = |of: Option<u64>| of.map(amount).unwrap_or_default();
        let limit = gate.limit.map(|limit| match limit {
            LimitView::At(limit) => amount(limit),
            LimitView::Unlimited | LimitView::Unknown => limit.to_string(),
        });
        let bar = match (gate.need, gate.have, gate.limit) {
            (Some(need), Some(have), Some(LimitView::At(limit))) => Some(Bar {
                whole: limit.max(1),
                parts: vec![
                    ("used", have.min(limit)),
                    (if gate.passed { "need" } else { "over" }, need),
                ],
                label: format!("{have} taken, {need} needed, of {limit}"),
            }),
            _ => None,
        };
        Self {
            name: Name(&gate.name),
            passed: gate.passed,
            words: gate.asks().map(Words),
            need: number(gate.need),
            have: number(gate.have),
            limit: limit.unwrap_or_default(),
            bar,
            note: gate.note.as_deref().map(Words),
            setting: gate.setting(),
            docs: None,
        }
    }
}

/// One fact with its name.
#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) name: Cow<'static, str>,
    /// HTML.
    pub(crate) value: String,
}

impl Fact {
    pub(crate) fn new(name: &'static str, value: &impl fmt::Display) -> Self {
        Self { name: name.into(), value: value.to_string() }
    }

    /// Text that somebody else chose.
    pub(crate) fn text(name: impl Into<Cow<'static, str>>, value: Option<&str>) -> Option<Self> {
        value.map(|value| Self { name: name.into(), value: Words(value).to_string() })
    }

    /// What a door knows of a thing, by the door's own labels.
    pub(crate) fn of_door(facts: &Facts) -> impl Iterator<Item = Self> {
        let shown = facts.known();
        shown.map(|(label, value)| Self {
            name: plain(label).into_owned().into(),
            value: Words(value).to_string(),
        })
    }

    /// With a button that puts it where it can be pasted.
    pub(crate) fn copied(name: &'static str, value: Option<&str>) -> Option<Self> {
        let value = value?;
        Some(Self { name: name.into(), value: format!("{} {}", Words(value), Copy(value)) })
    }

    /// To another program.
    pub(crate) fn elsewhere(name: &'static str, href: Option<String>, words: &str) -> Option<Self> {
        let href = href?;
        let href = askama::filters::escape(&href, askama::filters::Html).ok()?.to_string();
        let rel = "rel=\"noopener noreferrer\" target=\"_blank\"";
        Some(Self { name: name.into(), value: format!("<a href=\"{href}\" {rel}>{words}</a>") })
    }

    pub(crate) fn link(name: &'static str, href: &str, words: &str) -> Self {
        Self { name: name.into(), value: format!("<a href=\"{href}\">{}</a>", Name(words)) }
    }
}

/// A button that copies a name, an id or an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copy<'a>(pub(crate) &'a str);

impl fmt::Display for Copy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = plain(self.0);
        let text =
            askama::filters::escape(&*text, askama::filters::Html).map_err(|_| fmt::Error)?;
        write!(
            f,
            "<button type=\"button\" class=\"copy\" data-copy=\"{text}\" title=\"Copy\">copy</button>"
        )
    }
}

impl HtmlSafe for Copy<'_> {}

/// What a button does. Shown only to those who have given a token.
#[derive(Debug)]
pub(crate) struct Button {
    /// Where the order goes.
    pub(crate) post: String,
    pub(crate) words: Cow<'static, str>,
    /// What is asked before it is done.
    pub(crate) confirm: String,
    /// The rest of the body, as JSON.
    pub(crate) with: &'static str,
    pub(crate) is_grave: bool,
}

impl fmt::Display for Button {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escape = |text: &str| -> Result<String, fmt::Error> {
            let escaped = askama::filters::escape(plain(text), askama::filters::Html);
            Ok(escaped.map_err(|_| fmt::Error)?.to_string())
        };
        let class = if self.is_grave { "act grave" } else { "act" };
        write!(
            f,
            "<button type=\"button\" class=\"{class}\" data-post=\"{}\" data-with=\"{}\" data-confirm=\"{}\">{}</button>",
            escape(&self.post)?,
            escape(self.with)?,
            escape(&self.confirm)?,
            escape(&self.words)?
        )
    }
}

impl HtmlSafe for Button {}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths(whole: u64, parts: &[u64]) -> Vec<String> {
        let parts = parts.iter().map(|amount| ("used", *amount)).collect();
        let svg = Bar { whole, parts, label: "<b>".into() }.to_string();
        assert!(svg.contains("aria-label=\"&#60;b&#62;\""), "{svg}");
        svg.split("width=\"").skip(1).map(|rest| rest[..rest.find('"').unwrap()].into()).collect()
    }

    #[test]
    fn a_bar_shows_its_parts_in_proportion_and_never_more_than_all() {
        assert_eq!(widths(40, &[20, 10]), ["500", "250"]);
        assert_eq!(widths(40, &[0, 0]), [""; 0]);
        assert_eq!(widths(1_000_000, &[1]), ["8"], "a little is seen");
        assert_eq!(widths(10, &[30, 5]), ["1000", "0"]);
        assert_eq!(widths(0, &[1]), ["1000"]);
    }
}
