use std::fmt;

use super::kind::Kind;
use super::name::unescape;
use super::tree::Found;
use super::wanted::PathProblem;
use crate::{CallError, Remedy};

/// Why a search did not end with one object.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error("no {kind} {} {within}; {candidates}", Quoted(wanted))]
    Absent { kind: Kind, wanted: String, within: Within, candidates: Candidates },
    #[error("{} {within} means more than one {kind}; {candidates}", Quoted(wanted))]
    Ambiguous { kind: Kind, wanted: String, within: Within, candidates: Candidates },
    #[error("{path} cannot serve as {kind}: {why}")]
    Unusable { kind: Kind, path: String, why: &'static str },
    #[error("{wanted:?} names no {kind}: {problem}")]
    Malformed { kind: Kind, wanted: String, problem: PathProblem },
    #[error("looking for {kind} {}", Quoted(wanted))]
    Read { kind: Kind, wanted: String, source: CallError },
}

impl FindError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Absent { .. }
            | Self::Ambiguous { .. }
            | Self::Unusable { .. }
            | Self::Malformed { .. } => Remedy::GiveUp,
            Self::Read { source, .. } => source.remedy(),
        }
    }
}

/// Which part of the inventory was searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Within {
    Server,
    Datacenter(String),
}

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => f.write_str("in the inventory"),
            Self::Datacenter(path) => write!(f, "in datacenter {path}"),
        }
    }
}

/// What was there instead: the nearest or the first few, and how many more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    pub shown: Vec<Found>,
    pub more: usize,
    by: Order,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Path,
    Nearness,
}

/// Enough to see what is there, few enough for one line of a log.
const SHOWN: usize = 5;

impl Candidates {
    /// In the order of paths.
    pub(crate) fn listed(all: Vec<Found>) -> Self {
        Self::bounded(all, Order::Path)
    }

    /// Those first whose names are nearest to the last part of what was written.
    pub(crate) fn near(wanted: &str, mut all: Vec<Found>) -> Self {
        let written = wanted.trim_end_matches('/').rsplit('/').next().unwrap_or(wanted);
        if written.is_empty() {
            return Self::listed(all);
        }
        let written = unescape(written).to_lowercase();
        all.sort_by_cached_key(|found| {
            (distance(&written, &unescape(&found.name).to_lowercase()), found.path.clone())
        });
        Self::bounded(all, Order::Nearness)
    }

    fn bounded(mut all: Vec<Found>, by: Order) -> Self {
        let more = all.len().saturating_sub(SHOWN);
        all.truncate(SHOWN);
        Self { shown: all, more, by }
    }
}

impl fmt::Display for Candidates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.shown.is_empty() {
            return f.write_str("there is none at all");
        }
        f.write_str(match self.by {
            Order::Path => "there are ",
            Order::Nearness if self.more > 0 => "nearest are ",
            Order::Nearness => "there is ",
        })?;
        for (index, found) in self.shown.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(f, "{separator}{}", found.path)?;
        }
        if self.more > 0 {
            write!(f, " and {} more", self.more)?;
        }
        Ok(())
    }
}

/// An empty text is the default that was asked for, not a name.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("(the default)") } else { write!(f, "{:?}", self.0) }
    }
}

/// How many characters must be changed, added or dropped to make one of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use roost_vim_wire::MoRef;

    fn vms(names: &[&str]) -> Vec<Found> {
        names
            .iter()
            .map(|name| Found {
                path: format!("/DC0/vm/{name}"),
                name: (*name).into(),
                moref: MoRef::vm(*name),
            })
            .collect()
    }

    fn absent(wanted: &str, candidates: Candidates) -> String {
        let within = Within::Datacenter("/DC0".into());
        FindError::Absent { kind: Kind::Template, wanted: wanted.into(), within, candidates }
            .to_string()
    }

    #[test]
    fn distances_count_single_edits() {
        for (a, b, want) in [
            ("", "abc", 3),
            ("debian12", "debian12", 0),
            ("debain12", "debian12", 2),
            ("ab", "b", 1),
        ] {
            assert_eq!(distance(a, b), want, "{a} {b}");
        }
    }

    #[test]
    fn an_absent_name_is_told_with_the_nearest_ones_first() {
        let names =
            ["alpine", "Debian12", "fedora", "rocky9", "suse", "ubuntu22", "ubuntu24", "windows"];
        let near = Candidates::near("templates/debain12", vms(&names));
        assert_eq!(near.shown[0].name, "Debian12");
        let line = absent("templates/debain12", near);
        assert!(line.starts_with(
            r#"no template "templates/debain12" in datacenter /DC0; nearest are /DC0/vm/Debian12, "#
        ));
        assert!(line.ends_with(" and 3 more"), "{line}");
    }

    #[test]
    fn nothing_at_all_is_said_plainly() {
        assert_eq!(
            absent("x", Candidates::near("x", Vec::new())),
            r#"no template "x" in datacenter /DC0; there is none at all"#
        );
    }

    #[test]
    fn an_ambiguous_default_lists_what_there_is() {
        let candidates = Candidates::listed(vms(&["a", "b"]));
        let within = Within::Datacenter("/DC0".into());
        let error = FindError::Ambiguous {
            kind: Kind::VirtualMachine,
            wanted: String::new(),
            within,
            candidates,
        };
        assert_eq!(
            error.to_string(),
            "(the default) in datacenter /DC0 means more than one virtual machine; there are /DC0/vm/a, /DC0/vm/b"
        );
    }
}
