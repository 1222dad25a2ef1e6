//! `[log]`. What it says badly is a warning: logging must not keep a service from running.

use crate::environment::Surroundings;
use crate::problem::Problems;
use crate::reader::as_text;
use crate::tree::Table;

/// `None` leaves it to the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogSettings {
    pub level: Option<LogLevel>,
    pub format: Option<LogFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    Debug,
    /// Also `notice`.
    Info,
    Warning,
    Error,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
    Discard,
}

impl LogSettings {
    /// Variables whose names begin with `variables` and `_` come before the file.
    pub fn read(
        variables: &str,
        file: &Table,
        surroundings: &dyn Surroundings,
        problems: &Problems,
    ) -> Self {
        let value = |name: &str| {
            let variable = surroundings.variable(&format!("{variables}_{}", name.to_uppercase()));
            let entry = file.table("log").and_then(|log| log.get(name));
            let text = variable.or_else(|| entry.and_then(|entry| as_text(&entry.value)));
            let text = text.filter(|text| !text.is_empty())?.to_lowercase();
            Some((text, entry.and_then(|entry| entry.line)))
        };
        let level = value("level").and_then(|(text, line)| match text.as_str() {
            "debug" => Some(LogLevel::Debug),
            "info" | "notice" => Some(LogLevel::Info),
            "warning" | "warn" => Some(LogLevel::Warning),
            "error" => Some(LogLevel::Error),
            _ => {
                problems.warn(
                    "log.level",
                    line,
                    format!("must be debug, info, notice, warning or error; is {text:?}"),
                );
                None
            }
        });
        let format = value("format").and_then(|(text, line)| match text.as_str() {
            "text" => Some(LogFormat::Text),
            "json" => Some(LogFormat::Json),
            "discard" => Some(LogFormat::Discard),
            _ => {
                problems.warn(
                    "log.format",
                    line,
                    format!("must be text, json or discard; is {text:?}"),
                );
                None
            }
        });
        Self { level, format }
    }
}
