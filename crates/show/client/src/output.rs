use std::fmt;
use std::io::{self, ErrorKind, Write as _, stderr, stdout};

use anyhow::Context as _;
use roost_views::foreign::replaced;

/// Writes to stdout. A reader that has gone away has seen enough: that is no error, and nothing to panic about.
pub fn say(text: &str) {
    let _ = write_out(text);
}

/// Writes what a command was asked for to stdout, such as a file to begin with. A full disk is an error; a reader that has gone away is not.
pub fn deliver(text: &str) -> anyhow::Result<()> {
    match write_out(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("writing to standard output")
        }
        _ => Ok(()),
    }
}

/// Writes to stderr, as `eprintln!` does, but does not panic if it cannot be written. What others have put into it cannot command the terminal.
pub fn complain(words: impl fmt::Display) {
    let _ = writeln!(stderr(), "{}", printable(&words.to_string()));
}

/// Line breaks stay: a configuration may have several problems.
pub(crate) fn printable(words: &str) -> String {
    let lines: Vec<_> = words.split('\n').map(replaced).collect();
    lines.join("\n")
}

fn write_out(text: &str) -> io::Result<()> {
    let mut stdout = stdout();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
