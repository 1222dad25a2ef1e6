//! The terminal itself: taken for the view, and given back as it was.

use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::Picture;
use super::draw::draw;
use super::paint::Paint;

/// Four frames a second: often enough to see it move, seldom enough to read it.
const FRAME: Duration = Duration::from_millis(250);

/// A terminal in the hands of the view. Dropping it gives it back.
pub(crate) struct Screen {
    terminal: DefaultTerminal,
    paint: Paint,
}

/// What somebody who looks on wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    More,
    Enough,
}

impl Screen {
    /// Also gives the terminal back if the program panics.
    pub(crate) fn take() -> io::Result<Self> {
        Ok(Self { terminal: ratatui::try_init()?, paint: Paint::from_environment() })
    }

    /// Shows a picture until it is time for the next one, or until a key was pressed.
    pub(crate) fn show(&mut self, picture: &Picture) -> io::Result<Seen> {
        self.terminal.draw(|frame| draw(frame, picture, self.paint))?;
        if !event::poll(FRAME)? {
            return Ok(Seen::More);
        }
        Ok(match event::read()? {
            Event::Key(key) if is_end(key) => Seen::Enough,
            _ => Seen::More,
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// In the view's hands a terminal sends no signal for Ctrl-C.
fn is_end(key: KeyEvent) -> bool {
    let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press
        && matches!(
            (key.code, with_control),
            (KeyCode::Char('c'), true) | (KeyCode::Char('q') | KeyCode::Esc, false)
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_and_ctrl_c_end_it_and_other_keys_do_not() {
        let key = |code, modifiers| is_end(KeyEvent::new(code, modifiers));
        assert!(key(KeyCode::Char('q'), KeyModifiers::NONE));
        assert!(key(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(!key(KeyCode::Char('c'), KeyModifiers::NONE));
        assert!(!key(KeyCode::Enter, KeyModifiers::NONE));
    }
}
