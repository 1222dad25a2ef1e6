//! Logs go to stderr: text on a terminal, JSON otherwise. `ROOST_LOG` sets what is shown.
//!
//! Each event is one line, whatever text of others it holds: a line break in it is spelled out, so that nobody forges a line.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write, stderr};
use std::os::fd::AsFd as _;
use std::time::Duration;

use roost_settings::{LogFormat, LogLevel, LogSettings};
use roost_supervise::LogWriter;
use roost_views::foreign::{escaped, escaped_json};
use tracing_subscriber::EnvFilter;

/// What is left to write at the end gets this long.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// `warn` if `ROOST_LOG` is unset.
pub(crate) fn init() {
    begin("warn", None, Sink::Direct);
}

/// Nothing unless `ROOST_LOG` asks for it: every failure is in what the command says itself.
pub(crate) fn init_silent() {
    begin("off", None, Sink::Direct);
}

/// For a service, by what its file says; `info` if neither says anything, because every decision is told there. A log that cannot be written
/// holds up nobody: `dropped` is told of each line that was lost. What is logged until the end is written when the result is dropped.
pub(crate) fn init_service(
    settings: LogSettings,
    dropped: impl Fn() + Send + Sync + 'static,
) -> Logging {
    let level = match settings.level {
        Some(LogLevel::Debug) => "debug",
        Some(LogLevel::Info) | None => "info",
        Some(LogLevel::Warning) => "warn",
        Some(LogLevel::Error) => "error",
    };
    // A duplicate, because the one of the standard library is locked while somebody waits to write to it.
    let output = stderr().as_fd().try_clone_to_owned().map(File::from);
    let writer = output.and_then(|output| LogWriter::new(output, dropped)).ok();
    begin(level, settings.format, writer.clone().map_or(Sink::Nowhere, Sink::Queue));
    // The usual hook writes to stderr itself, and waits if nobody reads it.
    std::panic::set_hook(Box::new(|panic| {
        let words = panic.payload_as_str().unwrap_or("no words");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panicked: {words}");
    }));
    Logging(writer)
}

/// For the demo, in which both servers may misbehave on purpose: only what nobody arranged. While a view has the terminal, nothing is written into it.
pub(crate) fn init_demo(view_has_terminal: bool) {
    let discards = view_has_terminal && stderr().is_terminal();
    begin("error", discards.then_some(LogFormat::Discard), Sink::Direct);
}

/// The log of a service, until it is dropped.
pub(crate) struct Logging(Option<LogWriter>);

impl Drop for Logging {
    fn drop(&mut self) {
        if let Some(writer) = &self.0 {
            writer.flush_within(LAST_WORDS);
        }
    }
}

fn begin(level: &str, format: Option<LogFormat>, sink: Sink) {
    let filter = EnvFilter::try_from_env("ROOST_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let is_terminal = stderr().is_terminal();
    let form = match format {
        Some(LogFormat::Discard) => return,
        Some(LogFormat::Json) => Form::Json,
        None if !is_terminal => Form::Json,
        Some(LogFormat::Text) | None if is_terminal => Form::Colours,
        Some(LogFormat::Text) | None => Form::Text,
    };
    let lines = move || Lines { sink: sink.clone(), form };
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(lines);
    match form {
        Form::Json => logs.json().init(),
        Form::Text | Form::Colours => logs.with_ansi(form == Form::Colours).init(),
    }
}

#[derive(Debug, Clone)]
enum Sink {
    Direct,
    Queue(LogWriter),
    Nowhere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Text,
    Colours,
}

/// Takes one event for each call of `write`.
struct Lines {
    sink: Sink,
    form: Form,
}

impl Write for Lines {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = one_line(&String::from_utf8_lossy(event), self.form);
        match &mut self.sink {
            // What cannot be written is lost, and nobody panics for it.
            Sink::Direct => drop(stderr().write_all(line.as_bytes())),
            Sink::Queue(writer) => drop(writer.write_all(line.as_bytes())),
            Sink::Nowhere => {}
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn one_line(event: &str, form: Form) -> String {
    let body = event.strip_suffix('\n').unwrap_or(event);
    let mut line = match form {
        Form::Json => escaped_json(body).into_owned(),
        Form::Text => escaped(body).into_owned(),
        Form::Colours => with_colours(body),
    };
    line.push('\n');
    line
}

/// Keeps the colours that the formatter added; in what it was given, it has spelled out the escape character itself.
fn with_colours(mut rest: &str) -> String {
    let mut line = String::with_capacity(rest.len());
    while let Some(at) = rest.find("\u{1b}[") {
        let (before, colour) = rest.split_at(at);
        line.push_str(&escaped(before));
        let is_part = |letter: char| letter.is_ascii_digit() || letter == ';';
        let end = colour[2..].find(|letter| !is_part(letter)).map_or(colour.len(), |end| end + 2);
        if colour[end..].starts_with('m') {
            line.push_str(&colour[..=end]);
            rest = &colour[end + 1..];
        } else {
            line.push_str(&escaped(&colour[..2]));
            rest = &colour[2..];
        }
    }
    line.push_str(&escaped(rest));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_cannot_forge_a_line() {
        let event = "WARN the job says: bye\n2026-01-01 ERROR all is lost\u{85}\u{202e}\n";
        let line = one_line(event, Form::Text);
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(
            line,
            "WARN the job says: bye\\u{a}2026-01-01 ERROR all is lost\\u{85}\\u{202e}\n"
        );
        assert_eq!(
            one_line("{\"a\":\"\u{85}\u{e0001}\"}\n", Form::Json),
            "{\"a\":\"\\u0085\\udb40\\udc01\"}\n"
        );
    }

    #[test]
    fn colours_of_the_formatter_stay_and_other_commands_do_not() {
        let event =
            "\u{1b}[2mtime\u{1b}[0m \u{1b}[33mWARN\u{1b}[0m a\nb \u{1b}[2J \u{1b}]0;title\n";
        assert_eq!(
            one_line(event, Form::Colours),
            "\u{1b}[2mtime\u{1b}[0m \u{1b}[33mWARN\u{1b}[0m a\\u{a}b \\u{1b}[2J \\u{1b}]0;title\n"
        );
    }
}
