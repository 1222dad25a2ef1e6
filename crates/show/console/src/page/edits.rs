//! From a text that somebody has to the one that is: as little as possible.
//!
//! Texts are compared line by line, and what differs of neighbouring lines is cut down to the letters that do. Whoever renders a text that is to be
//! followed puts what changes by itself on a line of its own.

use std::ops::Range;

use serde::Serialize;

/// Beyond so many comparisons the lines between the first and the last that differ are one change: that is quick, and still right.
const MOST_COMPARED: usize = 400_000;

/// A text for somebody who may have had another one in its place.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Text<'a> {
    Whole(&'a str),
    /// In the order of the text.
    Edits(Vec<Edit<'a>>),
}

/// Where in the old text, how much of it goes, and what comes instead. Counted in UTF-16 units, as scripts count.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Edit<'a>(usize, usize, &'a str);

impl<'a> Text<'a> {
    pub(crate) fn between(old: &str, new: &'a str) -> Self {
        let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
            (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        let (old_at, new_at) = (starts(&old_lines), starts(&new_lines));
        let mut edits = Vec::new();
        for change in changes(&old_lines, &new_lines) {
            let before = &old[old_at[change.old.start]..old_at[change.old.end]];
            let after = &new[new_at[change.new.start]..new_at[change.new.end]];
            let (head, tail) = common_ends(before, after);
            let at = old_at[change.old.start] + head;
            edits.push(Edit(
                units(&old[..at]),
                units(&before[head..before.len() - tail]),
                &after[head..after.len() - tail],
            ));
        }
        // A dozen letters for the places of each.
        let cost: usize = edits.iter().map(|Edit(.., with)| with.len() + 12).sum();
        if cost < new.len() { Self::Edits(edits) } else { Self::Whole(new) }
    }
}

/// Where two lists differ.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

/// The differences between two lists, in order, around what they have in common in the same order.
pub(crate) fn changes<T: PartialEq>(old: &[T], new: &[T]) -> Vec<Change> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old_rest[..old_rest.len() - tail], &new_rest[..new_rest.len() - tail]);
    if old.is_empty() && new.is_empty() {
        return Vec::new();
    }
    let found = if old.len().saturating_mul(new.len()) > MOST_COMPARED {
        vec![Change { old: 0..old.len(), new: 0..new.len() }]
    } else {
        between(old, new)
    };
    let moved = |range: Range<usize>| range.start + head..range.end + head;
    found.into_iter().map(|it| Change { old: moved(it.old), new: moved(it.new) }).collect()
}

/// By the longest common subsequence.
fn between<T: PartialEq>(old: &[T], new: &[T]) -> Vec<Change> {
    let width = new.len() + 1;
    // How much the rests from here on have in common.
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            common[i * width + j] = if a == b {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut changes, mut i, mut j) = (Vec::new(), 0, 0);
    while i < old.len() || j < new.len() {
        let (from_i, from_j) = (i, j);
        while i < old.len() && j < new.len() && old[i] != new[j] {
            if common[(i + 1) * width + j] >= common[i * width + j + 1] { i += 1 } else { j += 1 }
        }
        if i == old.len() || j == new.len() {
            (i, j) = (old.len(), new.len());
        }
        if (from_i, from_j) != (i, j) {
            changes.push(Change { old: from_i..i, new: from_j..j });
        }
        while i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        }
    }
    changes
}

/// Where each line starts, and where the last one ends.
fn starts(lines: &[&str]) -> Vec<usize> {
    let mut at = 0;
    let ends = lines.iter().map(|line| {
        at += line.len();
        at
    });
    [0].into_iter().chain(ends).collect()
}

/// How many bytes two texts share at their beginning and, of the rest, at their end. Never within a letter.
fn common_ends(a: &str, b: &str) -> (usize, usize) {
    let same = a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b);
    let head = same.map_or(a.len().min(b.len()), |((at, _), _)| at);
    let (a, b) = (&a[head..], &b[head..]);
    let letters = a.chars().rev().zip(b.chars().rev()).take_while(|(a, b)| a == b);
    (head, letters.map(|(letter, _)| letter.len_utf8()).sum())
}

fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As the script of the page does it.
    fn apply(old: &str, text: &Text<'_>) -> String {
        let edits = match text {
            Text::Whole(new) => return (*new).to_owned(),
            Text::Edits(edits) => edits,
        };
        let old: Vec<u16> = old.encode_utf16().collect();
        let (mut new, mut at) = (Vec::new(), 0);
        for Edit(from, drop, with) in edits {
            new.extend_from_slice(&old[at..*from]);
            new.extend(with.encode_utf16());
            at = from + drop;
        }
        new.extend_from_slice(&old[at..]);
        String::from_utf16(&new).unwrap()
    }

    fn text() -> impl Strategy<Value = String> {
        proptest::collection::vec("[ab😀é]{0,3}\n?", 0..12).prop_map(|lines| lines.concat())
    }

    proptest! {
        #[test]
        fn edits_lead_from_any_text_to_any_other(old in text(), new in text()) {
            prop_assert_eq!(apply(&old, &Text::between(&old, &new)), new);
        }

        #[test]
        fn what_is_common_is_in_no_change(
            old in proptest::collection::vec(0_u8..4, 0..12),
            new in proptest::collection::vec(0_u8..4, 0..12),
        ) {
            let (mut i, mut j) = (0, 0);
            for Change { old: a, new: b } in changes(&old, &new) {
                prop_assert_eq!(&old[i..a.start], &new[j..b.start]);
                (i, j) = (a.end, b.end);
            }
            prop_assert_eq!(&old[i..], &new[j..]);
        }
    }

    #[test]
    fn a_number_that_changed_is_sent_as_that_number() {
        let page = |waiting: u32, ready: u32| {
            format!(
                "<ul>\n<li><b>{waiting}</b> waiting</li>\n<li>w-1</li>\n<li><b>{ready}</b> ready</li>\n</ul>"
            )
        };
        let (old, new) = (page(7, 20), page(8, 21));
        let Text::Edits(edits) = Text::between(&old, &new) else { panic!("all of it") };
        let sent: Vec<_> = edits.iter().map(|Edit(_, drop, with)| (*drop, *with)).collect();
        assert_eq!(sent, [(1, "8"), (1, "1")]);
    }

    #[test]
    fn what_has_nothing_in_common_is_sent_as_it_is() {
        assert_eq!(Text::between("", "new"), Text::Whole("new"));
        assert_eq!(Text::between("old\nold\n", "new"), Text::Whole("new"));
    }

    #[test]
    fn a_very_long_text_is_still_one_change() {
        let long = |first: &str| format!("{first}\n{}{first}\n", "x\ny\n".repeat(2_000));
        let (old, new) = (long("a"), long("b"));
        assert_eq!(apply(&old, &Text::between(&old, &new)), new);
    }
}
