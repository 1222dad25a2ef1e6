use std::io::{IsTerminal as _, stderr};

use roost_hatchery::config::{LogFormat, LogLevel, LogSettings};
use tracing_subscriber::EnvFilter;

/// Logs go to stderr: text on a terminal, JSON otherwise. `ROOST_LOG` sets what is shown, `warn` if unset.
pub(crate) fn init() {
    begin("warn", None);
}

/// Nothing unless `ROOST_LOG` asks for it: every failure is in what the command says itself.
pub(crate) fn init_silent() {
    begin("off", None);
}

/// The same for a service, by what its file says; `info` if neither says anything, because every decision is told there.
pub(crate) fn init_service(settings: LogSettings) {
    let level = match settings.level {
        Some(LogLevel::Debug) => "debug",
        Some(LogLevel::Info) | None => "info",
        Some(LogLevel::Warning) => "warn",
        Some(LogLevel::Error) => "error",
    };
    begin(level, settings.format);
}

/// For the demo, in which both servers may misbehave on purpose: only what nobody arranged. While a view has the terminal, nothing is written into it.
pub(crate) fn init_demo(view_has_terminal: bool) {
    let discards = view_has_terminal && stderr().is_terminal();
    begin("error", discards.then_some(LogFormat::Discard));
}

fn begin(level: &str, format: Option<LogFormat>) {
    let filter = EnvFilter::try_from_env("ROOST_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    match format {
        Some(LogFormat::Discard) => {}
        Some(LogFormat::Text) => logs.with_ansi(stderr().is_terminal()).init(),
        None if stderr().is_terminal() => logs.init(),
        Some(LogFormat::Json) | None => logs.json().init(),
    }
}
