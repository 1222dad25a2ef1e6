//! A terminal for a program in a guest, and its size.
//!
//! Guests run programs with pipes. `script`, which every usual Linux guest has, gives a program a terminal of its own inside the guest; a second program sets its size from outside.

use std::collections::BTreeMap;

use roost_microvm::ExecOptions;
use serde::Deserialize;

/// Columns and rows, as clients send them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Size {
    #[serde(rename = "Width")]
    pub(super) columns: u16,
    #[serde(rename = "Height")]
    pub(super) rows: u16,
}

/// `$1` names this terminal, `$2` and `$3` are its rows and columns, `$4` is the program.
const IN_TERMINAL: &str = r#"note="${TMPDIR:-/tmp}/.roost-terminal-$1"
if command -v script >/dev/null 2>&1; then
    exec script -qefc "tty > '$note'; stty rows $2 cols $3 2>/dev/null; $4
code=\$?; rm -f '$note'; exit \$code" /dev/null
fi
echo "roost: no terminal: this guest has no command 'script'" 2>&1
exec sh -c "$4" 2>&1"#;

const RESIZE: &str = r#"note="${TMPDIR:-/tmp}/.roost-terminal-$1"
[ -s "$note" ] && stty -F "$(cat "$note")" rows "$2" cols "$3""#;

/// One terminal of a guest.
#[derive(Debug, Clone)]
pub(super) struct Terminal {
    name: String,
}

impl Terminal {
    /// `name` is unique among the terminals of a guest, and made of letters and digits.
    pub(super) fn new(name: String) -> Self {
        Self { name }
    }

    /// The program, with a terminal around it.
    pub(super) fn around(&self, command: &[String], size: Size) -> ExecOptions {
        let env = BTreeMap::from([("TERM".to_owned(), "xterm".to_owned())]);
        ExecOptions { argv: self.call(IN_TERMINAL, size, Some(quoted(command))), env }
    }

    pub(super) fn resize(&self, size: Size) -> ExecOptions {
        ExecOptions { argv: self.call(RESIZE, size, None), env: BTreeMap::new() }
    }

    fn call(&self, script: &str, size: Size, command: Option<String>) -> Vec<String> {
        let fixed = ["sh", "-c", script, "roost", &self.name].map(str::to_owned);
        let size = [size.rows.to_string(), size.columns.to_string()];
        fixed.into_iter().chain(size).chain(command).collect()
    }
}

/// One line of a shell that runs exactly these words.
fn quoted(words: &[String]) -> String {
    let quote = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Sizes out of a stream of JSON objects, however it is cut.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    rest: Vec<u8>,
}

impl Sizes {
    /// The newest size in what came, if there is one.
    pub(super) fn take(&mut self, data: &[u8]) -> Option<Size> {
        /// Nobody's terminal needs more; what does not end by then is no size.
        const LONGEST: usize = 1024;
        self.rest.extend_from_slice(data);
        let mut newest = None;
        let mut stream = serde_json::Deserializer::from_slice(&self.rest).into_iter::<Size>();
        let mut done = 0;
        while let Some(Ok(size)) = stream.next() {
            newest = Some(size);
            done = stream.byte_offset();
        }
        self.rest.drain(..done);
        if self.rest.len() > LONGEST {
            self.rest.clear();
        }
        newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_found_however_they_are_cut() {
        let wire = b"{\"Width\":80,\"Height\":24}\n{\"Width\":132,\"Height\":50}\n";
        for cut in 0..wire.len() {
            let mut sizes = Sizes::default();
            let (first, second) = (sizes.take(&wire[..cut]), sizes.take(&wire[cut..]));
            assert_eq!(second.or(first), Some(Size { columns: 132, rows: 50 }), "{cut}");
        }
        let mut sizes = Sizes::default();
        assert_eq!(sizes.take(&[b'x'; 4096]), None);
        assert!(sizes.rest.is_empty(), "rubbish is not kept");
    }

    #[test]
    fn words_reach_the_program_as_they_are() {
        let words = ["echo", "it's $HOME", "", "a\nb"].map(str::to_owned);
        assert_eq!(quoted(&words), "'echo' 'it'\\''s $HOME' '' 'a\nb'");
    }
}
