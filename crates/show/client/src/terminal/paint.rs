use ratatui::style::{Color, Modifier, Style};

use super::Mood;

/// Colours, or none for those who set `NO_COLOR`.
///
/// Only the terminal's own sixteen are used, so that they fit whatever background it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Colours,
    Plain,
}

/// Bold, with or without colours.
pub(super) const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);

/// The line on which somebody is. Reversed, so that it is seen without colours, too.
pub(super) const MARKED: Style = Style::new().add_modifier(Modifier::REVERSED);

impl Paint {
    pub(super) fn from_environment() -> Self {
        match std::env::var_os("NO_COLOR") {
            Some(value) if !value.is_empty() => Self::Plain,
            _ => Self::Colours,
        }
    }

    pub(super) fn mood(self, mood: Mood) -> Style {
        let colour = match mood {
            Mood::Good => Color::Green,
            Mood::Busy => Color::Cyan,
            Mood::Waiting => Color::Yellow,
            Mood::Bad => Color::Red,
            Mood::Quiet => Color::DarkGray,
            Mood::Plain => Color::Reset,
        };
        match self {
            Self::Colours => Style::new().fg(colour),
            Self::Plain => Style::new(),
        }
    }

    pub(super) fn quiet(self) -> Style {
        self.mood(Mood::Quiet)
    }
}
