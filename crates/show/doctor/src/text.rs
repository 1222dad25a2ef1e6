//! The report as lines for people. Verdicts are words, so that nothing is lost without colours.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, stdout};

use unicode_width::UnicodeWidthStr as _;

use crate::report::{Counts, Finding, Section, Verdict};
use roost_views::foreign::replaced as clean;

/// How it looks: for the terminal that is there, or for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) paint: Paint,
    /// Lines are broken here; `None` leaves them whole, for files and other programs.
    pub(super) width: Option<usize>,
}

impl Style {
    pub(super) fn from_environment() -> Self {
        let size = terminal_size::terminal_size_of(stdout());
        let width = size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > NARROW);
        Self { paint: Paint::from_environment(), width }
    }
}

/// Whether verdicts are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Colours,
    Plain,
}

impl Paint {
    /// Colours are for a terminal whose user does not say `NO_COLOR`.
    fn from_environment() -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb {
            Self::Colours
        } else {
            Self::Plain
        }
    }

    fn verdict(self, verdict: Verdict) -> String {
        let word = verdict.as_str();
        let colour = match verdict {
            Verdict::Pass => 32,
            Verdict::Warn => 33,
            Verdict::Fail => 31,
            Verdict::Skip => 36,
        };
        match self {
            Self::Colours => format!("\x1b[{colour}m{word}\x1b[0m"),
            Self::Plain => word.to_owned(),
        }
    }

    fn title(self, title: &str) -> String {
        match self {
            Self::Colours => format!("\x1b[1m{title}\x1b[0m"),
            Self::Plain => title.to_owned(),
        }
    }
}

/// The names of checks have this much room; a longer one takes what it needs.
const CHECK: usize = 12;
/// Where what was found begins.
const INDENT: usize = 2 + 4 + 2 + CHECK + 2;
/// A terminal that leaves less than this many columns for words gets whole lines.
const NARROW: usize = INDENT + 20;

pub(super) fn section(section: &Section, style: Style) -> String {
    let title = format!("{} {}", section.system, section.about);
    let mut text = style.paint.title(clean(&title).trim_end());
    text.push('\n');
    for finding in &section.findings {
        push(&mut text, finding, style);
    }
    text.push('\n');
    text
}

fn push(text: &mut String, finding: &Finding, style: Style) {
    let verdict = style.paint.verdict(finding.verdict);
    let check = clean(&finding.check);
    let _ = write!(text, "  {verdict}  {check:<CHECK$}  ");
    push_words(text, &finding.found, INDENT, style.width);
    for (mark, words) in finding
        .details
        .iter()
        .map(|detail| ("- ", detail))
        .chain(finding.advice.iter().map(|advice| ("=> ", advice)))
    {
        let _ = write!(text, "{:INDENT$}{mark}", "");
        push_words(text, words, INDENT + mark.len(), style.width);
    }
}

/// Words on as many lines as they need, all of them beginning at the same column.
fn push_words(text: &mut String, words: &str, indent: usize, width: Option<usize>) {
    let mut at = indent;
    for (index, word) in clean(words).split(' ').enumerate() {
        let breaks = width.is_some_and(|width| at + 1 + word.width() > width) && at > indent;
        if breaks {
            let _ = write!(text, "\n{:indent$}", "");
            at = indent;
        } else if index > 0 {
            text.push(' ');
            at += 1;
        }
        text.push_str(word);
        at += word.width();
    }
    text.push('\n');
}

pub(super) fn summary(counts: Counts, paint: Paint) -> String {
    let Counts { pass, warn, fail, skip } = counts;
    let conclusion = match (fail, warn, skip) {
        (0, 0, 0) => "nothing stands in the way",
        (0, 0, _) => "nothing that was looked at stands in the way",
        (0, _, _) => "it can run; read the warnings",
        _ => "it cannot do all of its work: see the lines that begin with fail",
    };
    let counted = [
        (pass, Verdict::Pass),
        (warn, Verdict::Warn),
        (fail, Verdict::Fail),
        (skip, Verdict::Skip),
    ]
    .map(|(count, verdict)| format!("{count} {}", paint.verdict(verdict)));
    format!("{}: {conclusion}\n", counted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(paint: Paint, width: Option<usize>) -> Style {
        Style { paint, width }
    }

    fn sample() -> Section {
        let findings = vec![
            Finding::pass("login", "roost@vsphere.local"),
            Finding::fail("privileges", "1 is missing on folder \u{1b}[2J")
                .details(["VirtualMachine.Interact.PowerOn, for PowerOnVM_Task".to_owned()])
                .advice("give them to the user's role"),
        ];
        Section { system: "vCenter", about: "vc.example.org:443".into(), findings }
    }

    #[test]
    fn a_section_reads_without_colours() {
        let text = section(&sample(), style(Paint::Plain, None));
        assert_eq!(
            text,
            "vCenter vc.example.org:443\n\
             \x20 pass  login         roost@vsphere.local\n\
             \x20 fail  privileges    1 is missing on folder \u{fffd}[2J\n\
             \x20                     - VirtualMachine.Interact.PowerOn, for PowerOnVM_Task\n\
             \x20                     => give them to the user's role\n\n"
        );
        let colours = style(Paint::Colours, None);
        assert!(section(&sample(), colours).contains("\x1b[31mfail\x1b[0m  privileges"));
    }

    #[test]
    fn lines_are_broken_where_the_terminal_ends() {
        let text = section(&sample(), style(Paint::Plain, Some(50)));
        assert!(text.lines().all(|line| line.width() <= 57), "one word may be too long:\n{text}");
        let advice =
            "                      => give them to the user's\n                         role\n";
        assert!(text.contains(advice), "{text}");
    }

    #[test]
    fn the_last_line_counts_and_concludes() {
        let counts = Counts { pass: 3, warn: 0, fail: 1, skip: 2 };
        let line = summary(counts, Paint::Plain);
        assert!(line.starts_with("3 pass, 0 warn, 1 fail, 2 skip: it cannot"), "{line}");
        let line = summary(Counts { fail: 0, skip: 0, ..counts }, Paint::Plain);
        assert!(line.ends_with("nothing stands in the way\n"), "{line}");
    }
}
