//! Which rows of a table are printed, and in which order.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::str::FromStr;

use jiff::Timestamp;
use roost_views::{Fact, Facts};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::args::Picking;
use super::client::AskError;
use super::table::{Cell, Column, Key, Table, left};

/// Something of which a service has many: a row of a table.
pub(crate) trait Row: DeserializeOwned {
    /// Said where there are none.
    const NONE: &'static str;

    /// Whether the usual order has what is new at the end.
    const IS_LATEST_LAST: bool = false;

    /// What a door knows beyond the rest has columns of its own, which the rows name.
    fn columns(rows: &[&Self]) -> Vec<Column>;
    fn cells(&self, now: Timestamp) -> Vec<Cell>;

    /// What other commands call it by.
    fn name(&self) -> String;

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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no column {asked:?} to sort by: there are {}", known.join(", "))]
pub(crate) struct NoSuchColumn {
    asked: String,
    known: Vec<String>,
}

impl Picking {
    pub(super) fn pick<T: Row>(
        &self,
        rows: Vec<(T, Value)>,
        now: Timestamp,
    ) -> Result<Vec<(T, Value)>, NoSuchColumn> {
        let place = self.place(&rows.iter().map(|(row, _)| row).collect::<Vec<_>>())?;
        let words = self.filter.as_deref().unwrap_or_default().to_lowercase();
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut rows: Vec<_> = rows
            .into_iter()
            .map(|(row, said)| (row.cells(now), row, said))
            .filter(|(cells, ..)| has_all(cells, &words))
            .collect();
        if let Some((sort, at)) = place {
            rows.sort_by(|(a, ..), (b, ..)| sort.order(a[at].key(), b[at].key()));
        }
        Ok(rows.into_iter().map(|(_, row, said)| (row, said)).collect())
    }

    fn place<T: Row>(&self, rows: &[&T]) -> Result<Option<(&SortBy, usize)>, NoSuchColumn> {
        let Some(sort) = self.sort.as_ref() else { return Ok(None) };
        let known: Vec<String> = T::columns(rows).iter().map(Column::name).collect();
        match known.iter().position(|name| *name == sort.column) {
            Some(at) => Ok(Some((sort, at))),
            // Without a row nobody knows what a door's columns are.
            None if rows.is_empty() => Ok(None),
            None => Err(NoSuchColumn { asked: sort.column.clone(), known }),
        }
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
pub(super) fn table<'a, T: Row + 'a>(
    rows: impl IntoIterator<Item = &'a T>,
    now: Timestamp,
    width: Option<usize>,
) -> Vec<String> {
    let rows: Vec<&T> = rows.into_iter().collect();
    if rows.is_empty() {
        return vec![T::NONE.to_owned()];
    }
    let mut table = Table::new(T::columns(&rows));
    for row in rows {
        table.row(row.cells(now).into_iter().map(Cell::into_text));
    }
    table.render(width)
}

/// The columns of what the first row's door lists, between what all have. They narrow at `turn` and go soon after, the last of them first.
pub(super) fn own_columns(facts: Option<&Facts>, turn: u8) -> Vec<Column> {
    let own: Vec<&Fact> = facts.into_iter().flat_map(Facts::columns).collect();
    let go =
        (1..=own.len()).rev().map(|place| turn.saturating_add(u8::try_from(place).unwrap_or(9)));
    let own = own.into_iter().zip(go);
    own.map(|(fact, go)| left(fact.label.to_uppercase()).narrows(turn, 8).goes(go)).collect()
}

pub(super) fn own_cells(facts: &Facts) -> impl Iterator<Item = Cell> {
    facts.columns().map(|fact| fact.value.as_deref().into())
}
