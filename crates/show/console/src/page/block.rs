use std::borrow::Cow;
use std::fmt;

use askama::filters::HtmlSafe;

/// A part of a page that is shown and patched by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// The same on every rendering of the page; also where the style puts it.
    pub(crate) id: &'static str,
    pub(crate) content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// Replaced as a whole. Empty: not shown at all.
    Whole(String),
    Table(Table),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// What stands above the table. Never changes while a page is open.
    pub(crate) above: String,
    /// The heading cells. Never change either.
    pub(crate) columns: Vec<Cow<'static, str>>,
    pub(crate) rows: Vec<Row>,
    /// How much of it is shown, and the way to the rest.
    pub(crate) below: String,
}

/// Headings that are always the same.
pub(crate) fn fixed(columns: &[&'static str]) -> Vec<Cow<'static, str>> {
    columns.iter().copied().map(Cow::Borrowed).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// Tells it from every other row of the table.
    pub(crate) key: String,
    /// Its cells.
    pub(crate) html: String,
}

impl Block {
    pub(crate) fn whole(id: &'static str, html: String) -> Self {
        Self { id, content: Content::Whole(html) }
    }

    pub(crate) fn table(id: &'static str, table: Table) -> Self {
        Self { id, content: Content::Table(table) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.content, Content::Whole(html) if html.is_empty())
    }
}

/// Its cells were escaped as they were rendered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Html<'a>(pub(crate) &'a str);

impl fmt::Display for Html<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl HtmlSafe for Html<'_> {}
