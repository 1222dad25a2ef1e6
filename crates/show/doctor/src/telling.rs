//! Telling what was found while it is found.

use std::io::{IsTerminal as _, Write as _, stderr, stdout};

use roost_views::foreign::escaped_json;
use serde::Serialize;

use crate::report::{Counts, Section};
use crate::text::{self, Style};

/// Says each section as soon as it is known, or all of them as JSON at the end.
#[derive(Debug)]
pub struct Telling {
    json: bool,
    style: Style,
    shows_progress: bool,
    sections: Vec<Section>,
}

#[derive(Serialize)]
struct Whole<'a> {
    ok: bool,
    summary: Counts,
    sections: &'a [Section],
}

impl Telling {
    pub fn new(json: bool) -> Self {
        Self {
            json,
            style: Style::from_environment(),
            shows_progress: !json && stderr().is_terminal(),
            sections: Vec::new(),
        }
    }

    /// A server that hangs takes a while, and a person wants to know which.
    pub fn begin(&self, system: &str) {
        if self.shows_progress {
            let _ = write!(stderr(), "asking the {system} ...").and_then(|()| stderr().flush());
        }
    }

    pub fn tell(&mut self, section: Section) {
        if self.shows_progress {
            let _ = write!(stderr(), "\r\x1b[K");
        }
        if !self.json {
            say(&text::section(&section, self.style));
        }
        self.sections.push(section);
    }

    /// True unless a check failed.
    pub fn conclude(self) -> bool {
        let summary = Counts::of(&self.sections);
        let ok = summary.fail == 0;
        if self.json {
            let report = Whole { ok, summary, sections: &self.sections };
            // Strings and numbers only: this cannot fail.
            let text = serde_json::to_string_pretty(&report).unwrap_or_default();
            say(&format!("{}\n", escaped_json(&text)));
        } else {
            say(&text::summary(summary, self.style.paint));
        }
        ok
    }
}

/// A reader that has gone away has seen enough.
fn say(text: &str) {
    let _ = stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush());
}
