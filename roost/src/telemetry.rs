use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::EnvFilter;

/// Logs go to stderr: text on a terminal, JSON otherwise. `ROOST_LOG` sets what is shown, `warn` if unset.
pub(crate) fn init() {
    let filter = EnvFilter::try_from_env("ROOST_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    if stderr().is_terminal() {
        logs.init();
    } else {
        logs.json().init();
    }
}
