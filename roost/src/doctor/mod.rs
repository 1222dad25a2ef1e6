//! `roost doctor`: whether a hatchery with this file could do its work, before it does any.
//!
//! Each system is examined in two halves: one asks and keeps what it was told, the other, without any I/O, says what that means and what to do.
//! Nothing is changed: the vCenter is asked through the read-only handle, and CDS by what leaves no trace unless `--sign-in` says otherwise.

mod cds;
mod clock;
mod config;
mod patience;
mod reach;
mod report;
mod text;
mod vcenter;

use std::io::{IsTerminal as _, Write as _, stderr};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use roost_clock::{Clock, SystemClock};
use roost_views::foreign::escaped_json;
use serde::Serialize;

use self::cds::SignIn;
use self::report::{Counts, Section};
use self::text::Style;
use crate::cli::Doctor;
use crate::output::say;

/// Succeeds unless a check failed.
pub(crate) async fn run(args: Doctor) -> anyhow::Result<ExitCode> {
    let mut telling = Telling::new(args.json);
    let (config, section) = config::examine(&args.config);
    telling.tell(section);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    match config {
        None => {
            let why = "the file cannot be used";
            telling.tell(Section::skipped(cds::SYSTEM_NAME, "", why));
            telling.tell(Section::skipped(vcenter::SYSTEM_NAME, "", why));
        }
        Some(config) => {
            let sign_in = if args.sign_in { SignIn::Whole } else { SignIn::TokenOnly };
            telling.begin(cds::SYSTEM_NAME);
            let (section, models) = cds::examine(&config, sign_in, &clock).await;
            telling.tell(section);
            telling.begin(vcenter::SYSTEM_NAME);
            telling.tell(vcenter::examine(&config, &models, &clock).await);
        }
    }
    telling.conclude()
}

/// Says each section as soon as it is known, or all of them as JSON at the end.
struct Telling {
    json: bool,
    style: Style,
    shows_progress: bool,
    sections: Vec<Section>,
}

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    summary: Counts,
    sections: &'a [Section],
}

impl Telling {
    fn new(json: bool) -> Self {
        Self {
            json,
            style: Style::from_environment(),
            shows_progress: !json && stderr().is_terminal(),
            sections: Vec::new(),
        }
    }

    /// A server that hangs takes a while, and a person wants to know which.
    fn begin(&self, system: &str) {
        if self.shows_progress {
            let _ = write!(stderr(), "asking the {system} ...").and_then(|()| stderr().flush());
        }
    }

    fn tell(&mut self, section: Section) {
        if self.shows_progress {
            let _ = write!(stderr(), "\r\x1b[K");
        }
        if !self.json {
            say(&text::section(&section, self.style));
        }
        self.sections.push(section);
    }

    fn conclude(self) -> anyhow::Result<ExitCode> {
        let summary = Counts::of(&self.sections);
        let ok = summary.fail == 0;
        if self.json {
            let report = Report { ok, summary, sections: &self.sections };
            let text = serde_json::to_string_pretty(&report).context("writing JSON")?;
            say(&format!("{}\n", escaped_json(&text)));
        } else {
            say(&text::summary(summary, self.style.paint));
        }
        Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
