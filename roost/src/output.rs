use std::io::{Write as _, stdout};

/// Writes to stdout. A reader that has gone away has seen enough: that is no error, and nothing to panic about.
pub(crate) fn say(text: &str) {
    let mut stdout = stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
