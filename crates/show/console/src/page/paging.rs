//! Lists are shown in pages, so that a page is quick however much there is.

use std::fmt::Write as _;
use std::ops::Range;

use super::foreign::part;

/// Some screens. A page of a list then has some tens of kilobytes.
pub(crate) const PER_PAGE: usize = 100;

/// Where in a list a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// From 1.
    page: usize,
    all: usize,
}

impl Window {
    /// Whatever was asked for, it is a page that there is.
    pub(crate) fn new(asked: &str, all: usize) -> Self {
        let last = all.div_ceil(PER_PAGE).max(1);
        Self { page: asked.parse().unwrap_or(1).clamp(1, last), all }
    }

    pub(crate) fn range(self) -> Range<usize> {
        let from = (self.page - 1) * PER_PAGE;
        from..(from + PER_PAGE).min(self.all)
    }

    /// `1 to 100 of 512`, with the way to the other pages.
    pub(crate) fn below(self, path: &str, others: &[(&str, &str)], what: &str) -> String {
        let range = self.range();
        if self.all == 0 {
            return format!("no {what}");
        }
        if self.all <= PER_PAGE {
            return format!("{} {what}", self.all);
        }
        let mut html = format!("{} to {} of {} {what}", range.start + 1, range.end, self.all);
        if self.page > 1 {
            let _ = write!(
                html,
                " <a href=\"{}\" rel=\"prev\">earlier in the list</a>",
                address(path, others, self.page - 1)
            );
        }
        if range.end < self.all {
            let _ = write!(
                html,
                " <a href=\"{}\" rel=\"next\">further down the list</a>",
                address(path, others, self.page + 1)
            );
        }
        html
    }
}

fn address(path: &str, others: &[(&str, &str)], page: usize) -> String {
    let mut address = format!("{path}?page={page}");
    for (name, value) in others.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = write!(address, "&amp;{name}={}", part(value));
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_on_one_page() {
        for all in [0_usize, 1, 99, 100, 101, 512] {
            let pages = all.div_ceil(PER_PAGE).max(1);
            let items: Vec<usize> =
                (1..=pages).flat_map(|page| Window::new(&page.to_string(), all).range()).collect();
            assert_eq!(items, (0..all).collect::<Vec<_>>(), "{all}");
        }
    }

    #[test]
    fn a_page_that_is_not_there_is_one_that_is() {
        for asked in ["", "0", "-3", "9999999999999999999999", "99", "x"] {
            assert!(Window::new(asked, 250).range().start < 250, "{asked}");
        }
    }

    #[test]
    fn the_way_to_the_rest_keeps_the_filter() {
        let below = Window::new("2", 250).below("/jobs", &[("q", "a&b"), ("state", "")], "jobs");
        assert!(below.starts_with("101 to 200 of 250 jobs"), "{below}");
        assert!(
            below.contains("/jobs?page=1&amp;q=a%26b\"") && below.contains("page=3"),
            "{below}"
        );
    }
}
