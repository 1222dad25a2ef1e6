//! Words that matter, in the colours of the page: on a terminal only, and not if it says that it has none.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, stdout};

use roost_views::{Mood, RequestState, Verdict, VmKind};

use super::words;

/// Lines for people; with colours where people see them.
pub(super) fn page(lines: &[String]) -> String {
    let plain = words::page(lines);
    if !is_wanted() {
        return plain;
    }
    plain.lines().map(|line| painted(line) + "\n").collect()
}

/// The convention of <https://no-color.org>.
fn is_wanted() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

/// Cells are at least two spaces apart; one that is a word of a known set gets its colour.
fn painted(line: &str) -> String {
    let is_title = line.len() > 2 && !line.contains(|letter: char| letter.is_lowercase());
    if is_title && line.contains(|letter: char| letter.is_uppercase()) {
        return format!("\u{1b}[1m{line}\u{1b}[0m");
    }
    let mut painted = String::new();
    for (at, cell) in line.split("  ").enumerate() {
        if at > 0 {
            painted.push_str("  ");
        }
        let word = cell.trim();
        match code(word) {
            Some(code) => {
                let (before, after) = cell.split_at(cell.find(word).unwrap_or(0));
                painted.push_str(before);
                let _ = write!(painted, "\u{1b}[{code}m{word}\u{1b}[0m");
                painted.push_str(&after[word.len()..]);
            }
            None => painted.push_str(cell),
        }
    }
    painted
}

fn code(word: &str) -> Option<&'static str> {
    let state =
        RequestState::ALL.into_iter().find(|it| it.as_str() == word).map(RequestState::mood);
    let verdict = || Verdict::parse(word).map(Verdict::mood);
    let kind = || VmKind::ALL.into_iter().find(|it| it.as_str() == word).map(VmKind::mood);
    let shouted = || {
        let first = word.split([':', ',', ' ']).next().unwrap_or_default();
        let is_loud = first.len() > 1 && first.chars().all(|letter| letter.is_ascii_uppercase());
        (is_loud && ["NOT", "NO", "FROZEN", "HELD", "OBSERVES", "NEEDS"].contains(&first))
            .then_some(Mood::Bad)
    };
    match state.or_else(verdict).or_else(kind).or_else(shouted)? {
        Mood::Good => Some("32"),
        Mood::Busy => Some("36"),
        Mood::Waiting => Some("33"),
        Mood::Bad => Some("31"),
        Mood::Quiet => Some("2"),
        Mood::Plain => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_their_colour_and_the_rest_stays_as_it_is() {
        let line = "17  waiting  12s  deferred: all workers are busy";
        let wanted = "17  \u{1b}[33mwaiting\u{1b}[0m  12s  deferred: all workers are busy";
        assert_eq!(painted(line), wanted);
        assert_eq!(painted("JOB  STATE"), "\u{1b}[1mJOB  STATE\u{1b}[0m");
        let frozen = painted("deletions   FROZEN until `roost thaw`");
        assert!(frozen.contains("\u{1b}[31mFROZEN until"), "{frozen}");
        let stripped = painted(line).replace("\u{1b}[33m", "").replace("\u{1b}[0m", "");
        assert_eq!(stripped, line);
    }
}
