use std::fmt;
use std::io::{self, ErrorKind, Write as _, stderr, stdout};

use anyhow::Context as _;

/// Writes to stdout. A reader that has gone away has seen enough: that is no error, and nothing to panic about.
pub(crate) fn say(text: &str) {
    let _ = write_out(text);
}

/// Writes what a command was asked for to stdout, such as a file to begin with. A full disk is an error; a reader that has gone away is not.
pub(crate) fn deliver(text: &str) -> anyhow::Result<()> {
    match write_out(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("writing to standard output")
        }
        _ => Ok(()),
    }
}

/// Writes a line to stderr, as `eprintln!` does, but does not panic if it cannot be written.
pub(crate) fn complain(line: impl fmt::Display) {
    let _ = writeln!(stderr(), "{line}");
}

fn write_out(text: &str) -> io::Result<()> {
    let mut stdout = stdout();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
