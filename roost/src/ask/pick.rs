//! Which rows of a table are printed, and in which order.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::str::FromStr;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::args::Picking;
use super::client::AskError;
use super::table::{Cell, Column, Key, Table};

/// Something of which a service has many: a row of a table.
pub(crate) trait Row<const N: usize>: DeserializeOwned {
    /// Said where there are none.
    const NONE: &'static str;
    /// Whether a cell says how long ago something was.
    const IS_TIMED: bool;

    /// Whether the usual order has what is new at the end.
    const IS_LATEST_LAST: bool = false;

    fn columns() -> [Column; N];
    fn cells(&self, now: Timestamp) -> [Cell; N];

    /// The order in which people are shown them unless they say otherwise.
    fn usual(&self, other: &Self) -> Ordering;
}

/// Rows as the service gave them and as we read them: what a newer one says beyond what we know is not lost in JSON.
pub(super) fn read<T: DeserializeOwned>(answer: Value) -> Result<Vec<(T, Value)>, AskError> {
    let unreadable = |source| AskError::Unreadable { source };
    let rows: Vec<Value> = serde_json::from_value(answer).map_err(unreadable)?;
    let both = |row: Value| Ok((T::deserialize(&row).map_err(unreadable)?, row));
    rows.into_iter().map(both).collect()
}

/// A column to sort by, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SortBy {
    column: String,
    is_descending: bool,
}

impl FromStr for SortBy {
    /// Which columns there are is known to the table alone; see [`Picking::check`].
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (column, is_descending) = match text.rsplit_once(':') {
            Some((column, "desc")) => (column, true),
            Some((column, "asc")) => (column, false),
            _ => (text, false),
        };
        Ok(Self { column: column.trim().to_lowercase().replace(' ', "-"), is_descending })
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no column {asked:?} to sort by: there are {}", known.join(", "))]
pub(super) struct NoSuchColumn {
    asked: String,
    known: Vec<String>,
}

impl Picking {
    /// Before anybody is asked for anything.
    pub(super) fn check<T: Row<N>, const N: usize>(&self) -> Result<(), NoSuchColumn> {
        let Some(sort) = &self.sort else { return Ok(()) };
        let known = T::columns().map(|column| column.name());
        if known.contains(&sort.column) {
            return Ok(());
        }
        Err(NoSuchColumn { asked: sort.column.clone(), known: known.to_vec() })
    }

    /// Whether it takes the cells of a row to say where it goes.
    pub(super) fn looks_at_cells(&self) -> bool {
        self.sort.is_some() || self.filter.is_some()
    }

    pub(super) fn pick<T: Row<N>, const N: usize>(
        &self,
        rows: Vec<(T, Value)>,
        now: Timestamp,
    ) -> Vec<(T, Value)> {
        let words = self.filter.as_deref().unwrap_or_default().to_lowercase();
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut rows: Vec<_> = rows
            .into_iter()
            .map(|(row, said)| (row.cells(now), row, said))
            .filter(|(cells, ..)| has_all(cells, &words))
            .collect();
        if let Some((sort, at)) = self.place::<T, N>() {
            rows.sort_by(|(a, ..), (b, ..)| sort.order(a[at].key(), b[at].key()));
        }
        rows.into_iter().map(|(_, row, said)| (row, said)).collect()
    }

    fn place<T: Row<N>, const N: usize>(&self) -> Option<(&SortBy, usize)> {
        let sort = self.sort.as_ref()?;
        let at = T::columns().iter().position(|column| column.name() == sort.column)?;
        Some((sort, at))
    }
}

impl SortBy {
    /// What is not there comes last either way.
    fn order(&self, a: &Key, b: &Key) -> Ordering {
        let ordered = match (a, b) {
            (Key::Nothing, _) | (_, Key::Nothing) => return a.cmp(b),
            _ => a.cmp(b),
        };
        if self.is_descending { ordered.reverse() } else { ordered }
    }
}

fn has_all(cells: &[Cell], words: &[&str]) -> bool {
    words.iter().all(|word| cells.iter().any(|cell| cell.text().to_lowercase().contains(word)))
}

/// The table of these rows.
pub(super) fn table<'a, T: Row<N> + 'a, const N: usize>(
    rows: impl IntoIterator<Item = &'a T>,
    now: Timestamp,
    width: Option<usize>,
) -> Vec<String> {
    let mut table = Table::new(T::columns());
    let mut rows = rows.into_iter().peekable();
    if rows.peek().is_none() {
        return vec![T::NONE.to_owned()];
    }
    for row in rows {
        table.row(row.cells(now).map(Cell::into_text));
    }
    table.render(width)
}
