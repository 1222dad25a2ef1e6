//! Lists in the order of a column.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write as _;

use super::foreign::{part, plain};

/// What a row is sorted by: numbers by their size, words without regard to capitals, and what is not there at the end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Number(i64),
    Word(String),
    Nothing,
}

impl Key {
    pub(super) fn number(number: Option<i64>) -> Self {
        number.map_or(Self::Nothing, Self::Number)
    }

    pub(super) fn word(text: Option<&str>) -> Self {
        text.map_or(Self::Nothing, |text| Self::Word(text.to_lowercase()))
    }
}

/// Which column, and which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sorting<'a> {
    column: &'a str,
    is_descending: bool,
}

impl<'a> Sorting<'a> {
    /// As it stands in the address: `waited:desc`. `None`: the usual order.
    pub(super) fn asked(text: &'a str) -> Option<Self> {
        let (column, is_descending) = match text.rsplit_once(':') {
            Some((column, "desc")) => (column, true),
            _ => (text, false),
        };
        (!column.is_empty()).then_some(Self { column, is_descending })
    }

    /// Where the column is. One that is not there sorts nothing.
    pub(super) fn place(&self, columns: &[Cow<'static, str>]) -> Option<usize> {
        columns.iter().position(|column| slug(column) == self.column)
    }

    pub(super) fn order(&self, a: &Key, b: &Key) -> Ordering {
        let ordered = a.cmp(b);
        if *a == Key::Nothing || *b == Key::Nothing || !self.is_descending {
            return ordered;
        }
        ordered.reverse()
    }
}

/// A column as it stands in an address.
fn slug(column: &str) -> String {
    column.to_lowercase().replace(' ', "-")
}

/// The heading cells as links: once for one way, again for the other. HTML.
pub(super) fn headings(
    columns: &[Cow<'static, str>],
    path: &str,
    others: &[(&str, &str)],
    now: &str,
) -> Vec<Cow<'static, str>> {
    let sorting = Sorting::asked(now);
    let heading = |column: &Cow<'static, str>| {
        let slug = slug(column);
        let (is_here, is_descending) =
            sorting.map_or((false, false), |it| (it.column == slug, it.is_descending));
        let next = if is_here && !is_descending { format!("{slug}:desc") } else { slug };
        let mut href = format!("{path}?sort={}", part(&next));
        for (name, value) in others.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = write!(href, "&amp;{name}={}", part(value));
        }
        let sign = match (is_here, is_descending) {
            (false, _) => "",
            (true, false) => " \u{2191}",
            (true, true) => " \u{2193}",
        };
        Cow::Owned(format!("<a class=\"sort\" href=\"{href}\">{}{sign}</a>", plain(column)))
    };
    columns.iter().map(heading).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_last_either_way() {
        let mut keys = [Key::Nothing, Key::Number(2), Key::Number(1)];
        let up = Sorting::asked("waited").unwrap();
        keys.sort_by(|a, b| up.order(a, b));
        assert_eq!(keys, [Key::Number(1), Key::Number(2), Key::Nothing]);
        let down = Sorting::asked("waited:desc").unwrap();
        keys.sort_by(|a, b| down.order(a, b));
        assert_eq!(keys, [Key::Number(2), Key::Number(1), Key::Nothing]);
        assert_eq!(Sorting::asked(""), None);
    }

    #[test]
    fn a_heading_turns_the_order_round_and_keeps_the_filter() {
        let columns = ["Latest decision".into()];
        let once = headings(&columns, "/jobs", &[("q", "a&b"), ("state", "")], "");
        let wanted = "href=\"/jobs?sort=latest-decision&amp;q=a%26b\"";
        assert!(once[0].contains(wanted), "{once:?}");
        let again = headings(&columns, "/jobs", &[], "latest-decision");
        assert!(again[0].contains("sort=latest-decision%3Adesc"), "{again:?}");
        assert!(up_to_down(&again[0]));
    }

    fn up_to_down(heading: &str) -> bool {
        heading.contains('\u{2191}')
    }
}
