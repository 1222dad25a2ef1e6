//! Plain aligned columns that fit the terminal.
//!
//! When there is no room, columns narrow or go, each at its turn and only as far as it takes; what a narrow column lost is given back if a later
//! turn made more room than was needed. A column without a turn is always there, whole.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::words::{clean, or_dash};

const GAP: usize = 2;

#[derive(Debug, Clone, Copy)]
enum Side {
    Left,
    Right,
}

#[derive(Debug, Clone)]
pub(crate) struct Column {
    title: String,
    side: Side,
    turns: Vec<(u8, Turn)>,
}

#[derive(Debug, Clone, Copy)]
enum Turn {
    NarrowTo(usize),
    Go,
}

pub(super) fn left(title: impl Into<String>) -> Column {
    Column { title: title.into(), side: Side::Left, turns: Vec::new() }
}

/// For numbers.
pub(super) fn right(title: impl Into<String>) -> Column {
    Column { title: title.into(), side: Side::Right, turns: Vec::new() }
}

impl Column {
    /// Is cut, down to a width at which something can still be read. Lower turns come first.
    pub(super) fn narrows(mut self, turn: u8, least: usize) -> Self {
        self.turns.push((turn, Turn::NarrowTo(least.max(self.title.len()))));
        self
    }

    pub(super) fn goes(mut self, turn: u8) -> Self {
        self.turns.push((turn, Turn::Go));
        self
    }

    /// As it is typed on a command line.
    pub(super) fn name(&self) -> String {
        self.title.to_lowercase().replace(' ', "-")
    }
}

/// What stands in a column, and where that puts its row when rows are sorted by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    key: Key,
}

/// Numbers by their size, words without regard to capitals, and what is not there at the end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Number(u64),
    Word(String),
    Nothing,
}

impl Cell {
    /// A number in words, such as `2m5s`.
    pub(super) fn number(number: Option<u64>, words: impl Fn(u64) -> String) -> Self {
        match number {
            Some(number) => Self { text: words(number), key: Key::Number(number) },
            None => Self::from(None::<&str>),
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::number(Some(number), |number| number.to_string())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::from(Some(text))
    }
}

/// What is not there is a dash, so that every column has something in it.
impl From<Option<&str>> for Cell {
    fn from(text: Option<&str>) -> Self {
        match text.filter(|text| !text.is_empty()) {
            Some(text) => Self { text: text.to_owned(), key: Key::Word(text.to_lowercase()) },
            None => Self { text: or_dash(None), key: Key::Nothing },
        }
    }
}

#[derive(Debug)]
pub(super) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// As many cells as there are columns.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut cells: Vec<_> = cells.into_iter().map(|cell| clean(&cell).into_owned()).collect();
        cells.resize(self.columns.len(), String::new());
        self.rows.push(cells);
    }

    /// The titles and the rows; `None` is as wide as it takes.
    pub(super) fn render(&self, width: Option<usize>) -> Vec<String> {
        let widths = self.widths(width.unwrap_or(usize::MAX));
        let titles = self.columns.iter().map(|column| column.title.clone()).collect();
        let lines = std::iter::once(&titles).chain(&self.rows);
        lines.map(|cells: &Vec<String>| self.line(cells, &widths)).collect()
    }

    fn line(&self, cells: &[String], widths: &[Option<usize>]) -> String {
        let mut line = String::new();
        for ((column, cell), width) in self.columns.iter().zip(cells).zip(widths) {
            let Some(width) = *width else { continue };
            if !line.is_empty() {
                line.push_str(&" ".repeat(GAP));
            }
            let cell = cut(cell, width);
            let space = " ".repeat(width - cell.width());
            match column.side {
                Side::Left => line.extend([cell, space]),
                Side::Right => line.extend([space, cell]),
            }
        }
        line.trim_end().to_owned()
    }

    /// `None` for a column that is left out.
    fn widths(&self, room: usize) -> Vec<Option<usize>> {
        let whole = |(at, column): (usize, &Column)| {
            let cells = self.rows.iter().map(|row| row[at].width());
            cells.chain([column.title.width()]).max().unwrap_or_default()
        };
        let whole: Vec<usize> = self.columns.iter().enumerate().map(whole).collect();
        let mut widths: Vec<Option<usize>> = whole.iter().copied().map(Some).collect();
        let columns = self.columns.iter().enumerate();
        let mut turns: Vec<_> = columns
            .flat_map(|(at, column)| column.turns.iter().map(move |turn| (*turn, at)))
            .collect();
        turns.sort_by_key(|((number, _), _)| *number);
        for ((_, turn), at) in &turns {
            let beyond = total(&widths).saturating_sub(room);
            widths[*at] = widths[*at].filter(|_| beyond == 0 || !matches!(turn, Turn::Go));
            if let (Some(width), Turn::NarrowTo(least)) = (&mut widths[*at], turn) {
                *width = (*width).min(width.saturating_sub(beyond).max(*least));
            }
        }
        // The most important ones, which narrowed last, get back first.
        for (_, at) in turns.iter().rev() {
            let left = room.saturating_sub(total(&widths));
            if let Some(width) = &mut widths[*at] {
                *width = whole[*at].min(width.saturating_add(left));
            }
        }
        widths
    }
}

fn total(widths: &[Option<usize>]) -> usize {
    let shown = widths.iter().flatten();
    shown.map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
}

/// As much of the text as there is room for; what is cut ends in an ellipsis.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut cut, mut used) = (String::new(), 0);
    for c in text.chars() {
        used += c.width().unwrap_or_default();
        if used + 1 > width {
            break;
        }
        cut.push(c);
    }
    if width > 0 {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let columns = [
            left("NAME"),
            right("NEED").goes(3),
            left("MODEL").narrows(2, 6).goes(4),
            left("REASON").narrows(1, 10),
        ];
        let mut table = Table::new(columns);
        table.row(["w-1", "8", "debian12", "all 10 workers are there already"].map(Into::into));
        table.row(["w-long-name", "16", "x", ""].map(Into::into));
        table
    }

    #[test]
    fn with_room_everything_is_there() {
        assert_eq!(
            table().render(None),
            [
                "NAME         NEED  MODEL     REASON",
                "w-1             8  debian12  all 10 workers are there already",
                "w-long-name    16  x",
            ]
        );
    }

    #[test]
    fn columns_give_way_in_their_turn_and_only_as_far_as_it_takes() {
        let first = |width| table().render(Some(width)).swap_remove(1);
        assert_eq!(first(61), "w-1             8  debian12  all 10 workers are there already");
        assert_eq!(first(50), "w-1             8  debian12  all 10 workers are t…");
        assert_eq!(first(39), "w-1             8  debian12  all 10 wo…");
        assert_eq!(first(37), "w-1             8  debia…  all 10 wo…");
        assert_eq!(first(36), "w-1          debian12  all 10 worke…", "what one lost, others get");
        assert_eq!(first(28), "w-1          all 10 workers…");
        assert_eq!(first(23), "w-1          all 10 wo…");
        assert_eq!(first(5), "w-1          all 10 wo…", "the rest is always there");
        for width in 23..70 {
            let widest = table().render(Some(width)).iter().map(|line| line.width()).max();
            assert!(widest <= Some(width), "{width}");
        }
    }

    #[test]
    fn hostile_and_wide_names_keep_the_columns_straight() {
        let mut table = Table::new([left("NAME"), left("KIND")]);
        for name in ["名前", "a\nb", "\u{202e}evil", "plain"] {
            table.row([name.into(), "vm".into()]);
        }
        let lines = table.render(None);
        let widths: Vec<_> = lines[1..].iter().map(|line| line.width()).collect();
        assert_eq!(widths, [9; 4], "{lines:?}");
        assert_eq!(cut("名前が長い", 6), "名前…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 1), "…");
        assert_eq!(cut("abcd", 0), "");
    }
}
