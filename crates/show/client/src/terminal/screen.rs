//! The terminal itself: taken for the view, and given back as it was.

use std::io;
use std::time::Duration;

use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event};
use ratatui::{DefaultTerminal, Terminal};
use unicode_width::UnicodeWidthStr as _;

use super::draw::draw;
use super::keys::Effect;
use super::paint::Paint;
use super::view::View;
use super::{Look, Origin};

/// Four frames a second: often enough to see it move, seldom enough to read it.
const FRAME: Duration = Duration::from_millis(250);

/// A terminal in the hands of the view. Dropping it gives it back.
struct Screen {
    terminal: DefaultTerminal,
    paint: Paint,
}

impl Screen {
    /// Also gives the terminal back if the program panics.
    fn take() -> io::Result<Self> {
        Ok(Self { terminal: ratatui::try_init()?, paint: Paint::from_environment() })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Whether anybody is at the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// No key was pressed so far.
    LooksOn,
    Steers,
}

/// Shows what there is to see until somebody has seen enough, or until it `has_ended`. Blocks.
pub fn watch(origin: &mut dyn Origin, has_ended: impl Fn(Audience) -> bool) -> io::Result<()> {
    let mut screen = Screen::take()?;
    let mut view = View::default();
    let mut audience = Audience::LooksOn;
    while !has_ended(audience) {
        let mut look = origin.look(view.opened());
        view.hear(look.said.take());
        screen.terminal.draw(|frame| draw(frame, &look, &mut view, screen.paint))?;
        if !event::poll(FRAME)? {
            continue;
        }
        // All that was typed until now, then the next frame.
        loop {
            if let Event::Key(key) = event::read()? {
                audience = Audience::Steers;
                match view.press(key, &look, || origin.may_act()) {
                    Effect::Nothing => {}
                    Effect::Leave => return Ok(()),
                    Effect::Order(action) => origin.order(action),
                }
            }
            if !event::poll(Duration::ZERO)? {
                break;
            }
        }
    }
    Ok(())
}

/// One frame as lines of text, for where there is no terminal.
pub fn print_once(look: &Look, width: u16, height: u16) -> String {
    let mut view = View::default();
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
    let Ok(frame) = terminal.draw(|frame| draw(frame, look, &mut view, Paint::Plain));
    let mut text = String::new();
    for y in 0..height {
        let (mut line, mut hidden) = (String::new(), 0);
        for x in 0..width {
            let symbol = frame.buffer[(x, y)].symbol();
            // The cell behind a wide character is under it.
            if hidden > 0 {
                hidden -= 1;
                continue;
            }
            hidden = symbol.width().saturating_sub(1);
            line.push_str(symbol);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
