//! What the person who looks has chosen to see. Changed by [keys](super::keys) alone.

use super::entry::Entry;
use super::list::{List, Mark};
use super::question::Question;
use super::{Look, Opened, Said};

#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    pub(super) list: List,
    /// One for each list.
    pub(super) marks: [Option<Mark>; 3],
    /// The list has the whole screen.
    pub(super) is_wide: bool,
    pub(super) filter: String,
    pub(super) mode: Mode,
    /// What was opened, the last one on top.
    pub(super) opened: Vec<Opened>,
    /// How many lines of what is opened are above the screen.
    pub(super) scroll: usize,
    /// How much there is to scroll, as of the last frame.
    pub(super) extent: Extent,
    /// Stays until the next key.
    pub(super) notice: Option<Said>,
}

/// Where keys go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Mode {
    #[default]
    Moving,
    Filtering,
    Reading,
    /// `q` was pressed where that ends more than the view.
    Leaving,
    Asking(Question),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Extent {
    pub(super) lines: usize,
    /// Lines that fit on the screen at once.
    pub(super) room: usize,
}

impl Extent {
    pub(super) fn furthest(self) -> usize {
        self.lines.saturating_sub(self.room)
    }
}

impl View {
    pub(crate) fn opened(&self) -> Option<&Opened> {
        self.opened.last()
    }

    pub(crate) fn hear(&mut self, said: Option<Said>) {
        if said.is_some() {
            self.notice = said;
        }
    }

    pub(super) fn marked_in(&self, entries: &[Entry]) -> Option<usize> {
        self.marks[self.list.place()].as_ref()?.place_in(entries)
    }

    pub(super) fn marked(&self, look: &Look) -> Option<Entry> {
        let mut entries = self.list.entries(look, &self.filter);
        let at = self.marked_in(&entries)?;
        Some(entries.swap_remove(at))
    }

    /// Moves the mark by so many lines, and puts it where the eye is if there is none.
    pub(super) fn move_mark(&mut self, look: &Look, by: isize) {
        let entries = self.list.entries(look, &self.filter);
        let Some(last) = entries.len().checked_sub(1) else { return };
        let at = match self.marked_in(&entries) {
            Some(at) => at.saturating_add_signed(by).min(last),
            None if self.list.begins_at_the_end() => last,
            None => 0,
        };
        self.marks[self.list.place()] = Some(Mark { id: entries[at].id.clone(), at });
    }

    pub(super) fn open(&mut self, opened: Opened) {
        if self.opened.last() != Some(&opened) {
            self.opened.push(opened);
        }
        self.scroll = 0;
    }
}
